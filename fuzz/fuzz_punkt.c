/* fuzz_punkt: any bytes as text that sentences are learned from.  Words come in order and lose only white
 * space, learning twice gives the same, and the sentences of the text by what it taught come in order. */
#include "text/punkt_trainer.h"
#include "text/sentence.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_words(const char *text, size_t n)
{
    struct punkt_span word;
    size_t at = 0, behind = 0;
    while (punkt_word_next(&word, &at, text, n)) {
        struct punkt_word w;
        CHECK(word.start >= behind && word.end > word.start && word.end <= n && at == word.end,
              "word %zu to %zu", word.start, word.end);
        punkt_word_describe(&w, text + word.start, word.end - word.start);
        CHECK(w.n <= sizeof w.text, "%zu bytes", w.n);
        behind = word.end;
    }
    CHECK(at == n, "words end at %zu of %zu", at, n);
}

static void learn(struct punkt *p, const char *text, size_t n)
{
    struct punkt_trainer t = {0};
    for (size_t at = 0; at < n;) { /* each line a paragraph */
        const char *end = memchr(text + at, '\n', n - at);
        size_t n_line = end == NULL ? n - at : (size_t)(end - text) - at;
        CHECK(!failed(punkt_trainer_add(&t, text + at, n_line)), "memory");
        at += n_line + 1;
    }
    CHECK(!failed(punkt_trainer_finish(&t, p)), "memory");
    punkt_trainer_fini(&t);
}

static void check_sentences(const struct punkt *p, const char *text, size_t n)
{
    size_t at = 0, behind = 0;
    struct sentence s;
    while (sentence_next(&s, &at, p, text, n)) {
        CHECK(s.start >= behind && s.end > s.start && s.end <= n, "sentence %zu to %zu", s.start, s.end);
        behind = s.end;
    }
    CHECK(at == n, "sentences end at %zu of %zu", at, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *text = (const char *)data;
    struct punkt a = {0}, b = {0};
    check_words(text, n);
    learn(&a, text, n);
    learn(&b, text, n);
    CHECK(a.words.n == b.words.n && a.pairs.n == b.pairs.n, "%zu words, then %zu", a.words.n, b.words.n);
    check_sentences(&a, text, n);
    punkt_fini(&a);
    punkt_fini(&b);
    return 0;
}
