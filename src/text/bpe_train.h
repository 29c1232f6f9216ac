/* bpe_train: a vocabulary of byte-level BPE from the user's own text.
 *
 * The text is cut into pieces by the pattern (text/word_counter.h counts them), and the most frequent pair of
 * neighbours in them is merged, again and again (Sennrich et al. 2016, arXiv:1508.07909; over bytes: Radford
 * et al. 2019, section 2.2).  The rule: pieces, ids and merges are those of Hugging Face's `tokenizers`
 * (BpeTrainer with the alphabet of all bytes): of pairs that are equally frequent, the one with the lower ids
 * is merged first; counts have 64 bits.  Ids: the special tokens, the 256 bytes in the order of the
 * characters that stand for them, the merges. */
#ifndef KILN_TEXT_BPE_TRAIN_H
#define KILN_TEXT_BPE_TRAIN_H

#include "core/buf.h"
#include "core/progress.h"
#include "text/bpe_split.h"
#include "text/word_tally.h"

struct bpe_train_options {
    int64_t vocab_size;    /* pieces wanted; the result has fewer if the text does */
    int64_t min_frequency; /* least occurrences of a merged pair in the text */
    enum bpe_pattern pattern;
};

/* The files.  GPT-2's special token is <|endoftext|>, BLOOM's are <unk>, <s>, </s> and <pad>. */
struct bpe_train_result {
    struct buf vocab;     /* vocab.json */
    struct buf merges;    /* merges.txt */
    struct buf tokenizer; /* tokenizer.json, which also says the pattern */
    int64_t n_pieces;
    int64_t n_words; /* distinct pieces of the text */
};

/* Checks a size.  STATUS_USAGE: a vocabulary of this size cannot hold the bytes and the special tokens. */
struct status bpe_train_check_size(int64_t vocab_size, enum bpe_pattern pattern);

/* Makes them from the counts of a tally, which is emptied as soon as they are in memory; word_tally_fini must
 * still be called.  The files are read back before this succeeds.  STATUS_DATA if the tally has no word,
 * STATUS_USAGE if vocab_size is too small for the bytes, STATUS_MEMORY, STATUS_IO. */
struct status bpe_train(struct bpe_train_result *result, struct word_tally *tally,
                        const struct bpe_train_options *o, struct progress *progress);

/* Safe on a zeroed struct and after a failure. */
void bpe_train_fini(struct bpe_train_result *result);

#endif
