/* inspect_store: what is in the documents of a token store, for `kiln inspect`: their lengths and, with the
 * tokenizer, their text, the shares of some tokens and the bytes of text that a token stands for. */
#ifndef KILN_CMD_INSPECT_STORE_H
#define KILN_CMD_INSPECT_STORE_H

#include "core/buf.h"
#include "core/json.h"
#include "core/status.h"
#include "text/tokenizer_open.h"

struct inspect_store_args {
    const char *documents;         /* "N", the first N, or "A-B", numbers from 0 on; NULL: none */
    struct vocab_flags vocabulary; /* no file: the tokenizer in the store's directory, if it is its */
};

/* Adds to the report of a store; of documents that are asked for the texts too, which *texts gets for people.
 * STATUS_USAGE, STATUS_DATA: the tokenizer is another, or there is none for what is asked for. */
struct status inspect_store(json_t *report, struct buf *texts, const char *prefix,
                            const struct inspect_store_args *args);

#endif
