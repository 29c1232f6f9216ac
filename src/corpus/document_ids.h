/* document_ids: converts a document to the input of a store: sentences of token ids, and hashes of the
 * document's paragraphs.
 *
 * It is a transform of corpus/corpus_pass.h: a function of the document alone, run by many threads. */
#ifndef KILN_CORPUS_DOCUMENT_IDS_H
#define KILN_CORPUS_DOCUMENT_IDS_H

#include "corpus/corpus_pass.h"
#include "corpus/cleaning.h"
#include "text/sentence.h"
#include "text/tokenizer.h"

struct document_ids {
    struct id_list ids; /* ids of the sentences, end to end; none is empty */
    size_t *ends;       /* [n_sentences] where sentences end in `ids` */
    int64_t n_sentences;
    uint64_t *hashes;        /* [n_paragraphs of the document] for corpus/repeats.h */
    int64_t *paragraph_ends; /* [n_paragraphs] sentences up to the end of each paragraph */
    size_t ends_capacity, hashes_capacity, paragraph_capacity;
    struct document_facts facts;
};

struct document_ids_config {
    const struct tokenizer *tokenizer; /* borrowed; NULL: only hashes, no sentences */
    bool one_sentence_per_line;        /* each paragraph is one sentence */
    struct document_facts_config facts;
    const struct punkt *punkt; /* borrowed: learned rules for the ends of sentences; NULL: none */
};

/* The transform; its results are struct document_ids.  `config` is borrowed and must outlive it. */
struct corpus_transform document_ids_transform(const struct document_ids_config *config);

#endif
