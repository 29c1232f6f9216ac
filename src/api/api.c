#include "api/api.h"

#include "core/log.h"
#include "serve/answer_kind.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)KILN_USAGE == STATUS_USAGE && (int)KILN_DATA == STATUS_DATA &&
                   (int)KILN_NO_CHECKPOINT == STATUS_NO_CHECKPOINT &&
                   (int)KILN_UNAVAILABLE == STATUS_UNAVAILABLE && (int)KILN_INTERNAL == STATUS_INTERNAL &&
                   (int)KILN_MEMORY == STATUS_MEMORY && (int)KILN_IO == STATUS_IO &&
                   (int)KILN_CANCELLED == STATUS_PREEMPTED && (int)KILN_NUMERIC == STATUS_NUMERIC,
               "public codes are those of core/status.h");

_Static_assert(ATOMIC_BOOL_LOCK_FREE == 2, "kiln_session_cancel is for signal handlers");

const char *kiln_version(void)
{
    return KILN_VERSION;
}

/* Copies a message without the dashes of flags, which for a program are fields and settings: top_k.
 * Commands in backquotes stay as they are. */
static void copy_message(char *to, const char *message)
{
    bool is_command = false;
    for (const char *p = message; *p != '\0'; p++) {
        bool begins = p == message || strchr(" (\"'", p[-1]) != NULL;
        is_command = is_command != (*p == '`');
        if (!is_command && begins && p[0] == '-' && p[1] == '-' && p[2] >= 'a' && p[2] <= 'z') {
            p += 2;
        }
        *to++ = *p;
    }
    *to = '\0';
}

struct kiln_status api_status(struct status s)
{
    struct kiln_status out = {.code = (enum kiln_code)s.code};
    _Static_assert(sizeof out.message == sizeof s.message, "messages are as long as inside");
    if (failed(s)) {
        copy_message(out.message, s.message);
    }
    return out;
}

struct status api_begin(struct kiln_session *s)
{
    FAIL_IF(s == NULL, STATUS_USAGE, "the session is NULL");
    s->session.net.x.status = status_ok(); /* a failed call does not end the session */
    return atomic_load(&s->cancelled) ? status_error(STATUS_PREEMPTED, "the session is cancelled")
                                      : status_ok();
}

/* The row of a task.  A row without a task does not compile, and the compiler warns of a task without one. */
static const struct answer_kind *kind_of(enum kiln_task task)
{
#define KIND(ANSWER, ...)                                                                                    \
    case KILN_##ANSWER: return answer_kind_of(ANSWER_##ANSWER);
    switch (task) {
        ANSWERS_PUBLIC(KIND)
    }
    return NULL;
}

struct status api_begin_task(struct kiln_session *s, enum kiln_task task)
{
    TRY(api_begin(s));
    FAIL_IF(s->task != task, STATUS_USAGE, "a session opened to %s cannot %s", kind_of(s->task)->name,
            kind_of(task)->name);
    return status_ok();
}

struct status api_check_text(const char **text, size_t n, const char *name)
{
    FAIL_IF(*text == NULL && n > 0, STATUS_USAGE, "%s is NULL, but has %zu bytes", name, n);
    *text = *text == NULL ? "" : *text;
    return status_ok();
}

struct status api_take_texts(struct text_bytes **out, const struct kiln_text *texts, size_t n,
                             const char *name)
{
    FAIL_IF(texts == NULL && n > 0, STATUS_USAGE, "%s is NULL, but has %zu", name, n);
    struct text_bytes *inner = n > SIZE_MAX / sizeof *inner - 1 ? NULL : malloc((n + 1) * sizeof *inner);
    FAIL_IF(inner == NULL, STATUS_MEMORY, "out of memory for %zu texts", n);
    struct status s = status_ok();
    for (size_t i = 0; i < n && !failed(s); i++) {
        inner[i] = (struct text_bytes){texts[i].bytes, texts[i].n};
        s = api_check_text(&inner[i].bytes, texts[i].n, "a text");
    }
    if (failed(s)) {
        free(inner);
        return s;
    }
    *out = inner;
    return s;
}

struct status api_check_range(const char *name, int64_t value, int64_t min, int64_t max)
{
    FAIL_IF(value < min || value > max, STATUS_USAGE, "%s is %lld; it must be from %lld to %lld", name,
            (long long)value, (long long)min, (long long)max);
    return status_ok();
}

struct status api_take_options(void *out, size_t known, const void *given)
{
    size_t size;
    if (given == NULL) {
        return status_ok();
    }
    memcpy(&size, given, sizeof size);
    FAIL_IF(size < sizeof size, STATUS_USAGE,
            "the size of the options is %zu: they begin as kiln_..._defaults() makes them", size);
    FAIL_IF(size > known, STATUS_USAGE,
            "the options have %zu bytes, and this libkiln, " KILN_VERSION
            ", knows %zu of them: the program was built with a newer header",
            size, known);
    memcpy(out, given, size);
    return status_ok();
}

