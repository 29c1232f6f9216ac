/* Tests of report/run_log and report/report_page: logs that a crash cut, runs that were resumed, both phases
 * on one axis, and pages of none, one and many points that stay small and escape what they quote. */
#include "test.h"

#include "io/file.h"
#include "report/report_chart.h"
#include "report/report_page.h"

#include <unistd.h>

static struct run_log parse(const char *run, const char *text)
{
    struct run_log log;
    EXPECT_OK(run_log_parse(&log, run, text, strlen(text)));
    return log;
}

static int n_of(const struct buf *b, const char *part)
{
    int n = 0;
    for (const char *p = buf_text(b); (p = strstr(p, part)) != NULL; p++) {
        n++;
    }
    return n;
}

static void expect_closed(const struct buf *page, const char *element)
{
    char begin[32], end[32];
    snprintf(begin, sizeof begin, "<%s", element);
    snprintf(end, sizeof end, "</%s>", element);
    EXPECT(n_of(page, begin) == n_of(page, end), "%d %s, %d %s", n_of(page, begin), begin, n_of(page, end),
           end);
}

static struct buf page_of(const struct run_log *logs, int n)
{
    static const char *const elements[] = {"div", "table", "tr", "figure", "figcaption", "body"};
    struct buf b = {0};
    report_append(&b, logs, n);
    EXPECT_OK(buf_status(&b));
    EXPECT(strstr(buf_text(&b), "nan") == NULL && strstr(buf_text(&b), "inf ") == NULL, "a number is none");
    EXPECT(strstr(buf_text(&b), "</html>") != NULL, "the page is whole");
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
        expect_closed(&b, elements[i]);
    }
    return b;
}

/* A torn line in the middle, a foreign one, a step that is no number, a torn line at the end. */
static void unreadable_lines_are_passed_over(void)
{
    struct run_log log =
        parse("runs/a/", "{\"event\":\"step\",\"time\":10,\"phase\":1,\"step\":1,\"loss\":3}\n"
                         "{\"event\":\"step\",\"ti\n"
                         "[1, 2]\n"
                         "\n"
                         "{\"event\":\"step\",\"time\":11,\"phase\":1,\"step\":\"x\"}\n"
                         "{\"event\":\"step\",\"time\":11,\"phase\":1,\"step\":2,\"loss\":NaN}\n"
                         "{\"event\":\"step\",\"time\":12,\"phase\":1,\"step\":3,\"loss\":null}\n"
                         "{\"event\":\"step\",\"time\":12,\"phase\":1,\"step\":9e99,\"loss\":1}\n"
                         "{\"event\":\"step\",\"time\":14,\"phase\":1,\"step\":4,\"loss\":1}\n"
                         "{\"event\":\"step\",\"time\":15,\"phase\":1,\"st");
    EXPECT(strcmp(log.name, "a") == 0, "name %s", log.name);
    EXPECT(log.steps.n == 3 && log.steps.rows[2].step == 4, "%zu steps", log.steps.n);
    EXPECT(isnan(log.steps.rows[1].values[RUN_LOSS]), "null is no value");
    EXPECT(log.n_unreadable == 6, "%lld unreadable", (long long)log.n_unreadable);
    EXPECT_NEAR(log.seconds, 4, 1e-9);
    struct buf page = page_of(&log, 1);
    EXPECT(n_of(&page, "6 lines could not be read") == 1, "the page says so");
    buf_fini(&page);
    run_log_close(&log);
}

