/* Tests of answers from logits: against tests/golden/make_squad_answers.py, which computes them from the
 * rules in Python, in full for a made-up set and as hashes for parts of SQuAD dev; what has no answer; what
 * is refused. */
#include "fixture_shared.h"
#include "test.h"

#include "core/hash.h"
#include "core/json.h"
#include "data/squad_answers.h"
#include "data/squad_text.h"
#include "text/wordpiece.h"

#include <unistd.h>

static json_t *golden;

static int64_t get_int(const json_t *c, const char *key)
{
    return json_integer_value(json_object_get(c, key));
}

/* splitmix64 (Steele et al. 2014), as in the golden file's program. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

static void make_logits(float *out, int64_t n, bool ties, uint64_t *state)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = next(state);
        out[i] = ties ? (float)((int64_t)(bits >> 54) - 512) / 64.0F
                      : (float)((int64_t)(bits >> 40) - (1 << 23)) / (float)(1 << 20);
    }
}

struct answered {
    struct squad_examples examples;
    struct squad_features features;
    struct squad_answers answers;
};

static struct status add_logits(struct squad_answers *a, int64_t feature, const float *start,
                                const float *end)
{
    float logits[2 * 512];
    int64_t n = encoded_texts_length(&a->features->texts, feature);
    for (int64_t i = 0; i < n; i++) {
        logits[2 * i] = start[i];
        logits[2 * i + 1] = end[i];
    }
    return squad_answers_add(a, feature, logits);
}

/* Answers all questions; the parts of *r point to each other, so it stays where it is. */
static void answer(struct answered *r, const json_t *c, const json_t *dataset, struct tokenizer *t)
{
    static float start[512], end[512];
    bool version_2 = json_is_true(json_object_get(c, "version_2"));
    const json_t *s = json_object_get(c, "settings");
    char *text = json_dumps(dataset, 0);
    EXPECT_OK(squad_examples_parse(&r->examples, text, strlen(text), "data", (struct squad_read_options){0}));
    free(text);
    struct squad_feature_options fo = {json_integer_value(json_array_get(s, 0)),
                                       json_integer_value(json_array_get(s, 1)),
                                       json_integer_value(json_array_get(s, 2)), false};
    EXPECT_OK(tokenizer_set_lower_case(t, json_is_true(json_object_get(c, "lower_case"))));
    EXPECT_OK(squad_features_build(&r->features, &r->examples, t, fo));
    struct squad_answer_options ao = {get_int(c, "n_best"), get_int(c, "max_length"), version_2,
                                      json_real_value(json_object_get(c, "threshold"))};
    EXPECT_OK(squad_answers_init(&r->answers, &r->examples, &r->features, t, ao));
    uint64_t state = (uint64_t)get_int(c, "seed");
    for (int64_t i = 0; i < r->features.n; i++) {
        int64_t n = encoded_texts_length(&r->features.texts, i);
        make_logits(start, n, i % 2 != 0, &state);
        make_logits(end, n, i % 2 != 0, &state);
        if (r->features.features[i].example % 2 != 0) {
            start[0] = end[0] = 7.5F + (float)(i % 8) / 8.0F;
        }
        EXPECT_OK(add_logits(&r->answers, i, start, end));
    }
    EXPECT_OK(squad_answers_finish(&r->answers));
}

static void answered_fini(struct answered *r)
{
    squad_answers_fini(&r->answers);
    squad_features_fini(&r->features);
    squad_examples_fini(&r->examples);
}

static struct buf read_file(const char *path)
{
    struct file_map m;
    struct buf b = {0};
    EXPECT_OK(file_map_open(&m, path));
    buf_append(&b, m.data, m.n);
    file_map_close(&m);
    unlink(path);
    return b;
}

static void expect_candidates(const json_t *wanted, const json_t *got, const char *id)
{
    EXPECT(json_array_size(wanted) == json_array_size(got), "%s: %zu candidates", id, json_array_size(got));
    size_t k;
    const json_t *w;
    json_array_foreach(wanted, k, w)
    {
        const json_t *g = json_array_get(got, k);
        EXPECT(json_equal(json_object_get(w, "text"), json_object_get(g, "text")),
               "%s[%zu]: \"%s\", not \"%s\"", id, k, json_string_value(json_object_get(g, "text")),
               json_string_value(json_object_get(w, "text")));
        EXPECT(json_equal(json_object_get(w, "start_logit"), json_object_get(g, "start_logit")), "%s[%zu]",
               id, k);
        EXPECT(json_equal(json_object_get(w, "end_logit"), json_object_get(g, "end_logit")), "%s[%zu]", id,
               k);
        double p = json_real_value(json_object_get(w, "probability"));
        EXPECT_NEAR(json_real_value(json_object_get(g, "probability")), p, 1e-9 * p);
    }
}

