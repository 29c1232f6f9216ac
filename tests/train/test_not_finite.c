/* A model that computes something that is not finite has no answers: weights that are damaged in the file,
 * and weights that are finite but too large, for every task, in a session and through the library, which goes
 * on afterwards.
 *
 * `test_not_finite spoil DIR` writes models for tests/cli/test_embed.sh, of which "pretraining" is
 * damaged. */
#define _GNU_SOURCE
#include "session_case.h"

#include "api/api.h"

static char directory[64];

static const struct {
    const char *model;
    enum model_task task;
    enum kiln_task public_task;
    const char *what;
} cases[] = {{"masked_lm", MODEL_TASK_MASKED_LM, KILN_FILL, "the scores of the words"},
             {"question_answering", MODEL_TASK_QUESTION_ANSWERING, KILN_ASK, "the scores of the answers"},
             {"encoder", MODEL_TASK_ENCODER, KILN_EMBED, "the vectors"},
             {"masked_lm", MODEL_TASK_ENCODER, KILN_EMBED, "the vectors"}};
enum { N_CASES = 4 };

static const char *path_of(const char *name)
{
    static char path[SESSION_CASE_PATH];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static struct status answer(struct session *s, enum model_task task)
{
    struct fill_result filled = {0};
    struct ask_result found = {0};
    struct ask_options o = ask_defaults();
    float vectors[SESSION_CASE_NUMBERS];
    struct status status;
    if (task == MODEL_TASK_MASKED_LM) {
        status = fill_mask(s, session_case_masked, sizeof session_case_masked - 1, 3, &filled);
        EXPECT(filled.n_masks == 0 || !failed(status), "a failed call has a result");
        fill_result_fini(&filled);
    } else if (task == MODEL_TASK_QUESTION_ANSWERING) {
        status = ask_question(s, session_case_question, session_case_context, sizeof session_case_context - 1,
                              &o, &found);
        EXPECT(found.n == 0 || !failed(status), "a failed call has a result");
        ask_result_fini(&found);
    } else {
        status = session_case_embed(s, vectors, session_case_texts, SESSION_CASE_TEXTS);
    }
    return status;
}

static struct kiln_status answer_publicly(struct kiln_session *s, enum kiln_task task)
{
    struct kiln_words words = {0};
    struct kiln_answers answers = {0};
    struct kiln_vectors vectors = {0};
    struct kiln_text text = {"a mad dog", 9};
    struct kiln_status status;
    if (task == KILN_FILL) {
        status = kiln_fill(s, &words, session_case_masked, sizeof session_case_masked - 1, 3);
    } else if (task == KILN_ASK) {
        status = kiln_ask(s, &answers, session_case_question, session_case_context,
                          sizeof session_case_context - 1, NULL);
    } else {
        status = kiln_embed(s, &vectors, &text, 1, NULL);
    }
    EXPECT(status.code == KILN_OK ||
               (words.words == NULL && answers.answers == NULL && vectors.values == NULL),
           "a failed call has a result");
    kiln_words_free(&words);
    kiln_answers_free(&answers);
    kiln_vectors_free(&vectors);
    return status;
}

static tensor weight_of(struct network *n, const char *name)
{
    const struct param *p = param_table_find(&n->params, name);
    EXPECT(p != NULL, "no %s", name);
    return param_view(p, network_has_master(n) ? n->master : n->working);
}

static const char INTERMEDIATE[] = "bert.encoder.layer.0.intermediate.dense.weight";

static void spoil(struct network *n, double value)
{
    tensor w = weight_of(n, INTERMEDIATE);
    for (int64_t i = 0; i < tensor_count(w); i++) {
        tensor_set(w, i, value);
    }
    network_weights_changed(n);
}

/* The first layer's, though two layers' activations serve all in turn. */
static void test_sessions(enum dtype dtype)
{
    struct session_options o = session_defaults();
    o.dtype = dtype;
    for (int i = 0; i < N_CASES; i++) {
        struct session s;
        EXPECT_OK(session_open(&s, path_of(cases[i].model), cases[i].task, &o));
        EXPECT_OK(answer(&s, cases[i].task));
        spoil(&s.net, 3e38);
        EXPECT_ERROR(answer(&s, cases[i].task), STATUS_NUMERIC, "the activation layer 0 intermediate");
        EXPECT_ERROR(answer(&s, cases[i].task), STATUS_NUMERIC, cases[i].what);
        spoil(&s.net, NAN);
        EXPECT_ERROR(answer(&s, cases[i].task), STATUS_NUMERIC, INTERMEDIATE);
        spoil(&s.net, 0.1);
        EXPECT_OK(answer(&s, cases[i].task));
        session_close(&s);
    }
}

static void test_library(void)
{
    for (int i = 0; i < N_CASES; i++) {
        struct kiln_model *m;
        struct kiln_session *s;
        EXPECT(kiln_model_open(&m, path_of(cases[i].model)).code == KILN_OK, "model");
        EXPECT(kiln_session_open(&s, m, cases[i].public_task).code == KILN_OK, "session");
        spoil(&m->weights.net, NAN);
        struct kiln_status status = answer_publicly(s, cases[i].public_task);
        EXPECT(status.code == KILN_NUMERIC && strstr(status.message, INTERMEDIATE) != NULL, "%s",
               status.message);
        spoil(&m->weights.net, 0.1);
        EXPECT(answer_publicly(s, cases[i].public_task).code == KILN_OK, "the session does not go on");
        kiln_session_close(s);
        kiln_model_close(m);
    }
}

/* Takes the keys of checksums from a file: what is written into it then is not found as damage. */
static void forget_sums(const char *path)
{
    struct safetensors f;
    EXPECT_OK(safetensors_open(&f, path));
    size_t n = f.map.n;
    char *bytes = malloc(n), *at = bytes;
    EXPECT(bytes != NULL, "memory");
    memcpy(bytes, f.map.data, n);
    safetensors_close(&f);
    while ((at = memmem(at, n - (size_t)(at - bytes), SAFETENSORS_SUM, strlen(SAFETENSORS_SUM))) != NULL) {
        *at = '_';
    }
    EXPECT_OK(file_write_atomic(path, bytes, n));
    free(bytes);
}

static void test_files(void)
{
    static const float bad = NAN;
    char path[SESSION_CASE_PATH];
    struct safetensors files;
    struct session s;
    struct kiln_model *m;
    struct session_options o = session_defaults();
    snprintf(path, sizeof path, "%s", path_of("pretraining/model.safetensors"));
    forget_sums(path);
    EXPECT_OK(safetensors_open(&files, path));
    const struct stored_tensor *e = safetensors_find(&files, INTERMEDIATE);
    long offset = (long)(e->data - files.map.data) + 3 * (long)sizeof bad;
    safetensors_close(&files);
    FILE *file = fopen(path, "r+b");
    EXPECT(file != NULL && fseek(file, offset, SEEK_SET) == 0 && fwrite(&bad, sizeof bad, 1, file) == 1 &&
               fclose(file) == 0,
           "edit");
    EXPECT_ERROR(session_open(&s, path_of("pretraining"), MODEL_TASK_ENCODER, &o), STATUS_NUMERIC,
                 INTERMEDIATE);
    struct kiln_status status = kiln_model_open(&m, path_of("pretraining"));
    EXPECT(status.code == KILN_NUMERIC && strstr(status.message, "element 3 is") != NULL && m == NULL, "%s",
           status.message);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "spoil") == 0) {
        snprintf(directory, sizeof directory, "%s", argv[2]);
        session_case_unpack(directory);
        test_files();
        return 0;
    }
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
    test_sessions(DTYPE_F32);
    test_sessions(DTYPE_BF16);
    test_library();
    test_files();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
