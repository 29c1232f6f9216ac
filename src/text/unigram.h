/* unigram: a text as the pieces whose summed log probabilities are highest (Kudo 2018, arXiv:1804.10959,
 * section 3.1), found by Viterbi's algorithm over a trie of the pieces.
 *
 * The rule: ids are those of Hugging Face's `tokenizers`, whose sums are doubles, or of SentencePiece, whose
 * sums are floats; of two equal sums the one that was found first counts.  A text of n bytes takes n steps
 * times the length of the longest piece at each place. */
#ifndef KILN_TEXT_UNIGRAM_H
#define KILN_TEXT_UNIGRAM_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unigram {
    uint32_t *keys;     /* [n_slots] hash table of the trie's edges: node << 8 | byte; 0: empty */
    uint32_t *children; /* [n_slots] node that the edge leads to */
    uint32_t n_slots;   /* a power of two */
    int32_t *ids;       /* [n_nodes] piece that ends at a node; -1: none */
    size_t n_nodes, node_capacity;
    double *scores; /* [n] by id */
    int32_t n;
    double unknown_score; /* of a character without a piece */
    int32_t unknown;      /* id of its token */
    bool sums_floats;
};

/* An empty model of n pieces.  Fini is safe on a zeroed struct.  STATUS_MEMORY. */
struct status unigram_init(struct unigram *u, int32_t n);
void unigram_fini(struct unigram *u);

/* Adds a piece of bytes that a text may have; unless there was one, which *before gets, else -1.
 * STATUS_DATA: the pieces have more bytes than the trie holds. */
struct status unigram_add(struct unigram *u, int32_t *before, const char *piece, size_t n, int32_t id,
                          const char *source);

/* The id of a piece; -1: there is none. */
int32_t unigram_find(const struct unigram *u, const char *piece, size_t n);

/* The best way to the end of a piece. */
struct unigram_step {
    double score;
    size_t start; /* of its last piece */
    int32_t id;   /* of that piece; -1: no way leads here yet */
};

/* A piece of the result. */
struct unigram_piece {
    int32_t id;
    size_t begin, end;
};

/* The memory that encoding writes to; a zeroed struct is empty. */
struct unigram_scratch {
    struct unigram_step *steps; /* [capacity] */
    size_t capacity;
    struct unigram_piece *pieces; /* [n_pieces] the result, its last piece first */
    size_t n_pieces, piece_capacity;
};
void unigram_scratch_fini(struct unigram_scratch *s);

/* Finds the pieces of text[0..n), valid UTF-8.  STATUS_MEMORY. */
struct status unigram_encode(const struct unigram *u, struct unigram_scratch *s, const char *text, size_t n);

#endif
