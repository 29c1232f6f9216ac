/* Classifiers of Hugging Face's classes (tests/golden/make_classify.py): their directories are read with
 * task, problem and names of labels; logits and losses are those of `transformers` within 1e-5, of every
 * problem; and what is saved is read as the same. */
#define _GNU_SOURCE
#include "model/bert/bert_family.h"
#include "session_case.h"

#include "data/text_batch.h"
#include "nn/bert/bert_model.h"
#include "pass/network_files.h"
#include "train/trainer.h"

enum { B = 3, S = 24, MOST = B * S * 5 };

struct golden {
    const char *name;
    enum model_task task;
    enum label_problem problem;
    int64_t n_labels;
    const char *last; /* label */
};

static const struct golden cases[] = {
    {"single", MODEL_TASK_SEQUENCE_CLASSIFICATION, PROBLEM_SINGLE_LABEL, 3,
     "ja, \xC3\xBC"
     "berall"},
    {"multi", MODEL_TASK_SEQUENCE_CLASSIFICATION, PROBLEM_MULTI_LABEL, 4, "d"},
    {"regression", MODEL_TASK_SEQUENCE_CLASSIFICATION, PROBLEM_REGRESSION, 1, "LABEL_0"},
    {"tokens", MODEL_TASK_TOKEN_CLASSIFICATION, PROBLEM_SINGLE_LABEL, 5, "I-LOC"},
};

static int64_t read_entry(const struct safetensors *file, const char *case_name, const char *what, void *data,
                          enum dtype dtype)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s%s", case_name, *case_name == '\0' ? "" : ":", what);
    const struct stored_tensor *e = safetensors_find(file, name);
    EXPECT(e != NULL, "%s is missing", name);
    tensor t =
        e->n_dims == 1 ? tensor_1d(data, dtype, e->dims[0]) : tensor_2d(data, dtype, e->dims[0], e->dims[1]);
    EXPECT(tensor_count(t) <= MOST, "%s is large", name);
    EXPECT_OK(stored_tensor_read(e, t));
    return tensor_count(t);
}

static void fill(struct batch_step *step, const struct safetensors *file, const struct golden *g)
{
    int32_t ids[MOST], types[MOST], lengths[MOST], labels[MOST];
    struct batch *b = &step->micro[0];
    bool numbers = g->problem != PROBLEM_SINGLE_LABEL;
    read_entry(file, "", "ids", ids, DTYPE_I32);
    read_entry(file, "", "types", types, DTYPE_I32);
    read_entry(file, "", "lengths", lengths, DTYPE_I32);
    int64_t n = read_entry(file, g->name, "labels", labels, numbers ? DTYPE_F32 : DTYPE_I32);
    for (int i = 0; i < B; i++) {
        int64_t n_first = 0;
        while (n_first < lengths[i] && types[i * S + n_first] == 0) {
            n_first++;
        }
        memcpy(text_batch_add(b, lengths[i], n_first, -1, i), ids + i * S, (size_t)lengths[i] * sizeof *ids);
    }
    memcpy(b->fields[TEXT_CLASS_LABELS], labels, (size_t)n * sizeof *labels);
    batch_finish(b, 0);
    batch_step_count(step);
}

static void expect_golden(struct trainer *t, const struct batch_step *step, const struct safetensors *file,
                          const struct golden *g)
{
    double wanted[MOST], loss, worst = 0, scale = 1;
    struct trainer_result r;
    stage_infer(&t->net.stage, &step->micro[0]);
    EXPECT_OK(t->net.x.status);
    tensor logits = stage_head_output(
        &t->net.stage, g->task == MODEL_TASK_TOKEN_CLASSIFICATION ? MODEL_TOKEN_LOGITS : MODEL_TEXT_LOGITS);
    int64_t n = read_entry(file, g->name, "logits", wanted, DTYPE_F64);
    for (int64_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs(tensor_get(logits, i) - wanted[i]));
        scale = fmax(scale, fabs(wanted[i]));
    }
    EXPECT(worst <= 1e-5 * scale, "%s: logits differ by %g of %g", g->name, worst, scale);
    read_entry(file, g->name, "loss", &loss, DTYPE_F64);
    EXPECT_OK(trainer_evaluate(t, step, &r));
    EXPECT_NEAR(trainer_result_loss(&r), loss, 1e-5 * fmax(1, loss));
    printf("%s: logits within %.2g of %.3g, loss %.7f of %.7f\n", g->name, worst, scale,
           trainer_result_loss(&r), loss);
}

/* Reads `path`, and saves what was read as `to`, if that is not NULL. */
static void check_directory(const struct safetensors *file, const struct golden *g, const char *path,
                            const char *to)
{
    struct model_dir m;
    struct trainer t;
    struct load_report report;
    struct batch_step step;
    EXPECT_OK(model_dir_open(&m, path));
    const struct bert_config *held = m.config;
    EXPECT(m.task == g->task && held->labels.problem == g->problem && held->labels.n == g->n_labels &&
               held->classifier_dropout == 0.25,
           "%s: %s, %s, %lld labels, dropout %g", path, bert_kind.classes[m.task],
           label_problem_name(held->labels.problem), (long long)held->labels.n, held->classifier_dropout);
    EXPECT(strcmp(label_names_get(m.labels, g->n_labels - 1), g->last) == 0, "%s: the last label is %s", path,
           label_names_get(m.labels, g->n_labels - 1));
    struct bert_model bert = bert_model(held, m.task);
    struct trainer_config config = {
        .net =
            {
                .model = &bert.blocks.model,
                .device = &device_cpu,
                .ops = ops_cpu(),
                .precision = {.dtype = DTYPE_F32},
                .limits = text_batch_limits(B, S, 0),
                .learns = true,
            },
        .optimizer = optimizer_defaults(&optimizer_adamw),
    };
    EXPECT_OK(trainer_init(&t, &config));
    EXPECT_OK(network_files_load(&t.net, &m, m.task, 0, NULL, &report));
    EXPECT_OK(batch_step_init(&step, 1, &bert.blocks.model.layout, config.net.limits));
    fill(&step, file, g);
    expect_golden(&t, &step, file, g);
    if (to != NULL) {
        struct model_dir_contents c = {
            .family = m.family, .task = m.task, .config = m.config, .tokenizer = &m.tokenizer};
        EXPECT_OK(network_files_export(&t.net, to, &c));
    }
    batch_step_fini(&step);
    trainer_fini(&t);
    model_dir_close(&m);
}

int main(void)
{
    struct safetensors file;
    char directory[SESSION_CASE_PATH], path[SESSION_CASE_PATH + 32], saved[SESSION_CASE_PATH + 32];
    session_case_directory(directory, sizeof directory);
    EXPECT_OK(safetensors_open(&file, KILN_SOURCE_DIR "/tests/golden/classify.safetensors"));
    session_case_write(&file, directory, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, cases[i].name);
        snprintf(saved, sizeof saved, "%s/%s_saved", directory, cases[i].name);
        check_directory(&file, &cases[i], path, saved);
        check_directory(&file, &cases[i], saved, NULL);
    }
    safetensors_close(&file);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
