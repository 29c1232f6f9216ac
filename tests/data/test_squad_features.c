/* Tests of SQuAD files as examples and features: against features that tests/golden/make_squad_features.py
 * made from the rules with Hugging Face's tokens, in full for a made-up set and as hashes for all of SQuAD
 * dev; errors by their words; the cache. */
#include "fixture_shared.h"
#include "test.h"

#include "core/hash.h"
#include "core/json.h"
#include "data/squad_features.h"
#include "text/wordpiece.h"

#include <time.h>
#include <unistd.h>

static json_t *golden;
static struct tokenizer small;

static struct squad_read_options reading(const json_t *c)
{
    const json_t *version_2 = json_object_get(c, "version_2");
    return (struct squad_read_options){.training = json_is_true(json_object_get(c, "training")),
                                       .version_2 = version_2 == NULL || json_is_true(version_2)};
}

static struct squad_feature_options settings(const json_t *c)
{
    const json_t *s = json_object_get(c, "settings");
    return (struct squad_feature_options){.max_length = json_integer_value(json_array_get(s, 0)),
                                          .doc_stride = json_integer_value(json_array_get(s, 1)),
                                          .max_query_length = json_integer_value(json_array_get(s, 2)),
                                          .training = json_is_true(json_object_get(c, "training"))};
}

static void set_lower_case(struct tokenizer *t, const json_t *c)
{
    const json_t *lower_case = json_object_get(c, "lower_case");
    EXPECT_OK(tokenizer_set_lower_case(t, lower_case == NULL || json_is_true(lower_case)));
}

/* The tokens of an example's context, word by word. */
static int64_t count_tokens(const struct squad_examples *e, const struct tokenizer *t, int64_t example)
{
    const struct squad_context *c = squad_example_context(e, example);
    struct tokenizer_scratch scratch;
    struct id_list ids = {0};
    EXPECT_OK(tokenizer_scratch_init(&scratch, t));
    for (int32_t i = 0; i < c->n_words; i++) {
        struct squad_word w = e->words[c->first_word + i];
        EXPECT_OK(tokenizer_encode_ids(&scratch, &ids, squad_context_text(e, c) + w.start,
                                       (size_t)(w.end - w.start)));
    }
    int64_t n = (int64_t)ids.n;
    id_list_fini(&ids);
    tokenizer_scratch_fini(&scratch);
    return n;
}

/* Every token of every context is in a window of every question about it. */
static void expect_covered(const struct squad_features *f, const struct squad_examples *e,
                           const struct tokenizer *t)
{
    for (int64_t x = 0; x < f->n_examples; x++) {
        int64_t begin = 0, end = 0;
        for (int64_t i = f->first_features[x]; i < f->first_features[x + 1]; i++) {
            struct token_range w = encoded_texts_get(&f->texts, i)->b;
            begin = i == f->first_features[x] ? w.first : begin;
            EXPECT(w.first - begin <= end, "tokens before window %lld are in none", (long long)i);
            end = w.first - begin + w.n;
        }
        EXPECT(end == count_tokens(e, t, x), "%lld tokens covered", (long long)end);
    }
}

/* The numbers of a feature in the order of the golden file's hash; returns how many. */
static size_t list_feature(int32_t *out, const struct squad_features *f, int64_t i)
{
    int64_t n = encoded_texts_length(&f->texts, i);
    const struct squad_feature *w = &f->features[i];
    int32_t head[] = {w->example, (int32_t)n, (int32_t)encoded_texts_first_length(&f->texts, i), w->start,
                      w->end};
    memcpy(out, head, sizeof head);
    int32_t *to = out + 5;
    encoded_texts_write(&f->texts, i, to);
    for (int64_t p = 0; p < n; p++) {
        to[n + p] = squad_feature_word(f, i, p);
        to[2 * n + p] = to[n + p] >= 0 && squad_feature_is_max_context(f, i, p);
    }
    return 5 + 3 * (size_t)n;
}

static void expect_numbers(const json_t *wanted, const int32_t *got, int64_t n, const char *what, int64_t i)
{
    EXPECT((int64_t)json_array_size(wanted) == n, "%s of feature %lld: %zu, not %lld", what, (long long)i,
           json_array_size(wanted), (long long)n);
    for (int64_t p = 0; p < n; p++) {
        long long w = json_integer_value(json_array_get(wanted, (size_t)p));
        EXPECT(w == got[p], "%s[%lld] of feature %lld: %d, not %lld", what, (long long)p, (long long)i,
               got[p], w);
    }
}

