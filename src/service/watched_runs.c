#define _GNU_SOURCE
#include "service/watched_runs.h"

#include "core/clock.h"
#include "core/log.h"
#include "io/file.h"
#include "model/checkpoint.h"
#include "serve/answer_json.h"
#include "serve/generate.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOOK_MS = 250,           /* time between looks at the logs, */
    SAMPLE_MS = 1000,        /* and at the checkpoints */
    QUIET_MS = 15000,        /* time without a line after which a sign of life is sent, for proxies */
    BLOCK_BYTES = 256 << 10, /* bytes of a log that are read at once; no line is longer */
    TURN_BYTES = 128 << 10,  /* bytes of a step, if the log has them; fewer than a client may leave unread */
    LONG_LOG_BYTES = 512 << 10 /* bytes of steps that a stream begins with */
};

struct watched_run {
    char *name, *directory, *log;
    char **samples; /* [n_samples] events, guarded by the lock */
    int n_samples;
    int64_t last_step; /* step of the newest checkpoint that the sampling thread has seen */
};

/* The position of a client in the log and the texts of a run. */
struct place {
    bool has_begun;
    ino_t inode;
    int64_t offset;
    int64_t every, until; /* one step of `every` is sent before byte `until` of the log */
    int64_t n_steps;
    int n_samples;
};

struct follower {
    struct call *call;
    int first, n;
    struct place *places; /* [n] */
    int64_t sent_ns;
    struct follower *next;
};

struct watched_runs {
    struct watch_options options;
    struct watched_run *runs; /* [n] */
    int n;
    char *block; /* BLOCK_BYTES, of the thread that follows */
    pthread_t follows, samples;
    bool has_thread, has_sampler;
    pthread_mutex_t lock; /* guards the rest, and the runs' samples */
    pthread_cond_t changed;
    bool ends;
    struct follower *followers;
};

/* Waits, with the lock, until something has changed or the time is over. */
static void wait_ms(struct watched_runs *w, int64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    int64_t ns = until.tv_nsec + ms * 1000000;
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    pthread_cond_timedwait(&w->changed, &w->lock, &until);
}

/* ---- logs ---- */

static void append_event(struct buf *out, const struct watched_run *run, const char *json, size_t n)
{
    buf_printf(out, "event: %s\ndata: ", run->name);
    buf_append(out, json, n);
    buf_puts(out, "\n\n");
}

static bool is_step(const char *line, size_t n)
{
    static const char begin[] = "{\"event\":\"step\"";
    return n >= sizeof begin - 1 && memcmp(line, begin, sizeof begin - 1) == 0;
}

/* Appends lines; what is none of the log is left out, such as the end of a line that was torn. */
static void append_lines(struct buf *out, const struct watched_run *run, struct place *p, const char *text,
                         size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t length = (size_t)((const char *)memchr(text + at, '\n', n - at) - (text + at));
        bool leaves = is_step(text + at, length) && p->offset < p->until && p->n_steps++ % p->every != 0;
        if (length > 0 && text[at] == '{' && !leaves) {
            append_event(out, run, text + at, length);
        }
        at += length + 1;
    }
}

/* The log is new to the client, or another file than before. */
static void begin_log(struct buf *out, const struct watched_run *run, struct place *p, const struct stat *is)
{
    static const char event[] = "{\"event\":\"log\"}";
    p->has_begun = true;
    p->inode = is->st_ino;
    p->offset = 0;
    p->until = is->st_size > LONG_LOG_BYTES ? is->st_size : 0;
    p->every = 1 + is->st_size / LONG_LOG_BYTES;
    append_event(out, run, event, sizeof event - 1);
}

