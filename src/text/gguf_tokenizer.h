/* gguf_tokenizer: the tokenizer in the keys of a GGUF file, "tokenizer.*" (github.com/ggml-org/ggml, "GGUF").
 * Of byte-level BPE ("gpt2") a tokenizer.json is made, of SentencePiece's models ("llama", "t5") a
 * tokenizer.model, and these are opened as files of a directory are; a tokenizer.json that the file holds
 * whole is taken first.
 *
 * The rule: a name, a type or an id that kiln does not know is refused with the key. */
#ifndef KILN_TEXT_GGUF_TOKENIZER_H
#define KILN_TEXT_GGUF_TOKENIZER_H

#include "io/gguf_file.h"
#include "text/tokenizer.h"

/* The keys, which writers use too. */
#define GGUF_TOKENIZER_MODEL    "tokenizer.ggml.model"
#define GGUF_TOKENIZER_PRE      "tokenizer.ggml.pre"
#define GGUF_TOKENIZER_TOKENS   "tokenizer.ggml.tokens"
#define GGUF_TOKENIZER_SCORES   "tokenizer.ggml.scores"
#define GGUF_TOKENIZER_TYPES    "tokenizer.ggml.token_type"
#define GGUF_TOKENIZER_MERGES   "tokenizer.ggml.merges"
#define GGUF_TOKENIZER_BEGINS   "tokenizer.ggml.add_bos_token"
#define GGUF_TOKENIZER_ENDS     "tokenizer.ggml.add_eos_token"
#define GGUF_TOKENIZER_SPACE    "tokenizer.ggml.add_space_prefix"
#define GGUF_TOKENIZER_TURN_END "tokenizer.ggml.eot_token_id"
#define GGUF_TOKENIZER_TEMPLATE "tokenizer.chat_template"
#define GGUF_TOKENIZER_JSON     "tokenizer.huggingface.json"

/* The key of a special token's id; NULL: GGUF has none. */
const char *gguf_tokenizer_special_key(enum special_token special);

/* llama.cpp's types of tokens. */
enum gguf_token {
    GGUF_TOKEN_NORMAL = 1,
    GGUF_TOKEN_UNKNOWN,
    GGUF_TOKEN_CONTROL,
    GGUF_TOKEN_USER_DEFINED,
    GGUF_TOKEN_UNUSED,
    GGUF_TOKEN_BYTE
};

/* Opens the tokenizer of a GGUF file.  STATUS_DATA names the key. */
struct status gguf_tokenizer_open(struct tokenizer *t, const char *path);

/* The same of an open file, which `source` names in messages. */
struct status gguf_tokenizer_read(struct tokenizer *t, const struct gguf_file *f, const char *source);

#endif