static void test_made_up(void)
{
    char *text = json_dumps(json_object_get(golden, "dataset"), 0);
    size_t k;
    const json_t *c;
    json_array_foreach(json_object_get(golden, "cases"), k, c)
    {
        struct squad_examples e;
        struct squad_features f;
        EXPECT_OK(squad_examples_parse(&e, text, strlen(text), "made up", reading(c)));
        EXPECT(e.n_misaligned == json_integer_value(json_object_get(c, "left_out")), "left out %lld",
               (long long)e.n_misaligned);
        set_lower_case(&small, c);
        EXPECT_OK(squad_features_build(&f, &e, &small, settings(c)));
        const json_t *features = json_object_get(c, "features");
        EXPECT(f.n == (int64_t)json_array_size(features), "case %zu: %lld features", k, (long long)f.n);
        for (int64_t i = 0; i < f.n; i++) {
            int32_t got[1024];
            const json_t *wanted = json_array_get(features, (size_t)i);
            list_feature(got, &f, i);
            int64_t n = got[1];
            EXPECT(got[0] == json_integer_value(json_object_get(wanted, "example")), "example %d", got[0]);
            EXPECT(got[2] == json_integer_value(json_object_get(wanted, "first_length")), "segment 0: %d",
                   got[2]);
            expect_numbers(json_object_get(wanted, "labels"), got + 3, 2, "labels", i);
            expect_numbers(json_object_get(wanted, "ids"), got + 5, n, "ids", i);
            expect_numbers(json_object_get(wanted, "words"), got + 5 + n, n, "words", i);
            expect_numbers(json_object_get(wanted, "best"), got + 5 + 2 * n, n, "best", i);
        }
        expect_covered(&f, &e, &small);
        squad_features_fini(&f);
        squad_examples_fini(&e);
    }
    free(text);
}

static uint64_t hash_features(const struct squad_features *f)
{
    struct buf all = {0};
    int32_t row[5 + 3 * 512];
    for (int64_t i = 0; i < f->n; i++) {
        buf_append(&all, row, list_feature(row, f, i) * sizeof *row);
    }
    uint64_t h = hash_fnv1a(all.data, all.n);
    buf_fini(&all);
    return h;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t); /* time: it is printed */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void test_squad_dev(void)
{
    struct buf vocab_text = shared_read_member("vocab-oracles.tar.xz", "bert-base-uncased-vocab.txt");
    struct tokenizer tokenizer;
    EXPECT_OK(wordpiece_tokenizer_init(&tokenizer, vocab_text.data, vocab_text.n, "vocab.txt", true));
    struct buf text = {0};
    const char *file = "";
    size_t k;
    const json_t *c;
    json_array_foreach(json_object_get(golden, "hashes"), k, c)
    {
        const char *name = json_string_value(json_object_get(c, "file"));
        if (strcmp(name, file) != 0) {
            buf_fini(&text);
            text = shared_read_member("squad.tar.xz", name);
            file = name;
        }
        struct squad_examples e;
        struct squad_features f;
        double begin = seconds();
        EXPECT_OK(squad_examples_parse(&e, text.data, text.n, name, reading(c)));
        double middle = seconds();
        set_lower_case(&tokenizer, c);
        EXPECT_OK(squad_features_build(&f, &e, &tokenizer, settings(c)));
        double end = seconds();
        printf("%s: %lld features of %lld questions, read in %.3f s, made in %.3f s: %.0f features/s\n", name,
               (long long)f.n, (long long)e.n, middle - begin, end - middle, (double)f.n / (end - middle));
        char hash[24];
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)hash_features(&f));
        EXPECT(f.n == json_integer_value(json_object_get(c, "n_features")), "features: %lld", (long long)f.n);
        EXPECT(e.n_misaligned == json_integer_value(json_object_get(c, "left_out")), "left out");
        EXPECT(strcmp(hash, json_string_value(json_object_get(c, "hash"))) == 0, "case %zu of %s: hash %s", k,
               name, hash);
        expect_covered(&f, &e, &tokenizer);
        squad_features_fini(&f);
        squad_examples_fini(&e);
    }
    buf_fini(&text);
    tokenizer_fini(&tokenizer);
    buf_fini(&vocab_text);
}

static void expect_refused(const char *json, bool training, const char *part)
{
    struct squad_examples e;
    EXPECT_ERROR(squad_examples_parse(&e, json, strlen(json), "some.json",
                                      (struct squad_read_options){.training = training}),
                 STATUS_DATA, part);
}

#define QAS(qas)              "{\"data\": [{\"paragraphs\": [{\"context\": \"a b\", \"qas\": [" qas "]}]}]}"
#define QUESTION(id, answers) "{\"id\": " id ", \"question\": \"who\", \"answers\": " answers "}"

