/* Metrics of classifiers are those of scikit-learn and scipy (tests/golden/make_classify.py), to 1e-12; rows without a label
 * do not count. */
#include "test.h"

#include "core/json.h"
#include "data/class_score.h"

enum { MOST = 1024 };

static void check_case(const json_t *c, enum label_problem problem)
{
    static float logits[MOST];
    static int32_t labels[MOST];
    const json_t *l = json_object_get(c, "logits"), *y = json_object_get(c, "labels");
    int64_t n_labels = json_integer_value(json_object_get(c, "n_labels"));
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
        EXPECT_OK(class_score(&s, problem, (int64_t)n / n_labels + extra, n_labels, logits, labels));
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
    EXPECT_ERROR(class_score(&s, PROBLEM_SINGLE_LABEL, 1, 2, constant, none), STATUS_DATA,
                 "no row has a label");
    EXPECT_OK(class_score(&s, PROBLEM_REGRESSION, 2, 1, constant, zeros)); /* nothing varies: 0 / 0 */
    EXPECT(s.scores[0].value == 0 && s.scores[2].value == 1, "%g, %g", s.scores[0].value, s.scores[2].value);
    return 0;
}
