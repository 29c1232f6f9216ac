/* vocab: the pieces of a WordPiece model, read from vocab.txt: one piece a line, its id is the line number
 * from 0.
 *
 * The rule: ids are those that Hugging Face's BertTokenizer gives.  A carriage return before the line feed is
 * not part of the piece, a byte-order mark at the beginning not part of the first one; the last line feed may
 * be missing.  An empty line has an id and is never matched; of a piece that stands twice the last id
 * counts.  A warning says so.  Pieces that begin a word and pieces that continue one (written with "##" in
 * front) are found by the hash of their bytes.  The longest match tries the prefixes of a text from the
 * longest on: unlike the steps of a trie, these do not wait for each other. */
#ifndef KILN_TEXT_VOCAB_H
#define KILN_TEXT_VOCAB_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum { VOCAB_PREFIX_BYTES = 2 };      /* "##" */
enum { VOCAB_FILTER_BITS = 19 };      /* 64 KiB: 30,522 pieces set 6 % of the bits */
enum { VOCAB_PIECE_MAX_BYTES = 512 }; /* longer ones could never match: a word has at most 100 characters */

struct vocab {
    char *text; /* [text_bytes] the file as read */
    size_t text_bytes;
    uint32_t *starts;  /* [n] offset of each piece in text */
    uint16_t *lengths; /* [n] bytes of each piece */
    int32_t n;         /* pieces */
    /* ids of [PAD] [UNK] [CLS] [SEP] [MASK]; -1: there is none, but for [UNK] */
    int32_t pad, unk, cls, sep, mask;
    uint64_t hash;            /* FNV-1a of the file's bytes: goes into every artefact made with it */
    struct vocab_slot *slots; /* [n_slots] the hash table of pieces */
    uint32_t n_slots;         /* a power of two */
    uint64_t *filter;         /* [2^VOCAB_FILTER_BITS / 64] a bit for the hash of each piece */
    uint16_t longest[2];      /* bytes of the longest piece that begins and that continues a word */
};

/* Reads vocab.txt.  STATUS_DATA, with the line numbers: no pieces, a too long line, invalid UTF-8, or no
 * [UNK]. */
struct status vocab_open(struct vocab *v, const char *path);

/* Reads the text of a vocab.txt from memory, which is copied; `source` names it in messages. */
struct status vocab_init(struct vocab *v, const char *text, size_t n, const char *source);
void vocab_fini(struct vocab *v);

/* The id of a piece as written in the file ("ing", "##ing", "[SEP]"), or -1. */
int32_t vocab_find(const struct vocab *v, const char *piece, size_t n);

/* Whether a piece continues a word: it is written with "##" in front. */
bool vocab_continues(const char *piece, size_t n);

/* The piece of an id in [0, n); borrowed, not NUL-terminated. */
const char *vocab_piece(const struct vocab *v, int32_t id, size_t *n);

/* The longest piece that begins (or continues, if `continues`) a word and is a prefix of text[0..n), n bytes
 * of valid UTF-8: its id, or -1; *n_matched gets its bytes. */
int32_t vocab_match(const struct vocab *v, bool continues, const char *text, size_t n, size_t *n_matched);

#endif