/* Appends the lines that a client has not got, up to the limit of a step. */
static void append_news(struct buf *out, struct watched_runs *w, const struct watched_run *run,
                        struct place *p)
{
    struct stat is;
    int fd = open(run->log, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &is) != 0 || !S_ISREG(is.st_mode)) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    if (!p->has_begun || p->inode != is.st_ino || is.st_size < p->offset) {
        begin_log(out, run, p, &is);
    }
    ssize_t n;
    while (out->n < TURN_BYTES && (n = pread(fd, w->block, BLOCK_BYTES, p->offset)) > 0) {
        const char *last = memrchr(w->block, '\n', (size_t)n);
        if (last == NULL && n < BLOCK_BYTES) {
            break; /* a line that is being written */
        }
        size_t whole = last == NULL ? (size_t)n : (size_t)(last + 1 - w->block);
        append_lines(out, run, p, w->block, last == NULL ? 0 : whole);
        p->offset += (int64_t)whole;
    }
    close(fd);
}

/* ---- followers ---- */

static void append_samples(struct buf *out, const struct watched_run *run, struct place *p)
{
    for (; p->n_samples < run->n_samples; p->n_samples++) {
        const char *event = run->samples[p->n_samples];
        append_event(out, run, event, strlen(event));
    }
}

static void send_news(struct watched_runs *w, struct follower *f)
{
    struct buf out = {0};
    for (int i = 0; i < f->n; i++) {
        append_news(&out, w, &w->runs[f->first + i], &f->places[i]);
        append_samples(&out, &w->runs[f->first + i], &f->places[i]);
    }
    if (out.n == 0 && clock_ns() - f->sent_ns > (int64_t)QUIET_MS * 1000000) {
        buf_puts(&out, ":\n\n");
    }
    if (out.n > 0 && !out.failed) {
        http_stream_write(f->call->x, out.data, out.n);
        f->sent_ns = clock_ns();
    }
    buf_fini(&out);
}

static void end_follower(struct follower *f)
{
    call_stream_end(f->call, true);
    free(f->places);
    free(f);
}

