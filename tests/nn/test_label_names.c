/* Names of labels: sorted by value where all are whole numbers, else by their bytes, each once; found by
 * their whole name; the same after a walk through config.json. */
#include "nn/label_names.h"

#include "captured_log.h"

enum { MOST = 6 };

static void expect_names(const struct label_names *l, const char *const *wanted, int64_t n)
{
    EXPECT(l->n == n, "%lld labels, not %lld", (long long)l->n, (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const char *name = label_names_get(l, i);
        EXPECT(strcmp(name, wanted[i]) == 0, "label %lld is '%s', not '%s'", (long long)i, name, wanted[i]);
        EXPECT(label_names_find(l, name, strlen(name)) == i, "'%s' is not found", name);
    }
}

static void test_sorting(void)
{
    static const struct {
        const char *names[MOST], *sorted[MOST];
    } cases[] = {
        {{"b", "a", "c"}, {"a", "b", "c"}},
        {{"b", "a", "b", "a", "b"}, {"a", "b"}},
        {{"10", "9", "-1", "9"}, {"-1", "9", "10"}},
        {{"10", "9", "-1", "x"}, {"-1", "10", "9", "x"}},
        {{"1.5", "10", "9"}, {"1.5", "10", "9"}},
        {{"01", "1", "0"}, {"0", "01", "1"}}, /* two names of one value */
        {{"ab", "a", "abc", ""}, {"", "a", "ab", "abc"}},
        {{NULL}, {NULL}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct label_names l = {0};
        int64_t n = 0;
        for (int k = 0; cases[i].names[k] != NULL; k++) {
            EXPECT_OK(label_names_add(&l, cases[i].names[k], strlen(cases[i].names[k])));
        }
        EXPECT_OK(label_names_sort(&l));
        while (cases[i].sorted[n] != NULL) {
            n++;
        }
        expect_names(&l, cases[i].sorted, n);
        label_names_fini(&l);
    }
}

/* Of equal names the first is found; neither a beginning of a name nor a longer one is. */
static void test_finding(void)
{
    static const char *const names[] = {"word", "a", "words", "a"};
    struct label_names l = {0};
    for (int i = 0; i < 4; i++) {
        EXPECT_OK(label_names_add(&l, names[i], strlen(names[i])));
    }
    EXPECT_OK(label_names_index(&l));
    EXPECT(label_names_find(&l, "a", 1) == 1 && label_names_find(&l, "word", 4) == 0 &&
               label_names_find(&l, "words", 5) == 2 && label_names_find(&l, "words", 4) == 0,
           "another label");
    EXPECT(label_names_find(&l, "wor", 3) < 0 && label_names_find(&l, "wordss", 6) < 0 &&
               label_names_find(&l, "", 0) < 0 && label_names_find(&l, "z", 1) < 0,
           "a name that is not there");
    label_names_fini(&l);
}

static void test_config(void)
{
    static const struct {
        const char *config;
        int64_t n;
        const char *names[MOST], *warning; /* NULL: nothing is logged */
    } cases[] = {
        {"{}", 2, {"LABEL_0", "LABEL_1"}, NULL},
        {"{'id2label': {'0': 'a'}, 'label2id': {'a': 1}}", 1, {"a"}, "calls label 0 'a'"},
        {"{'id2label': {'1': 'no', '0': 'yes'}}", 2, {"yes", "no"}, NULL},
        {"{'id2label': {'1': 'no', '0': 'yes'}}", 3, {"LABEL_0", "LABEL_1", "LABEL_2"}, NULL},
        {"{'id2label': {'1': 'no', '0': 'yes'}, 'label2id': {'yes': 0, 'no': 1}}", 2, {"yes", "no"}, NULL},
        {"{'id2label': {'1': 'no', '0': 'yes'}, 'label2id': {'yes': 0, 'no': 2}}",
         2,
         {"yes", "no"},
         "calls label 1 'no', but \"label2id\" does not"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct label_names l = {0}, again = {0};
        char text[CAPTURED_LOG_BYTES], json[256], *quote;
        json_t *config, *written = json_object();
        snprintf(json, sizeof json, "%s", cases[i].config);
        while ((quote = strchr(json, '\'')) != NULL) {
            *quote = '"';
        }
        EXPECT_OK(json_parse(&config, json, strlen(json), "config.json"));
        struct captured_log log = captured_log_begin();
        struct status s = label_names_parse(&l, config, cases[i].n, "config.json");
        captured_log_end(&log, text);
        EXPECT_OK(s);
        expect_names(&l, cases[i].names, cases[i].n);
        EXPECT(cases[i].warning == NULL ? text[0] == '\0' : strstr(text, cases[i].warning) != NULL,
               "%s: '%s'", cases[i].config, text);
        EXPECT(label_names_to_json(&l, written), "no memory");
        log = captured_log_begin();
        s = label_names_parse(&again, written, cases[i].n, "written");
        captured_log_end(&log, text);
        EXPECT_OK(s);
        EXPECT(text[0] == '\0', "%s", text);
        expect_names(&again, cases[i].names, cases[i].n);
        json_decref(config);
        json_decref(written);
        label_names_fini(&l);
        label_names_fini(&again);
    }
}

static void test_problems(void)
{
    for (int i = PROBLEM_SINGLE_LABEL; i <= PROBLEM_REGRESSION; i++) {
        enum label_problem p = PROBLEM_SINGLE_LABEL;
        EXPECT(label_problem_find(&p, label_problem_name((enum label_problem)i)) && (int)p == i, "problem %d",
               i);
    }
    enum label_problem p;
    EXPECT(!label_problem_find(&p, "regressions"), "a problem that nobody knows");
}

int main(void)
{
    test_sorting();
    test_finding();
    test_config();
    test_problems();
    return 0;
}
