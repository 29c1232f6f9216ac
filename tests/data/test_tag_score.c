/* Scores of entities are those of seqeval (tests/golden/make_classify.py), to 1e-12, for labels in any
 * order. */
#include "test.h"

#include "core/json.h"
#include "data/tag_score.h"

enum { LONGEST = 64 };

static int64_t read_labels(const json_t *row, const char **labels)
{
    size_t n = json_array_size(row);
    EXPECT(n <= LONGEST, "%zu labels", n);
    for (size_t i = 0; i < n; i++) {
        labels[i] = json_string_value(json_array_get(row, i));
    }
    return (int64_t)n;
}

static int count_both(const struct tag_entity *a, int64_t n_a, const struct tag_entity *b, int64_t n_b)
{
    int n = 0;
    for (int64_t i = 0; i < n_a; i++) {
        for (int64_t k = 0; k < n_b; k++) {
            n += a[i].begin == b[k].begin && a[i].end == b[k].end && strcmp(a[i].type, b[k].type) == 0;
        }
    }
    return n;
}

/* The entities of a sentence are those that its counts count. */
static void check_entities(const char *const *truth, const char *const *said, int64_t n)
{
    struct tag_entity t[LONGEST], s[LONGEST];
    struct tag_counts c = {0};
    int64_t n_t = tag_score_entities(t, truth, n), n_s = tag_score_entities(s, said, n);
    tag_score_add(&c, truth, said, n);
    EXPECT(n_t == c.n_truth && n_s == c.n_said && count_both(t, n_t, s, n_s) == c.n_hit,
           "%lld, %lld entities, not %lld, %lld", (long long)n_t, (long long)n_s, (long long)c.n_truth,
           (long long)c.n_said);
    tag_counts_fini(&c);
    for (int64_t i = 0; i < n_t; i++) {
        EXPECT(t[i].begin >= 0 && t[i].begin < t[i].end && t[i].end <= n && t[i].type[0] != '\0',
               "entity %lld", (long long)i);
    }
}

/* By hand, as seqeval's get_entities has them. */
static void test_entities(void)
{
    const char *const labels[] = {"B-PER", "I-PER", "O", "B-LOC", "B-LOC", "I-PER", "O", "I-ORG", "O"};
    const struct tag_entity wanted[] = {
        {"PER", 0, 2}, {"LOC", 3, 4}, {"LOC", 4, 5}, {"PER", 5, 6}, {"ORG", 7, 8}};
    struct tag_entity e[9];
    EXPECT(tag_score_entities(e, labels, 9) == 5 && count_both(e, 5, wanted, 5) == 5, "other entities");
    EXPECT(tag_score_entities(e, labels, 0) == 0, "entities of nothing");
}

/* PER: 1 of 1 said, of 2 true; LOC: 1 of 2 said, of 1 true; ORG is said alone. */
static void test_types(void)
{
    const char *const truth[] = {"B-PER", "I-PER", "O", "B-LOC", "O", "B-PER", "O"};
    const char *const said[] = {"B-PER", "I-PER", "O", "B-LOC", "B-LOC", "B-ORG", "O"};
    struct tag_counts c = {0};
    json_t *tables = json_array();
    tag_score_add(&c, truth, said, 7);
    EXPECT_OK(tag_score_tables(tables, &c));
    char *text = json_dumps(tables, JSON_COMPACT | JSON_REAL_PRECISION(4));
    EXPECT(text != NULL &&
               strstr(text,
                      "\"rows\":[[\"micro average\",0.5,0.6667,0.5714,3,4],[\"LOC\",0.5,1.0,0.6667,1,2],"
                      "[\"ORG\",0.0,0.0,0.0,0,1],[\"PER\",1.0,0.5,0.6667,2,1]]") != NULL,
           "%s", text);
    free(text);
    json_decref(tables);
    tag_counts_fini(&c);
}

int main(void)
{
    json_t *golden;
    size_t i, k;
    const json_t *c, *row;
    test_entities();
    EXPECT_OK(json_read_object(&golden, KILN_SOURCE_DIR "/tests/golden/classify_scores.json"));
    EXPECT(json_array_size(json_object_get(golden, "tags")) == 8, "other cases");
    json_array_foreach(json_object_get(golden, "tags"), i, c)
    {
        struct tag_counts counts = {0};
        json_array_foreach(json_object_get(c, "truth"), k, row)
        {
            const char *truth[LONGEST], *said[LONGEST];
            int64_t n = read_labels(row, truth);
            EXPECT(n == read_labels(json_array_get(json_object_get(c, "said"), k), said), "row %zu", k);
            tag_score_add(&counts, truth, said, n);
            check_entities(truth, said, n);
        }
        struct score_list s = tag_score(&counts);
        EXPECT(s.n == 4, "%d metrics", s.n);
        for (int m = 0; m < s.n; m++) {
            const json_t *wanted = json_object_get(json_object_get(c, "scores"), s.scores[m].name);
            EXPECT(json_is_real(wanted) && fabs(s.scores[m].value - json_real_value(wanted)) <= 1e-12,
                   "case %zu: %s is %.17g, not %.17g", i, s.scores[m].name, s.scores[m].value,
                   json_real_value(wanted));
        }
        tag_counts_fini(&counts);
    }
    json_decref(golden);
    test_types();
    return 0;
}
