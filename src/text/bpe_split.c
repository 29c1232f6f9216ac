#include "text/bpe_split.h"

#include "text/unicode.h"

#include "text/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

const char *bpe_pattern_gguf_name(enum bpe_pattern pattern)
{
    return pattern == BPE_BLOOM ? "bloom" : "gpt-2";
}

const char *bpe_pattern_regex(enum bpe_pattern pattern)
{
    return pattern == BPE_BLOOM
               ? " ?[^(\\s|[.,!?…。，、।۔،])]+"
               : "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
}

enum bpe_pattern bpe_pattern_find(const char *name)
{
    return strcmp(name, "bloom") == 0 ? BPE_BLOOM : BPE_GPT2;
}

enum category { CATEGORY_OTHER, CATEGORY_LETTER, CATEGORY_NUMBER, CATEGORY_SPACE };

static enum category category_of(uint32_t c)
{
    if (unicode_is_white(c)) {
        return CATEGORY_SPACE;
    }
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CATEGORY_LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CATEGORY_NUMBER;
    default: return CATEGORY_OTHER;
    }
}

static enum category category_of_ascii(unsigned char byte)
{
    unsigned char lower = byte | 0x20;
    if (lower >= 'a' && lower <= 'z') {
        return CATEGORY_LETTER;
    }
    if (byte == ' ' || (byte >= '\t' && byte <= '\r')) {
        return CATEGORY_SPACE;
    }
    return byte >= '0' && byte <= '9' ? CATEGORY_NUMBER : CATEGORY_OTHER;
}

/* The category of the character at text[at] and its bytes. */
static enum category category_at(const char *text, size_t n, size_t at, size_t *n_bytes)
{
    unsigned char byte = (unsigned char)text[at];
    uint32_t c;
    *n_bytes = 1;
    if (byte < 0x80) {
        return category_of_ascii(byte);
    }
    size_t length = (size_t)utf8_decode(&c, text + at, n - at);
    bool is_character = c != 0xFFFD || (length == 3 && memcmp(text + at, "\xEF\xBF\xBD", 3) == 0);
    *n_bytes = is_character ? length : 1;
    return is_character ? category_of(c) : CATEGORY_OTHER;
}

static size_t end_of_run(const char *text, size_t n, size_t at, enum category category)
{
    size_t n_bytes;
    while (at < n && category_at(text, n, at, &n_bytes) == category) {
        at += n_bytes;
    }
    return at;
}

/* The bytes of a contraction at text[at], an apostrophe; 0: there is none. */
static size_t contraction(const char *text, size_t n, size_t at)
{
    static const char *const endings[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t length = strlen(endings[i]);
        if (n - at > length && memcmp(text + at + 1, endings[i], length) == 0) {
            return length + 1;
        }
    }
    return 0;
}

/* White space from `at` on up to `end` or to the last character before it: \s+(?!\S)|\s+ */
static size_t end_of_space(const char *text, size_t n, size_t at)
{
    size_t n_bytes, last = at, end = at;
    while (end < n && category_at(text, n, end, &n_bytes) == CATEGORY_SPACE) {
        last = end;
        end += n_bytes;
    }
    return end == n || last == at ? end : last;
}

static size_t end_gpt2(const char *text, size_t n, size_t at)
{
    size_t n_bytes, n_contracted = text[at] == '\'' ? contraction(text, n, at) : 0;
    if (n_contracted > 0) {
        return at + n_contracted;
    }
    size_t first = at + (text[at] == ' ' && at + 1 < n);
    enum category category = category_at(text, n, first, &n_bytes);
    return category == CATEGORY_SPACE ? end_of_space(text, n, at) : end_of_run(text, n, first, category);
}