/* Killed after step 30, resumed from the checkpoint of step 10: what was logged between is gone. */
static void later_lines_win(void)
{
    struct run_log log = parse(
        "a",
        "{\"event\":\"start\",\"time\":0,\"phase\":1,\"step\":0,\"global_step\":0,\"last_step\":40}\n"
        "{\"event\":\"step\",\"time\":10,\"phase\":1,\"step\":10,\"global_step\":10,\"loss\":5}\n"
        "{\"event\":\"evaluation\",\"time\":11,\"phase\":1,\"step\":15,\"mlm_loss\":7,\"nsp_loss\":1}\n"
        "{\"event\":\"step\",\"time\":20,\"phase\":1,\"step\":20,\"global_step\":20,\"loss\":4}\n"
        "{\"event\":\"step\",\"time\":30,\"phase\":1,\"step\":30,\"global_step\":30,\"loss\":3}\n"
        "{\"event\":\"start\",\"time\":1000,\"phase\":1,\"step\":10,\"global_step\":10,\"last_step\":40}\n"
        "{\"event\":\"step\",\"time\":1010,\"phase\":1,\"step\":20,\"global_step\":20,\"loss\":2}\n"
        "{\"event\":\"evaluation\",\"time\":1015,\"phase\":1,\"step\":25,\"mlm_loss\":3,\"nsp_loss\":1}\n");
    EXPECT(log.steps.n == 2 && log.steps.rows[1].step == 20, "%zu steps", log.steps.n);
    EXPECT((double)log.steps.rows[1].values[RUN_LOSS] == 2, "the later one");
    EXPECT(log.evaluations.n == 1 && (double)log.evaluations.rows[0].values[RUN_LOSS] == 4, "one evaluation");
    EXPECT(log.n_starts == 2, "two starts");
    EXPECT_NEAR(log.seconds, 30 + 15, 1e-9); /* not the time in which it was down */
    run_log_close(&log);
}

/* With "global_step", and in logs of before it was there. */
static void phases_share_an_axis(void)
{
    static const char *const globals[] = {"\"global_step\":102,", ""};
    for (int i = 0; i < 2; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "{\"event\":\"step\",\"time\":1,\"phase\":1,\"step\":100,\"loss\":5}\n"
                 "{\"event\":\"step\",\"time\":2,\"phase\":2,\"step\":2,%s\"loss\":4}\n",
                 globals[i]);
        struct run_log log = parse("a", text);
        EXPECT(log.steps.n == 2 && log.steps.rows[1].step == 102, "global step");
        EXPECT(log.phase2_from == 100, "phase 2 from %lld", (long long)log.phase2_from);
        struct buf page = page_of(&log, 1);
        EXPECT(n_of(&page, "phase 2 begins") == 1, "the mark is explained");
        buf_fini(&page);
        run_log_close(&log);
    }
}

/* Answering questions in the directory of a training leaves its curves. */
static void a_start_without_training_keeps_the_curves(void)
{
    struct run_log log = parse(
        "a", "{\"event\":\"start\",\"time\":0,\"phase\":1,\"step\":0,\"global_step\":0,\"last_step\":40}\n"
             "{\"event\":\"step\",\"time\":10,\"phase\":1,\"step\":10,\"step_loss\":5}\n"
             "{\"event\":\"start\",\"time\":20,\"phase\":1,\"step\":0,\"global_step\":0,\"last_step\":0}\n"
             "{\"event\":\"score\",\"time\":21,\"phase\":1,\"exact_match\":81.5,\"F1\":88.25}\n");
    EXPECT(log.steps.n == 1, "%zu steps", log.steps.n);
    struct buf page = page_of(&log, 1);
    EXPECT(n_of(&page, "81.5") == 1 && n_of(&page, "88.25") == 1, "the scores are shown");
    buf_fini(&page);
    run_log_close(&log);
}

