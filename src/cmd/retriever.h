/* retriever: a model whose vectors say which texts fit a query, for `kiln search` and `kiln ask`.  They are
 * scaled to length 1, so that their products are cosines. */
#ifndef KILN_CMD_RETRIEVER_H
#define KILN_CMD_RETRIEVER_H

#include "cmd/session_flags.h"
#include "core/option.h"
#include "serve/search_index.h"
#include "serve/vector_search.h"

struct retriever_flags {
    const char *index, *pooling, *query_prompt, *text_prompt;
};

/* Their rows, with the struct at `at` in the command's own. */
#define RETRIEVER_ROWS(at) OPTION_ROWS_OF(retriever_flags, at)
extern const struct option retriever_flags[];

struct retriever {
    struct session session;
    struct embed_plan texts, queries;
    struct buf description; /* how vectors of texts are made */
    struct search_index_maker maker;
    int64_t n_cut; /* texts that were longer than it reads */
};

/* Opens the model of the flags.  Must not be moved.  Close is safe on a zeroed struct and after a failed
 * open. */
struct status retriever_open(struct retriever *r, const struct session_flags *session,
                             const struct retriever_flags *f);
void retriever_close(struct retriever *r);

/* Vectors [n, texts.width] of texts or of queries. */
struct status retriever_embed(struct retriever *r, float *vectors, const struct text_bytes *texts, size_t n,
                              bool are_queries);

/* Finds, for each query, the k best of n rows, in *hits [n_queries, k], which the caller frees. */
struct status retriever_find(struct retriever *r, struct vector_hit **hits, int64_t k,
                             const struct text_bytes *queries, size_t n_queries, const float *rows,
                             int64_t n);

#endif