void api_init_options(void *out, size_t size, const void *defaults, size_t known)
{
    if (out == NULL || size < sizeof size) {
        return;
    }
    memset(out, 0, size);
    memcpy(out, defaults, size < known ? size : known);
    memcpy(out, &size, sizeof size);
}

void kiln_model_options_init(struct kiln_model_options *options, size_t size)
{
    const struct kiln_model_options defaults = {.device = "auto", .dtype = "fp32"};
    api_init_options(options, size, &defaults, sizeof defaults);
}

static struct status open_model(struct kiln_model **model, const char *path,
                                const struct kiln_model_options *given)
{
    struct kiln_model_options options = kiln_model_defaults();
    struct session_options o;
    TRY(api_take_options(&options, sizeof options, given));
    TRY(session_options_find(&o, options.device == NULL ? "auto" : options.device,
                             options.dtype == NULL ? "fp32" : options.dtype));
    const struct load_watch watch = {options.progress, options.context};
    o.watch = options.progress == NULL ? NULL : &watch;
    struct kiln_model *m = calloc(1, sizeof *m);
    FAIL_IF(m == NULL, STATUS_MEMORY, "out of memory for a model");
    struct status s = options.without_weights ? session_open_files(&m->weights, path)
                                              : session_open_model(&m->weights, path, &o);
    if (failed(s)) {
        free(m);
        return s;
    }
    o.watch = NULL;
    m->options = o;
    m->without_weights = options.without_weights;
    pthread_mutex_init(&m->tokenizing, NULL);
    atomic_init(&m->n_references, 1);
    *model = m;
    return s;
}

struct kiln_status kiln_model_open_on(struct kiln_model **model, const char *path,
                                      const struct kiln_model_options *options)
{
    if (model == NULL) {
        return api_status(status_error(STATUS_USAGE, "model is NULL"));
    }
    *model = NULL;
    if (path == NULL) {
        return api_status(status_error(STATUS_USAGE, "path is NULL"));
    }
    return api_status(open_model(model, path, options));
}

struct kiln_status kiln_model_open(struct kiln_model **model, const char *path)
{
    return kiln_model_open_on(model, path, NULL);
}

void kiln_model_close(struct kiln_model *model)
{
    if (model != NULL && atomic_fetch_sub(&model->n_references, 1) == 1) {
        session_close(&model->weights);
        pthread_mutex_destroy(&model->tokenizing);
        free(model);
    }
}

int64_t kiln_model_width(const struct kiln_model *model)
{
    return model == NULL ? 0 : sentence_model_width(&model->weights.files, model->weights.model->hidden_size);
}

int64_t kiln_model_max_tokens(const struct kiln_model *model)
{
    return model == NULL ? 0 : model->weights.max_length;
}

int32_t kiln_model_vocab_size(const struct kiln_model *model)
{
    return model == NULL ? 0 : model->weights.tokenizer->n;
}

const char *kiln_model_piece(const struct kiln_model *model, int32_t id, size_t *n)
{
    if (n == NULL) {
        return NULL;
    }
    *n = 0;
    return id < 0 || id >= kiln_model_vocab_size(model) ? NULL
                                                        : tokenizer_piece(model->weights.tokenizer, id, n);
}

const char *kiln_model_label(const struct kiln_model *model, int64_t id)
{
    const struct model_labels *labels = model == NULL ? NULL : &model->weights.model->labels;
    return labels == NULL || labels->names == NULL || id < 0 || id >= labels->n
               ? NULL
               : label_names_get(labels->names, id);
}

_Static_assert((int)KILN_TOKEN_PAD == SPECIAL_PAD && (int)KILN_TOKEN_UNKNOWN == SPECIAL_UNKNOWN &&
                   (int)KILN_TOKEN_CLS == SPECIAL_CLASS && (int)KILN_TOKEN_SEP == SPECIAL_SEPARATOR &&
                   (int)KILN_TOKEN_MASK == SPECIAL_MASK && (int)KILN_TOKEN_BEGIN == SPECIAL_BEGIN &&
                   (int)KILN_TOKEN_END == SPECIAL_END && (int)KILN_TOKEN_END + 1 == SPECIAL_COUNT,
               "public special tokens are those of text/tokenizer.h");

int32_t kiln_model_special(const struct kiln_model *model, enum kiln_special which)
{
    bool is_known = model != NULL && (unsigned)which < SPECIAL_COUNT;
    return is_known ? model->weights.tokenizer->special[which] : -1;
}

unsigned kiln_model_tasks(const struct kiln_model *model)
{
    unsigned tasks = 0;
    for (int t = 0; model != NULL && t <= ANSWER_LAST_PUBLIC; t++) {
        bool fits = answer_kind_fits(model->weights.dir.task, kind_of((enum kiln_task)t)->task);
        bool is_refused = t == KILN_EMBED && failed(model->weights.sentence_status);
        tasks |= fits && !is_refused ? 1U << t : 0;
    }
    return tasks;
}

