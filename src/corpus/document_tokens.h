/* document_tokens: the token ids of whole documents, computed by any thread of a pass (corpus/corpus_pass.h).
 *
 * The rule: an exact text is encoded as it is; the paragraphs of other documents are joined by a blank line.
 * The result is a function of the document alone. */
#ifndef KILN_CORPUS_DOCUMENT_TOKENS_H
#define KILN_CORPUS_DOCUMENT_TOKENS_H

#include "corpus/corpus_pass.h"
#include "corpus/cleaning.h"
#include "text/tokenizer.h"

struct document_tokens_config {
    const struct tokenizer *tokenizer; /* borrowed; NULL: only the facts are made */
    int n_keys;                        /* more than 1: the paragraphs are texts of their own */
    size_t part_bytes; /* a longer text is cut into parts of about this size, between lines; 0: it is not */
    struct document_facts_config facts;
};

/* What a document, or a piece of one, becomes. */
struct document_tokens {
    struct id_list ids; /* the parts end to end; or the texts of the keys */
    size_t *ends;       /* [n] where they end in `ids` */
    size_t n, capacity;
    struct buf text; /* scratch */
    struct document_facts facts;
};

/* Makes a struct document_tokens of each document; `config` is borrowed. */
struct corpus_transform document_tokens_transform(const struct document_tokens_config *config);

#endif