/* Whether BLOOM's class has the character at text[at], of so many bytes. */
static bool is_in_word(const char *text, size_t n, size_t at, size_t *n_bytes)
{
    static const char ascii[] = {'(', '|', ')', '.', ',', '!', '?'};
    static const char *const others[] = {"…", "。", "，", "、", "।", "۔", "،"};
    if (category_at(text, n, at, n_bytes) == CATEGORY_SPACE) {
        return false;
    }
    if (*n_bytes == 1) {
        return memchr(ascii, text[at], sizeof ascii) == NULL;
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strlen(others[i]) == *n_bytes && memcmp(text + at, others[i], *n_bytes) == 0) {
            return false;
        }
    }
    return true;
}

/* Whether a match begins at text[at]: a character of the class, or a blank and then one. */
static bool begins_word(const char *text, size_t n, size_t at)
{
    size_t n_bytes;
    return is_in_word(text, n, at, &n_bytes) ||
           (text[at] == ' ' && at + 1 < n && is_in_word(text, n, at + 1, &n_bytes));
}

static size_t end_bloom(const char *text, size_t n, size_t at)
{
    size_t n_bytes, end = at;
    if (begins_word(text, n, at)) {
        end += text[at] == ' ';
        while (end < n && is_in_word(text, n, end, &n_bytes)) {
            end += n_bytes;
        }
        return end;
    }
    do {
        is_in_word(text, n, end, &n_bytes);
        end += n_bytes;
    } while (end < n && !begins_word(text, n, end));
    return end;
}

/* ---- ASCII, which most text is ---- */

/* The categories of ASCII, by byte; X: NUL and the bytes of other characters, which are for category_at. */
enum { O = CATEGORY_OTHER, L = CATEGORY_LETTER, N = CATEGORY_NUMBER, S = CATEGORY_SPACE, X };

// clang-format off
static const uint8_t ascii_categories[128] = {
    X, O, O, O, O, O, O, O, O, S, S, S, S, S, O, O,
    O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O,
    S, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O,
    N, N, N, N, N, N, N, N, N, N, O, O, O, O, O, O,
    O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L,
    L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O,
    O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L,
    L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O,
};
// clang-format on

static int quick_category(unsigned char byte)
{
    return byte < 0x80 ? ascii_categories[byte] : X;
}

/* The number of letters of ASCII at the beginning of 8 bytes, little-endian: a byte's high bit is set by
 * adding what lacks from 'a', or from the character after 'z', to 0x80. */
static size_t count_letters(uint64_t bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = 0x80 * ones;
    uint64_t lower = (bytes | 0x20 * ones) & ~high;
    uint64_t letters = (lower + (0x80 - 'a') * ones) & ~(lower + (0x80 - 'z' - 1) * ones) & ~bytes & high;
    uint64_t others = letters ^ high;
    return others == 0 ? 8 : (size_t)__builtin_ctzll(others) / 8;
}

static size_t end_of_letters(const char *text, size_t n, size_t at)
{
    while (n - at >= sizeof(uint64_t)) {
        uint64_t bytes;
        memcpy(&bytes, text + at, sizeof bytes);
        size_t n_letters = count_letters(bytes);
        at += n_letters;
        if (n_letters < sizeof bytes) {
            return at;
        }
    }
    while (at < n && quick_category((unsigned char)text[at]) == L) {
        at++;
    }
    return at;
}

size_t bpe_split_quick(const char *text, size_t n, size_t at)
{
    size_t end = at + (text[at] == ' ' && at + 1 < n);
    int category = quick_category((unsigned char)text[end]);
    if (category == L) {
        end = end_of_letters(text, n, end);
    } else if (category == S || category == X || text[at] == '\'') {
        return 0;
    } else {
        do {
            end++;
        } while (end < n && quick_category((unsigned char)text[end]) == category);
    }
    return end < n && quick_category((unsigned char)text[end]) == X ? 0 : end;
}

size_t bpe_split_end(enum bpe_pattern pattern, const char *text, size_t n, size_t at)
{
    return pattern == BPE_BLOOM ? end_bloom(text, n, at) : end_gpt2(text, n, at);
}
