/* gguf_tokens: writes a tokenizer as the keys of a GGUF file, so that llama.cpp gives the same ids:
 * byte-level BPE ("gpt2") and SentencePiece's BPE with byte fallback ("llama").  gguf_tokenizer.h reads
 * them. */
#ifndef KILN_TEXT_GGUF_TOKENS_H
#define KILN_TEXT_GGUF_TOKENS_H

#include "io/gguf_writer.h"
#include "text/tokenizer.h"

/* Puts all keys.  STATUS_UNAVAILABLE: GGUF cannot say this tokenizer, or llama.cpp would give other ids. */
struct status gguf_tokens_put(struct gguf_writer *w, const struct tokenizer *t);

#endif