/* Each kind of model has its own losses, accuracies and held-out total on its page, and no other's. */
static void every_model_shows_its_own_columns(void)
{
    static const struct {
        const char *step, *evaluation, *chart, *row, *none;
        int n_charts, n_heldout;
        double total;
    } cases[] = {
        {"\"loss\":5,\"lm_loss\":5,\"lm_accuracy\":0.1",
         "\"lm_loss\":4.5,\"lm_accuracy\":0.2,\"unigram_lm_loss\":6,\"unigram_lm_accuracy\":0.05",
         "Next token: accuracy", "<tr><th>held-out perplexity</th><td>90.02</td></tr>", "sentence", 2, 2,
         4.5},
        {"\"loss\":5,\"mlm_loss\":5,\"mlm_accuracy\":0.1", /* --no_nsp */
         "\"mlm_loss\":4.5,\"mlm_accuracy\":0.2,\"unigram_mlm_loss\":6", "Masked words: loss",
         "<tr><th>held-out loss of masked words by word frequencies alone</th><td>6</td></tr>", "sentence", 2,
         2, 4.5},
        {"\"step_loss\":2", "\"loss\":1.5,\"accuracy\":0.75", "Labels: accuracy",
         "<tr><th>held-out loss of labels</th><td>1.5</td></tr>", "masked", 2, 1, 1.5},
        {"\"step_loss\":2", "\"span_loss\":1.5,\"span_accuracy\":0.75", "Answers: loss",
         "<tr><th>held-out accuracy of answers</th><td>0.75</td></tr>", "word frequencies", 2, 1, 1.5},
        {"\"loss\":5", "\"mlm_loss\":4.5,\"nsp_loss\":null", "Masked words: loss", "training loss", "Next", 2,
         0, NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "{\"event\":\"step\",\"time\":1,\"phase\":1,\"step\":1,%s}\n"
                 "{\"event\":\"step\",\"time\":1,\"phase\":1,\"step\":2,%s}\n"
                 "{\"event\":\"evaluation\",\"time\":2,\"phase\":1,\"step\":2,%s}\n",
                 cases[i].step, cases[i].step, cases[i].evaluation);
        struct run_log log = parse("a", text);
        double total = (double)log.evaluations.rows[0].values[RUN_LOSS];
        EXPECT(isnan(cases[i].total) ? isnan(total) : total == cases[i].total, "case %zu: total %g", i,
               total);
        struct buf page = page_of(&log, 1);
        EXPECT(n_of(&page, "<figure>") == cases[i].n_charts, "case %zu: %d charts", i,
               n_of(&page, "<figure>"));
        EXPECT(n_of(&page, "data-what=\"held-out\"") == cases[i].n_heldout, "case %zu: held-out curves", i);
        EXPECT(n_of(&page, cases[i].chart) > 0 && n_of(&page, cases[i].row) == 1, "case %zu: its columns", i);
        EXPECT(n_of(&page, cases[i].none) == 0, "case %zu: another model's columns", i);
        buf_fini(&page);
        run_log_close(&log);
    }
}

static void what_is_quoted_is_escaped(void)
{
    struct run_log log = parse(
        "runs/<script>alert('1')</script>&\"",
        "{\"event\":\"start\",\"time\":0,\"phase\":1,\"step\":0,\"global_step\":0,\"last_step\":9,\"cpu\":"
        "\"<b>\",\"flags\":{\"<i>\":\"<u>\\u0007\"}}\n"
        "{\"event\":\"step\",\"time\":10,\"phase\":1,\"step\":1,\"loss\":5}\n");
    free(log.name);
    log.name = strdup("<script>alert('1')</script>&\"");
    EXPECT(log.name != NULL, "memory");
    struct buf page = page_of(&log, 1);
    EXPECT(n_of(&page, "<script>") == 1 && n_of(&page, "<b>") == 0 && n_of(&page, "<u>") == 0 &&
               n_of(&page, "<i>") == 0,
           "markup came through");
    EXPECT(n_of(&page, "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;") >= 3, "escaped");
    EXPECT(n_of(&page, "http://") == n_of(&page, "http://www.w3.org/2000/svg"), "the page points outside");
    buf_fini(&page);
    run_log_close(&log);
}

