#include "serve/session.h"

#include "train/trainer_state.h"

/* A text of n tokens takes at least 2 of them, [CLS] and [SEP]. */
static struct bert_batch_limits limits_of(int64_t length, enum bert_task task)
{
    bool masked = task == BERT_TASK_MASKED_LM || task == BERT_TASK_PRETRAINING;
    struct bert_batch_limits limits = bert_batch_limits(1, length, masked ? length : 0);
    if (!masked) {
        limits.n_tokens = limits.n_tokens > SESSION_BATCH_TOKENS ? limits.n_tokens : SESSION_BATCH_TOKENS;
        limits.n_sequences = limits.n_tokens / 2 + 1;
    }
    return limits;
}

static struct trainer_config config_of(const struct bert_config *model, enum bert_task task,
                                       struct bert_batch_limits limits)
{
    return (struct trainer_config){
        .model = *model,
        .task = task,
        .device = &device_cpu,
        .ops = ops_cpu(),
        .dtype = DTYPE_F32,
        .optimizer = optimizer_defaults(OPTIMIZER_ADAMW),
        .limits = limits,
    };
}

static struct status open_from(struct session *s, struct model_dir *m, enum bert_task task,
                               struct bert_batch_limits limits)
{
    struct trainer_config config = config_of(&m->config, task, limits);
    struct load_report report;
    unsigned may_be_new = task == BERT_TASK_ENCODER ? 1U << NAMES_POOLER : 0;
    s->vocab = m->vocab;
    m->vocab = (struct vocab){0};
    s->max_length = m->text.model_max_length;
    TRY(wordpiece_init(&s->tokenizer, &s->vocab, m->text.lower_case));
    TRY(trainer_init(&s->model, &config));
    TRY(trainer_state_load(&s->model, m, may_be_new, &report));
    if (!load_report_is_plain(&report)) {
        load_report_print(&report, m->path);
    }
    return bert_batch_init(&s->batch, config.limits);
}

struct status session_open(struct session *s, const char *path, enum bert_task task)
{
    struct model_dir m;
    *s = (struct session){0};
    TRY(model_dir_open(&m, path));
    struct status status = open_from(s, &m, task, limits_of(m.text.model_max_length, task));
    model_dir_close(&m);
    if (failed(status)) {
        session_close(s);
    }
    return status;
}

struct status session_open_model(struct session *s, const char *path)
{
    struct model_dir m;
    *s = (struct session){0};
    TRY(model_dir_open(&m, path));
    struct status status = open_from(s, &m, m.task, bert_batch_limits(1, 1, 0));
    model_dir_close(&m);
    if (failed(status)) {
        session_close(s);
    }
    return status;
}

/* The task to run for another: a model without a pooler makes sentence vectors as what it is, since they are
 * taken below the heads. */
static struct status task_on(enum bert_task *task, enum bert_task held)
{
    if (*task == held || (held == BERT_TASK_PRETRAINING && *task != BERT_TASK_QUESTION_ANSWERING)) {
        return status_ok();
    }
    if (*task != BERT_TASK_ENCODER) {
        return status_error(STATUS_DATA, "the model is a %s and has no head of a %s", bert_task_class(held),
                            bert_task_class(*task));
    }
    *task = held;
    return status_ok();
}

static struct status open_over(struct session *s, const struct session *model, enum bert_task task)
{
    struct bert_batch_limits limits = limits_of(model->max_length, task);
    TRY(task_on(&task, model->model.config.task));
    struct trainer_config config = config_of(&model->model.config.model, task, limits);
    TRY(wordpiece_init(&s->tokenizer, &s->vocab, model->tokenizer.basic.lower_case));
    TRY(trainer_init_shared(&s->model, &config, &model->model));
    return bert_batch_init(&s->batch, limits);
}

struct status session_open_shared(struct session *s, const struct session *model, enum bert_task task)
{
    *s = (struct session){.vocab = model->vocab, .shared = true, .max_length = model->max_length};
    struct status status = open_over(s, model, task);
    if (failed(status)) {
        session_close(s);
    }
    return status;
}

void session_close(struct session *s)
{
    bert_batch_fini(&s->batch);
    trainer_fini(&s->model);
    wordpiece_fini(&s->tokenizer);
    if (!s->shared) {
        vocab_fini(&s->vocab);
    }
    *s = (struct session){0};
}

struct status session_plan(struct trainer_plan *plan, const char *path, enum bert_task task)
{
    struct model_dir m;
    TRY(model_dir_open(&m, path));
    struct trainer_config config = config_of(&m.config, task, limits_of(m.text.model_max_length, task));
    struct status s = trainer_plan(plan, &config);
    model_dir_close(&m);
    return s;
}
