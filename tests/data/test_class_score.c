/* Metrics of classifiers are those of scikit-learn and scipy (tests/golden/make_classify.py), to 1e-12; rows
 * without a label do not count. */
#include "test.h"

#include "core/json.h"
#include "core/log.h"
#include "data/class_score.h"

enum { MOST = 1024 };

static void check_case(const json_t *c, enum label_problem problem)
{
    static float logits[MOST];
    static int32_t labels[MOST];
    const json_t *l = json_object_get(c, "logits"), *y = json_object_get(c, "labels");
    int64_t n_labels = json_integer_value(json_object_get(c, "n_labels"));
    const struct model_labels model = {.n = n_labels, .problem = problem};
    size_t n = json_array_size(l), n_targets = json_array_size(y);
    EXPECT(n + (size_t)n_labels <= MOST, "%zu numbers", n);
    for (size_t i = 0; i < n; i++) {
        logits[i] = (float)json_number_value(json_array_get(l, i));
    }
    for (size_t i = 0; i < n_targets; i++) {
        float value = (float)json_number_value(json_array_get(y, i));
        memcpy(&labels[i], &value, sizeof value);
        labels[i] = problem == PROBLEM_SINGLE_LABEL ? (int32_t)value : labels[i];
    }
    for (int extra = 0; extra < 2; extra++) { /* the second time with a row that has no label */
        struct score_list s;
        const char *name;
        json_t *wanted;
        EXPECT_OK(class_score(&s, NULL, &model, (int64_t)n / n_labels + extra, logits, labels));
        EXPECT(s.n == (int)json_object_size(json_object_get(c, "scores")), "%d metrics", s.n);
        json_object_foreach(json_object_get(c, "scores"), name, wanted)
        {
            int i = 0;
            while (i < s.n && strcmp(s.scores[i].name, name) != 0) {
                i++;
            }
            EXPECT(i < s.n, "there is no %s", name);
            EXPECT_NEAR(s.scores[i].value, json_number_value(wanted), 1e-12);
        }
        for (int64_t k = 0; k < n_labels; k++) {
            labels[n_targets + (size_t)k] = problem == PROBLEM_SINGLE_LABEL ? -1 : 0x7fc00000;
            logits[n + (size_t)k] = 1;
        }
    }
}

static struct label_names names_of(int64_t n)
{
    struct label_names names = {0};
    char name[32];
    for (int64_t k = 0; k < n; k++) {
        EXPECT_OK(label_names_add(&names, name, (size_t)snprintf(name, sizeof name, "label %d", (int)k)));
    }
    return names;
}

/* Whether the tables, as text, have this part. */
static void expect_part(const json_t *tables, const char *part)
{
    char *text = json_dumps(tables, JSON_COMPACT | JSON_REAL_PRECISION(4));
    EXPECT(text != NULL && strstr(text, part) != NULL, "no %s in %s", part, text);
    free(text);
}

/* Truth 0 0 0 1 2, said 0 0 1 1 1, by hand. */
static void few_labels_have_a_matrix(void)
{
    struct label_names names = names_of(3);
    const struct model_labels model = {3, PROBLEM_SINGLE_LABEL, &names};
    const float logits[] = {1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0};
    const int32_t truth[] = {0, 0, 0, 1, 2};
    json_t *tables = json_array();
    struct score_list s;
    EXPECT_OK(class_score(&s, tables, &model, 5, logits, truth));
    EXPECT(json_array_size(tables) == 2, "%zu tables", json_array_size(tables));
    expect_part(tables, "[\"label 0\",1.0,0.6667,0.8,3,2],[\"label 1\",0.3333,1.0,0.5,1,3],"
                        "[\"label 2\",0.0,0.0,0.0,1,0]");
    expect_part(tables, "\"rows\":[[\"macro average\",0.4444,0.5556,0.4333,5,5],[\"label 0\"");
    EXPECT_NEAR(s.scores[2].value, 1.3 / 3, 1e-12); /* f1_macro is that of the table */
    expect_part(tables, "\"columns\":[\"true label\",\"label 0\",\"label 1\",\"label 2\"],\"rows\":"
                        "[[\"label 0\",2,1,0],[\"label 1\",0,1,0],[\"label 2\",0,1,0]]");
    json_decref(tables);
    label_names_fini(&names);
}

/* 1,000 labels, each twice; every third is once said to be the next label, and label 9 is said to be label 5
 * both times. */