/* What an event says in tables is drawn as it is, but for markup; what is no table is passed over. */
static void tables_are_drawn(void)
{
    struct run_log log = parse(
        "a",
        "{\"event\":\"score\",\"time\":21,\"phase\":1,\"accuracy\":0.75,\"f1_macro\":0.6125,\"tables\":["
        "{\"title\":\"Confusion <b>\",\"note\":\"rows & columns\",\"shaded\":true,"
        "\"columns\":[\"true\",\"</th><script>\"],\"rows\":[[\"<i>\",3,1],[\"none\",0,0]]},"
        "{\"title\":\"Labels\",\"columns\":[\"label\",\"F1\",\"true\"],\"rows\":[[\"x\",0.98765,12345]]},"
        "{\"title\":7},{\"title\":\"cut\",\"columns\":[[]],\"rows\":[7,[null,{}]]},null]}\n");
    struct buf page = page_of(&log, 1);
    EXPECT(n_of(&page, "<script>") == 1 && n_of(&page, "<b>") == 0 && n_of(&page, "<i>") == 0, "markup");
    EXPECT(n_of(&page, "<tr><th>accuracy</th><td>0.75</td></tr>") == 1, "the score is in the summary");
    EXPECT(n_of(&page, "<tr><th>f1 macro</th><td>0.6125</td></tr>") == 1, "the other, too");
    EXPECT(n_of(&page, "<h2>Confusion &lt;b&gt;</h2>") == 1 && n_of(&page, "rows &amp; columns") == 1,
           "title");
    EXPECT(n_of(&page, "<tr><td>&lt;i&gt;</td><td class=\"n\" style=\"--shade:0.750\">3</td>") == 1, "shade");
    EXPECT(n_of(&page, "<tr><td>none</td><td class=\"n\">0</td><td class=\"n\">0</td></tr>") == 1,
           "no shade");
    EXPECT(n_of(&page, "<tr><td>x</td><td class=\"n\">0.9877</td><td class=\"n\">12345</td></tr>") == 1,
           "row");
    EXPECT(n_of(&page, "<h2>") == 3, "%d tables", n_of(&page, "<h2>"));
    buf_fini(&page);
    run_log_close(&log);
}

static void empty_and_tiny_runs_have_pages(void)
{
    struct run_log logs[2] = {parse("empty", ""),
                              parse("one", "{\"event\":\"step\",\"time\":1,\"phase\":1,\"step\":7,"
                                           "\"loss\":2.5,\"grad_norm\":0,\"learning_rate\":1e-9}\n")};
    struct buf page = page_of(logs, 1);
    EXPECT(n_of(&page, "<figure>") == 0, "an empty run has no charts");
    EXPECT(n_of(&page, "1970") == 0, "nor a date");
    buf_fini(&page);
    page = page_of(logs, 2);
    EXPECT(n_of(&page, "<figure>") == 3, "%d charts", n_of(&page, "<figure>"));
    EXPECT(n_of(&page, "class=\"one\"") == 3 && n_of(&page, "</i>2.5 <small>training, step 7</small>") == 1,
           "a chart of one point is a number");
    buf_fini(&page);
    run_log_close(&logs[0]);
    run_log_close(&logs[1]);
}

/* Values of every size, phases that alternate: the page is one all the same. */
static void odd_values_are_drawn(void)
{
    struct buf text = {0};
    for (int i = 0; i < 3000; i++) {
        buf_printf(&text,
                   "{\"event\":\"step\",\"time\":%d,\"phase\":%d,\"step\":%d,\"global_step\":%d,\"loss\":%s,"
                   "\"grad_norm\":%s,\"learning_rate\":%d}\n",
                   i, 1 + i % 2, i, i, i % 3 == 0 ? "1e308" : "-3e38", i % 2 == 0 ? "1e-45" : "3e38", -i);
    }
    struct run_log log = parse("odd", buf_text(&text));
    struct buf page = page_of(&log, 1);
    EXPECT(n_of(&page, "<figure>") == 3, "%d charts", n_of(&page, "<figure>"));
    buf_fini(&page);
    buf_fini(&text);
    run_log_close(&log);
}