static void *follow(void *self)
{
    struct watched_runs *w = self;
    pthread_mutex_lock(&w->lock);
    while (!w->ends) {
        for (struct follower **at = &w->followers; *at != NULL;) {
            struct follower *f = *at;
            if (http_has_left(f->call->x)) {
                *at = f->next;
                end_follower(f);
            } else {
                send_news(w, f);
                at = &f->next;
            }
        }
        wait_ms(w, LOOK_MS);
    }
    for (struct follower *f; (f = w->followers) != NULL;) {
        w->followers = f->next;
        end_follower(f);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

void watched_runs_follow(struct watched_runs *w, int run, struct call *c)
{
    struct follower *f = calloc(1, sizeof *f);
    int n = run < 0 ? w->n : 1;
    struct place *places = calloc((size_t)n, sizeof *places);
    if (f == NULL || places == NULL) {
        free(f);
        free(places);
        call_fail(c, 503, NULL, "out of memory for a stream");
        return;
    }
    *f = (struct follower){
        .call = c, .first = run < 0 ? 0 : run, .n = n, .places = places, .sent_ns = clock_ns()};
    call_stream_begin(c, CALL_EVENTS);
    pthread_mutex_lock(&w->lock);
    bool ends = w->ends;
    if (!ends) {
        f->next = w->followers;
        w->followers = f;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    if (ends) {
        end_follower(f);
    }
}

/* ---- texts ---- */

static bool is_wanted(struct watched_runs *w)
{
    pthread_mutex_lock(&w->lock);
    bool wanted = !w->ends;
    pthread_mutex_unlock(&w->lock);
    return wanted;
}

/* The highest step of the checkpoints in a run's directory; -1: there is none. */
static int64_t newest_step(const char *directory)
{
    struct checkpoint_steps list = {0};
    struct status s = checkpoint_dir_list(&list, directory, "ckpt_");
    int64_t step = failed(s) || list.n == 0 ? -1 : list.steps[0];
    free(list.steps);
    return step;
}

/* The one prompt of a run's text. */
struct sample {
    struct generation g;
    bool is_given;
    struct watched_runs *watched;
};

static struct status next(void *self, bool may_wait, struct generation **g)
{
    struct sample *s = self;
    (void)may_wait;
    *g = s->is_given ? NULL : &s->g;
    s->is_given = true;
    return status_ok();
}

static struct status told(void *self, struct generation *g)
{
    const struct sample *s = self;
    (void)g;
    return is_wanted(s->watched) ? status_ok() : status_error(STATUS_PREEMPTED, "nobody waits for the text");
}

enum { NEW_TOKENS = 64 };

/* Continues the prompt by NEW_TOKENS, or by fewer that fit a short window. */
static struct status continue_prompt(struct buf *text, struct session *of, struct sample *s,
                                     const char *prompt)
{
    struct generate_options o = {.max_new_tokens = 1,
                                 .choice = {.temperature = 0.8, .top_p = 0.95, .repetition_penalty = 1},
                                 .seed = 1};
    const struct generation_source source = {.next = next, .told = told, .self = s};
    TRY(generation_init(&s->g, of, &of->scratch, prompt, strlen(prompt), &o, 1));
    int64_t room = of->max_length - (int64_t)s->g.n_prompt;
    o.max_new_tokens = room < NEW_TOKENS ? room : NEW_TOKENS;
    TRY(generate(of, &source, NULL));
    TRY(s->g.status);
    buf_append(text, buf_text(&s->g.text), s->g.text.n);
    return buf_status(text);
}

/* Opens the checkpoint of this step, appends its continuation of the prompt, and closes it.  The random
 * numbers are the same at each, so that texts differ by the weights alone.  STATUS_USAGE or STATUS_DATA: the
 * checkpoint is no decoder's, or is gone; STATUS_PREEMPTED: the server ends. */
static struct status make_sample(struct buf *text, struct watched_runs *w, const char *directory,
                                 int64_t step)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct session session;
    struct session_options of = w->options.session;
    of.n_prompts = 1;
    of.cache_bytes = 0;
    TRY(checkpoint_path(path, "%s/ckpt_%lld", directory, (long long)step));
    TRY(session_open(&session, path, MODEL_TASK_CAUSAL_LM, &of));
    struct sample s = {.watched = w};
    struct status status = continue_prompt(text, &session, &s, w->options.prompt);
    generation_fini(&s.g);
    session_close(&session);
    return status;
}

static void add_sample(struct watched_runs *w, struct watched_run *run, int64_t step, const struct buf *text)
{
    json_t *event =
        json_pack("{s:s, s:I, s:o, s:o}", "event", "sample", "step", (json_int_t)step, "prompt",
                  json_text(w->options.prompt), "text", answer_json_said(buf_text(text), text->n));
    char *line = event == NULL ? NULL : json_dumps(event, JSON_COMPACT);
    pthread_mutex_lock(&w->lock);
    char **grown = realloc(run->samples, (size_t)(run->n_samples + 1) * sizeof *grown);
    if (grown != NULL) {
        run->samples = grown;
    }
    if (grown != NULL && line != NULL) {
        grown[run->n_samples++] = line;
        line = NULL;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    free(line);
    json_decref(event);
}

/* A checkpoint that cannot be read, or that is no decoder's, has no text; the next one is tried again. */
static void sample(struct watched_runs *w, struct watched_run *run)
{
    int64_t step = newest_step(run->directory);
    if (step <= run->last_step) {
        return;
    }
    struct buf text = {0};
    bool is_first = run->last_step < 0;
    run->last_step = step;
    struct status s = make_sample(&text, w, run->directory, step);
    if (!failed(s)) {
        add_sample(w, run, step, &text);
    } else if (s.code != STATUS_PREEMPTED && is_first) {
        log_info("%s has no text of step %lld: %s", run->name, (long long)step, s.message);
    }
    buf_fini(&text);
}

static void *make_samples(void *self)
{
    struct watched_runs *w = self;
    while (is_wanted(w)) {
        for (int r = 0; r < w->n && is_wanted(w); r++) {
            sample(w, &w->runs[r]);
        }
        pthread_mutex_lock(&w->lock);
        if (!w->ends) {
            wait_ms(w, SAMPLE_MS);
        }
        pthread_mutex_unlock(&w->lock);
    }
    return NULL;
}

/* ---- all ---- */

static struct status open_run(struct watched_runs *w, const struct served_source *source)
{
    struct watched_run *run = &w->runs[w->n++];
    *run = (struct watched_run){
        .name = served_source_name(source), .directory = strdup(source->path), .last_step = -1};
    if (asprintf(&run->log, "%s/log.jsonl", source->path) < 0) {
        run->log = NULL;
    }
    FAIL_IF(run->name == NULL || run->directory == NULL || run->log == NULL, STATUS_MEMORY,
            "out of memory for a run");
    FAIL_IF(!file_is_directory(source->path), STATUS_USAGE,
            "--watch %.200s is no directory: give the output directory of a run", source->path);
    for (const char *p = run->name; *p != '\0'; p++) {
        FAIL_IF((unsigned char)*p < ' ' || *p == '/', STATUS_USAGE,
                "--watch %.200s has no name: give it one, --watch NAME=DIR", source->path);
    }
    int before = watched_runs_find(w, run->name);
    return before == w->n - 1
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "%s and %s are both watched as %s: give one of them another name, "
                              "--watch NAME=DIR",
                              w->runs[before].directory, source->path, run->name);
}

static struct status open_runs(struct watched_runs *w)
{
    w->runs = calloc((size_t)w->options.n_runs + 1, sizeof *w->runs);
    w->block = malloc(BLOCK_BYTES);
    FAIL_IF(w->runs == NULL || w->block == NULL, STATUS_MEMORY, "out of memory for %d runs",
            w->options.n_runs);
    for (int i = 0; i < w->options.n_runs; i++) {
        TRY(open_run(w, &w->options.runs[i]));
    }
    if (w->n == 0) {
        return status_ok();
    }
    w->has_thread = pthread_create(&w->follows, NULL, follow, w) == 0;
    w->has_sampler = w->options.prompt[0] != '\0' && pthread_create(&w->samples, NULL, make_samples, w) == 0;
    return w->has_thread ? status_ok() : status_error(STATUS_MEMORY, "out of memory for a thread");
}

struct status watched_runs_create(struct watched_runs **w, const struct watch_options *o)
{
    *w = calloc(1, sizeof **w);
    FAIL_IF(*w == NULL, STATUS_MEMORY, "out of memory for %d runs", o->n_runs);
    (*w)->options = *o;
    pthread_mutex_init(&(*w)->lock, NULL);
    pthread_cond_init(&(*w)->changed, NULL);
    struct status s = open_runs(*w);
    if (failed(s)) {
        watched_runs_destroy(*w);
        *w = NULL;
    }
    return s;
}

void watched_runs_end(struct watched_runs *w)
{
    pthread_mutex_lock(&w->lock);
    w->ends = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    if (w->has_thread) {
        pthread_join(w->follows, NULL);
    }
    if (w->has_sampler) {
        pthread_join(w->samples, NULL);
    }
    w->has_thread = w->has_sampler = false;
}

void watched_runs_destroy(struct watched_runs *w)
{
    if (w == NULL) {
        return;
    }
    watched_runs_end(w);
    for (int r = 0; r < w->n; r++) {
        struct watched_run *run = &w->runs[r];
        for (int i = 0; i < run->n_samples; i++) {
            free(run->samples[i]);
        }
        free(run->samples);
        free(run->name);
        free(run->directory);
        free(run->log);
    }
    free(w->runs);
    free(w->block);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

json_t *watched_runs_names(const struct watched_runs *w)
{
    json_t *names = json_array();
    for (int i = 0; i < w->n; i++) {
        json_array_append_new(names, json_text(w->runs[i].name));
    }
    return names;
}

int watched_runs_find(const struct watched_runs *w, const char *name)
{
    for (int i = 0; i < w->n; i++) {
        if (strcmp(w->runs[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}
