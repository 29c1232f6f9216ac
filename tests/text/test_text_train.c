/* Tests of the WordPiece trainer: merges worked out by hand, ties, limits, and the same result from pieces of
 * the text. */
#include "test.h"

#include "text/utf8.h"
#include "text/vocab.h"
#include "text/word_counter.h"
#include "text/wordpiece_train.h"

/* Trains on lines, each counted by one of n_counters in turn, with at most memory_words in memory. */
static struct status train_lines(struct buf *out, int64_t *n_pieces, bool lower_case, const char *text,
                                 const struct wordpiece_train_options *o, int n_counters, size_t memory_words)
{
    enum { MOST_COUNTERS = 3 };
    struct word_counter counters[MOST_COUNTERS];
    struct word_tally tally;
    struct progress silent = progress_begin(false);
    struct wordpiece_train_result made = {0};
    EXPECT_OK(word_tally_init(&tally, "/tmp/kiln-test-vocab", memory_words));
    for (int i = 0; i < n_counters; i++) {
        EXPECT_OK(word_counter_init(&counters[i], &tally, lower_case, n_counters));
    }
    size_t n;
    for (int i = 0; *text != '\0'; i++, text += n + (text[n] != '\0')) {
        n = strcspn(text, "\n");
        EXPECT_OK(word_counter_add(&counters[i % n_counters], text, n));
    }
    for (int i = 0; i < n_counters; i++) {
        EXPECT_OK(word_counter_end(&counters[i]));
        word_counter_fini(&counters[i]);
    }
    EXPECT((tally.fd >= 0) == (tally.file_bytes > 0), "a file is made when it is needed");
    EXPECT(memory_words == WORD_TALLY_MEMORY_WORDS || tally.file_bytes > 0, "the words go to the file");
    struct status s = wordpiece_train(out, &made, &tally, o, &silent);
    *n_pieces = made.n_pieces;
    word_tally_fini(&tally);
    return s;
}

static struct status train(struct buf *out, bool lower_case, const char *text,
                           const struct wordpiece_train_options *o)
{
    int64_t n_pieces;
    return train_lines(out, &n_pieces, lower_case, text, o, 1, WORD_TALLY_MEMORY_WORDS);
}

