/* word_head: the last product of a language model, logits = z E^T + b, its loss and its gradients.
 *
 * With V = 250,880 words the logits of 2,048 rows take 2 GB, and their gradients the same.  So the rows are
 * worked on in chunks: the logits of a chunk are computed, compared with the labels, turned into gradients
 * and multiplied back before the next chunk takes their place.  Nothing is computed twice.
 *
 * Peers (dev/peers.h) have a slice of the words each, with the same number of rows each, in their order: peer
 * r has words [r V, (r + 1) V).  All of them have all rows z, compute the logits of their own words, and
 * exchange a maximum and three sums of each row; so all have the same losses.  Each has a part of the
 * gradient of z, and the parts are summed once, after the last chunk. */
#ifndef KILN_NN_WORD_HEAD_H
#define KILN_NN_WORD_HEAD_H

#include "core/arena.h"
#include "dev/exec.h"

/* Inputs of a pass: M rows of H numbers each, and the V words that are here. */
struct word_head {
    tensor rows;   /* [M, H] z */
    tensor word;   /* [V, H] E */
    tensor bias;   /* [V] b, or null */
    tensor labels; /* i32 [M]; -1: none */
    tensor scale;  /* f64 [1] the factor of the gradients of the losses */
    /* words of all peers; ids from here on only pad the table: they are in no softmax and no loss */
    int64_t n_words;
};

struct word_head_acts {
    tensor logits;        /* [C, V] memory for a chunk of C rows, in the dtype of vectors */
    tensor dlogits;       /* [C, V]; in the memory of logits if the dtypes agree */
    tensor loss, correct; /* [M] -log p of the label, and whether it has the largest logit */
    /* [C], f64 [C, 3] maxima and sums of rows (ops.h, slice_sums); null where all words are here */
    tensor maxima, sums;

    /* [C, all words] the logits that word_head_forward leaves; with several slices those of all, gathered in
     * `slices` [n_slices C, V].  Both are null where they are not needed. */
    tensor all_logits, slices;
};

/* Sizes for which word_head_carve carves memory. */
struct word_head_room {
    enum dtype dtype;
    int64_t n_rows, vocab_rows; /* M, V */
    int n_slices;               /* slices of the words; up to 1: all words are here */
    bool whole_logits;          /* word_head_forward leaves the logits of all rows and words */
    int64_t chunk; /* rows at a time; 0: all rows with whole_logits, else word_head_chunk of them */
};

/* Rows of a chunk, whose logits take at most 64 MiB.  The number never falls as n_rows grows, since memory is
 * planned for the largest batch. */
int64_t word_head_chunk(int64_t n_rows, int64_t vocab_rows);

/* Carves memory for the logits of one chunk; a pass runs in chunks of nearly one size. */
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

/* Computes what word_head_measure does, and the gradients of scale * sum(loss). */
void word_head_learn(struct exec *x, tensor sums, const struct word_head_gradients *g,
                     const struct word_head_acts *a, const struct word_head *h);

#endif
