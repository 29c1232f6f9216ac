/* Tests of the WordPiece trainer: merges worked out by hand, ties, limits, and the same result from pieces of
 * the text. */
#include "test.h"

#include "text/vocab.h"
#include "text/wordpiece_train.h"

static struct status train(struct buf *out, bool lower_case, const char *text,
                           const struct wordpiece_train_options *o)
{
    struct wordpiece_train t;
    struct progress silent = progress_begin(false);
    int64_t n_pieces;
    TRY(wordpiece_train_init(&t, lower_case));
    struct status s = wordpiece_train_add(&t, text, strlen(text));
    s = failed(s) ? s : wordpiece_train_finish(&t, out, &n_pieces, o, &silent);
    wordpiece_train_fini(&t);
    return s;
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
        false, text, (struct wordpiece_train_options){1000, 2, 1000},
        "g\nh\np\nu\n##g\n##h\n##p\n##u\n##ug\nhug\npug\n"); /* s is too rare, and hugs is left out */
    expect_vocab(false, text, (struct wordpiece_train_options){1000, 1, 1000},
                 "g\nh\np\ns\nu\n##g\n##h\n##p\n##s\n##u\n##ug\nhug\npug\nhugs\n");
    expect_vocab(false, text, (struct wordpiece_train_options){16, 1, 1000},
                 "g\nh\np\ns\nu\n##g\n##h\n##p\n##s\n##u\n##ug\n");
}

static void ties_go_to_the_lowest_ids(void)
{
    expect_vocab(false, "cd cd ab ab", (struct wordpiece_train_options){14, 1, 1000},
                 "a\nb\nc\nd\n##a\n##b\n##c\n##d\nab\n");
}

static void repeated_characters_do_not_overlap(void)
{
    /* a ##a ##a ##a: "##a ##a" counts 2, "a ##a" 1; then of a ##aa ##a "a ##aa" has the lower ids; then the
     * rest */
    expect_vocab(false, "aaaa", (struct wordpiece_train_options){100, 1, 1000}, "a\n##a\n##aa\naaa\naaaa\n");
}

static void text_is_seen_as_the_tokenizer_sees_it(void)
{
    expect_vocab(true, "\xC3\x89 e\xCC\x81 E!", (struct wordpiece_train_options){100, 1, 1000},
                 "!\ne\n##e\n");
    expect_vocab(false, "\xE4\xB8\xAD\xE4\xB8\xAD", (struct wordpiece_train_options){100, 1, 1000},
                 "\xE4\xB8\xAD\n");
}

static void the_alphabet_can_be_limited(void)
{
    expect_vocab(false, "aa ab b a c", (struct wordpiece_train_options){100, 1, 2},
                 "a\nb\n##a\n##b\naa\nab\n");
}

static void impossible_wishes_are_refused(void)
{
    struct buf out = {0};
    EXPECT_ERROR(train(&out, false, " \n ", &(struct wordpiece_train_options){100, 1, 100}), STATUS_DATA,
                 "no words");
    EXPECT_ERROR(train(&out, false, "abc", &(struct wordpiece_train_options){8, 1, 100}), STATUS_USAGE,
                 "no room for the 11");
    buf_fini(&out);
}

/* A text of made-up words, counted at once and line by line, gives the same valid vocabulary. */
static void parts_of_the_text_can_come_one_by_one(void)
{
    enum { N_WORDS = 20000 };
    struct wordpiece_train_options o = {600, 2, 1000};
    struct buf text = {0}, whole = {0}, parts = {0};
    uint32_t state = 1;
    for (int i = 0; i < N_WORDS; i++) {
        for (state = state * 1664525U + 1013904223U; state >> 29 != 0;
             state = state * 1664525U + 1013904223U) {
            buf_putc(&text, (char)('a' + (state >> 24) % 20));
        }
        buf_putc(&text, i % 10 == 9 ? '\n' : ' ');
    }
    EXPECT_OK(train(&whole, false, buf_text(&text), &o));
    struct wordpiece_train t;
    struct progress silent = progress_begin(false);
    int64_t n_pieces = 0;
    EXPECT_OK(wordpiece_train_init(&t, false));
    for (const char *line = text.data, *end = strchr(line, '\n'); end != NULL; end = strchr(line, '\n')) {
        EXPECT_OK(wordpiece_train_add(&t, line, (size_t)(end - line)));
        line = end + 1;
    }
    EXPECT_OK(wordpiece_train_finish(&t, &parts, &n_pieces, &o, &silent));
    wordpiece_train_fini(&t);
    EXPECT(n_pieces == 600 && strcmp(buf_text(&whole), buf_text(&parts)) == 0, "%lld pieces",
           (long long)n_pieces);
    struct vocab v;
    EXPECT_OK(vocab_init(&v, parts.data, parts.n, "trained"));
    vocab_fini(&v);
    buf_fini(&text);
    buf_fini(&whole);
    buf_fini(&parts);
}

int main(void)
{
    the_most_frequent_pair_is_merged_first();
    ties_go_to_the_lowest_ids();
    repeated_characters_do_not_overlap();
    text_is_seen_as_the_tokenizer_sees_it();
    the_alphabet_can_be_limited();
    impossible_wishes_are_refused();
    parts_of_the_text_can_come_one_by_one();
    return 0;
}