static void many_labels_have_pairs(void)
{
    enum { LABELS = 1000, ROWS = 2 * LABELS };
    struct label_names names = names_of(LABELS);
    const struct model_labels model = {LABELS, PROBLEM_SINGLE_LABEL, &names};
    float *logits = calloc((size_t)ROWS * LABELS, sizeof *logits);
    int32_t truth[ROWS];
    json_t *tables = json_array();
    struct score_list s;
    EXPECT(logits != NULL, "memory");
    for (int i = 0; i < ROWS; i++) {
        truth[i] = i % LABELS;
        int said = truth[i] == 9 ? 5 : i < LABELS && i % 3 == 0 ? (i + 1) % LABELS : truth[i];
        logits[i * LABELS + said] = 1;
    }
    EXPECT_OK(class_score(&s, tables, &model, ROWS, logits, truth));
    expect_part(tables, "\"note\":\"1000 of 1000 labels, the most frequent first\"");
    expect_part(tables, "\"note\":\"50 of 334 pairs of labels that were confused, the most frequent first\"");
    expect_part(tables, "\"rows\":[[\"label 9\",\"label 5\",2,1.0],[\"label 0\",\"label 1\",1,0.5],"
                        "[\"label 3\",\"label 4\",1,0.5],");
    json_decref(tables);
    free(logits);
    label_names_fini(&names);
}

static void several_labels_have_no_matrix(void)
{
    struct label_names names = names_of(2);
    const struct model_labels model = {2, PROBLEM_MULTI_LABEL, &names};
    const float logits[] = {1, 1, 1, -1}, truth[] = {1, 0, 1, 0};
    int32_t bits[4];
    json_t *tables = json_array();
    struct score_list s;
    memcpy(bits, truth, sizeof bits);
    EXPECT_OK(class_score(&s, tables, &model, 2, logits, bits));
    EXPECT(json_array_size(tables) == 1, "%zu tables", json_array_size(tables));
    expect_part(tables, "[\"label 0\",1.0,1.0,1.0,2,2],[\"label 1\",0.0,0.0,0.0,0,1]");
    json_decref(tables);
    label_names_fini(&names);
}

static void count_warnings(void *self, enum log_level level, const char *text)
{
    *(int *)self += level == LOG_WARNING && strstr(text, "gives all 12 texts the label") != NULL;
}

/* Warned of once, where the texts have several labels and tables are asked for. */
static void one_label_for_all_is_warned_of(void)
{
    enum { ROWS = 12 };
    struct label_names names = names_of(2);
    const struct model_labels model = {2, PROBLEM_SINGLE_LABEL, &names};
    float logits[2 * ROWS];
    int32_t some[ROWS] = {1, 1, 1}, all[ROWS] = {0};
    int n_warnings = 0;
    struct score_list s;
    for (int i = 0; i < 2 * ROWS; i++) {
        logits[i] = i % 2 == 0 ? 1 : -1;
    }
    log_set_level(LOG_INFO);
    log_set_sink(&(struct log_sink){.line = count_warnings, .self = &n_warnings});
    const int wanted[] = {0, 1, 1};
    for (int k = 0; k < 3; k++) {
        json_t *tables = k == 0 ? NULL : json_array();
        EXPECT_OK(class_score(&s, tables, &model, ROWS, logits, k == 2 ? all : some));
        EXPECT(n_warnings == wanted[k], "case %d: %d warnings", k, n_warnings);
        if (k == 1) {
            expect_part(tables, "\"note\":\"The model gives every text the label label 0:");
        }
        json_decref(tables);
    }
    log_set_sink(NULL);
    label_names_fini(&names);
}

int main(void)
{
    json_t *golden;
    size_t i;
    const json_t *c;
    int n[3] = {0};
    EXPECT_OK(json_read_object(&golden, KILN_SOURCE_DIR "/tests/golden/classify_scores.json"));
    json_array_foreach(json_object_get(golden, "classes"), i, c)
    {
        const char *problem = json_string_value(json_object_get(c, "problem"));
        for (int p = 0; p < 3; p++) {
            if (strcmp(problem, label_problem_name((enum label_problem)p)) == 0) {
                check_case(c, (enum label_problem)p);
                n[p]++;
            }
        }
    }
    EXPECT(n[0] > 0 && n[1] > 0 && n[2] > 0, "cases: %d, %d, %d", n[0], n[1], n[2]);
    json_decref(golden);

    struct score_list s;
    float constant[] = {1, 1};
    int32_t none[] = {-1, -1}, zeros[] = {0, 0};
    const struct model_labels two = {.n = 2, .problem = PROBLEM_SINGLE_LABEL};
    const struct model_labels number = {.n = 1, .problem = PROBLEM_REGRESSION};
    EXPECT_ERROR(class_score(&s, NULL, &two, 1, constant, none), STATUS_DATA, "no row has a label");
    EXPECT_OK(class_score(&s, NULL, &number, 2, constant, zeros)); /* nothing varies: 0 / 0 */
    EXPECT(s.scores[0].value == 0 && s.scores[2].value == 1, "%g, %g", s.scores[0].value, s.scores[2].value);
    few_labels_have_a_matrix();
    many_labels_have_pairs();
    several_labels_have_no_matrix();
    one_label_for_all_is_warned_of();
    return 0;
}
