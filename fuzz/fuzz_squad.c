/* fuzz_squad: any bytes as a SQuAD file, read for training or not, to features, to answers, to scores.  Every
 * token of every context is in a window, labels are inside their feature, places inside their context. Input:
 * four bytes for the settings, the rest is the file; logits follow from the settings. */
#include "core/log.h"
#include "data/squad_answers.h"
#include "data/squad_score.h"
#include "text/wordpiece.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MAX_SEQ_LENGTH = 24 };

static const char pieces[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nyear\nborn\n1895\n##s\n##5\n189\n(\n)\n-\n.\n,\n?"
    "\nwho\na\n##b\nb\ncaf\n##e\ncafe\n#\n###\n##\n\xE4\xB8\xAD\n";

/* Windows follow each other without a gap. */
static void check_windows(const struct squad_features *f, int64_t x)
{
    struct token_range before = {0};
    for (int64_t i = f->first_features[x]; i < f->first_features[x + 1]; i++) {
        const struct squad_feature *w = &f->features[i];
        struct token_range window = encoded_texts_get(&f->texts, i)->b;
        int64_t length = encoded_texts_length(&f->texts, i);
        bool follows = i == f->first_features[x] ||
                       (window.first > before.first && window.first <= before.first + before.n);
        CHECK(w->example == x && follows && window.n > 0, "window");
        CHECK(length <= f->texts.max_length && length <= MAX_SEQ_LENGTH, "length");
        CHECK(w->start >= 0 && w->end >= 0 && w->start < length && w->end < length, "labels");
        before = window;
    }
}

static void check_answers(const struct squad_answers *a, const struct squad_examples *e)
{
    struct buf text = {0};
    json_t *predictions = json_object();
    for (int64_t x = 0; x < e->n; x++) {
        for (int32_t k = 0; k < a->results[x].n; k++) {
            const struct squad_candidate *c = squad_answers_candidate(a, x, k);
            CHECK(c->start < 0 || (c->start < c->end && c->end <= squad_example_context(e, x)->n_bytes),
                  "place");
            CHECK(c->probability > 0 && c->probability <= 1, "probability");
            buf_clear(&text);
            squad_answers_text(&text, a, x, c);
        }
        json_object_set_new(predictions, squad_example_id(e, x), json_stringn(buf_text(&text), text.n));
    }
    struct squad_scores s;
    CHECK(!failed(squad_score(&s, e, predictions, "predictions")) && s.n_missing == 0, "score");
    CHECK(s.f1 >= 0 && s.f1 <= 100.0001 && s.exact_match >= 0 && s.exact_match <= 100, "scores");
    json_decref(predictions);
    buf_fini(&text);
}

static void answer(const struct squad_examples *e, const struct squad_features *f, const struct tokenizer *t,
                   const uint8_t *settings)
{
    struct squad_answer_options o = {1 + settings[0] % 8, 1 + settings[1] % 8, settings[2] & 2, 0};
    struct squad_answers a;
    CHECK(!failed(squad_answers_init(&a, e, f, t, o)), "init");
    uint32_t state = settings[3];
    for (int64_t i = 0; i < f->n; i++) {
        float logits[2 * MAX_SEQ_LENGTH];
        for (int p = 0; p < 2 * MAX_SEQ_LENGTH; p++) {
            state = state * 1664525 + 1013904223;
            logits[p] = (float)(state >> 24) / 16;
        }
        CHECK(!failed(squad_answers_add(&a, i, logits)), "add");
    }
    CHECK(!failed(squad_answers_finish(&a)), "finish");
    check_answers(&a, e);
    squad_answers_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct tokenizer t;
    if (t.n == 0) {
        log_set_level(LOG_QUIET);
        CHECK(!failed(wordpiece_tokenizer_init(&t, pieces, sizeof pieces - 1, "vocab", true)), "vocab");
    }
    if (n < 4) {
        return 0;
    }
    CHECK(!failed(tokenizer_set_lower_case(&t, data[2] & 1)), "letter case");
    bool training = data[2] & 4;
    struct squad_examples e;
    struct squad_features f;
    struct squad_feature_options o = {5 + data[0] % (MAX_SEQ_LENGTH - 4), 1 + data[1] % 16, 1 + data[1] / 16,
                                      training};
    if (failed(squad_examples_parse(
            &e, (const char *)data + 4, n - 4, "file",
            (struct squad_read_options){.training = training, .version_2 = data[2] & 2}))) {
        return 0;
    }
    if (!failed(squad_features_build(&f, &e, &t, o))) {
        for (int64_t x = 0; x < f.n_examples; x++) {
            check_windows(&f, x);
        }
        answer(&e, &f, &t, data);
        squad_features_fini(&f);
    }
    squad_examples_fini(&e);
    return 0;
}
