/* bpe_merges: the pieces of a byte-level BPE vocabulary and the order in which bytes are merged into them
 * (Sennrich et al. 2016, arXiv:1508.07909; over bytes: Radford et al. 2019, "Language Models are Unsupervised
 * Multitask Learners", section 2.2).
 *
 * Files write a byte as a printable character: those of ASCII and Latin-1 that are printable stand for
 * themselves, the other 68 bytes for U+0100 and the characters after it, in their order. */
#ifndef KILN_TEXT_BPE_MERGES_H
#define KILN_TEXT_BPE_MERGES_H

#include "core/buf.h"
#include "core/json.h"
#include "core/status.h"
#include "text/tokenizer.h"

#include <stddef.h>
#include <stdint.h>

enum { BPE_MOST_PIECES = 1 << 24, BPE_PIECE_MAX_BYTES = 65535 };

/* The merge of two neighbours; the lower the rank, the earlier it is done. */
struct bpe_merge {
    int32_t left, right; /* ids; left -1: the slot is empty */
    int32_t rank, id;    /* rank of the merge; id of the merged piece */
};

struct bpe_merges {
    struct buf bytes;            /* bytes of all pieces, by id */
    uint32_t *starts;            /* [n + 1] where a piece begins in `bytes` */
    int32_t n;                   /* pieces, of the ids 0 to n - 1 */
    bool is_plain;               /* files write the pieces' own characters, not one for each byte */
    int32_t byte[256];           /* the id of each byte; where plain, of "<0x0A>" and the like, -1: none */
    int16_t of_character[0x200]; /* the byte that a character stands for; -1: none */
    int32_t *names;              /* [n_names] hash table of ids by the pieces' bytes; -1: empty */
    struct bpe_merge *slots;     /* [n_slots] hash table of merges by their two neighbours */
    uint32_t n_names, n_slots;   /* powers of two; n_slots is 0 before the first merge */
    int32_t n_merges;
    int32_t n_ranks; /* the same, and those of merges that were listed again later */
};

/* Reads the pieces, an object from texts to ids as in vocab.json.  A text with a character that stands for no
 * byte, such as a special token's, is found in no text.  Ids that no piece has are left where pieces were
 * taken out or tokens added after a padded vocabulary: their piece is "", which no text has either.
 * STATUS_DATA: an id is none, or given twice; two pieces have the same bytes; a byte has no piece.  `source`
 * names the file in messages. */
struct status bpe_merges_init(struct bpe_merges *m, const json_t *pieces, const char *source);

/* The same for pieces of characters, as SentencePiece has them: a text stands for itself, and a byte may have
 * no piece. */
struct status bpe_merges_init_plain(struct bpe_merges *m, const json_t *pieces, const char *source);

/* Sets the merge of two pieces, by their ids, of equal or later rank than those so far.  STATUS_MEMORY. */
struct status bpe_merges_put(struct bpe_merges *m, struct bpe_merge merge, const char *source);

/* Adds the next merge, of the pieces of two texts as files write them, with the number `line` of its line or
 * entry in `source`. The later place of a merge that is listed twice counts, as in Hugging Face's tokenizers.
 * STATUS_DATA: one of them, or both together, is no piece. */
struct status bpe_merges_add(struct bpe_merges *m, struct text_bytes left, struct text_bytes right,
                             const char *source, int64_t line);

/* Safe on a zeroed struct and after a failed init. */
void bpe_merges_fini(struct bpe_merges *m);

/* The merge of two neighbours, NULL if there is none. */
const struct bpe_merge *bpe_merges_find(const struct bpe_merges *m, int32_t left, int32_t right);

/* Prefetches the memory that bpe_merges_find will read. */
void bpe_merges_prefetch(const struct bpe_merges *m, int32_t left, int32_t right);

/* The id of the piece of these bytes, -1 if there is none. */
int32_t bpe_merges_id(const struct bpe_merges *m, const char *bytes, size_t n);

/* Checks that the merges are complete.  STATUS_DATA: pieces are numbered in the order of the merges, and the
 * piece after the last merge's is one that another merge would make. */
struct status bpe_merges_check_end(const struct bpe_merges *m, const char *source);

/* The bytes of a piece, of an id in [0, n); borrowed. */
const char *bpe_merges_piece(const struct bpe_merges *m, int32_t id, size_t *n);

/* The merges by rank, [n_merges], in memory that the caller frees; NULL if memory runs out. */
const struct bpe_merge **bpe_merges_by_rank(const struct bpe_merges *m);

/* A hash of the pieces, by their ids, and of the merges, by their ranks. */
uint64_t bpe_merges_hash(const struct bpe_merges *m);

/* order[i] = the byte whose character is the i-th of the 256: the order of ids in GPT-2's vocabulary. */
void bpe_merges_byte_order(unsigned char order[256]);

/* Appends bytes as files write them. */
void bpe_merges_write(struct buf *out, const char *bytes, size_t n);

#endif
