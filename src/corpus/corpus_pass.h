/* corpus_pass: the loop over the user's text, on all threads, in order.
 *
 * Threads share four jobs: reading documents, transforming them, passing documents and results to the sink,
 * and unpacking compressed files ahead of the reader.  Any thread takes whichever job is due.  One thread at
 * a time reads, and one at a time passes to the sink, in the order of the corpus; in between, several threads
 * transform. Raw documents are converted first; those that are left out are counted and never reach transform
 * or sink.
 *
 * The rule: what the sink gets, and the error that ends a pass, do not depend on the number of threads or on
 * their speed. That holds because a transform is a function of its document alone, and because an error keeps
 * its position in the order.  Memory is bounded: a few batches of about CORPUS_PASS_BATCH_BYTES a thread. */
#ifndef KILN_CORPUS_CORPUS_PASS_H
#define KILN_CORPUS_CORPUS_PASS_H

#include "corpus/corpus.h"
#include "corpus/source.h"

/* Documents pass from thread to thread in batches.  A batch is milliseconds of work, against microseconds to
 * wake a thread, and small enough to stay in a cache. */
enum { CORPUS_PASS_BATCH_BYTES = 1 << 17, CORPUS_PASS_BATCH_DOCUMENTS = 256 };

/* The function that computes a result from each document.  Functions other than `run` may be NULL. */
struct corpus_transform {
    const void *context; /* shared by all threads, read-only */

    /* A thread's own memory, such as the scratch of a tokenizer. */
    struct status (*worker_create)(void **worker, const void *context);
    void (*worker_destroy)(void *worker);

    /* The size of a result, a struct that is zeroed before its first use and reused for other documents. */
    size_t result_bytes;
    void (*result_fini)(void *result);

    /* Sets the result to that of this document, and nothing else. */
    struct status (*run)(void *worker, void *result, const struct document *d);
};

struct corpus_item {
    struct document document;
    void *result;                /* NULL without a transform */
    struct corpus_place place;   /* place after the document, where another pass can continue */
    uint64_t done_bytes;         /* bytes of the corpus up to that place */
    struct source_counts counts; /* counts up to that place */
};

/* Gets every item, in order, from one thread at a time, not always the same; `leave_out`, which may be NULL,
 * those whose fate is other than DOCUMENT_KEPT.  An error ends the pass. */
struct corpus_sink {
    void *context;
    struct status (*take)(void *context, const struct corpus_item *item);
    struct status (*leave_out)(void *context, const struct corpus_item *item);
};

/* Runs from the corpus' current place to its end, in as many threads as parallel_run has.  `transform` NULL:
 * no results.  Returns the error that comes first in the order of documents; the corpus' place is then
 * undefined. */
struct status corpus_pass_run(struct corpus *c, const struct corpus_transform *transform,
                              const struct corpus_sink *sink);

/* Converts raw documents of any format; one for each thread. */
struct converter {
    const struct source_options *options; /* borrowed */
    void *states[SOURCE_N_FORMATS];       /* each made when it is first needed */
};

/* Sets up a converter of one source; its options must outlive it. */
void converter_init(struct converter *c, const struct source_options *options);
void converter_fini(struct converter *c);

/* Converts a raw document; does nothing to others.  Afterwards it has paragraphs, or a fate other than
 * DOCUMENT_KEPT.  The result depends on the document and the options alone.  STATUS_MEMORY. */
struct status converter_run(struct converter *c, struct document *d);

#endif
