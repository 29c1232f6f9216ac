/* Tests of what is learned of sentences, against NLTK.  `print TRAINING FILE` prints the sentences of FILE's
 * paragraphs, which are its lines, for tools/compare_sentences.py. */
#include "test.h"

#include "text/punkt_trainer.h"
#include "text/sentence.h"

#include <stdio.h>
#include <stdlib.h>

static void learn_file(struct punkt *p, const char *path)
{
    struct punkt_trainer t = {0};
    char *line = NULL;
    size_t capacity = 0;
    FILE *f = fopen(path, "r");
    CHECK(f != NULL, "%s", path);
    for (ssize_t n; (n = getline(&line, &capacity, f)) > 0;) {
        CHECK(!failed(punkt_trainer_add(&t, line, (size_t)n)), "memory");
    }
    CHECK(!failed(punkt_trainer_finish(&t, p)), "memory");
    punkt_trainer_fini(&t);
    free(line);
    fclose(f);
}

static int print_file(const char *training, const char *path)
{
    struct punkt p = {0};
    char *line = NULL;
    size_t capacity = 0;
    FILE *f = fopen(path, "r");
    CHECK(f != NULL, "%s", path);
    learn_file(&p, training);
    for (ssize_t n; (n = getline(&line, &capacity, f)) > 0;) {
        struct sentence s;
        for (size_t at = 0; sentence_next(&s, &at, &p, line, (size_t)n);) {
            fwrite(line + s.start, 1, s.end - s.start, stdout);
            fputc('\n', stdout);
        }
        fputc('\n', stdout);
    }
    punkt_fini(&p);
    free(line);
    fclose(f);
    return 0;
}

/* ---- the golden: tests/golden/make_punkt.py ---- */

enum { GOLDEN_LINES = 200 };

struct golden {
    char *lines[GOLDEN_LINES];
    int n;
};

static void read_golden(struct golden *g)
{
    FILE *f = fopen(KILN_SOURCE_DIR "/tests/golden/punkt.txt", "r");
    CHECK(f != NULL, "tests/golden/punkt.txt");
    size_t capacity = 0;
    for (ssize_t n; g->n < GOLDEN_LINES && (n = getline(&g->lines[g->n], &capacity, f)) > 0; g->n++) {
        g->lines[g->n][n - 1] = '\0';
        capacity = 0;
    }
    free(g->lines[g->n]);
    fclose(f);
}

static void free_golden(struct golden *g)
{
    for (int i = 0; i < g->n; i++) {
        free(g->lines[i]);
    }
}

/* The line without bars. */
static size_t plain_text(char *text, const char *line)
{
    size_t n = 0;
    for (; *line != '\0'; line++) {
        if (*line != '|') {
            text[n++] = *line;
        }
    }
    return n;
}

static void learn_golden(struct punkt *p, const struct golden *g)
{
    struct punkt_trainer t = {0};
    char text[4096];
    for (int i = 3; i < g->n; i++) {
        EXPECT_OK(punkt_trainer_add(&t, text, plain_text(text, g->lines[i])));
    }
    EXPECT_OK(punkt_trainer_finish(&t, p));
    punkt_trainer_fini(&t);
}

/* `line` has a name, and words; they are those of `found` whose count has a bit of `bits`, no others. */
static void expect_words(const char *line, const struct word_counts *found, int64_t bits, char joint)
{
    int n_wanted = 0, n_found = 0;
    for (const char *word = strchr(line, ' '); word != NULL; n_wanted++) {
        char text[4 * PUNKT_WORD_BYTES];
        const char *end = strchr(++word, ' ');
        size_t n = end == NULL ? strlen(word) : (size_t)(end - word);
        memcpy(text, word, n);
        text[n] = '\0';
        char *plus = strchr(text, joint);
        if (plus != NULL) {
            *plus = ' ';
        }
        EXPECT((word_counts_find(found, text, n) & bits) != 0, "%.20s: '%s' was not learned", line, text);
        word = end;
    }
    for (size_t i = 0; i < found->n; i++) {
        n_found += (found->words[i].count & bits) != 0;
    }
    EXPECT(n_found == n_wanted, "%.20s: %d words, not %d", line, n_found, n_wanted);
}

static void expect_boundaries(const struct punkt *p, const char *line)
{
    char text[4096], cut[8192];
    size_t n = plain_text(text, line), behind = 0, n_cut = 0;
    struct sentence s;
    for (size_t at = 0; sentence_next(&s, &at, p, text, n);) {
        n_cut += (size_t)snprintf(cut + n_cut, sizeof cut - n_cut, "%s%.*s", behind > 0 ? " |" : "",
                                  (int)(s.end - s.start), text + s.start);
        behind = s.end;
    }
    EXPECT(strcmp(cut, line) == 0, "'%s', not '%s'", cut, line);
}

static void learns_what_nltk_learns(void)
{
    struct golden g = {0};
    struct punkt p = {0};
    read_golden(&g);
    EXPECT(g.n > 150, "%d lines", g.n);
    learn_golden(&p, &g);
    expect_words(g.lines[0], &p.words, PUNKT_ABBREVIATION, '\0');
    expect_words(g.lines[1], &p.words, PUNKT_STARTER, '\0');
    expect_words(g.lines[2], &p.pairs, -1, '+');
    for (int i = 3; i < g.n; i++) {
        expect_boundaries(&p, g.lines[i]);
    }
    punkt_fini(&p);
    free_golden(&g);
}