/* A candidate's place holds its text, but for white space. */
static void expect_places(const struct answered *r)
{
    for (int64_t x = 0; x < r->examples.n; x++) {
        const struct squad_context *c = squad_example_context(&r->examples, x);
        for (int64_t k = 0; k < r->answers.results[x].n; k++) {
            const struct squad_candidate *candidate = squad_answers_candidate(&r->answers, x, k);
            if (candidate->start >= 0) {
                struct buf text = {0}, place = {0};
                squad_answers_text(&text, &r->answers, x, candidate);
                EXPECT(candidate->start < candidate->end && candidate->end <= c->n_bytes, "place");
                const char *from = squad_context_text(&r->examples, c) + candidate->start;
                for (const char *p = from; p < from + candidate->end - candidate->start;) {
                    size_t n_space = squad_space_bytes(p, 3);
                    if (n_space == 0) {
                        buf_putc(&place, *p);
                    } else if (place.n > 0 && place.data[place.n - 1] != ' ') {
                        buf_putc(&place, ' ');
                    }
                    p += n_space > 0 ? n_space : 1;
                }
                EXPECT(strcmp(buf_text(&text), buf_text(&place)) == 0, "\"%s\" is at \"%s\"", text.data,
                       place.data);
                buf_fini(&text);
                buf_fini(&place);
            }
        }
    }
}

static void test_made_up(void)
{
    struct buf pieces = {0};
    size_t i;
    const json_t *piece, *c;
    json_array_foreach(json_object_get(golden, "vocab"), i, piece)
    {
        buf_printf(&pieces, "%s\n", json_string_value(piece));
    }
    struct tokenizer t;
    EXPECT_OK(wordpiece_tokenizer_init(&t, pieces.data, pieces.n, "vocab", true));
    buf_fini(&pieces);
    json_array_foreach(json_object_get(golden, "cases"), i, c)
    {
        struct answered r;
        answer(&r, c, json_object_get(golden, "dataset"), &t);
        EXPECT_OK(squad_answers_write(&r.answers, "test_predictions.json", "test_nbest.json"));
        struct buf predictions = read_file("test_predictions.json"), nbest = read_file("test_nbest.json");
        const char *wanted = json_string_value(json_object_get(c, "predictions"));
        EXPECT(strcmp(buf_text(&predictions), wanted) == 0, "case %zu: predictions.json is\n%s", i,
               predictions.data);
        const char *nbest_text = json_string_value(json_object_get(c, "nbest_text"));
        EXPECT(nbest_text == NULL || strcmp(buf_text(&nbest), nbest_text) == 0, "case %zu: n-best is\n%s", i,
               nbest.data);
        json_t *got;
        EXPECT_OK(json_parse(&got, nbest.data, nbest.n, "nbest"));
        const json_t *all = json_object_get(c, "nbest");
        EXPECT(json_object_size(all) == json_object_size(got), "%zu questions, not %zu",
               json_object_size(got), json_object_size(all));
        for (int64_t x = 0; x < r.examples.n; x++) {
            const char *id = squad_example_id(&r.examples, x);
            expect_candidates(json_object_get(all, id), json_object_get(got, id), id);
        }
        expect_places(&r);
        json_decref(got);
        buf_fini(&predictions);
        buf_fini(&nbest);
        answered_fini(&r);
    }
    tokenizer_fini(&t);
}

/* The text that the golden file has a hash of. */
static uint64_t hash_answers(const struct answered *r)
{
    struct buf all = {0};
    EXPECT_OK(squad_answers_write(&r->answers, "test_predictions.json", NULL));
    struct buf predictions = read_file("test_predictions.json");
    buf_append(&all, predictions.data, predictions.n);
    for (int64_t x = 0; x < r->examples.n; x++) {
        for (int64_t k = 0; k < r->answers.results[x].n; k++) {
            const struct squad_candidate *c = squad_answers_candidate(&r->answers, x, k);
            buf_printf(&all, "%s\t", squad_example_id(&r->examples, x));
            squad_answers_text(&all, &r->answers, x, c);
            buf_printf(&all, "\t%.9e\t%.17g\t%.17g\n", c->probability, (double)c->start_logit,
                       (double)c->end_logit);
        }
    }
    uint64_t h = hash_fnv1a(all.data, all.n);
    buf_fini(&predictions);
    buf_fini(&all);
    return h;
}

static void test_squad_dev(void)
{
    struct buf vocab_text = shared_read_member("vocab-oracles.tar.xz", "bert-base-uncased-vocab.txt");
    struct tokenizer t;
    EXPECT_OK(wordpiece_tokenizer_init(&t, vocab_text.data, vocab_text.n, "vocab.txt", true));
    json_t *dataset = NULL;
    const char *file = "";
    size_t k;
    const json_t *c;
    json_array_foreach(json_object_get(golden, "hashes"), k, c)
    {
        const char *name = json_string_value(json_object_get(c, "file"));
        if (strcmp(name, file) != 0) {
            json_decref(dataset);
            struct buf text = shared_read_member("squad.tar.xz", name);
            EXPECT_OK(json_parse(&dataset, text.data, text.n, name));
            buf_fini(&text);
            json_t *entries = json_object_get(dataset, "data");
            while ((int64_t)json_array_size(entries) > get_int(c, "n_entries")) {
                json_array_remove(entries, json_array_size(entries) - 1);
            }
            file = name;
        }
        struct answered r;
        answer(&r, c, dataset, &t);
        EXPECT(r.features.n == get_int(c, "n_features"), "%lld features", (long long)r.features.n);
        int64_t n_answered = 0;
        for (int64_t x = 0; x < r.examples.n; x++) {
            n_answered += r.answers.results[x].answer >= 0;
        }
        EXPECT(n_answered == get_int(c, "n_answered"), "%lld answered", (long long)n_answered);
        char hash[24];
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)hash_answers(&r));
        EXPECT(strcmp(hash, json_string_value(json_object_get(c, "hash"))) == 0, "case %zu: hash %s", k,
               hash);
        expect_places(&r);
        answered_fini(&r);
    }
    json_decref(dataset);
    tokenizer_fini(&t);
    buf_fini(&vocab_text);
}

