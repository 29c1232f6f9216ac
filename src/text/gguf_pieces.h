/* gguf_pieces: the tokens of a GGUF file and what its keys say of them, checked, for the two makers of a
 * tokenizer's file (gguf_tokenizer.h). */
#ifndef KILN_TEXT_GGUF_PIECES_H
#define KILN_TEXT_GGUF_PIECES_H

#include "io/gguf_file.h"
#include "text/tokenizer.h"

/* A token of the list. */
struct gguf_piece {
    const char *text; /* [n] borrowed from the file */
    size_t n;
    float score;
    int type; /* enum gguf_token */
};

struct gguf_pieces {
    const struct gguf_file *f; /* borrowed */
    const char *source;        /* names the file in messages */
    struct gguf_piece *pieces; /* [n] */
    int32_t n;
    int32_t special[SPECIAL_COUNT], turn_end; /* ids; -1: the file has none */
    bool adds_begin, adds_end;                /* tokens around a text */
};

/* Reads the tokens and the special ones' ids, for zeroed pieces with a file and its name.  STATUS_DATA. */
struct status gguf_pieces_read(struct gguf_pieces *r);
void gguf_pieces_fini(struct gguf_pieces *r);

/* Single values; an absent key leaves a boolean alone, and gives no text.  The caller free()s a text. */
struct status gguf_pieces_text(char **text, const struct gguf_pieces *r, const char *key);
struct status gguf_pieces_bool(bool *value, const struct gguf_pieces *r, const char *key);

/* A list of texts or numbers, of n values unless n is 0; *list is NULL where the file has none. */
struct status gguf_pieces_list(const struct gguf_pair **list, const struct gguf_pieces *r, const char *key,
                               bool is_text, uint64_t n);

/* Reads what stands around a text; `begins`: the begin token does, where no key says. */
struct status gguf_pieces_read_frame(struct gguf_pieces *r, bool begins);
struct input_frame gguf_pieces_frame(const struct gguf_pieces *r);

/* The special tokens and a user's as "added_tokens" of tokenizer.json, which the caller json_decref's; NULL
 * without memory. */
json_t *gguf_pieces_added(const struct gguf_pieces *r);

/* STATUS_MEMORY, of a tokenizer of this source. */
struct status gguf_pieces_no_memory(const struct gguf_pieces *r);

/* Opens SentencePiece's BPE or unigram by a tokenizer.model that is made of the tokens. */
struct status gguf_sentencepiece_open(struct tokenizer *t, struct added_tokens *added, struct gguf_pieces *r,
                                      bool is_unigram);

#endif