static void expect_vocab(bool lower_case, const char *text, struct wordpiece_train_options o,
                         const char *wanted)
{
    struct buf out = {0};
    EXPECT_OK(train(&out, lower_case, text, &o));
    EXPECT(strncmp(buf_text(&out), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", 31) == 0, "special pieces first");
    EXPECT(strcmp(buf_text(&out) + 31, wanted) == 0, "'%s' gives:\n%s", text, buf_text(&out) + 31);
    buf_fini(&out);
}

static void the_most_frequent_pair_is_merged_first(void)
{
    /* hug x 3, pug x 2, hugs x 1: "##u ##g" 6, "h ##u" 4, "p ##u" 2, "##g ##s" 1; after ##ug: "h ##ug" 4, "p
     * ##ug" 2 */
    static const char text[] = "hug hug hug pug pug hugs";
    expect_vocab(
        false, text, (struct wordpiece_train_options){1000, 2, 1000, 0},
        "g\nh\np\nu\n##g\n##h\n##p\n##u\n##ug\nhug\npug\n"); /* s is too rare, and hugs is left out */
    expect_vocab(false, text, (struct wordpiece_train_options){1000, 1, 1000, 0},
                 "g\nh\np\ns\nu\n##g\n##h\n##p\n##s\n##u\n##ug\nhug\npug\nhugs\n");
    expect_vocab(false, text, (struct wordpiece_train_options){16, 1, 1000, 0},
                 "g\nh\np\ns\nu\n##g\n##h\n##p\n##s\n##u\n##ug\n");
}

static void ties_go_to_the_lowest_ids(void)
{
    expect_vocab(false, "cd cd ab ab", (struct wordpiece_train_options){14, 1, 1000, 0},
                 "a\nb\nc\nd\n##a\n##b\n##c\n##d\nab\n");
}

static void repeated_characters_do_not_overlap(void)
{
    /* a ##a ##a ##a: "##a ##a" counts 2, "a ##a" 1; then of a ##aa ##a "a ##aa" has the lower ids; then the
     * rest */
    expect_vocab(false, "aaaa", (struct wordpiece_train_options){100, 1, 1000, 0},
                 "a\n##a\n##aa\naaa\naaaa\n");
}

static void text_is_seen_as_the_tokenizer_sees_it(void)
{
    expect_vocab(true, "\xC3\x89 e\xCC\x81 E!", (struct wordpiece_train_options){100, 1, 1000, 0},
                 "!\ne\n##e\n");
    expect_vocab(false, "\xE4\xB8\xAD\xE4\xB8\xAD", (struct wordpiece_train_options){100, 1, 1000, 0},
                 "\xE4\xB8\xAD\n");
}

static void the_alphabet_can_be_limited(void)
{
    /* an alphabet by coverage, where there is no limit: all of few characters, and of many the frequent
     * ones */
    expect_vocab(false, "aa ab b a c", (struct wordpiece_train_options){100, 1, 0, 0.5},
                 "a\nb\nc\n##a\n##b\n##c\naa\nab\n");
    expect_vocab(false, "aa ab b a c", (struct wordpiece_train_options){100, 1, 2, 0},
                 "a\nb\n##a\n##b\naa\nab\n");
}

static void impossible_wishes_are_refused(void)
{
    struct buf out = {0};
    EXPECT_ERROR(train(&out, false, " \n ", &(struct wordpiece_train_options){100, 1, 100, 0}), STATUS_DATA,
                 "no words");
    EXPECT_ERROR(train(&out, false, "abc", &(struct wordpiece_train_options){8, 1, 100, 0}), STATUS_USAGE,
                 "no room for the 11");
    buf_fini(&out);
}

static size_t n_lines(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++) {
        n += *text == '\n';
    }
    return n;
}

/* 1,200 characters of Chinese are 24 in 25 of the text, 500 others the rest. */
static void coverage_decides_on_large_alphabets(void)
{
    enum { FREQUENT = 1200, RARE = 500 };
    static const struct {
        double coverage;
        int64_t limit;
        size_t n;
    } cases[] = {
        {0.96, 0, FREQUENT}, {1, 0, FREQUENT + RARE}, {0.5, 0, WORDPIECE_LEAST_ALPHABET}, {1, 30, 30}};
    struct buf text = {0};
    for (uint32_t i = 0; i < 10 * FREQUENT + RARE; i++) {
        char bytes[UTF8_MAX_BYTES];
        uint32_t c = 0x4E00 + (i < 10 * FREQUENT ? i % FREQUENT : i - 9 * FREQUENT);
        buf_append(&text, bytes, (size_t)utf8_write(bytes, c));
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wordpiece_train_options o = {5000, 1, cases[i].limit, cases[i].coverage};
        struct buf out = {0};
        EXPECT_OK(train(&out, false, buf_text(&text), &o));
        EXPECT(n_lines(buf_text(&out)) == 5 + cases[i].n, "coverage %g, limit %lld: %zu pieces",
               cases[i].coverage, (long long)cases[i].limit, n_lines(buf_text(&out)));
        buf_fini(&out);
    }
    buf_fini(&text);
}

/* A text of made-up words gives the same valid vocabulary from any number of threads, in memory or not. */
static void counts_add_up_in_any_order(void)
{
    enum { N_WORDS = 20000 };
    struct wordpiece_train_options o = {600, 2, 1000, 0};
    struct buf text = {0}, whole = {0};
    uint32_t state = 1;
    for (int i = 0; i < N_WORDS; i++) {
        for (state = state * 1664525U + 1013904223U; state >> 29 != 0;
             state = state * 1664525U + 1013904223U) {
            buf_putc(&text, (char)('a' + (state >> 24) % 20));
        }
        buf_putc(&text, i % 10 == 9 ? '\n' : ' ');
    }
    EXPECT_OK(train(&whole, false, buf_text(&text), &o));
    static const size_t memory_words[] = {WORD_TALLY_MEMORY_WORDS, 1000, 1};
    for (size_t i = 0; i < 3; i++) {
        for (int n_counters = 1; n_counters <= 3; n_counters++) {
            struct buf parts = {0};
            int64_t n_pieces = 0;
            EXPECT_OK(
                train_lines(&parts, &n_pieces, false, buf_text(&text), &o, n_counters, memory_words[i]));
            EXPECT(n_pieces == 600 && strcmp(buf_text(&whole), buf_text(&parts)) == 0,
                   "%lld pieces of %d counters with %zu words in memory", (long long)n_pieces, n_counters,
                   memory_words[i]);
            buf_fini(&parts);
        }
    }
    struct vocab v;
    EXPECT_OK(vocab_init(&v, whole.data, whole.n, "trained"));
    vocab_fini(&v);
    buf_fini(&text);
    buf_fini(&whole);
}

/* Words come sorted, once each, with their sums, from memory and the file together. */
static void a_tally_is_read_in_order(void)
{
    struct word_tally tally;
    struct word_tally_reader r;
    bool end;
    EXPECT_OK(word_tally_init(&tally, "/tmp/kiln-test-vocab", 2));
    for (int i = 0; i < 3; i++) {
        struct word_counts table = {0};
        size_t index;
        static const char *const words[] = {"b", "ab", "a", "\xC3\xA9", "abc"};
        for (int j = 0; j < 2 + i; j++) {
            EXPECT(word_counts_add(&table, &index, words[(i + j) % 5], strlen(words[(i + j) % 5]), 1 + j),
                   "memory");
        }
        EXPECT_OK(word_tally_take(&tally, &table));
        EXPECT(table.n == 0 && table.words == NULL, "a table that was taken is empty");
    }
    /* b ab; ab a e; a e abc b */
    static const struct {
        const char *word;
        int64_t count;
    } wanted[] = {{"a", 3}, {"ab", 3}, {"abc", 3}, {"b", 5}, {"\xC3\xA9", 5}};
    EXPECT(tally.n_in_memory == 2 && tally.file_bytes > 0, "%zu words in memory", tally.n_in_memory);
    for (int pass = 0; pass < 2; pass++) {
        EXPECT_OK(word_tally_open(&r, &tally));
        for (int i = 0; i < 5; i++) {
            EXPECT_OK(word_tally_next(&r, &end));
            EXPECT(!end && r.n_bytes == strlen(wanted[i].word) && r.count == wanted[i].count &&
                       memcmp(r.word, wanted[i].word, r.n_bytes) == 0,
                   "word %d: %.*s %lld", i, (int)r.n_bytes, r.word, (long long)r.count);
        }
        EXPECT_OK(word_tally_next(&r, &end));
        EXPECT(end, "five words");
        word_tally_close(&r);
    }
    word_tally_empty(&tally);
    EXPECT_OK(word_tally_open(&r, &tally));
    EXPECT_OK(word_tally_next(&r, &end));
    EXPECT(end, "an empty tally has no words");
    word_tally_close(&r);
    word_tally_fini(&tally);
}

static void a_file_that_cannot_be_made_is_named(void)
{
    struct word_tally tally;
    struct word_counts table = {0};
    size_t index;
    EXPECT_OK(word_tally_init(&tally, "/dev/null/vocab.txt", 0));
    EXPECT(word_counts_add(&table, &index, "a", 1, 1), "memory");
    EXPECT_ERROR(word_tally_take(&tally, &table), STATUS_IO, "/dev/null/");
    word_tally_fini(&tally);
}

int main(void)
{
    the_most_frequent_pair_is_merged_first();
    ties_go_to_the_lowest_ids();
    repeated_characters_do_not_overlap();
    text_is_seen_as_the_tokenizer_sees_it();
    the_alphabet_can_be_limited();
    impossible_wishes_are_refused();
    coverage_decides_on_large_alphabets();
    counts_add_up_in_any_order();
    a_tally_is_read_in_order();
    a_file_that_cannot_be_made_is_named();
    return 0;
}
