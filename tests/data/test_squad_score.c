/* Tests of the SQuAD metric: every digit as tests/golden/make_squad_score.py has it, for pairs of difficult
 * answers, made-up sets by the rules of v1.1 and v2.0, and the predictions of three systems for SQuAD dev. */
#include "fixture_shared.h"
#include "test.h"

#include "core/log.h"
#include "data/squad_score.h"
#include "data/squad_text.h"

static json_t *golden;

static const char *get_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void expect_scores(const char *dataset, size_t n, const json_t *predictions, const json_t *wanted,
                          const char *what)
{
    struct squad_examples e;
    struct squad_scores s;
    struct buf printed = {0};
    EXPECT_OK(squad_examples_parse(&e, dataset, n, what, (struct squad_read_options){0}));
    EXPECT_OK(squad_score(&s, &e, predictions, what));
    squad_score_to_text(&printed, &s);
    EXPECT(strcmp(buf_text(&printed), get_text(wanted, "printed")) == 0, "%s: %s, not %s", what, printed.data,
           get_text(wanted, "printed"));
    EXPECT(s.n == json_integer_value(json_object_get(wanted, "n")), "%s: %lld questions", what,
           (long long)s.n);
    EXPECT(s.n_missing == json_integer_value(json_object_get(wanted, "n_missing")), "%s: %lld missing", what,
           (long long)s.n_missing);
    buf_fini(&printed);
    squad_examples_fini(&e);
}

static void test_made_up(void)
{
    size_t i;
    const json_t *c;
    json_array_foreach(json_object_get(golden, "cases"), i, c)
    {
        char *text = json_dumps(json_object_get(c, "dataset"), 0);
        expect_scores(text, strlen(text), json_object_get(c, "predictions"), c, "made up");
        free(text);
    }
}

/* Scores one prediction against one answer. */
static void expect_pair(const char *prediction, const char *answer, const json_t *wanted)
{
    struct buf text = {0};
    buf_puts(&text,
             "{\"data\": [{\"paragraphs\": [{\"context\": \"c\", \"qas\": [{\"id\": \"q\", \"question\": "
             "\"?\", \"answers\": [{\"text\": ");
    squad_text_json_string(&text, answer, strlen(answer));
    buf_puts(&text, "}]}]}]}]}");
    json_t *predictions = json_pack("{s: s}", "q", prediction);
    expect_scores(text.data, text.n, predictions, wanted, prediction);
    json_decref(predictions);
    buf_fini(&text);
}

/* The golden file leaves out the pairs that score 0. */
static void test_pairs(void)
{
    size_t i;
    const json_t *pair;
    json_array_foreach(json_object_get(golden, "pairs"), i, pair)
    {
        json_t *wanted =
            json_pack("{s: O, s: i, s: i}", "printed", json_array_get(pair, 2), "n", 1, "n_missing", 0);
        expect_pair(json_string_value(json_array_get(pair, 0)), json_string_value(json_array_get(pair, 1)),
                    wanted);
        json_decref(wanted);
    }
    EXPECT(i > 100, "only %zu pairs", i);
    json_t *zero = json_pack("{s: s, s: i, s: i}", "printed", "{\"exact_match\": 0.0, \"f1\": 0.0}", "n", 1,
                             "n_missing", 0);
    expect_pair("black cat", "white dog", zero);
    json_decref(zero);
}

static void test_errors(void)
{
    static const char dataset[] =
        "{\"data\": [{\"paragraphs\": [{\"context\": \"c\", \"qas\": [{\"id\": \"q\", "
        "\"question\": \"?\", \"answers\": []}]}]}]}";
    struct squad_examples e;
    struct squad_scores s;
    EXPECT_OK(squad_examples_parse(&e, dataset, sizeof dataset - 1, "data", (struct squad_read_options){0}));
    json_t *list = json_pack("[]"), *number = json_pack("{s: i}", "q", 1), *none = json_pack("{}");
    EXPECT_ERROR(squad_score(&s, &e, list, "list.json"), STATUS_DATA,
                 "list.json: the file must hold one JSON object");
    EXPECT_ERROR(squad_score(&s, &e, number, "p.json"), STATUS_DATA, "p.json: \"q\" must be a string");
    EXPECT_OK(squad_score(&s, &e, none, "p.json"));
    EXPECT(s.n_missing == 1 && s.exact_match == 0 && s.f1 == 0, "a missing prediction scores %g", s.f1);
    json_decref(list);
    json_decref(number);
    json_decref(none);
    squad_examples_fini(&e);
}

/* One of two questions with an answer is right, and so is one without. */
static void test_parts(void)
{
    static const char dataset[] =
        "{\"data\": [{\"paragraphs\": [{\"context\": \"in the ark\", \"qas\": ["
        "{\"id\": \"a\", \"question\": \"?\", \"answers\": [{\"text\": \"ark\", \"answer_start\": 7}]},"
        "{\"id\": \"b\", \"question\": \"?\", \"answers\": [{\"text\": \"ark\", \"answer_start\": 7}]},"
        "{\"id\": \"c\", \"question\": \"?\", \"answers\": [], \"is_impossible\": true}]}]}]}";
    struct squad_examples e;
    struct squad_scores s;
    EXPECT_OK(squad_examples_parse(&e, dataset, sizeof dataset - 1, "data",
                                   (struct squad_read_options){.version_2 = true}));
    json_t *said = json_pack("{s:s, s:s, s:s}", "a", "ark", "b", "", "c", ""), *tables = json_array();
    EXPECT_OK(squad_score(&s, &e, said, "p.json"));
    squad_score_tables(tables, &s);
    char *text = json_dumps(tables, JSON_COMPACT | JSON_REAL_PRECISION(4));
    EXPECT(text != NULL && strstr(text, "[[\"all\",66.67,66.67,3],[\"with an answer\",50.0,50.0,2],"
                                        "[\"without an answer\",100.0,100.0,1]]") != NULL,
           "%s", text);
    free(text);
    json_decref(tables);
    json_decref(said);
    squad_examples_fini(&e);
}

static void test_systems(void)
{
    const char *file = "";
    struct buf dataset = {0};
    size_t i;
    const json_t *c;
    json_array_foreach(json_object_get(golden, "files"), i, c)
    {
        if (strcmp(get_text(c, "dataset"), file) != 0) {
            buf_fini(&dataset);
            file = get_text(c, "dataset");
            dataset = shared_read_member("squad.tar.xz", file);
        }
        struct buf text = shared_read_member("squad.tar.xz", get_text(c, "predictions"));
        json_t *predictions;
        EXPECT_OK(json_parse(&predictions, text.data, text.n, "predictions"));
        expect_scores(dataset.data, dataset.n, predictions, c, get_text(c, "predictions"));
        printf("%s for %s: %s\n", get_text(c, "predictions"), file, get_text(c, "printed"));
        json_decref(predictions);
        buf_fini(&text);
    }
    buf_fini(&dataset);
}

int main(void)
{
    log_set_level(LOG_QUIET); /* each missing prediction is a warning */
    EXPECT_OK(json_read_object(&golden, KILN_SOURCE_DIR "/tests/golden/squad_score.json"));
    test_made_up();
    test_pairs();
    test_errors();
    test_parts();
    test_systems();
    json_decref(golden);
    return 0;
}
