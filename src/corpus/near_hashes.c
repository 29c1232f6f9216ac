#include "corpus/near_hashes.h"

#include "core/hash.h"
#include "corpus/text_words.h"

#include <string.h>

enum { N_VALUES = NEAR_HASHES_BANDS * NEAR_HASHES_ROWS };

/* Each value is the least of another permutation of the 32-bit numbers: a product with an odd number. */
static void add_shingle(uint32_t least[N_VALUES], const struct text_words *words, int n)
{
    uint32_t shingle = (uint32_t)text_words_hash(words, n);
    for (uint32_t i = 0; i < N_VALUES; i++) {
        uint32_t value = (shingle ^ (i * 0x85ebca6bu)) * ((2 * i + 1) * 0x9e3779b1u);
        value ^= value >> 15;
        least[i] = value < least[i] ? value : least[i];
    }
}

void near_hashes_make(uint64_t *hashes, const struct document *d)
{
    uint32_t least[N_VALUES];
    struct text_words words = {.n = 0};
    struct text_word word;
    memset(least, 0xff, sizeof least);
    memset(hashes, 0, NEAR_HASHES_BANDS * sizeof *hashes);
    for (int64_t i = 0; i < d->n_paragraphs; i++) {
        struct paragraph p = document_paragraph(d, i);
        for (size_t at = 0; text_words_next(&word, &at, p.text, p.n);) {
            text_words_add(&words, word.hash);
            if (words.n >= NEAR_HASHES_WORDS) {
                add_shingle(least, &words, NEAR_HASHES_WORDS);
            }
        }
    }
    if (words.n > 0 && words.n < NEAR_HASHES_WORDS) {
        add_shingle(least, &words, (int)words.n);
    }
    for (uint32_t b = 0; b < NEAR_HASHES_BANDS && words.n > 0; b++) {
        uint32_t band[NEAR_HASHES_ROWS + 1] = {b};
        memcpy(band + 1, least + b * NEAR_HASHES_ROWS, NEAR_HASHES_ROWS * sizeof *band);
        hashes[b] = hash_fnv1a(band, sizeof band) | 1;
    }
}
