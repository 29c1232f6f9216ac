/* store_pass: the pass over the user's text that fills token stores or, for a dry run, only reads it. */
#ifndef KILN_CORPUS_STORE_PASS_H
#define KILN_CORPUS_STORE_PASS_H

#include "corpus/store_builder.h"

/* Adds the whole corpus, as ids made with `config`, to the builder, which may be NULL if config.tokenizer is.
 * Shows progress, and warns of repeated lines. */
struct status store_pass_run(struct corpus *c, struct store_builder *b,
                             const struct document_ids_config *config);

#endif
