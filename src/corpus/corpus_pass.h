/* corpus_pass: the loop over the user's text, on all threads, in order.
 *
 * Threads share three jobs: reading documents, transforming them, and giving documents and results to the sink.  Any
 * thread takes whichever is due: documents are read by one at a time, and given to the sink by one at a time, in the
 * order of the corpus; between the two, several are transformed at once.
 *
 * The rule: what the sink gets, and the error that ends a pass, do not depend on the number of threads or on their speed.
 * That holds because a transform is a function of its document alone, and because errors are kept in their place in the
 * order.  Memory is bounded: a few batches of about CORPUS_PASS_BATCH_BYTES a thread. */
#ifndef KILN_CORPUS_CORPUS_PASS_H
#define KILN_CORPUS_CORPUS_PASS_H

#include "corpus/corpus.h"

/* Documents pass from thread to thread in batches: milliseconds of work beside microseconds of waking up, and little
 * enough that it is still in a cache. */
enum { CORPUS_PASS_BATCH_BYTES = 1 << 17, CORPUS_PASS_BATCH_DOCUMENTS = 256 };

/* What each document becomes.  Functions other than `run` may be NULL. */
struct corpus_transform {
    const void *context; /* shared by all threads, so nobody writes it */

    /* What one thread writes: the scratch of a tokenizer. */
    struct status (*worker_create)(void **worker, const void *context);
    void (*worker_destroy)(void *worker);

    /* A result is a struct of so many bytes, zeroed before its first use and used again for other documents. */
    size_t result_bytes;
    void (*result_fini)(void *result);

    /* Sets the result to that of this document, and nothing else. */
    struct status (*run)(void *worker, void *result, const struct document *d);
};

struct corpus_item {
    struct document document;
    void *result;              /* NULL without a transform */
    struct corpus_place place; /* behind the document: where another pass goes on */
    uint64_t done_bytes;       /* of the corpus, up to there */
};

/* Gets every item, in order, from one thread at a time but not always the same.  An error ends the pass. */
struct corpus_sink {
    void *context;
    struct status (*take)(void *context, const struct corpus_item *item);
};

/* From the corpus' place to its end, in as many threads as parallel_run has.  `transform` NULL: there are no results.
 * The error that comes first in the order of documents; where the corpus then stands is undefined. */
struct status corpus_pass_run(struct corpus *c, const struct corpus_transform *transform,
                              const struct corpus_sink *sink);

#endif
