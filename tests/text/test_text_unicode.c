/* Tests of UTF-8 and of the basic tokenizer on every code point, against tests/golden/text_unicode.txt. */
#include "test.h"

#include "core/buf.h"
#include "text/basic_tokenizer.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <stdint.h>

enum { BLOCK = 4096, N_BLOCKS = (UNICODE_MAX + 1) / BLOCK };

static bool is_surrogate(uint32_t c)
{
    return c >= 0xD800 && c < 0xE000;
}

static void every_code_point_survives_utf8(void)
{
    for (uint32_t c = 0; c <= UNICODE_MAX; c++) {
        if (is_surrogate(c)) {
            continue;
        }
        char text[UTF8_MAX_BYTES];
        int n = utf8_write(text, c);
        uint32_t decoded;
        EXPECT(utf8_decode(&decoded, text, (size_t)n) == n && decoded == c, "U+%04X became U+%04X", c,
               decoded);
        EXPECT(utf8_find_invalid(text, (size_t)n) == (size_t)n, "U+%04X is valid", c);
        EXPECT(n == 1 || utf8_find_invalid(text, (size_t)n - 1) == 0, "U+%04X cut short is not", c);
    }
}

static void ill_formed_parts_are_as_long_as_the_standard_says(void)
{
    static const struct {
        const char *text;
        int n_bytes; /* to skip */
    } cases[] = {
        {"\x80", 1},         {"\xC0\x80", 1},     {"\xC1\xBF", 1},         {"\xC3", 1},
        {"\xC3(", 1},        {"\xE0\x80\x80", 1}, {"\xE2\x82", 2},         {"\xE2\x82(", 2},
        {"\xED\xA0\x80", 1}, {"\xF0\x9F\x98", 3}, {"\xF0\x80\x80\x80", 1}, {"\xF4\x90\x80\x80", 1},
        {"\xF5", 1},         {"\xFF", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t c;
        size_t n = strlen(cases[i].text);
        int n_bytes = utf8_decode(&c, cases[i].text, n);
        EXPECT(c == UNICODE_REPLACEMENT && n_bytes == cases[i].n_bytes, "case %zu: U+%04X, %d bytes", i, c,
               n_bytes);
        char longer[32] = "well-formed \xE2\x82\xAC ";
        size_t n_good = strlen(longer);
        memcpy(longer + n_good, cases[i].text, n);
        EXPECT(utf8_find_invalid(longer, n_good + n) == n_good, "case %zu", i);
    }
    EXPECT(utf8_find_invalid("", 0) == 0, "nothing is valid");
    EXPECT(utf8_find_invalid("\xEF\xBF\xBD", 3) == 3, "U+FFFD itself is valid");
}

static uint64_t fnv1a(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ p[i]) * 0x100000001B3U;
    }
    return h;
}

static void hash_word(void *context, const struct basic_word *w)
{
    uint64_t *h = context;
    unsigned char span[2] = {(unsigned char)w->whole.start, (unsigned char)w->whole.end};
    *h = fnv1a(*h, w->text, w->n_bytes);
    *h = fnv1a(*h, span, sizeof span);
}

/* U+08D4 U+1D16D U+302E U+1D165 U+11442 U+1E94A: they stay when accents are stripped, so their order shows;
 * their combining classes fall. */
#define STAYING_MARKS                                                                                        \
    "\xE0\xA3\x94\xF0\x9D\x85\xAD\xE3\x80\xAE\xF0\x9D\x85\xA5\xF0\x91\x91\x82\xF0\x9E\xA5\x8A"

static uint64_t block_hash(struct basic_tokenizer *b, uint32_t block)
{
    uint64_t h = 0xCBF29CE484222325U;
    for (uint32_t c = block * BLOCK; c < (block + 1) * BLOCK; c++) {
        if (is_surrogate(c)) {
            continue;
        }
        char in[UTF8_MAX_BYTES];
        size_t n_in = (size_t)utf8_write(in, c);
        struct buf text = {0};
        buf_putc(&text, 'a');
        buf_append(&text, in, n_in);
        buf_putc(&text, 'b');
        EXPECT(basic_tokenizer_words(b, text.data, text.n, 0, hash_word, &h), "memory");
        buf_clear(&text);
        buf_putc(&text, 'x');
        buf_append(&text, in, n_in);
        buf_puts(&text, STAYING_MARKS);
        buf_append(&text, in, n_in);
        buf_putc(&text, 'Y');
        EXPECT(basic_tokenizer_words(b, text.data, text.n, 0, hash_word, &h), "memory");
        buf_fini(&text);
    }
    return h;
}

static void every_code_point_is_treated_as_by_tokenizers(void)
{
    FILE *f = fopen(KILN_SOURCE_DIR "/tests/golden/text_unicode.txt", "r");
    EXPECT(f != NULL, "tests/golden/text_unicode.txt cannot be read");
    struct basic_tokenizer uncased, cased;
    EXPECT_OK(basic_tokenizer_init(&uncased, true));
    EXPECT_OK(basic_tokenizer_init(&cased, false));
    for (uint32_t block = 0; block < N_BLOCKS; block++) {
        unsigned number;
        unsigned long long wanted_uncased, wanted_cased;
        EXPECT(fscanf(f, "%u %llx %llx", &number, &wanted_uncased, &wanted_cased) == 3 && number == block,
               "line %u of the golden file", block + 1);
        EXPECT(block_hash(&uncased, block) == wanted_uncased, "uncased, U+%04X to U+%04X", block * BLOCK,
               (block + 1) * BLOCK - 1);
        EXPECT(block_hash(&cased, block) == wanted_cased, "cased, U+%04X to U+%04X", block * BLOCK,
               (block + 1) * BLOCK - 1);
    }
    basic_tokenizer_fini(&uncased);
    basic_tokenizer_fini(&cased);
    fclose(f);
}

int main(void)
{
    every_code_point_survives_utf8();
    ill_formed_parts_are_as_long_as_the_standard_says();
    every_code_point_is_treated_as_by_tokenizers();
    return 0;
}
