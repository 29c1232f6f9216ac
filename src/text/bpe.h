/* bpe: text to the ids of a model with byte-level BPE: GPT-2, BLOOM, Llama 3, Qwen.
 *
 * The rule: ids are those of Hugging Face's `tokenizers` for every text, except that text which spells a
 * special token is text; and decoding gives back the bytes, whatever they are.
 *
 * A piece of n bytes takes O(n log n) time: the merge of lowest rank, of several the leftmost, is taken from
 * a heap, whose entries are checked when they come up (for pieces of few bytes a scan is faster).  Pieces
 * that occurred before are found in a cache of fixed size (text/word_cache.h). */
#ifndef KILN_TEXT_BPE_H
#define KILN_TEXT_BPE_H

#include "text/bpe_merges.h"
#include "text/bpe_split.h"
#include "text/pre_split.h"
#include "text/token_list.h"
#include "text/unicode_form.h"
#include "text/word_cache.h"

struct bpe {
    enum bpe_pattern pattern;
    struct pre_split split; /* steps if the pattern is BPE_SPLITS */
    struct bpe_merges merges;
    bool has_bytes;      /* of plain pieces: a character without one is tokens of its bytes */
    int32_t unknown;     /* else it is this token; -1: it is none */
    bool fuses_unknown;  /* one for several such characters */
    bool ignores_merges; /* a piece that the vocabulary has as a whole is one token, whatever merges make */
    bool has_form;       /* the text is normalized first */
    enum unicode_form form;
    uint64_t settings_hash; /* hash of what decides ids besides pattern, pieces and merges */
    const char *gguf_name;  /* llama.cpp's name of the pre_tokenizer; NULL: it has none */
};

/* Safe on a zeroed struct. */
void bpe_fini(struct bpe *bpe);

/* The memory that encoding writes to.  Belongs to one thread; several may share a vocabulary. */
struct bpe_scratch {
    const struct bpe *bpe;
    struct word_cache cache;
    struct id_list start;   /* the ids that a piece begins with */
    struct id_list piece;   /* the ids of the piece that is being merged */
    struct bpe_part *parts; /* [capacity] its parts */
    struct bpe_entry *heap; /* [3 capacity] merges that may be possible */
    size_t capacity;
    struct split_regex_scratch *regex; /* NULL unless a step is a regular expression */
    struct normal_text normal;         /* the normalized text */
    struct unicode_form_room room;
};

/* Borrows the vocabulary, which must outlive it.  STATUS_MEMORY.  Fini is safe on a zeroed struct and after a
 * failed init. */
struct status bpe_scratch_init(struct bpe_scratch *s, const struct bpe *bpe);
void bpe_scratch_fini(struct bpe_scratch *s);

/* Whether text that no piece covers can be tokens of its bytes. */
bool bpe_has_bytes(const struct bpe *b, const char *text, size_t n);

/* Appends the ids or the tokens of a piece, text[begin..end): where pieces are plain, valid UTF-8.
 * STATUS_MEMORY. */
struct status bpe_append_ids(struct bpe_scratch *s, struct id_list *out, const char *piece, size_t n);
struct status bpe_append_tokens(struct bpe_scratch *s, struct token_list *out, const struct normal_text *text,
                                size_t begin, size_t end);

/* Appends the tokens of text[0..n), any bytes, with their offsets; or only the ids, many times faster.
 * Failures: STATUS_MEMORY, and what split_regex_find says. */
struct status bpe_encode(struct bpe_scratch *s, struct token_list *out, const char *text, size_t n);
struct status bpe_encode_ids(struct bpe_scratch *s, struct id_list *out, const char *text, size_t n);

#endif
