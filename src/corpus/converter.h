/* converter: what a thread needs to convert raw documents of any format. */
#ifndef KILN_CORPUS_CONVERTER_H
#define KILN_CORPUS_CONVERTER_H

#include "corpus/source.h"

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
