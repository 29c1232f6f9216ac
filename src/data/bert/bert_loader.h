/* bert_loader: the batches of BERT pre-training, made at run time from a token store.
 *
 * The rule: what step s trains on is a pure function of the configuration and s.  Sequence i of step s (from
 * 1) is number g = (s - 1) * train_batch_size + i of the run; its epoch is g / n_samples, and in it the
 * sample is the image of g % n_samples under a permutation keyed by (seed, epoch).  Sentence pair, length and
 * masks are drawn from a stream keyed by (seed, epoch, sample).  So any step can be made directly, a resumed
 * run sees what an uninterrupted one sees, and the number of micro-batches changes only how the sequences are
 * grouped.
 *
 * Where several ranks share a step, the micro-batches of each may be a group: with `balance_tokens` the
 * sequences of a step are dealt out to the groups by length (data/token_balance), and keep the numbers that
 * their masks and dropout are drawn by.
 *
 * Phase 2 is another loader with another length, whose steps count from 1 again. */
#ifndef KILN_DATA_BERT_LOADER_H
#define KILN_DATA_BERT_LOADER_H

#include "core/ramp.h"
#include "data/batch_source.h"
#include "data/text_batch.h"
#include "data/bert/sample_map.h"
#include "data/token_balance.h"
#include "text/tokenizer.h"

struct bert_loader_config {
    const struct indexed *store; /* borrowed; outlives the loader */
    int32_t vocab_size;          /* real words */
    int32_t pad_id, cls_id, sep_id, mask_id;
    uint64_t seed;
    struct batch_flags batch;        /* max_seq_length is S, at least 5 */
    int64_t max_predictions_per_seq; /* P */
    double masked_lm_prob;        /* part to mask, reference 0.15; with `mask_rate`: held-out samples only */
    const double *mask_keep_rate; /* masking_rules'; borrowed */
    double short_seq_prob;        /* chance that a sample is shortened; 0.1 in the reference */
    /* one segment, [CLS] A [SEP], of consecutive sentences of a document, and no next-sentence label */
    bool no_nsp;
    /* the tokenizer whose words are masked with all their tokens, borrowed until the loader is open; NULL:
     * tokens are masked one by one */
    const struct tokenizer *whole_words;
    bool even_masks;     /* tokens take turns over the epochs instead of being drawn (masking_turns) */
    int64_t n_positions; /* range of the random first position of every second training sequence; 0: none */

    struct ramp mask_rate; /* replaces masked_lm_prob; needs `part` */
    struct run_part part;

    int64_t n_groups;    /* groups of micro-batches, the same number in each; 0 and 1: one */
    bool balance_tokens; /* sequences are dealt out to the groups by length */
};

struct bert_loader {
    struct bert_loader_config config;
    struct sample_map map;
    uint8_t *continues;            /* masking_rules' */
    struct token_balance *balance; /* owned; NULL: sequences stay in their order */
};

/* Checks the configuration (STATUS_USAGE names the flag) and builds the sample map (STATUS_DATA). */
struct status bert_loader_open(struct bert_loader *l, struct bert_loader_config config);
void bert_loader_close(struct bert_loader *l);

/* Sets vocab_size and the special tokens of a configuration.  STATUS_DATA if the tokenizer lacks one of
 * them. */
struct status bert_loader_set_tokens(struct bert_loader_config *config, const struct tokenizer *t);

/* Allocates a step with the micro-batches of this configuration; batch_step_fini frees it. */
struct status bert_loader_init_step(const struct bert_loader_config *config, struct batch_step *step);

/* Fills `out` with step `step` (from 1).  Allocates nothing; threads may share a loader that does not balance
 * tokens. STATUS_DATA if the store has a token outside the vocabulary. */
struct status bert_loader_step(const struct bert_loader *l, int64_t step, struct batch_step *out);

/* The loader as a source, which it must outlive.  It counts the pieces of the complete store.  Held-out
 * samples have fixed draws, whatever the seed; their batches have the size of a micro-batch, but the last one
 * may be smaller. */
struct batch_source bert_loader_source(const struct bert_loader *l);

/* Checks a configuration without a store.  STATUS_USAGE names the flag. */
struct status bert_loader_check(const struct bert_loader_config *c);

/* Upper bounds of every micro-batch, from a configuration that passed bert_loader_check. */
struct batch_limits bert_loader_limits(const struct bert_loader_config *c);

#endif