static void expect_real(double value, const char *wanted)
{
    struct buf b = {0};
    squad_text_json_real(&b, value);
    EXPECT(strcmp(buf_text(&b), wanted) == 0, "%s, not %s", b.data, wanted);
    buf_fini(&b);
}

static void test_python_text(void)
{
    expect_real(0, "0.0");
    expect_real(-0.0, "-0.0");
    expect_real(1, "1.0");
    expect_real(0.1, "0.1");
    expect_real(100.0 * 86 / 99, "86.86868686868686");
    expect_real(123456.5, "123456.5");
    expect_real(0.0001, "0.0001");
    expect_real(-0.00001, "-1e-05");
    expect_real(1.5e-7, "1.5e-07");
    expect_real(1e15, "1000000000000000.0");
    expect_real(1e16, "1e+16");
    expect_real(1.0 / 3, "0.3333333333333333");
    expect_real(2.5e-310, "2.5e-310");
    struct buf b = {0};
    squad_text_json_string(&b, "a\"\\/\b\f\n\r\t\x01\x7f\xc3\xa9\xf0\x9f\x98\x80", 17);
    EXPECT(strcmp(b.data, "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u007f\\u00e9\\ud83d\\ude00\"") == 0, "%s",
           b.data);
    buf_fini(&b);
}

/* A question about a text many times longer than a window: the answer is found at its place. */
static void test_long_text(const char *vocab_text)
{
    enum { N_WORDS = 5000, AT = 4321 };
    struct buf text = {0};
    for (int w = 0; w < N_WORDS; w++) {
        buf_puts(&text, w == AT ? "\t(the year)," : "  b");
    }
    struct tokenizer t;
    struct answered r;
    const char *question = "when ?";
    EXPECT_OK(wordpiece_tokenizer_init(&t, vocab_text, strlen(vocab_text), "vocab", true));
    EXPECT_OK(squad_examples_ask(&r.examples, text.data, text.n, &question, 1));
    EXPECT_OK(
        squad_features_build(&r.features, &r.examples, &t, (struct squad_feature_options){64, 16, 8, false}));
    EXPECT_OK(squad_answers_init(&r.answers, &r.examples, &r.features, &t,
                                 (struct squad_answer_options){20, 30, false, 0}));
    for (int64_t i = r.features.n - 1; i >= 0; i--) { /* in any order */
        float start[64] = {0}, end[64] = {0};
        for (int64_t p = 0; p < encoded_texts_length(&r.features.texts, i); p++) {
            int32_t word = squad_feature_word(&r.features, i, p),
                    before = squad_feature_word(&r.features, i, p - 1);
            start[p] = word == AT && before == AT ? 5.0F - (float)p / 64 : 0; /* the first of them is "the" */
            end[p] = start[p];
        }
        EXPECT_OK(add_logits(&r.answers, i, start, end));
    }
    EXPECT_OK(squad_answers_finish(&r.answers));
    const struct squad_candidate *best = squad_answers_candidate(&r.answers, 0, 0);
    struct buf found = {0};
    squad_answers_text(&found, &r.answers, 0, best);
    EXPECT(strcmp(found.data, "the") == 0, "found %s", found.data);
    EXPECT(best->start == 3 * AT + 2 && best->end == best->start + 3, "at %d to %d", best->start, best->end);
    float logits[64] = {NAN};
    EXPECT_ERROR(add_logits(&r.answers, 0, logits, logits), STATUS_NUMERIC, "not finite");
    buf_fini(&found);
    buf_fini(&text);
    answered_fini(&r);
    EXPECT_ERROR(squad_answers_init(&r.answers, &r.examples, &r.features, &t,
                                    (struct squad_answer_options){0, 30, false, 0}),
                 STATUS_USAGE, "n_best_size");
    tokenizer_fini(&t);
}

int main(void)
{
    EXPECT_OK(json_read_object(&golden, KILN_SOURCE_DIR "/tests/golden/squad_answers.json"));
    test_python_text();
    test_long_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nyear\n(\n)\n,\nb\nwhen\n?\n");
    test_made_up();
    test_squad_dev();
    json_decref(golden);
    return 0;
}
