/* gguf_pre: the names by which GGUF's "tokenizer.ggml.pre" says where byte-level BPE cuts a text, and what
 * llama.cpp does under each (its llama-vocab.cpp): a table that serves reading and writing.
 *
 * The rule: a name is here where its expressions are known; any other is refused. */
#ifndef KILN_TEXT_GGUF_PRE_H
#define KILN_TEXT_GGUF_PRE_H

#include "core/buf.h"
#include "core/json.h"

enum { GGUF_PRE_MOST_STEPS = 5, GGUF_PRE_MOST_NAMES = 12 };

struct gguf_pre {
    const char *names[GGUF_PRE_MOST_NAMES]; /* up to a NULL; the first is written */
    const char *steps[GGUF_PRE_MOST_STEPS]; /* expressions, one after the other, up to a NULL */
    bool ignores_merges;                    /* a word that is a piece is that piece */
    bool adds_begin;  /* a text begins with the begin token, unless a key says otherwise */
    bool is_composed; /* models of this name have NFC in front, which llama.cpp leaves out */
};

/* The row of a name; NULL: it is not known. */
const struct gguf_pre *gguf_pre_find(const char *name);

/* Appends all names, for people. */
void gguf_pre_list(struct buf *out);

/* The row as a pre_tokenizer of tokenizer.json, which the caller json_decref's; NULL without memory. */
json_t *gguf_pre_tokenizer(const struct gguf_pre *row);

/* The name to write for a pre_tokenizer of tokenizer.json; NULL: llama.cpp has none. */
const char *gguf_pre_name(const json_t *pre_tokenizer, bool ignores_merges);

#endif