static void test_errors(void)
{
    expect_refused("", false, "some.json is not valid JSON");
    expect_refused("{\"data\": [", false, "line 1");
    expect_refused("[]", false, "some.json must be an object");
    expect_refused("{}", false, "\"data\" is missing");
    expect_refused("{\"data\": {}}", false, "\"data\" must be a list");
    expect_refused("{\"data\": []}", false, "has no questions");
    expect_refused("{\"data\": [1]}", false, "data[0] must be an object");
    expect_refused("{\"data\": [{}]}", false, "data[0]: the key \"paragraphs\"");
    expect_refused("{\"data\": [{\"paragraphs\": [{\"qas\": []}]}]}", false,
                   "data[0].paragraphs[0]: the key \"context\"");
    expect_refused("{\"data\": [{\"paragraphs\": [{\"context\": \" \\n\", \"qas\": []}]}]}", false,
                   "no words");
    expect_refused(QAS("{}"), false, "qas[0]: the key \"question\" is missing");
    expect_refused(QAS("{\"question\": 3}"), false, "\"question\" must be a string, but is a number");
    expect_refused(QAS(QUESTION("null", "[]")), false, "\"id\" must be a string");
    expect_refused(QAS(QUESTION("1", "3")), false, "\"answers\" must be a list");
    expect_refused(QAS(QUESTION("1", "[3]")), false, "qas[0].answers[0] must be an object");
    expect_refused(QAS(QUESTION("1", "[{\"text\": \"a\"}]")), true, "answers[0]: the key \"answer_start\"");
    expect_refused(QAS(QUESTION("1", "[]") ", " QUESTION("\"1\"", "[]")), false,
                   "qas[1]: the \"id\" 1 occurs twice");
    expect_refused(QAS(QUESTION("1", "[]")), true, "--version_2_with_negative");
    expect_refused(QAS(QUESTION("1", "[{\"text\": \"c\", \"answer_start\": 0}]")), true, "nothing is left");
    expect_refused(QAS(QUESTION("1", "[{\"text\": \"a\", \"answer_start\": -1}]")), true, "nothing is left");
    struct squad_examples e;
    static const char odd[] =
        "{\"data\": [{\"paragraphs\": [{\"context\": \"a\\u0000 b\\\\u0000 \\ud800 \\ud83d\\ude00\", "
        "\"qas\": [{\"id\": \"1\", \"question\": \"\\u0000?\"}]}]}]}";
    EXPECT_OK(squad_examples_parse(&e, odd, sizeof odd - 1, "odd", (struct squad_read_options){0}));
    EXPECT(strcmp(squad_context_text(&e, &e.contexts[0]),
                  "a\xEF\xBF\xBD b\\u0000 \xEF\xBF\xBD \xF0\x9F\x98\x80") == 0 &&
               strcmp(squad_example_question(&e, 0), "\xEF\xBF\xBD?") == 0,
           "%s", squad_context_text(&e, &e.contexts[0]));
    squad_examples_fini(&e);
    EXPECT_ERROR(squad_examples_open(&e, "/no/such/file", (struct squad_read_options){0}), STATUS_DATA,
                 "/no/such/file");
    const char *who = "who was born ?";
    EXPECT_ERROR(squad_examples_ask(&e, " \t", 2, &who, 1), STATUS_DATA, "no words");
    struct squad_features f;
    EXPECT_OK(squad_examples_ask(&e, "the year", 8, &who, 1));
    EXPECT_ERROR(squad_features_build(&f, &e, &small, (struct squad_feature_options){4, 1, 1, false}),
                 STATUS_USAGE, "max_seq_length");
    EXPECT_ERROR(squad_features_build(&f, &e, &small, (struct squad_feature_options){64, 0, 1, false}),
                 STATUS_USAGE, "doc_stride");
    EXPECT_ERROR(squad_features_build(&f, &e, &small, (struct squad_feature_options){7, 1, 64, false}),
                 STATUS_DATA, "leaves no room");
    squad_examples_fini(&e);
}

int main(void)
{
    EXPECT_OK(json_read_object(&golden, KILN_SOURCE_DIR "/tests/golden/squad_features.json"));
    struct buf pieces = {0};
    size_t i;
    const json_t *piece;
    json_array_foreach(json_object_get(golden, "vocab"), i, piece)
    {
        buf_printf(&pieces, "%s\n", json_string_value(piece));
    }
    EXPECT_OK(wordpiece_tokenizer_init(&small, pieces.data, pieces.n, "vocab", true));
    buf_fini(&pieces);
    test_made_up();
    test_errors();
    test_squad_dev();
    tokenizer_fini(&small);
    json_decref(golden);
    return 0;
}
