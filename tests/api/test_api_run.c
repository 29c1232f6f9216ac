/* Runs of the library: what `kiln classify` trains, as events; one that is cancelled, and goes on with the
 * same settings; settings that are wrong.  The process prints nothing, and its handlers of signals stay. */
#define _GNU_SOURCE
#include "expect_kiln.h"
#include "session_case.h"

#include "captured_log.h"
#include "captured_output.h"
#include "core/json.h"

#include <signal.h>

enum { PATH = 256, STEPS = 10 };

static char directory[64], model[PATH], output[PATH], data[PATH];

static void write_data(void)
{
    struct buf text = {0};
    buf_puts(&text, "sentence,label\n");
    for (int i = 0; i < 4 * STEPS; i++) {
        buf_puts(&text, i % 3 == 0 ? "a mad dog,animal\n" : "no home,place\n");
    }
    snprintf(model, PATH, "%s/encoder", directory);
    snprintf(output, PATH, "%s/out", directory);
    snprintf(data, PATH, "%s/data.csv", directory);
    EXPECT_OK(file_write_atomic(data, text.data, text.n));
    buf_fini(&text);
}

/* A run of STEPS steps. */
static struct kiln_run *begin(bool resumes)
{
    const struct kiln_setting settings[] = {{"init_checkpoint", model},
                                            {"output_dir", output},
                                            {"train_file", data},
                                            {"do_train", NULL},
                                            {"max_seq_length", "16"},
                                            {"num_train_epochs", "1"},
                                            {"train_batch_size", "4"},
                                            {"log_freq", "1"},
                                            {"resume_from_checkpoint", resumes ? "true" : "false"}};
    struct kiln_run *r;
    EXPECT_KILN_OK(kiln_run_open(&r, "classify", settings, sizeof settings / sizeof settings[0]));
    return r;
}

struct heard {
    int n_steps, n_lines;
    json_int_t first_step, last_step;
    double loss;
};

static void hear(struct heard *h, const char *json)
{
    json_t *event = json_loads(json, 0, NULL);
    const char *name = json_string_value(json_object_get(event, "event"));
    EXPECT(name != NULL, "no event: %s", json);
    if (strcmp(name, "step") == 0) {
        h->last_step = json_integer_value(json_object_get(event, "step"));
        h->first_step = h->n_steps++ == 0 ? h->last_step : h->first_step;
        h->loss = json_number_value(json_object_get(event, "step_loss"));
    } else if (strcmp(name, "log") == 0) {
        EXPECT(json_is_string(json_object_get(event, "text")), "a line without a text: %s", json);
        h->n_lines++;
    }
    json_decref(event);
}

/* Hears a run to its end, cancelling it after so many steps; -1: never. */
static struct kiln_status finish(struct kiln_run *r, struct heard *h, int cancel_at)
{
    struct kiln_string event;
    struct kiln_status s;
    *h = (struct heard){0};
    for (bool more = true; more;) {
        s = kiln_run_next_event(r, &event, -1, &more);
        if (event.bytes != NULL) {
            EXPECT(strlen(event.bytes) == event.n && strchr(event.bytes, '\n') == NULL, "'%s'", event.bytes);
            hear(h, event.bytes);
        }
        kiln_string_free(&event);
        if (h->n_steps == cancel_at) {
            kiln_run_cancel(r);
        }
    }
    kiln_run_close(r);
    return s;
}

static void test_run(struct heard *h)
{
    struct kiln_run *r = begin(false), *second = r;
    EXPECT_KILN_ERROR(kiln_run_open(&second, "classify", NULL, 0), KILN_UNAVAILABLE, "a process has one");
    EXPECT(second == NULL, "a second run");
    EXPECT_KILN_OK(finish(r, h, -1));
    EXPECT(h->n_steps == STEPS && h->last_step == STEPS && h->n_lines > 3, "%d steps, %d lines", h->n_steps,
           h->n_lines);
    char path[PATH + 8];
    struct kiln_model *m;
    snprintf(path, sizeof path, "%s/model", output);
    EXPECT_KILN_OK(kiln_model_open(&m, path));
    EXPECT(kiln_model_tasks(m) == (1U << KILN_EMBED | 1U << KILN_CLASSIFY), "another model");
    kiln_model_close(m);
}