_Static_assert((int)KILN_LOG_WARNING == LOG_WARNING && (int)KILN_LOG_INFO == LOG_INFO,
               "public levels are those of core/log.h");

/* The caller's log. */
static struct {
    void (*write)(void *context, enum kiln_log_level level, const char *line);
    void *context;
    enum kiln_log_level most;
} caller_log;

static void write_to_caller(void *self, enum log_level level, const char *line)
{
    (void)self;
    caller_log.write(caller_log.context, (enum kiln_log_level)level, line);
}

void api_restore_log(void)
{
    bool is_wanted = caller_log.write != NULL;
    log_set_level(is_wanted ? (enum log_level)caller_log.most : LOG_QUIET);
    log_set_sink(is_wanted ? &(struct log_sink){.line = write_to_caller} : NULL);
}

void kiln_log_to(void (*write)(void *context, enum kiln_log_level level, const char *line), void *context,
                 enum kiln_log_level most)
{
    bool is_free = !api_run_goes_on();
    if (is_free) {
        log_set_sink(NULL);
    }
    caller_log.write = write;
    caller_log.context = context;
    caller_log.most = most;
    if (is_free) {
        api_restore_log();
    }
}

static bool is_cancelled(const void *context)
{
    const struct kiln_session *s = context;
    return atomic_load(&s->cancelled);
}

/* A session's part of its plan is what it does not share with the model, as the server counts it. */
static struct status plan_memory(struct kiln_memory *memory, const struct kiln_model *model,
                                 enum kiln_task task, const struct kiln_generator_options *given)
{
    struct network_plan weights, session;
    struct session_options o = model->options;
    TRY(api_check_range("task", (int64_t)task, 0, ANSWER_LAST_PUBLIC));
    if (given != NULL) {
        struct kiln_generator_options of_texts;
        TRY(api_take_generator_options(&of_texts, given));
        o.n_prompts = of_texts.n_texts;
        o.cache_bytes = of_texts.cache_bytes;
    }
    TRY(session_plan_shared(&session, &model->weights, kind_of(task)->task, &o));
    TRY(session_plan_model(&weights, &model->weights, &o));
    *memory = (struct kiln_memory){.model_bytes = weights.total_bytes,
                                   .session_bytes =
                                       session.total_bytes - session.weight_bytes - session.library_bytes};
    return status_ok();
}

struct kiln_status kiln_model_memory(const struct kiln_model *model, struct kiln_memory *memory,
                                     enum kiln_task task, const struct kiln_generator_options *options)
{
    if (memory == NULL) {
        return api_status(status_error(STATUS_USAGE, "memory is NULL"));
    }
    *memory = (struct kiln_memory){0};
    return api_status(model == NULL ? status_error(STATUS_USAGE, "model is NULL")
                                    : plan_memory(memory, model, task, options));
}

struct status api_open_session(struct kiln_session **session, struct kiln_model *model, enum kiln_task task,
                               const struct session_options *o)
{
    TRY(api_check_range("task", (int64_t)task, 0, ANSWER_LAST_PUBLIC));
    FAIL_IF(model->without_weights, STATUS_USAGE,
            "the model was opened without its weights, which a session needs");
    struct kiln_session *s = calloc(1, sizeof *s);
    FAIL_IF(s == NULL, STATUS_MEMORY, "out of memory for a session");
    struct status status = session_open_shared(&s->session, &model->weights, kind_of(task)->task, o);
    if (failed(status)) {
        free(s);
        return status;
    }
    s->task = task;
    s->model = model;
    s->session.net.x.interrupted = is_cancelled;
    s->session.net.x.interrupt_context = s;
    atomic_init(&s->cancelled, false);
    atomic_fetch_add(&model->n_references, 1);
    *session = s;
    return status_ok();
}

struct kiln_status kiln_session_open(struct kiln_session **session, struct kiln_model *model,
                                     enum kiln_task task)
{
    if (session == NULL) {
        return api_status(status_error(STATUS_USAGE, "session is NULL"));
    }
    *session = NULL;
    if (model == NULL) {
        return api_status(status_error(STATUS_USAGE, "model is NULL"));
    }
    return api_status(api_open_session(session, model, task, &(struct session_options){0}));
}

void kiln_session_close(struct kiln_session *session)
{
    if (session != NULL) {
        session_close(&session->session);
        kiln_model_close(session->model);
        free(session);
    }
}

void kiln_session_set_threads(struct kiln_session *session, int n_threads)
{
    if (session != NULL) {
        session->session.net.x.max_threads = n_threads > 0 ? n_threads : 0;
    }
}

void kiln_session_cancel(struct kiln_session *session)
{
    if (session != NULL) {
        atomic_store(&session->cancelled, true);
    }
}

void kiln_session_resume(struct kiln_session *session)
{
    if (session != NULL) {
        atomic_store(&session->cancelled, false);
    }
}
