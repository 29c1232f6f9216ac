/* document_facts: what cleaning (corpus/cleaning.h) has to know of a document, computed by any thread.  A
 * function of the document alone; of a document in pieces, of the first piece. */
#ifndef KILN_CORPUS_DOCUMENT_FACTS_H
#define KILN_CORPUS_DOCUMENT_FACTS_H

#include "corpus/document.h"

#include <stdint.h>

/* The facts that are asked for; the others are 0. */
struct document_facts_config {
    bool hash, chars;
    uint64_t scripts; /* a bit for each of text/script.h; 0: letters are not counted */
};

enum { DOCUMENT_HASH_BYTES = 16 };

struct document_facts {
    unsigned char hash[DOCUMENT_HASH_BYTES]; /* MD5 of the paragraphs, with an end of line after each */
    int64_t n_chars;                         /* code points */
    int64_t n_letters, n_wanted;             /* code points of any script, and of the scripts asked for */
};

/* Makes the facts of a document that the configuration asks for. */
void document_facts_make(struct document_facts *f, const struct document_facts_config *config,
                         const struct document *d);

#endif