/* It ends in the same loss as one that nobody has stopped. */
static void test_cancel(const struct heard *whole)
{
    struct heard first, rest;
    EXPECT_OK(file_remove_tree(output));
    EXPECT_KILN_ERROR(finish(begin(false), &first, 1), KILN_CANCELLED, "stopped by a call after step ");
    EXPECT(first.n_steps >= 1 && first.n_steps < STEPS, "%d steps", first.n_steps);
    EXPECT_KILN_OK(finish(begin(true), &rest, -1));
    EXPECT(rest.first_step == first.last_step + 1 && rest.last_step == STEPS && rest.loss == whole->loss,
           "from step %d, loss %.17g, not %.17g", (int)rest.first_step, rest.loss, whole->loss);
}

static struct kiln_status fail(const char *command, const struct kiln_setting *settings, size_t n)
{
    struct kiln_run *r;
    struct heard h;
    struct kiln_status s = kiln_run_open(&r, command, settings, n);
    return s.code != KILN_OK ? s : finish(r, &h, -1);
}

static void test_wrong(void)
{
    struct kiln_setting s[3] = {{"learning_rat", "1"}};
    EXPECT_KILN_ERROR(fail("dance", NULL, 0), KILN_USAGE, "no run 'dance'");
    EXPECT_KILN_ERROR(fail("serve", NULL, 0), KILN_USAGE, "no run 'serve'");
    EXPECT_KILN_ERROR(fail("classify", NULL, 0), KILN_USAGE, "init_checkpoint");
    s[0] = (struct kiln_setting){"nonsense", "1"};
    EXPECT_KILN_ERROR(fail("classify", s, 1), KILN_USAGE, "unknown flag nonsense");
    s[0] = (struct kiln_setting){"help", NULL};
    EXPECT_KILN_ERROR(fail("classify", s, 1), KILN_USAGE, "no setting 'help'");
    s[0] = (struct kiln_setting){"learning_rate", "fast"};
    EXPECT_KILN_ERROR(fail("classify", s, 1), KILN_USAGE, "learning_rate needs a number");
    s[0] = (struct kiln_setting){"init_checkpoint", "/nowhere"};
    s[1] = (struct kiln_setting){"output_dir", output};
    s[2] = (struct kiln_setting){"do_train", "true"};
    EXPECT_KILN_ERROR(fail("classify", s, 3), KILN_USAGE, "train_file");
}

/* A run that nobody hears ends with its close. */
static void test_close(void)
{
    struct kiln_string event;
    bool more;
    EXPECT_OK(file_remove_tree(output));
    struct kiln_run *r = begin(false);
    EXPECT_KILN_OK(kiln_run_next_event(r, &event, 0, &more));
    EXPECT(more, "it goes on");
    kiln_string_free(&event);
    kiln_run_close(r);
}

int main(void)
{
    struct heard whole;
    struct buf printed = {0};
    char logged[CAPTURED_LOG_BYTES];
    struct sigaction before, after;
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
    write_data();
    char path[PATH];
    snprintf(path, sizeof path, "%s/printed", directory);
    struct captured_output out = captured_output_begin(path);
    struct captured_log log = captured_log_begin();
    log_set_level(LOG_QUIET);
    sigaction(SIGINT, NULL, &before);
    test_run(&whole);
    test_cancel(&whole);
    test_wrong();
    test_close();
    sigaction(SIGINT, NULL, &after);
    captured_log_end(&log, logged);
    captured_output_end(&out, &printed);
    EXPECT(printed.n == 0 && logged[0] == '\0', "printed: %s%s", buf_text(&printed), logged);
    EXPECT(before.sa_handler == after.sa_handler, "another handler of SIGINT");
    buf_fini(&printed);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
