/* batch: one micro-batch on the host, as a model sees it: sequences laid end to end with no padding between
 * them, and named arrays of integers that belong to them.
 *
 * The arrays that every model reads are here by name: ids, positions, dropout addresses, bounds of sequences.
 * Whatever else a model reads is listed in its layout (nn/text_batch_layout.h), which says how large each
 * array is, what pads it and what to send to the device.  A loader fills the arrays. */
#ifndef KILN_CORE_BATCH_H
#define KILN_CORE_BATCH_H

#include "core/dtype.h"
#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BATCH_TOKEN_BUCKET = 64, /* tokens of a stream are a multiple of this */
    BATCH_LABEL_BUCKET = 16, /* rows that are selected for a label are a multiple of this */
    BATCH_MOST_FIELDS = 8,
    BATCH_PAGE = 32, /* tokens of a page of cached keys and values */
};

/* The owner of one row of a field: a token, a label or a sequence. */
enum batch_rows { BATCH_OF_TOKENS, BATCH_OF_LABELS, BATCH_OF_SEQUENCES };

struct batch_field {
    const char *name;
    enum batch_rows rows;
    int width;        /* numbers in a row; 0: the batch has no such array */
    enum dtype dtype; /* i32, or f32, whose bits the array holds */
    bool is_label;    /* numbers >= 0, and in f32 not NaN, are labels; losses are means over labels */
    int32_t nothing;  /* value of padding rows */
};

struct batch_layout {
    int n_fields;
    struct batch_field fields[BATCH_MOST_FIELDS]; /* [n_fields] */
};

/* Upper bounds of every micro-batch of a run, for planning. */
struct batch_limits {
    int64_t n_tokens;    /* T, a multiple of BATCH_TOKEN_BUCKET */
    int64_t n_sequences; /* B: the tail sequence included */
    int64_t n_labels;    /* M, a multiple of BATCH_LABEL_BUCKET */
    int64_t max_seqlen;
    int64_t n_pages; /* pages of the longest sequence in the key-value cache; 0: there is no cache */
};

struct batch {
    int64_t n_tokens; /* T, a multiple of BATCH_TOKEN_BUCKET */
    int64_t n_real_tokens;
    int64_t n_sequences;   /* B real sequences; the tail is not counted */
    int64_t n_streams;     /* sequences in cu_seqlens: B, or B + 1 with a tail */
    int64_t n_labels;      /* M rows selected for a label, a multiple of BATCH_LABEL_BUCKET */
    int64_t n_real_labels; /* M before rounding up */
    int64_t max_seqlen;    /* longest of cu_seqlens */
    int64_t max_keys;      /* longest of cu_keys; 0 without a cache */

    int32_t *ids;        /* [T] */
    int32_t *positions;  /* [T] place in the sequence */
    int32_t *row_keys;   /* [T, 2] sequence in the global batch, position: the dropout address */
    int32_t *cu_seqlens; /* [n_streams + 1] */
    int32_t *fields[BATCH_MOST_FIELDS]; /* [rows, width] each, of the layout */

    /* With a cache (limits.n_pages > 0) a sequence's keys are those of its tokens in earlier batches, too. */
    int32_t *slots;   /* [T] the place of a token's key and value: page * BATCH_PAGE + place in it */
    int32_t *cu_keys; /* [n_streams + 1] bounds of the keys of each sequence, cached and its own */
    int32_t *pages;   /* [n_sequences, limits.n_pages] pages that hold the keys and values, in order */

    const struct batch_layout *layout;
    struct batch_limits limits; /* sizes that the arrays can hold */
    void *memory;               /* memory of all arrays; owned */
};

/* The global batch of one optimizer step: its micro-batches, and the counts that its losses are divided
 * by. */
