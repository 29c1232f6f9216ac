/* session_case: small models of every head, and what sessions on them answer, as numbers. */
#ifndef KILN_TESTS_SESSION_CASE_H
#define KILN_TESTS_SESSION_CASE_H

#include "../test.h"

#include "io/file.h"
#include "io/safetensors.h"
#include "serve/ask.h"
#include "serve/embed.h"
#include "serve/fill_mask.h"

enum {
    SESSION_CASE_PATH = 512,
    SESSION_CASE_WIDTH = 16,
    SESSION_CASE_TEXTS = 4,
    SESSION_CASE_TOP_K = 7,
    SESSION_CASE_NUMBERS = SESSION_CASE_TEXTS * SESSION_CASE_WIDTH
};

static const struct embed_text session_case_texts[SESSION_CASE_TEXTS] = {
    {"a mad dog", 9}, {"", 0}, {"a man and a dog, in a big cage", 30}, {"ice", 3}};
static const char session_case_masked[] = "a [MASK] had a [MASK]";
static const char session_case_question[] = "had a man?";
static const char session_case_context[] =
    "A man had a dog. A big dog had bad food and ran off, and a mad man had an old cab: no food, no home.";

/* Writes the entries "FOLDER/FILE" of golden files into `directory`; `only` names one FOLDER, NULL all. */
static inline void session_case_write(const struct safetensors *golden, const char *directory,
                                      const char *only)
{
    char path[SESSION_CASE_PATH];
    for (int i = 0; i < golden->n; i++) {
        const struct safetensors_entry *e = &golden->entries[i];
        const char *slash = strrchr(e->name, '/');
        size_t n = only == NULL ? 0 : strlen(only);
        if (slash != NULL && (only == NULL || (strncmp(e->name, only, n) == 0 && e->name[n] == '/'))) {
            snprintf(path, sizeof path, "%s/%.*s", directory, (int)(slash - e->name), e->name);
            EXPECT_OK(file_make_directories(path));
            snprintf(path, sizeof path, "%s/%s", directory, e->name);
            EXPECT_OK(file_write_atomic(path, e->data, e->bytes));
        }
    }
}

/* The models of tests/golden/hf_dirs.safetensors, each in a folder of its name.  A build that was carried to
 * another machine finds them from the root of the sources there. */
static inline void session_case_unpack(const char *directory)
{
    struct safetensors golden;
    const char *from = KILN_SOURCE_DIR "/tests/golden/hf_dirs.safetensors";
    EXPECT_OK(safetensors_open(&golden, file_exists(from) ? from : strstr(from, "tests/golden")));
    session_case_write(&golden, directory, NULL);
    safetensors_close(&golden);
}

/* Replaces the first `old` in a file by `new`. */
static inline void session_case_edit(const char *path, const char *old, const char *new)
{
    struct file_map map;
    struct buf b = {0};
    EXPECT_OK(file_map_open(&map, path));
    const char *text = (const char *)map.data, *at = memmem(text, map.n, old, strlen(old));
    EXPECT(at != NULL, "%s has no %s", path, old);
    buf_append(&b, text, (size_t)(at - text));
    buf_puts(&b, new);
    buf_append(&b, at + strlen(old), map.n - (size_t)(at - text) - strlen(old));
    EXPECT_OK(buf_status(&b));
    file_map_close(&map);
    EXPECT_OK(file_write_atomic(path, b.data, b.n));
    buf_fini(&b);
}

/* A new directory for a test's files. */
static inline void session_case_directory(char *out, size_t n)
{
    const char *parent = getenv("TMPDIR");
    snprintf(out, n, "%s/kiln_session_XXXXXX", parent == NULL ? "/tmp" : parent);
    EXPECT(mkdtemp(out) != NULL, "%s", out);
}

/* Vectors as the model's files say. */
static inline struct status session_case_embed(struct session *s, float *vectors,
                                               const struct embed_text *texts, size_t n)
{
    struct embed_plan plan;
    int64_t n_cut;
    TRY(embed_plan_make(&plan, s, &(struct embed_options){0}));
    return embed_texts(s, vectors, &n_cut, texts, n, &plan);
}

/* Everything that a session of the task says; returns how many numbers that is. */
static inline int session_case_answer(struct session *s, enum bert_task task,
                                      double out[SESSION_CASE_NUMBERS])
{
    int n = 0;
    if (task == BERT_TASK_ENCODER) {
        float vectors[SESSION_CASE_NUMBERS];
        EXPECT_OK(session_case_embed(s, vectors, session_case_texts, SESSION_CASE_TEXTS));
        for (; n < SESSION_CASE_NUMBERS; n++) {
            out[n] = vectors[n];
        }
    } else if (task == BERT_TASK_MASKED_LM) {
        struct fill_result r;
        EXPECT_OK(fill_mask(s, session_case_masked, sizeof session_case_masked - 1, SESSION_CASE_TOP_K, &r));
        for (int64_t i = 0; i < r.n_masks * r.top_k; i++) {
            out[n++] = r.candidates[i].id;
            out[n++] = r.candidates[i].probability;
        }
        fill_result_fini(&r);
    } else {
        struct ask_options o = ask_defaults();
        struct ask_result r;
        o.top_k = SESSION_CASE_TOP_K;
        EXPECT_OK(ask_question(s, session_case_question, session_case_context,
                               sizeof session_case_context - 1, &o, &r));
        for (int64_t i = 0; i < r.n; i++) {
            out[n++] = r.answers[i].probability;
            out[n++] = r.answers[i].start;
            out[n++] = r.answers[i].end;
        }
        ask_result_fini(&r);
    }
    EXPECT(n > 0, "no answer");
    return n;
}

#endif