/* Learns from a sentence, repeated. */
static void learn_text(struct punkt *p, const char *text, int times)
{
    struct punkt_trainer t = {0};
    for (int i = 0; i < times; i++) {
        EXPECT_OK(punkt_trainer_add(&t, text, strlen(text)));
    }
    EXPECT_OK(punkt_trainer_finish(&t, p));
    punkt_trainer_fini(&t);
}

/* In Korean every sentence ends in a verb, which seldom has no full stop: none of them is an abbreviation,
 * and that of the same text in letters with case is. */
static void words_without_case_are_no_abbreviations(void)
{
    struct punkt p = {0};
    learn_text(&p, "그는 학교에 갔다. 우리는 집에 있다가 나중에 그곳으로 갔다.", 100);
    EXPECT(p.has_learned && word_counts_find(&p.words, "갔다", strlen("갔다")) == 0,
           "a verb is an abbreviation");
    expect_boundaries(&p, "그는 갔다. |우리는 갔다. |끝");
    punkt_fini(&p);
    learn_text(&p, "we met the vx. people of that town, and the other people met the vx. then", 100);
    EXPECT(word_counts_find(&p.words, "vx", 2) == PUNKT_ABBREVIATION, "vx. was not learned");
    expect_boundaries(&p, "The vx. Smith came. |He left.");
    punkt_fini(&p);
}

/* Text in which mr often has no full stop teaches that it is a word; English knows better.  A word that is
 * one unless a number follows is learned as any other. */
static void english_abbreviations_stay_known(void)
{
    struct punkt p = {0};
    learn_text(
        &p,
        "Mr Bell met a Smith. Mr Smith left us and Mr Bell left. Mr. Smith said no. Nobody said no to Bell, "
        "but grey he was.",
        100);
    EXPECT(p.has_learned && (word_counts_find(&p.words, "mr", 2) & PUNKT_ABBREVIATION) == 0,
           "mr. was learned");
    expect_boundaries(
        &p, "There Mr. Smith and Mr. Grey left. |In the U.S. Smith said no. |Bell met No. 5 of them.");
    punkt_fini(&p);
    learn_text(&p,
               "they left early, slept late, left again and slept. Peter slept early, left late and slept or "
               "left. Peter left, "
               "slept and left again and they slept.",
               100);
    EXPECT((word_counts_find(&p.words, "peter", 5) & PUNKT_STARTER) != 0, "peter begins no sentences");
    expect_boundaries(&p, "They left St. Peter, c. 5 miles off (b. 1820, d. 1901). |The case of Bell v. "
                          "Young. |In group C. |5 of "
                          "them ran. |Peter slept.");
    punkt_fini(&p);
}

/* A word with a full stop inside a sentence is an abbreviation if it is rare, which is fewer than five times
 * (PunktTrainer.ABBREV_BACKOFF). */
static void rare_words_may_be_abbreviations(void)
{
    static const char *const lines[] = {"they saw a xylograph., and left", "the xylograph was old",
                                        "no xylograph was new", "one xylograph fell",
                                        "a last xylograph stood"};
    for (int n = 4; n <= 5; n++) {
        struct punkt p = {0};
        struct punkt_trainer t = {0};
        for (int i = 0; i < n; i++) {
            EXPECT_OK(punkt_trainer_add(&t, lines[i], strlen(lines[i])));
        }
        EXPECT_OK(punkt_trainer_finish(&t, &p));
        punkt_trainer_fini(&t);
        bool is_learned = (word_counts_find(&p.words, "xylograph", 9) & PUNKT_ABBREVIATION) != 0;
        EXPECT(is_learned == (n < 5), "a word seen %d times is %s", n,
               is_learned ? "learned" : "not learned");
        punkt_fini(&p);
    }
}

/* Nothing learned: the English list, as without any struct. */
static void nothing_is_learned_from_nothing(void)
{
    struct punkt p = {0};
    learn_text(&p, "", 3);
    EXPECT(!p.has_learned, "learned from nothing");
    expect_boundaries(&p, "Mr. Smith left. |He was ill.");
    punkt_fini(&p);
}

static void memory_is_bounded(void)
{
    struct punkt_trainer t = {0};
    struct punkt p = {0};
    char text[16];
    for (int i = 0; i < PUNKT_TRAINER_PAIRS / 2 + 1000; i++) {
        EXPECT_OK(punkt_trainer_add(&t, "x1 . x1 .", 9)); /* two pairs, one across paragraphs */
    }
    EXPECT(t.n_pairs == PUNKT_TRAINER_PAIRS, "%zu pairs", t.n_pairs);
    for (int i = 0; i < PUNKT_TRAINER_WORDS + 1000; i++) {
        EXPECT_OK(punkt_trainer_add(&t, text, (size_t)snprintf(text, sizeof text, "x%d", i)));
    }
    EXPECT(t.words.n == PUNKT_TRAINER_WORDS, "%zu words", t.words.n);
    EXPECT(t.n_tokens == 2 * PUNKT_TRAINER_PAIRS + 4000 + PUNKT_TRAINER_WORDS + 1000, "%lld tokens",
           (long long)t.n_tokens);
    EXPECT_OK(punkt_trainer_finish(&t, &p));
    EXPECT(p.has_learned, "nothing learned");
    punkt_trainer_fini(&t);
    punkt_fini(&p);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "print") == 0) {
        return print_file(argv[2], argv[3]);
    }
    learns_what_nltk_learns();
    words_without_case_are_no_abbreviations();
    english_abbreviations_stay_known();
    rare_words_may_be_abbreviations();
    nothing_is_learned_from_nothing();
    memory_is_bounded();
    return 0;
}