struct batch_step {
    int64_t n_micro;
    struct batch *micro; /* [n_micro] */
    /* Micro-batches of the complete global batch: more than n_micro where other ranks have some of them. */
    int64_t n_all_micro;
    int64_t first_micro; /* number, in the global batch, of the first micro-batch that is here */
    int64_t apart;     /* distance to the number of the next one: 1, or the number of ranks that alternate */
    int64_t n_to_fill; /* number of the first micro-batches that get sequences: fewer while batches grow */
    int64_t n_tokens;  /* real tokens of the complete global batch */
    int64_t n_sequences;
    int64_t n_labels[BATCH_MOST_FIELDS]; /* labels in each field of the complete global batch */
};

/* The limits that hold the batches of `a` and those of `b`. */
struct batch_limits batch_limits_both(struct batch_limits a, struct batch_limits b);

/* STATUS_USAGE, naming the flags, unless the batch splits into that many equal micro-batches. */
struct status batch_check_cut(int64_t train_batch_size, int64_t gradient_accumulation_steps);

/* The bits of a NaN: "no label" in a field of fp32. */
#define BATCH_NO_NUMBER 0x7fc00000

/* Rows of a field in the batch: the real ones, and all with the padding rows. */
int64_t batch_real_rows(const struct batch *b, enum batch_rows rows);
int64_t batch_all_rows(const struct batch *b, enum batch_rows rows);

/* Labels in a field of the layout. */
int64_t batch_count_labels(const struct batch *b, int field);

/* Allocates an empty batch of the sizes of `limits`; nothing after it allocates.  The layout is borrowed. */
struct status batch_init(struct batch *b, const struct batch_layout *layout, struct batch_limits limits);

/* The bytes that batch_init allocates. */
size_t batch_bytes(const struct batch_layout *layout, struct batch_limits limits);
void batch_fini(struct batch *b);
void batch_clear(struct batch *b);

/* Appends a sequence of n tokens with the key of its dropout rows and returns its first row; ids[row .. row +
 * n) and the fields are the caller's to fill. */
int64_t batch_add(struct batch *b, int64_t n, int32_t sequence_key);

/* With a cache: appends tokens [first, first + n) of a sequence, whose keys are in `pages`; returns their
 * first row. */
int64_t batch_add_cached(struct batch *b, int64_t n, int64_t first, const int32_t *pages,
                         int32_t sequence_key);

/* Rounds tokens and selected rows up to their buckets.  The stream's tail is one more sequence of `pad_id`s
 * without labels, so it changes no loss and no gradient.  With a cache nothing is rounded up: one token is
 * one row. */
void batch_finish(struct batch *b, int32_t pad_id);

/* Allocates n_micro empty batches. */
struct status batch_step_init(struct batch_step *step, int64_t n_micro, const struct batch_layout *layout,
                              struct batch_limits limits);
void batch_step_fini(struct batch_step *step);

/* Allocates part `part` of n_parts of a global batch of n_all_micro micro-batches: consecutive ones, or with
 * `in_turn` numbers part, part + n_parts, ... */
struct status batch_step_init_part(struct batch_step *step, int64_t n_all_micro, int part, int n_parts,
                                   bool in_turn, const struct batch_layout *layout,
                                   struct batch_limits limits);

/* Sums the counts over the finished micro-batches that are here: those of the global batch, where all are. */
void batch_step_count(struct batch_step *step);

/* The number, in the global batch, of the k-th micro-batch that is here. */
int64_t batch_step_number(const struct batch_step *step, int64_t k);

/* The number, among the n_filled micro-batches with sequences, of the k-th micro-batch that is here; -1: it
 * has no sequences.  n_groups ranks, or the number of ranks that may be, have equal parts of them, and the
 * first micro-batches of each part are filled. */
int64_t batch_step_filled_number(const struct batch_step *step, int64_t k, int64_t n_groups,
                                 int64_t n_filled);

/* Part `part` of n_parts of the global batch: a view of consecutive micro-batches, which must be here, with
 * the counts of all. */
struct batch_step batch_step_part(const struct batch_step *step, int part, int n_parts);

/* The number of micro-batches that have sequences (at the end of an epoch some have none), and the k-th of
 * them. */
int64_t batch_step_n_filled(const struct batch_step *step);
const struct batch *batch_step_filled(const struct batch_step *step, int64_t k);

#endif
