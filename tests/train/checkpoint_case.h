/* checkpoint_case: a small model's state and a scratch directory, for the tests of checkpoints. */
#ifndef KILN_TESTS_CHECKPOINT_CASE_H
#define KILN_TESTS_CHECKPOINT_CASE_H

#include "test.h"

#include "core/hash.h"
#include "core/log.h"
#include "train/checkpoint.h"

#include <unistd.h>

enum { CASE_SLAB = 2048, CASE_ELEMENTS = 2 * CASE_SLAB };

static const char case_vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n";
static const struct tokenizer_file case_vocabulary = {"vocab.txt", case_vocab, sizeof case_vocab - 1};

enum { CASE_HISTORIES = 3 };
static float case_histories[2 * CASE_HISTORIES] __attribute__((unused)) = {0.5f, 0, 3e-9f, 0, 60, 0};

struct checkpoint_case {
    struct param_table params;
    float flat[3][CASE_ELEMENTS]; /* master, exp_avg, exp_avg_sq */
    json_t *config, *tokenizer, *state;
    char directory[256];
};

static inline void case_set_values(struct checkpoint_case *k, int64_t step)
{
    for (int f = 0; f < 3; f++) {
        for (int i = 0; i < CASE_ELEMENTS; i++) {
            k->flat[f][i] = (float)(step + 1) * 0.37f + (float)i * 1e-3f + (float)f;
        }
    }
}

/* Two parameters, the first with padded rows behind its 6 real ones. */
static inline void case_init(struct checkpoint_case *k)
{
    *k = (struct checkpoint_case){0};
    int64_t words = param_table_slab(&k->params, CASE_SLAB);
    int64_t bias = param_table_slab(&k->params, CASE_SLAB);
    param_table_add(&k->params, (struct param){.name = "bert.embeddings.word_embeddings.weight",
                                               .n_dims = 2,
                                               .dims = {6, 16},
                                               .offset = words});
    param_table_add(&k->params,
                    (struct param){.name = "cls.predictions.bias", .n_dims = 1, .dims = {6}, .offset = bias});
    EXPECT_OK(param_table_status(&k->params));
    k->config =
        json_pack("{s:i, s:f, s:s}", "hidden_size", 16, "layer_norm_eps", 1e-12, "model_type", "bert");
    k->tokenizer = json_pack("{s:b}", "do_lower_case", 1);
    k->state = json_pack("{s:i, s:s}", "seed", 42, "phase", "1");
    const char *parent = getenv("TMPDIR");
    const char *default_parent = file_is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
    snprintf(k->directory, sizeof k->directory, "%s/kiln_checkpoint_XXXXXX",
             parent != NULL ? parent : default_parent);
    EXPECT(mkdtemp(k->directory) != NULL, "%s", k->directory);
    log_set_level(LOG_QUIET);
}

static inline void case_fini(struct checkpoint_case *k)
{
    EXPECT_OK(file_remove_tree(k->directory));
    json_decref(k->config);
    json_decref(k->tokenizer);
    json_decref(k->state);
    param_table_fini(&k->params);
}

static inline struct checkpoint_contents case_contents(struct checkpoint_case *k, int64_t step)
{
    case_set_values(k, step);
    return (struct checkpoint_contents){.params = &k->params,
                                        .master = tensor_1d(k->flat[0], DTYPE_F32, CASE_ELEMENTS),
                                        .exp_avg = tensor_1d(k->flat[1], DTYPE_F32, CASE_ELEMENTS),
                                        .exp_avg_sq = tensor_1d(k->flat[2], DTYPE_F32, CASE_ELEMENTS),
                                        .config = k->config,
                                        .tokenizer = k->tokenizer,
                                        .state = k->state,
                                        .vocabulary = &case_vocabulary,
                                        .n_vocabulary = 1,
                                        .vocab_hash = hash_fnv1a(case_vocab, sizeof case_vocab - 1),
                                        .step = step};
}

static inline struct status case_save(struct checkpoint_case *k, int64_t step)
{
    struct checkpoint_contents c = case_contents(k, step);
    return checkpoint_save(k->directory, &c);
}

/* The open checkpoint holds exactly the values of `step`, and reading it touches nothing but parameters. */
static inline void case_expect_values(struct checkpoint_case *k, const struct checkpoint *c, int64_t step)
{
    static float read[3][CASE_ELEMENTS];
    memset(read, 0, sizeof read);
    tensor t[3];
    for (int f = 0; f < 3; f++) {
        t[f] = tensor_1d(read[f], DTYPE_F32, CASE_ELEMENTS);
    }
    EXPECT_OK(checkpoint_read_weights(c, &k->params, t[0]));
    EXPECT_OK(checkpoint_read_moments(c, &k->params, t[1], t[2]));
    case_set_values(k, step);
    for (int f = 0; f < 3; f++) {
        for (int i = 0; i < CASE_ELEMENTS; i++) {
            bool real = i < 6 * 16 || (i >= CASE_SLAB && i < CASE_SLAB + 6);
            EXPECT(read[f][i] == (real ? k->flat[f][i] : 0.0f), "buffer %d element %d: %g", f, i,
                   (double)read[f][i]);
        }
    }
}

/* The step of the newest whole checkpoint, with its values checked; -1 if there is none. */
static inline int64_t case_newest(struct checkpoint_case *k)
{
    struct checkpoint c;
    bool found;
    struct status s = checkpoint_dir_open_newest(&c, k->directory, &found);
    if (s.code == STATUS_NO_CHECKPOINT || !found) {
        return -1;
    }
    EXPECT_OK(s);
    int64_t step = c.manifest.step;
    case_expect_values(k, &c, step);
    checkpoint_close(&c);
    return step;
}

#endif
