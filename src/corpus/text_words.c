#include "corpus/text_words.h"

static const uint64_t FNV_BASIS = UINT64_C(0xcbf29ce484222325), FNV_PRIME = UINT64_C(0x100000001b3);

enum kind { BETWEEN_WORDS, OF_A_WORD, WORD_ALONE };

/* The bytes of UTF-8 from U+3040 to U+D7FF begin with E3 to ED; those of general punctuation with E2 80. */
static enum kind kind_of(size_t *n_bytes, const unsigned char *text, size_t n)
{
    unsigned char c = text[0], lower = c | 0x20;
    bool is_mark = c == 0xe2 && n > 1 && text[1] == 0x80;
    bool is_alone = c >= 0xe3 && c <= 0xed && n > 2;
    bool is_inside = (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c >= 0x80;
    *n_bytes = is_mark || is_alone ? 3 : 1;
    return is_alone ? WORD_ALONE : is_inside && !is_mark ? OF_A_WORD : BETWEEN_WORDS;
}

static void add_byte(struct text_word *word, unsigned char c)
{
    bool is_upper = c >= 'A' && c <= 'Z';
    word->hash = (word->hash ^ (is_upper ? c | 0x20 : c)) * FNV_PRIME;
    word->n_bytes++;
    word->n_chars += (c & 0xc0) != 0x80;
}

bool text_words_next(struct text_word *word, size_t *at, const char *text, size_t n)
{
    const unsigned char *t = (const unsigned char *)text;
    size_t n_bytes, i = *at;
    enum kind kind = BETWEEN_WORDS;
    *word = (struct text_word){.hash = FNV_BASIS};
    for (; i < n && kind != WORD_ALONE; i += n_bytes) {
        kind = kind_of(&n_bytes, t + i, n - i);
        if (word->n_bytes > 0 && kind != OF_A_WORD) {
            break;
        }
        for (size_t k = 0; kind != BETWEEN_WORDS && k < n_bytes; k++) {
            add_byte(word, t[i + k]);
        }
    }
    *at = i;
    return word->n_bytes > 0;
}

void text_words_add(struct text_words *w, uint64_t hash)
{
    w->last[w->n++ % TEXT_WORDS_MOST] = hash;
}

uint64_t text_words_hash(const struct text_words *w, int count)
{
    uint64_t all = 0;
    for (int64_t i = w->n - count; i < w->n; i++) {
        all = (all ^ w->last[i % TEXT_WORDS_MOST]) * UINT64_C(0x9e3779b97f4a7c15);
        all ^= all >> 32;
    }
    return all != 0 ? all : 1;
}
