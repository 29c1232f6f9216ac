/* Scores of entities are those of seqeval (tests/golden/make_classify.py), to 1e-12, for labels in any order. */
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

int main(void)
{
    json_t *golden;
    size_t i, k;
    const json_t *c, *row;
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
        }
        struct score_list s = tag_score(&counts);
        EXPECT(s.n == 4, "%d metrics", s.n);
        for (int m = 0; m < s.n; m++) {
            const json_t *wanted = json_object_get(json_object_get(c, "scores"), s.scores[m].name);
            EXPECT(json_is_real(wanted) && fabs(s.scores[m].value - json_real_value(wanted)) <= 1e-12,
                   "case %zu: %s is %.17g, not %.17g", i, s.scores[m].name, s.scores[m].value,
                   json_real_value(wanted));
        }
    }
    json_decref(golden);
    return 0;
}
