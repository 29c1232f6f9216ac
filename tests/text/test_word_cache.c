/* Tests of splitting by blocks and of the cache of words: what is found is what encoding without a cache
 * gives, in any order, for runs of any bytes and lengths. */
#include "test.h"

#include "core/rng.h"
#include "text/basic_tokenizer.h"
#include "text/text_split.h"
#include "text/wordpiece.h"

/* Draws below n, from a counter. */
static uint32_t draw(uint32_t *counter, uint32_t n)
{
    return rng_philox(1, (*counter)++, 0, 0, 0).word[0] % n;
}

static bool is_kind(const char *text, int i, enum basic_kind kind)
{
    return basic_kinds[(unsigned char)text[i]] == kind;
}

/* What text_split.h says, byte by byte. */
static struct text_split split_slowly(const char *text)
{
    struct text_split s = {0, 0};
    for (int i = 0; i < TEXT_SPLIT_BYTES; i++) {
        bool after_run = i > 0 && is_kind(text, i - 1, BASIC_RUN);
        bool after_punctuation = i > 0 && is_kind(text, i - 1, BASIC_PUNCTUATION);
        bool run = is_kind(text, i, BASIC_RUN);
        bool starts = is_kind(text, i, BASIC_PUNCTUATION) || (run && !after_run);
        s.starts |= (uint64_t)starts << i;
        s.ends |= (uint64_t)(after_punctuation || (after_run && !run)) << i;
    }
    return s;
}

static void every_byte_is_split_as_its_kind_says(void)
{
    static const char kinds[] = "a .\xC3";
    char text[TEXT_SPLIT_BYTES];
    uint32_t counter = 0;
    for (int byte = 0; byte < 256; byte++) {
        for (int at = 0; at < TEXT_SPLIT_BYTES; at++) {
            for (int i = 0; i < TEXT_SPLIT_BYTES; i++) {
                text[i] = i == at ? (char)byte : kinds[draw(&counter, sizeof kinds - 1)];
            }
            struct text_split found = text_split_block(text);
            struct text_split wanted = split_slowly(text);
            EXPECT(found.starts == wanted.starts && found.ends == wanted.ends, "byte %d at %d", byte, at);
        }
    }
}

static void the_lowest_bit_is_found(void)
{
    for (unsigned i = 0; i < 64; i++) {
        EXPECT(text_split_lowest(UINT64_C(1) << i) == i, "bit %u", i);
        EXPECT(text_split_lowest(UINT64_MAX << i) == i, "bits from %u on", i);
    }
}

