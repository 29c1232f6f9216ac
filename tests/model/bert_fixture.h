/* bert_fixture: small models and random batches for the tests of nn and train. */
#ifndef KILN_TESTS_BERT_FIXTURE_H
#define KILN_TESTS_BERT_FIXTURE_H

#include "test.h"

#include "core/rng.h"
#include "data/bert_batch.h"
#include "nn/bert_model.h"
#include "train/trainer.h"

enum { FIXTURE_VOCAB = 70 };

static inline struct bert_config fixture_config(void)
{
    return (struct bert_config){
        .vocab_size = FIXTURE_VOCAB,
        .hidden_size = 16,
        .num_hidden_layers = 2,
        .num_attention_heads = 2,
        .intermediate_size = 24,
        .max_position_embeddings = 16,
        .type_vocab_size = 2,
        .hidden_dropout_prob = 0.1,
        .attention_probs_dropout_prob = 0.1,
        .initializer_range = 0.3,
        .layer_norm_eps = 1e-12,
    };
}

/* Sequence number `key` of a global batch: length, words, segments, labels and NSP label follow from the
 * number. */
static inline void fixture_add_sequence(struct batch *b, int32_t key, int64_t max_length)
{
    struct rng_stream r = rng_stream(rng_key(77, (uint64_t)key));
    int64_t n = 4 + rng_below(&r, (uint32_t)(max_length - 3));
    int32_t *ids = bert_batch_add(b, n, 1 + rng_below(&r, (uint32_t)n), (int32_t)rng_below(&r, 2), key);
    for (int64_t i = 0; i < n; i++) {
        ids[i] = (int32_t)rng_below(&r, FIXTURE_VOCAB);
    }
    int64_t m = 0;
    for (int32_t i = 1; i < n; i += 3) {
        bert_batch_masked_positions(b)[m] = i;
        bert_batch_masked_labels(b)[m++] = (int32_t)rng_below(&r, FIXTURE_VOCAB);
    }
    bert_batch_take_masked(b, m);
}

/* A global batch of n_micro micro-batches of n_sequences each. */
static inline void fixture_step_of(struct batch_step *step, const struct batch_layout *layout,
                                   int64_t n_micro, int64_t n_sequences, int64_t max_length)
{
    EXPECT_OK(batch_step_init(step, n_micro, layout, bert_batch_limits(n_sequences, max_length, max_length)));
    for (int64_t i = 0; i < n_micro * n_sequences; i++) {
        fixture_add_sequence(&step->micro[i / n_sequences], (int32_t)i, max_length);
    }
    for (int64_t i = 0; i < n_micro; i++) {
        batch_finish(&step->micro[i], 0);
    }
    batch_step_count(step);
}

static inline void fixture_step(struct batch_step *step, int64_t n_micro, int64_t n_sequences,
                                int64_t max_length)
{
    fixture_step_of(step, &bert_batch_layout, n_micro, n_sequences, max_length);
}

/* A model of the test's own, which lives as long as the test; in place of a configuration's model. */
static inline struct bert_model *fixture_bert(struct trainer_config *config)
{
    enum { MOST = 256 };
    static struct bert_model models[MOST];
    static int n;
    struct bert_config small = fixture_config();
    EXPECT(n < MOST, "more than %d models", MOST);
    models[n] = config->model == NULL ? bert_model(&small, BERT_TASK_PRETRAINING)
                                      : *(const struct bert_model *)config->model;
    config->model = &models[n].model;
    return &models[n++];
}

/* After its configuration or task were changed. */
static inline void fixture_bert_changed(struct bert_model *bert)
{
    struct bert_config changed = bert->config;
    *bert = bert_model(&changed, bert->task);
}

static inline struct trainer_config fixture_trainer(const struct ops *ops, enum dtype dtype,
                                                    struct batch_limits l)
{
    struct trainer_config config = {
        .device = &device_cpu,
        .ops = ops,
        .precision = {.dtype = dtype},
        .optimizer = optimizer_defaults(OPTIMIZER_LAMB),
        .limits = l,
        .training = true,
        .seed = 5,
    };
    fixture_bert(&config);
    return config;
}

#endif
