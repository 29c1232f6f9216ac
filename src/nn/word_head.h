/* word_head: the last product of a language model, logits = z E^T + b, its loss and its gradients.
 *
 * With V = 250,880 words the logits of 2,048 rows take 2 GB, and their gradients as much again.  So the
 * rows are worked on in chunks: the logits of a chunk are computed, compared with the labels, turned into
 * gradients and multiplied back before the next chunk takes their place.  Nothing is computed twice.
 *
 * Peers (dev/peers.h) have a slice of the words each, of equally many rows, in their order: peer r has words
 * [r V, (r + 1) V).  All of them have all rows z, compute the logits of their own words, and tell each other
 * a maximum and three sums of each row; so all have the same losses.  Of the gradient of z each has a part,
 * and they add them up once, behind the last chunk. */
#ifndef KILN_NN_WORD_HEAD_H
#define KILN_NN_WORD_HEAD_H

#include "core/arena.h"
#include "dev/exec.h"

/* What a pass reads: M rows, H numbers each, V words, of those that are here. */
struct word_head {
    tensor rows;   /* [M, H] z */
    tensor word;   /* [V, H] E */
    tensor bias;   /* [V] b, or null */
    tensor labels; /* i32 [M]; -1: none */
    tensor scale;  /* f64 [1] the factor of the gradients of the losses */
    /* of all peers; ids from here on fill up the table: they are in no softmax and no loss */
    int64_t n_words;
};

struct word_head_acts {
    tensor logits;        /* [C, V] room for a chunk of C rows, in the dtype of vectors */
    tensor dlogits;       /* [C, V]; in the memory of logits if the dtypes agree */
    tensor loss, correct; /* [M] -log p of the label, and whether it has the largest logit */
    tensor maxima, sums;  /* [C], f64 [C, 3] of rows (ops.h, slice_sums); null where all words are here */

    /* [C, all words] what word_head_forward leaves: logits, or, of several slices, those of all, put together
     * from `slices` [n_slices C, V]; both are null where that is not asked for. */
    tensor all_logits, slices;
};

/* What there is to be room for. */
struct word_head_room {
    enum dtype dtype;
    int64_t n_rows, vocab_rows; /* M, V */
    int n_slices;               /* of the words; up to 1: all are here */
    bool whole_logits;          /* word_head_forward leaves those of all rows and words */
    int64_t chunk;              /* rows at a time; 0: all for whole logits, else word_head_chunk of them */
};

/* Rows that there is room for at a time: logits of at most 64 MiB.  Of more rows there are never fewer, since
 * memory is planned for the largest batch. */
int64_t word_head_chunk(int64_t n_rows, int64_t vocab_rows);

/* The rows are worked on in chunks of nearly one size. */
void word_head_carve(struct word_head_acts *a, struct arena *arena, struct word_head_room room);

/* Computes a->all_logits, those of the last chunk if there are several; where it is null, a->logits of this
 * peer's words. */
void word_head_forward(struct exec *x, const struct word_head_acts *a, const struct word_head *h);

/* Computes a->loss and a->correct, and adds their sums to `sums`, f64 [2], unless it is null. */
void word_head_measure(struct exec *x, tensor sums, const struct word_head_acts *a,
                       const struct word_head *h);

/* The gradients that word_head_learn leaves. */
struct word_head_gradients {
    tensor rows; /* [M, H] assigned */
    tensor word; /* [V, H] added to: the input layer adds its own where the table is shared */
    tensor bias; /* [V] added to, or null */
};

/* The same, and the gradients of scale * sum(loss). */
void word_head_learn(struct exec *x, tensor sums, const struct word_head_gradients *g,
                     const struct word_head_acts *a, const struct word_head *h);

#endif