/* A million steps of eight runs: a page of some megabyte, whatever the length. */
static void long_runs_stay_small(void)
{
    struct run_log logs[REPORT_MAX_RUNS];
    size_t n = 200000;
    for (int r = 0; r < REPORT_MAX_RUNS; r++) {
        logs[r] = parse("long", "");
        logs[r].steps.rows = malloc(n * sizeof *logs[r].steps.rows);
        EXPECT(logs[r].steps.rows != NULL, "memory");
        logs[r].steps.n = logs[r].steps.capacity = n;
        for (size_t i = 0; i < n; i++) {
            struct run_row *row = &logs[r].steps.rows[i];
            *row = (struct run_row){.step = 5 * (int64_t)i, .phase = 1};
            for (int c = 0; c < RUN_N_COLUMNS; c++) {
                row->values[c] = (float)(2 + (double)(i * 2654435761u % 1000) / 1000);
            }
        }
    }
    struct buf page = page_of(logs, REPORT_MAX_RUNS);
    EXPECT(page.n < 1200000, "%zu bytes", page.n);
    printf("8 runs of a million steps: %zu bytes\n", page.n);
    buf_fini(&page);
    for (int r = 0; r < REPORT_MAX_RUNS; r++) {
        run_log_close(&logs[r]);
    }
}

/* Points have the places of their steps: at the beginning, in the middle and at the end. */
static void points_follow_their_steps(void)
{
    struct run_log log = parse("a", "{\"event\":\"step\",\"time\":1,\"phase\":1,\"step\":10,\"loss\":3}\n"
                                    "{\"event\":\"step\",\"time\":2,\"phase\":1,\"step\":500,\"loss\":2}\n"
                                    "{\"event\":\"step\",\"time\":3,\"phase\":1,\"step\":1000,\"loss\":1}\n");
    struct buf page = page_of(&log, 1);
    const char *line = strstr(buf_text(&page), "class=\"r0 line\"");
    double x[3], y[3];
    EXPECT(line != NULL, "there is no line");
    int n = sscanf(strstr(line, " d=\"") + 4, "M %lg %lg %lg %lg %lg %lg", &x[0], &y[0], &x[1], &y[1], &x[2],
                   &y[2]);
    EXPECT(n == 6, "%d numbers: %.80s", n, line);
    EXPECT_NEAR(x[0] / x[2], 0.01, 1e-3);
    EXPECT_NEAR(x[1] / x[2], 0.5, 1e-3);
    EXPECT(y[0] < y[1] && y[1] < y[2], "a loss that falls goes down: %g %g %g", y[0], y[1], y[2]);
    /* lines at the losses 1, 1.5, ... 3, and at the steps 0, 500 and 1,000 */
    EXPECT(n_of(&page,
                "d=\"M0 300H1000M0 225H1000M0 150H1000M0 75H1000M0 0H1000M0 0V300M500 0V300M1000 0V300\"") ==
               1,
           "other lines of the axes");
    buf_fini(&page);
    run_log_close(&log);
}

/* The run's facts stand at the top; a page of a run that goes on says so, and its script looks for that. */
static void the_run_is_named(void)
{
    struct run_log log = parse(
        "a",
        "{\"event\":\"start\",\"time\":0,\"phase\":1,\"step\":0,\"global_step\":0,\"last_step\":40,"
        "\"parameters\":"
        "1777344,\"data_tokens\":2500000,\"steps_per_epoch\":20,\"command\":\"kiln pretrain --seed=<1>\"}\n"
        "{\"event\":\"step\",\"time\":10,\"phase\":1,\"step\":30,\"loss\":5,\"tokens_per_second\":1,"
        "\"sequences_per_second\":1}\n"
        "{\"event\":\"evaluation\",\"time\":10,\"phase\":1,\"step\":30,\"lm_loss\":1,\"ngram_lm_loss\":2,"
        "\"bits_per_byte\":1.25}\n");
    static const char *const parts[] = {
        "<span>kiln </span><span>pretrain </span><span>--seed=&lt;1&gt;</span>",
        "parameters of the model</th><td>1.777M<",
        "training data</th><td>2.5M tokens<",
        "steps of training</th><td>30, 1.5 epochs of it<",
        "held-out perplexity</th><td>2.718<",
        "held-out perplexity of counts of n-grams</th><td>7.389<",
        "held-out bits per byte</th><td>1.25<"};
    struct buf page = page_of(&log, 1);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        EXPECT(n_of(&page, parts[i]) == 1, "no %s", parts[i]);
    }
    EXPECT(n_of(&page, ">Throughput <") == 1, "one rate is shown");
    EXPECT(n_of(&page, "<p class=\"note\" data-drawn=") == 0, "the run is over");
    buf_clear(&page);
    report_append_running(&page, &log, 1);
    EXPECT(n_of(&page, "<p class=\"note\" data-drawn=") == 1, "the run goes on");
    buf_fini(&page);
    run_log_close(&log);
}

