#include "serve/session.h"

#include "text/tokenizer_config.h"
#include "train/checkpoint.h"

static struct status read_config(const struct checkpoint *c, struct trainer_config *config)
{
    *config = (struct trainer_config){
        .device = &device_cpu,
        .ops = ops_cpu(),
        .dtype = DTYPE_F32,
        .optimizer = optimizer_defaults(OPTIMIZER_ADAMW),
    };
    TRY(bert_config_parse(&config->model, c->config, c->path));
    int64_t length = config->model.max_position_embeddings;
    config->limits = bert_batch_limits(1, length, length);
    return status_ok();
}

static struct status open_from(struct session *s, const struct checkpoint *c)
{
    struct trainer_config config;
    struct tokenizer_config text;
    const struct file_map *vocab = &c->files[CHECKPOINT_VOCAB];
    TRY(read_config(c, &config));
    TRY(vocab_init(&s->vocab, (const char *)vocab->data, vocab->n, c->path));
    if (config.model.vocab_size != s->vocab.n) {
        return status_error(STATUS_DATA, "%s: config.json has \"vocab_size\" %lld, but vocab.txt %d pieces",
                            c->path, (long long)config.model.vocab_size, s->vocab.n);
    }
    TRY(tokenizer_config_parse(&text, c->tokenizer, c->path));
    TRY(wordpiece_init(&s->tokenizer, &s->vocab, text.lower_case));
    TRY(trainer_init(&s->model, &config));
    TRY(checkpoint_read_weights(c, &s->model.params, s->model.master));
    trainer_weights_changed(&s->model);
    return bert_batch_init(&s->batch, config.limits);
}

struct status session_open(struct session *s, const char *path)
{
    struct checkpoint c = {0};
    *s = (struct session){0};
    struct status status = checkpoint_open_model(&c, path);
    if (!failed(status)) {
        status = open_from(s, &c);
    }
    checkpoint_close(&c);
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
    vocab_fini(&s->vocab);
    *s = (struct session){0};
}

struct status session_plan(struct trainer_plan *plan, const char *path)
{
    struct checkpoint c = {0};
    struct trainer_config config;
    struct status s = checkpoint_open_model(&c, path);
    if (!failed(s)) {
        s = read_config(&c, &config);
    }
    if (!failed(s)) {
        s = trainer_plan(plan, &config);
    }
    checkpoint_close(&c);
    return s;
}
