/* document_ids: what a document becomes on its way to a store: sentences of token ids, and hashes of its paragraphs.
 *
 * A transform of corpus/corpus_pass.h: a function of the document alone, for many threads at once. */
#ifndef KILN_CORPUS_DOCUMENT_IDS_H
#define KILN_CORPUS_DOCUMENT_IDS_H

#include "corpus/corpus_pass.h"
#include "text/tokenizer.h"

struct document_ids {
    struct id_list ids; /* of the sentences, end to end; none is empty */
    size_t *ends;       /* [n_sentences] where they end in it */
    int64_t n_sentences;
    uint64_t *hashes; /* [n_paragraphs of the document] for corpus/repeats.h */
    size_t ends_capacity, hashes_capacity;
};

struct document_ids_config {
    const struct tokenizer *tokenizer; /* borrowed; NULL: there are hashes, but no sentences */
    bool one_sentence_per_line;        /* a paragraph is a sentence: nothing is split */
};

/* The transform; its results are struct document_ids.  `config` is borrowed, and must stay. */
struct corpus_transform document_ids_transform(const struct document_ids_config *config);

/* A scratch of its own, for one thread, and what it makes of a document; `ids` is zeroed to begin, and used again. */
struct document_ids_worker;
struct status document_ids_worker_create(struct document_ids_worker **worker,
                                         const struct document_ids_config *config);
void document_ids_worker_destroy(struct document_ids_worker *worker);
struct status document_ids_make(struct document_ids_worker *worker, struct document_ids *ids,
                                const struct document *d);
void document_ids_fini(struct document_ids *ids);

#endif