static void several_runs_are_told_apart(void)
{
    static const char line[] =
        "{\"event\":\"start\",\"time\":0,\"phase\":1,\"step\":0,\"global_step\":0,\"last_step\":9,"
        "\"flags\":{\"learning_rate\":%s,\"seed\":42}}\n{\"event\":\"step\",\"time\":10,"
        "\"phase\":1,\"step\":1,\"loss\":5}\n";
    char directory[] = "test_report_page.XXXXXX", path[2][64], output[64], text[512];
    EXPECT(mkdtemp(directory) != NULL, "a directory");
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/%d/run", directory, i);
        EXPECT_OK(file_make_directories(path[i]));
        char log[80];
        snprintf(log, sizeof log, "%s/log.jsonl", path[i]);
        snprintf(text, sizeof text, line,
                 i == 0 ? "0.001" : "0.002"); /* NOLINT: a literal of this function */
        EXPECT_OK(file_write_atomic(log, text, strlen(text)));
    }
    snprintf(output, sizeof output, "%s/report.html", directory);
    EXPECT_OK(report_write(output, report_append, (const char *const[]){path[0], path[1]}, 2));
    struct file_map m;
    EXPECT_OK(file_map_open(&m, output));
    struct buf page = {0};
    buf_append(&page, m.data, m.n);
    file_map_close(&m);
    EXPECT(n_of(&page, "<tr><th>learning_rate</th><td>0.001</td><td>0.002</td></tr>") == 1, "what differs");
    EXPECT(n_of(&page, "<tr><th>seed</th><td>42</td><td>42</td></tr>") == 1, "what is the same");
    EXPECT(n_of(&page, path[0]) > 0, "two runs of one name are shown by their paths");
    buf_fini(&page);
    EXPECT_ERROR(report_write(output, report_append, (const char *const[]){directory}, 1), STATUS_DATA,
                 "log.jsonl");
    EXPECT_OK(file_remove_tree(directory));
}

static void numbers_are_short(void)
{
    static const struct {
        double value;
        const char *wanted;
    } cases[] = {{0, "0"},        {0.05, "0.05"}, {2000, "2000"}, {20000, "20k"},
                 {1.5e6, "1.5M"}, {1e-5, "1e-5"}, {-2.5, "-2.5"}, {0.0005, "0.0005"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        EXPECT(strcmp(number_text(cases[i].value).text, cases[i].wanted) == 0, "%s, not %s",
               number_text(cases[i].value).text, cases[i].wanted);
    }
}

int main(void)
{
    unreadable_lines_are_passed_over();
    later_lines_win();
    phases_share_an_axis();
    a_start_without_training_keeps_the_curves();
    every_model_shows_its_own_columns();
    what_is_quoted_is_escaped();
    tables_are_drawn();
    empty_and_tiny_runs_have_pages();
    odd_values_are_drawn();
    long_runs_stay_small();
    points_follow_their_steps();
    the_run_is_named();
    several_runs_are_told_apart();
    numbers_are_short();
    return 0;
}