/* Pieces that cover words in up to many tokens. */
static const char vocab_text[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\nb\n##b\naa\n##aa\n.\n-\n"
    "\xC3\xA9\n##\xC3\xA9\ne\n##e\n\xE4\xB8\xAD\n##\xE4\xB8\xAD\n\xE3\x80\x82\n"
    "\xEA\xB0\x80\n##\xEA\xB0\x80\n\xE1\x84\x80\n##\xE1\x85\xA1\n##\xE1\x86\xA8\n"
    "\xD0\xB6\n##\xD0\xB6\n\xF0\xA0\x80\x80\n1\n##1\n";

/* Letters, what separates them, what vanishes, what is ordered, and what is no UTF-8. */
static const char *const atoms[] = {"a",
                                    "A",
                                    "b",
                                    "aa",
                                    "bbbb",
                                    "1",
                                    ".",
                                    "-",
                                    " ",
                                    "  ",
                                    "\t",
                                    "\r",
                                    "\x01",
                                    "\x7F",
                                    "z",
                                    "\xC3\xA9",         /* e with acute */
                                    "e\xCC\x81",        /* the same in two */
                                    "\xCC\x81\xCC\xA3", /* marks out of order */
                                    "\xC2\xA0",         /* no-break space */
                                    "\xC2\xAD",         /* soft hyphen */
                                    "\xE4\xB8\xAD",     /* an ideograph */
                                    "\xE3\x80\x82",     /* ideographic full stop */
                                    "\xE3\x80\x80",     /* ideographic space */
                                    "\xEF\xA4\x80",     /* a compatibility ideograph */
                                    "\xF0\xA0\x80\x80", /* an ideograph beyond 16 bits */
                                    "\xF0\x9F\x98\x80", /* an emoji */
                                    "\xEA\xB0\x80",     /* Hangul: two parts */
                                    "\xEA\xB0\x81",     /* Hangul: three parts */
                                    "\xD0\x96",         /* Cyrillic, upper case */
                                    "\xE2\x80\x9C",     /* a quote */
                                    "\xE2\x82",         /* cut off */
                                    "\xFF",
                                    "\xEF\xBF\xBD"};
enum { N_ATOMS = sizeof atoms / sizeof atoms[0], TEXT_BYTES = 1024 };

/* A text of up to 60 atoms from a few of them, so that runs repeat and grow long. */
static size_t make_text(char text[TEXT_BYTES], uint32_t *counter)
{
    uint32_t chosen[6];
    size_t n = 0;
    for (int i = 0; i < 6; i++) {
        chosen[i] = draw(counter, N_ATOMS);
    }
    for (uint32_t left = draw(counter, 60); left > 0; left--) {
        const char *atom = atoms[chosen[draw(counter, 6)]];
        memcpy(text + n, atom, strlen(atom));
        n += strlen(atom);
        if (draw(counter, 16) == 0) {
            text[n++] = '\0';
        }
    }
    return n;
}

static void expect_same(struct wordpiece_scratch *t, struct token_list *tokens, struct id_list *ids,
                        const char *text, size_t n)
{
    tokens->n = ids->n = 0;
    char *copy = malloc(n + 1); /* so that a checker sees a read behind the text */
    EXPECT(copy != NULL, "memory");
    memcpy(copy, text, n);
    copy = realloc(copy, n > 0 ? n : 1);
    EXPECT(copy != NULL, "memory");
    EXPECT_OK(wordpiece_encode(t, tokens, copy, n));
    EXPECT_OK(wordpiece_encode_ids(t, ids, copy, n));
    free(copy);
    EXPECT(tokens->n == ids->n, "%zu tokens and %zu ids of '%.*s'", tokens->n, ids->n, (int)n, text);
    for (size_t i = 0; i < ids->n; i++) {
        EXPECT(tokens->tokens[i].id == ids->ids[i], "token %zu: %d, from the cache %d, of '%.*s'", i,
               tokens->tokens[i].id, ids->ids[i], (int)n, text);
    }
}

static void the_cache_changes_nothing(bool lower_case)
{
    enum { N_TEXTS = 30000 };
    struct vocab v;
    EXPECT_OK(vocab_init(&v, vocab_text, strlen(vocab_text), "test"));
    struct wordpiece_scratch t;
    EXPECT_OK(wordpiece_scratch_init(&t, &v, lower_case));
    struct token_list tokens = {0};
    struct id_list ids = {0};
    char text[TEXT_BYTES];
    for (int pass = 0; pass < 2; pass++) { /* the second time from the cache */
        uint32_t counter = 0;
        for (int i = 0; i < N_TEXTS; i++) {
            expect_same(&t, &tokens, &ids, text, make_text(text, &counter));
        }
    }
    token_list_fini(&tokens);
    id_list_fini(&ids);
    wordpiece_scratch_fini(&t);
    vocab_fini(&v);
}

/* Runs of every length up to some blocks, at every distance from the start and the end of the text. */
static void lengths_and_places_change_nothing(void)
{
    struct vocab v;
    EXPECT_OK(vocab_init(&v, vocab_text, strlen(vocab_text), "test"));
    struct wordpiece_scratch t;
    EXPECT_OK(wordpiece_scratch_init(&t, &v, false));
    struct token_list tokens = {0};
    struct id_list ids = {0};
    char text[TEXT_BYTES];
    for (size_t length = 0; length <= 200; length++) {
        for (size_t before = 0; before < 70; before += 3) {
            memset(text, ' ', sizeof text);
            memset(text, 'b', before / 2);
            memset(text + before, length % 2 == 0 ? 'a' : 'b', length);
            expect_same(&t, &tokens, &ids, text, before + length);
            text[before + length] = '.';
            expect_same(&t, &tokens, &ids, text, before + length + 90);
        }
    }
    token_list_fini(&tokens);
    id_list_fini(&ids);
    wordpiece_scratch_fini(&t);
    vocab_fini(&v);
}

/* The same words found again after so many others that their entries are gone. */
static void forgotten_words_are_encoded_again(void)
{
    struct word_cache c;
    EXPECT(word_cache_init(&c, WORD_CACHE_WORD_BITS), "memory");
    static const int32_t one[] = {7};
    static const int32_t five[] = {1, 2, 3, 4, 5};
    size_t n = 9;
    EXPECT(word_cache_find(&c, "word", 4, &n) == NULL, "nothing is known yet");
    word_cache_add(&c, "word", 4, one, 1);
    word_cache_add(&c, "words", 5, five, 5);
    word_cache_add(&c, "a word of more than sixteen", 27, one, 1);
    const int32_t *ids = word_cache_find(&c, "word", 4, &n);
    EXPECT(ids != NULL && n == 1 && ids[0] == 7, "a word of one id");
    ids = word_cache_find(&c, "words", 5, &n);
    EXPECT(ids != NULL && n == 5 && memcmp(ids, five, sizeof five) == 0, "a short word of five ids");
    ids = word_cache_find(&c, "a word of more than sixteen", 27, &n);
    EXPECT(ids != NULL && n == 1 && ids[0] == 7, "a long word");
    EXPECT(word_cache_find(&c, "a word of more than sixteeM", 27, &n) == NULL, "another long word");
    for (int32_t i = 0; i < 1 << 20; i++) {
        char word[WORD_CACHE_LONG_BYTES];
        int n_word = snprintf(word, sizeof word, i % 2 == 0 ? "%d" : "a number of many bytes: %d", i);
        word_cache_add(&c, word, (size_t)n_word, &i, 1);
        ids = word_cache_find(&c, word, (size_t)n_word, &n);
        EXPECT(ids != NULL && n == 1 && ids[0] == i, "the newest is known");
    }
    EXPECT(word_cache_find(&c, "word", 4, &n) == NULL, "the oldest is forgotten");
    word_cache_fini(&c);
}

int main(void)
{
    every_byte_is_split_as_its_kind_says();
    the_lowest_bit_is_found();
    forgotten_words_are_encoded_again();
    the_cache_changes_nothing(true);
    the_cache_changes_nothing(false);
    lengths_and_places_change_nothing();
    return 0;
}
