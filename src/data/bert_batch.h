/* bert_batch: one micro-batch of BERT pre-training on the host, as the model sees it: sequences laid end to
 * end, no padding between them.
 *
 * The stream is rounded up to a bucket of tokens; what is left over is one more sequence of [PAD] tokens that
 * carries no label, so it changes no loss and no gradient and nothing else needs a mask.  Masked positions
 * are rounded up likewise, with label -1.  The tail's types, positions and row keys are 0.
 *
 * A batch is filled front to back: bert_batch_clear, then for each sequence bert_batch_add and its labels,
 * then bert_batch_finish. */
#ifndef KILN_DATA_BERT_BATCH_H
#define KILN_DATA_BERT_BATCH_H

#include "core/status.h"

#include <stdint.h>

enum {
    BERT_BATCH_TOKEN_BUCKET = 64,  /* tokens of a stream are a multiple of this */
    BERT_BATCH_MASKED_BUCKET = 16, /* so are masked positions */
};

/* Upper bounds of every micro-batch of a run, for planning. */
struct bert_batch_limits {
    int64_t n_tokens;    /* T: bucketed */
    int64_t n_sequences; /* B: the tail sequence included */
    int64_t n_masked;    /* M: bucketed */
    int64_t max_seqlen;
};

struct bert_batch {
    int64_t n_tokens; /* T, bucketed */
    int64_t n_real_tokens;
    int64_t n_sequences;   /* B real sequences; the tail is not counted */
    int64_t n_streams;     /* sequences in cu_seqlens: B, or B + 1 with a tail */
    int64_t n_masked;      /* M, bucketed */
    int64_t n_real_masked; /* labels, without the rounding */
    int64_t max_seqlen;    /* longest of cu_seqlens */

    int32_t *ids;           /* [T] */
    int32_t *types;         /* [T] segment, 0 or 1 */
    int32_t *positions;     /* [T] place in the sequence */
    int32_t *row_keys;      /* [T, 2] sequence in the global batch, position: the dropout address */
    int32_t *cu_seqlens;    /* [n_streams + 1] */
    int32_t *masked_rows;   /* [M] rows of the stream, ascending; rounded up with row 0 */
    int32_t *masked_labels; /* [M] the original ids; -1 in the rounding */
    int32_t *cls_rows;      /* [B] row of each [CLS] */
    int32_t *nsp_labels;    /* [B] 0 = next, 1 = random, -1 = none */
    int32_t *span_labels;   /* [B, 2] first and last position of the answer in the sequence, -1 = none */

    struct bert_batch_limits limits; /* what the arrays have room for */
    void *memory;                    /* of all arrays; owned */
};

/* The global batch of one optimizer step: its micro-batches, and the counts that its losses are divided by.
 */
struct bert_step {
    int64_t n_micro;
    struct bert_batch *micro; /* [n_micro] */
    int64_t n_tokens;         /* real tokens of the whole global batch */
    int64_t n_sequences;
    int64_t n_masked; /* labels of the whole global batch, -1 not counted */
    int64_t n_nsp;    /* NSP labels, -1 not counted */
    int64_t n_spans;  /* sequences with an answer's span */
};

/* STATUS_USAGE unless a batch can be cut into that many equal micro-batches, by the names of the flags. */
struct status bert_batch_check_cut(int64_t train_batch_size, int64_t gradient_accumulation_steps);

/* What at most `n_sequences` sequences of at most `max_seq_length` tokens and `max_masked` labels each come
 * to. */
struct bert_batch_limits bert_batch_limits(int64_t n_sequences, int64_t max_seq_length, int64_t max_masked);

/* Allocates an empty batch with room for `limits`; `init` allocates, nothing later does. */
struct status bert_batch_init(struct bert_batch *b, struct bert_batch_limits limits);
void bert_batch_fini(struct bert_batch *b);
void bert_batch_clear(struct bert_batch *b);

/* Appends a sequence of n tokens whose first n_first are segment 0, with the key of its dropout rows, and
 * returns ids[n], which the caller fills. */
int32_t *bert_batch_add(struct bert_batch *b, int64_t n, int64_t n_first, int32_t nsp_label,
                        int32_t sequence_key);

/* Says where in the last sequence the answer stands; without it there is no such label. */
void bert_batch_set_span(struct bert_batch *b, int32_t start, int32_t end);

/* Room for the places in the last sequence and the labels of more predictions; bert_batch_take_masked makes
 * the first m of them count. */
int32_t *bert_batch_masked_positions(const struct bert_batch *b);
int32_t *bert_batch_masked_labels(const struct bert_batch *b);
void bert_batch_take_masked(struct bert_batch *b, int64_t m);

/* Rounds tokens and masked positions up to their buckets. */
void bert_batch_finish(struct bert_batch *b, int32_t pad_id);

/* Allocates n_micro empty batches. */
struct status bert_step_init(struct bert_step *step, int64_t n_micro, struct bert_batch_limits limits);
void bert_step_fini(struct bert_step *step);

/* Sums the counts of the global batch over its finished micro-batches. */
void bert_step_count(struct bert_step *step);

#endif
