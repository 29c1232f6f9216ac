#include "corpus/near_hashes.h"

#include "core/hash.h"

#include <string.h>

enum { N_VALUES = NEAR_HASHES_BANDS * NEAR_HASHES_ROWS };

static const uint64_t FNV_BASIS = UINT64_C(0xcbf29ce484222325), FNV_PRIME = UINT64_C(0x100000001b3);

struct sketch {
    uint32_t least[N_VALUES];
    uint64_t words[NEAR_HASHES_WORDS]; /* the last ones, by number % NEAR_HASHES_WORDS */
    uint64_t word;                     /* hash of the word so far */
    bool in_word;
    int64_t n_words;
};

/* Each value is the least of another permutation of the 32-bit numbers: a product with an odd number. */
static void add_shingle(struct sketch *k, int64_t first, int64_t n)
{
    uint64_t all = 0;
    for (int64_t i = 0; i < n; i++) {
        all = (all ^ k->words[(first + i) % NEAR_HASHES_WORDS]) * UINT64_C(0x9e3779b97f4a7c15);
        all ^= all >> 32;
    }
    uint32_t shingle = (uint32_t)all;
    for (uint32_t i = 0; i < N_VALUES; i++) {
        uint32_t value = (shingle ^ (i * 0x85ebca6bu)) * ((2 * i + 1) * 0x9e3779b1u);
        value ^= value >> 15;
        k->least[i] = value < k->least[i] ? value : k->least[i];
    }
}

static void end_word(struct sketch *k)
{
    if (!k->in_word) {
        return;
    }
    k->in_word = false;
    k->words[k->n_words % NEAR_HASHES_WORDS] = k->word;
    k->n_words++;
    if (k->n_words >= NEAR_HASHES_WORDS) {
        add_shingle(k, k->n_words - NEAR_HASHES_WORDS, NEAR_HASHES_WORDS);
    }
}

static void add_byte(struct sketch *k, unsigned char c)
{
    k->word = ((k->in_word ? k->word : FNV_BASIS) ^ c) * FNV_PRIME;
    k->in_word = true;
}

/* The bytes of UTF-8 from U+3040 to U+D7FF begin with these; those of general punctuation with E2 80. */
static void add_text(struct sketch *k, const unsigned char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = text[i];
        bool is_upper = c >= 'A' && c <= 'Z', is_mark = c == 0xe2 && i + 1 < n && text[i + 1] == 0x80;
        bool is_alone = c >= 0xe3 && c <= 0xed && i + 2 < n;
        if (is_alone || is_mark) {
            end_word(k);
        }
        if (is_mark) {
            i += 2;
        } else if (is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c >= 0x80) {
            add_byte(k, is_upper ? (unsigned char)(c | 0x20) : c);
        } else {
            end_word(k);
        }
        if (is_alone) {
            add_byte(k, text[++i]);
            add_byte(k, text[++i]);
            end_word(k);
        }
    }
    end_word(k);
}

void near_hashes_make(uint64_t *hashes, const struct document *d)
{
    struct sketch k = {.n_words = 0};
    memset(k.least, 0xff, sizeof k.least);
    memset(hashes, 0, NEAR_HASHES_BANDS * sizeof *hashes);
    for (int64_t i = 0; i < d->n_paragraphs; i++) {
        struct paragraph p = document_paragraph(d, i);
        add_text(&k, (const unsigned char *)p.text, p.n);
    }
    if (k.n_words > 0 && k.n_words < NEAR_HASHES_WORDS) {
        add_shingle(&k, 0, k.n_words);
    }
    for (uint32_t b = 0; b < NEAR_HASHES_BANDS && k.n_words > 0; b++) {
        uint32_t band[NEAR_HASHES_ROWS + 1] = {b};
        memcpy(band + 1, k.least + b * NEAR_HASHES_ROWS, NEAR_HASHES_ROWS * sizeof *band);
        hashes[b] = hash_fnv1a(band, sizeof band) | 1;
    }
}
