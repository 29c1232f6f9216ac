/* api_run: the runs of include/kiln/kiln.h: a command in a thread, whose log and events go to a queue.
 *
 * The log and the wish to stop are one for a process, so that it has one run at a time. */
#include "api/api.h"
#include "cmd/command_run.h"
#include "cmd/commands.h"
#include "core/json.h"
#include "core/log.h"
#include "core/signals.h"
#include "core/stop.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct event {
    struct event *next;
    char json[];
};

struct kiln_run {
    const struct command *command;
    char **words; /* [n_words] the command line */
    int n_words;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    struct event *first, **end; /* events that were not taken, the oldest first */
    bool has_ended;
    struct status status;
};

static atomic_bool is_taken; /* by a run that is not closed */

/* ---- events ---- */

static void put_event(void *self, const char *json)
{
    struct kiln_run *r = self;
    size_t n = strlen(json) + 1;
    struct event *e = malloc(sizeof *e + n);
    if (e == NULL) {
        return;
    }
    memcpy(e->json, json, n);
    e->next = NULL;
    pthread_mutex_lock(&r->lock);
    *r->end = e;
    r->end = &e->next;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void put_line(void *self, enum log_level level, const char *text)
{
    struct buf clean = {0};
    log_append_text(&clean, text);
    json_t *event = json_pack("{s:s, s:s, s:s}", "event", "log", "level",
                              level == LOG_WARNING ? "warning" : "info", "text", buf_text(&clean));
    char *json = event == NULL ? NULL : json_dumps(event, JSON_COMPACT);
    if (json != NULL) {
        put_event(self, json);
    }
    free(json);
    json_decref(event);
    buf_fini(&clean);
}

/* ---- the run ---- */

static void *run(void *self)
{
    struct kiln_run *r = self;
    struct status s = command_run(r->command, r->n_words, (const char **)r->words);
    pthread_mutex_lock(&r->lock);
    r->has_ended = true;
    r->status = s;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static const struct command *find_command(const char *name)
{
    static const struct command *const commands[] = {
        &command_train,        &command_vocab,        &command_prepare, &command_pretrain,
        &command_pretrain_gpt, &command_finetune_gpt, &command_squad,   &command_classify,
        &command_tag,          &command_embed_train,  &command_export,  NULL};
    int i = 0;
    while (commands[i] != NULL && strcmp(commands[i]->name, name) != 0) {
        i++;
    }
    return commands[i];
}

/* Whether a setting is another value of the one before it. */
static bool is_more(const struct kiln_setting *s, size_t i)
{
    return i > 0 && strcmp(s[i].name, s[i - 1].name) == 0;
}

static struct status check_setting(const struct kiln_setting *s, size_t i)
{
    FAIL_IF(s[i].name == NULL, STATUS_USAGE, "the name of setting %zu is NULL", i);
    FAIL_IF(strcmp(s[i].name, "help") == 0 || strpbrk(s[i].name, "= \t\n") != NULL || s[i].name[0] == '-' ||
                s[i].name[0] == '\0',
            STATUS_USAGE, "there is no setting '%.100s'", s[i].name);
    FAIL_IF(is_more(s, i) && (s[i].value == NULL || strncmp(s[i].value, "--", 2) == 0), STATUS_USAGE,
            "setting %s cannot have the further value %.100s", s[i].name,
            s[i].value == NULL ? "NULL" : s[i].value);
    return status_ok();
}

/* "--name=value", and further values as words of their own. */
static struct status make_words(struct kiln_run *r, const struct kiln_setting *settings, size_t n)
{
    r->words = calloc(n + 1, sizeof *r->words);
    FAIL_IF(r->words == NULL, STATUS_MEMORY, "out of memory for %zu settings", n);
    for (size_t i = 0; i < n; i++) {
        struct buf word = {0};
        const char *value = settings[i].value;
        TRY(check_setting(settings, i));
        if (is_more(settings, i)) {
            buf_puts(&word, value);
        } else {
            buf_printf(&word, "--%s%s%s", settings[i].name, value == NULL ? "" : "=",
                       value == NULL ? "" : value);
        }
        buf_puts(&word, "");
        TRY(buf_status(&word));
        r->words[r->n_words++] = word.data;
    }
    return status_ok();
}

/* The thread gets no signals, which are the program's. */
static struct status begin(struct kiln_run *r)
{
    sigset_t before;
    stop_begin_requests();
    log_set_sink(&(struct log_sink){.line = put_line, .event = put_event, .self = r});
    log_set_level(LOG_INFO);
    signals_block(&before);
    r->has_thread = pthread_create(&r->thread, NULL, run, r) == 0;
    signals_restore(&before);
    return r->has_thread ? status_ok() : status_error(STATUS_MEMORY, "out of memory for the thread of a run");
}

static void run_free(struct kiln_run *r)
{
    api_restore_log();
    stop_begin_requests(); /* nothing is asked of those who read files after the run */
    for (struct event *e; (e = r->first) != NULL;) {
        r->first = e->next;
        free(e);
    }
    for (int i = 0; i < r->n_words; i++) {
        free(r->words[i]);
    }
    free(r->words);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r);
    atomic_store(&is_taken, false);
}

bool api_run_goes_on(void)
{
    return atomic_load(&is_taken);
}

static struct status open_run(struct kiln_run **run, const char *command, const struct kiln_setting *settings,
                              size_t n)
{
    const struct command *found = find_command(command);
    FAIL_IF(found == NULL, STATUS_USAGE, "there is no run '%.100s'", command);
    FAIL_IF(settings == NULL && n > 0, STATUS_USAGE, "settings is NULL, but has %zu", n);
    FAIL_IF(n > INT32_MAX, STATUS_USAGE, "%zu settings are too many", n);
    FAIL_IF(atomic_exchange(&is_taken, true), STATUS_UNAVAILABLE,
            "a run is there already: a process has one, until it is closed");
    struct kiln_run *r = calloc(1, sizeof *r);
    if (r == NULL) {
        atomic_store(&is_taken, false);
        return status_error(STATUS_MEMORY, "out of memory for a run");
    }
    r->command = found;
    r->end = &r->first;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    struct status s = make_words(r, settings, n);
    s = failed(s) ? s : begin(r);
    if (failed(s)) {
        run_free(r);
        return s;
    }
    *run = r;
    return s;
}

struct kiln_status kiln_run_open(struct kiln_run **run, const char *command,
                                 const struct kiln_setting *settings, size_t n_settings)
{
    if (run == NULL) {
        return api_status(status_error(STATUS_USAGE, "run is NULL"));
    }
    *run = NULL;
    if (command == NULL) {
        return api_status(status_error(STATUS_USAGE, "command is NULL"));
    }
    return api_status(open_run(run, command, settings, n_settings));
}

/* Waits with the lock; false: the time is over. */
static bool wait(struct kiln_run *r, double timeout_s, const struct timespec *until)
{
    return timeout_s < 0 ? pthread_cond_wait(&r->changed, &r->lock) == 0
                         : pthread_cond_timedwait(&r->changed, &r->lock, until) != ETIMEDOUT;
}

static struct timespec time_after(double seconds)
{
    static const double LONGEST = 1e9, NS = 1e9;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    double s = fmin(fmax(seconds, 0), LONGEST), whole = floor(s);
    t.tv_sec += (time_t)whole;
    t.tv_nsec += (long)((s - whole) * NS);
    t.tv_sec += t.tv_nsec / (long)NS;
    t.tv_nsec %= (long)NS;
    return t;
}

/* The oldest event; NULL: none has come in time.  With *more false the run has ended. */
static struct event *take_event(struct kiln_run *r, double timeout_s, bool *more)
{
    struct timespec until = time_after(timeout_s);
    pthread_mutex_lock(&r->lock);
    while (r->first == NULL && !r->has_ended && wait(r, timeout_s, &until)) {
    }
    struct event *e = r->first;
    *more = e != NULL || !r->has_ended;
    if (e != NULL) {
        r->first = e->next;
        r->end = r->first == NULL ? &r->first : r->end;
    }
    pthread_mutex_unlock(&r->lock);
    return e;
}

struct kiln_status kiln_run_next_event(struct kiln_run *run, struct kiln_string *event, double timeout_s,
                                       bool *more)
{
    bool goes_on = false;
    if (event != NULL) {
        *event = (struct kiln_string){0};
    }
    if (more != NULL) {
        *more = false;
    }
    if (run == NULL || event == NULL || more == NULL) {
        return api_status(status_error(STATUS_USAGE, "%s is NULL",
                                       run == NULL     ? "the run"
                                       : event == NULL ? "event"
                                                       : "more"));
    }
    struct event *e = take_event(run, timeout_s, &goes_on);
    if (e != NULL) {
        size_t n = strlen(e->json);
        event->bytes = memmove(e, e->json, n + 1); /* which kiln_string_free frees */
        event->n = n;
    }
    *more = goes_on;
    return api_status(goes_on ? status_ok() : run->status);
}

void kiln_run_cancel(struct kiln_run *run)
{
    if (run != NULL) {
        stop_request();
    }
}

void kiln_run_close(struct kiln_run *run)
{
    if (run == NULL) {
        return;
    }
    kiln_run_cancel(run);
    pthread_join(run->thread, NULL);
    run_free(run);
}
