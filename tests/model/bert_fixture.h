/* bert_fixture: small models and random batches for the tests of nn and train. */
#ifndef KILN_TESTS_BERT_FIXTURE_H
#define KILN_TESTS_BERT_FIXTURE_H

#include "test.h"

#include "core/rng.h"
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
static inline void fixture_add_sequence(struct bert_batch *b, int32_t key, int64_t max_length)
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
static inline void fixture_step(struct bert_step *step, int64_t n_micro, int64_t n_sequences,
                                int64_t max_length)
{
    EXPECT_OK(bert_step_init(step, n_micro, bert_batch_limits(n_sequences, max_length, max_length)));
    for (int64_t i = 0; i < n_micro * n_sequences; i++) {
        fixture_add_sequence(&step->micro[i / n_sequences], (int32_t)i, max_length);
    }
    for (int64_t i = 0; i < n_micro; i++) {
        bert_batch_finish(&step->micro[i], 0);
    }
    bert_step_count(step);
}

static inline struct trainer_config fixture_trainer(const struct ops *ops, enum dtype dtype,
                                                    struct bert_batch_limits l)
{
    return (struct trainer_config){
        .model = fixture_config(),
        .device = &device_cpu,
        .ops = ops,
        .precision = {.dtype = dtype},
        .optimizer = optimizer_defaults(OPTIMIZER_LAMB),
        .limits = l,
        .training = true,
        .seed = 5,
    };
}

#endif
