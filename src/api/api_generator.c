/* api_generator: the generator of include/kiln/kiln.h: texts that come from any thread, and serve/generate's
 * steps of them in one. */
#include "api/api.h"
#include "core/array.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXTS = 4096 };

struct text {
    struct generation generation;
    struct generate_options options;
    char **stops; /* [options.n_stops], the caller's */
    uint64_t number;
    size_t n_told; /* bytes that the caller has */
    bool has_begun, is_cancelled;
    struct text *next;
};

/* What a step has added to a text. */
struct growth {
    struct kiln_grown told;                 /* without its pointers */
    size_t bytes, candidates, n_candidates; /* offsets in what the step has, and a count */
    struct status status;
};

struct kiln_generator {
    struct kiln_session *session;
    struct tokenizer_scratch scratch; /* of those who add */
    struct generator inner;
    pthread_mutex_t stepping; /* one thread at a time */

    struct growth *growths; /* [n_growths] of the running step */
    size_t n_growths, growths_capacity;
    struct kiln_candidate *candidates; /* [n_candidates] */
    size_t n_candidates, candidates_capacity;
    struct buf bytes;

    pthread_mutex_t lock; /* guards the rest, and the scratch */
    struct text *texts;   /* those that have not ended, the oldest first */
    uint64_t n_added;
};

void kiln_generator_options_init(struct kiln_generator_options *options, size_t size)
{
    const struct kiln_generator_options defaults = {.n_texts = SESSION_PROMPTS};
    api_init_options(options, size, &defaults, sizeof defaults);
}

static void text_free(struct text *t)
{
    for (int64_t i = 0; t->stops != NULL && i < t->options.n_stops; i++) {
        free(t->stops[i]);
    }
    free(t->stops);
    generation_fini(&t->generation);
    free(t);
}

/* ---- what a step says ---- */

static struct status note_candidates(struct kiln_generator *g, struct growth *out, const struct generation *t)
{
    size_t k = (size_t)t->options->n_alternatives;
    const struct token_probability *row = &t->rated[(t->n_rated - 1) * (1 + k)];
    FAIL_IF(!ARRAY_RESERVE(g->candidates, g->candidates_capacity, g->n_candidates + k + 1), STATUS_MEMORY,
            "out of memory for the candidates of a token");
    api_take_probabilities(&out->told.log_probability, g->candidates + g->n_candidates, row, (int64_t)k);
    out->candidates = g->n_candidates;
    out->n_candidates = k;
    g->n_candidates += k;
    return status_ok();
}

/* Notes what is new of a text. */
static struct status note(struct kiln_generator *g, struct text *t, enum generation_end end)
{
    const struct generation *inner = &t->generation;
    bool has_token = end < GENERATION_CANCELLED;
    FAIL_IF(!ARRAY_RESERVE(g->growths, g->growths_capacity, g->n_growths + 1), STATUS_MEMORY,
            "out of memory for what a step says");
    struct growth *new = &g->growths[g->n_growths++];
    *new = (struct growth){.told = {.text = t->number,
                                    .id = has_token ? inner->ids.ids[inner->ids.n - 1] : -1,
                                    .n = inner->n_settled - t->n_told,
                                    .end = (enum kiln_end)end},
                           .bytes = g->bytes.n,
                           .status = end == GENERATION_FAILED ? inner->status : status_ok()};
    buf_append(&g->bytes, buf_text(&inner->text) + t->n_told, new->told.n);
    buf_putc(&g->bytes, '\0');
    t->n_told = inner->n_settled;
    if (has_token && inner->n_rated > 0) {
        TRY(note_candidates(g, new, inner));
    }
    return buf_status(&g->bytes);
}

/* One block: the texts, the candidates, the bytes, the messages. */
static struct status take_step(struct kiln_generator *g, struct kiln_step *out)
{
    size_t n_messages = 0;
    for (size_t i = 0; i < g->n_growths; i++) {
        n_messages += strlen(g->growths[i].status.message) + 1;
    }
    struct kiln_grown *texts = malloc(g->n_growths * sizeof *texts + g->n_candidates * sizeof *g->candidates +
                                      g->bytes.n + n_messages + 1);
    FAIL_IF(texts == NULL, STATUS_MEMORY, "out of memory for what a step says");
    struct kiln_candidate *candidates = (struct kiln_candidate *)(texts + g->n_growths);
    char *bytes = (char *)(candidates + g->n_candidates), *message = bytes + g->bytes.n;
    memcpy(bytes, buf_text(&g->bytes), g->bytes.n);
    for (size_t i = 0; i < g->n_candidates; i++) {
        candidates[i] = g->candidates[i];
    }
    for (size_t i = 0; i < g->n_growths; i++) {
        const struct growth *new = &g->growths[i];
        struct kiln_status s = api_status(new->status);
        size_t n = strlen(s.message) + 1;
        texts[i] = new->told;
        texts[i].bytes = bytes + new->bytes;
        texts[i].candidates = new->n_candidates > 0 ? candidates + new->candidates : NULL;
        texts[i].code = s.code;
        texts[i].message = memcpy(message, s.message, n);
        message += n;
    }
    out->texts = texts;
    out->n = g->n_growths;
    return status_ok();
}

/* ---- steps ---- */

static struct status next(void *self, bool may_wait, struct generation **next)
{
    struct kiln_generator *g = self;
    (void)may_wait;
    *next = NULL;
    pthread_mutex_lock(&g->lock);
    for (struct text *t = g->texts; t != NULL && *next == NULL; t = t->next) {
        if (!t->has_begun) {
            t->has_begun = true;
            *next = &t->generation;
        }
    }
    pthread_mutex_unlock(&g->lock);
    return status_ok();
}

static struct status told(void *self, struct generation *inner)
{
    return note(self, inner->owner, inner->end);
}

static struct status begin(struct kiln_generator *g)
{
    const struct generation_source source = {.next = next, .told = told, .self = g};
    generator_init(&g->inner, &g->session->session, &source);
    return status_ok();
}

/* Tells the generator of cancelled texts; those that it does not know have ended. */
static struct status cancel_texts(struct kiln_generator *g)
{
    struct status s = status_ok();
    pthread_mutex_lock(&g->lock);
    for (struct text *t = g->texts; t != NULL && !failed(s); t = t->next) {
        if (t->is_cancelled && t->has_begun) {
            t->generation.cancelled = true;
        } else if (t->is_cancelled) {
            t->generation.end = GENERATION_CANCELLED;
            s = note(g, t, GENERATION_CANCELLED);
        }
    }
    pthread_mutex_unlock(&g->lock);
    return s;
}

/* Frees the texts that have ended, or all; the number of those that are left. */
static size_t forget(struct kiln_generator *g, bool all)
{
    size_t n = 0;
    pthread_mutex_lock(&g->lock);
    for (struct text **at = &g->texts; *at != NULL;) {
        struct text *t = *at;
        if (all || t->generation.end != GENERATION_GOES_ON) {
            *at = t->next;
            text_free(t);
        } else {
            at = &t->next;
            n++;
        }
    }
    pthread_mutex_unlock(&g->lock);
    return n;
}

static struct status compute(struct kiln_generator *g, struct kiln_step *out)
{
    bool more;
    g->n_growths = g->n_candidates = 0;
    buf_clear(&g->bytes);
    TRY(api_begin(g->session));
    TRY(cancel_texts(g));
    TRY(generator_step(&g->inner, false, &more));
    return take_step(g, out);
}

struct kiln_status kiln_generator_step(struct kiln_generator *generator, struct kiln_step *step)
{
    if (step == NULL) {
        return api_status(status_error(STATUS_USAGE, "step is NULL"));
    }
    *step = (struct kiln_step){0};
    if (generator == NULL) {
        return api_status(status_error(STATUS_USAGE, "the generator is NULL"));
    }
    pthread_mutex_lock(&generator->stepping);
    struct status s = compute(generator, step);
    if (failed(s)) {
        s = packer_explain(&generator->session->session.packer, s);
        generator_fini(&generator->inner);
        struct status again = begin(generator);
        s = failed(again) ? again : s;
    }
    step->n_left = forget(generator, failed(s));
    pthread_mutex_unlock(&generator->stepping);
    return api_status(s);
}

void kiln_step_free(struct kiln_step *step)
{
    if (step != NULL) {
        free(step->texts);
        *step = (struct kiln_step){0};
    }
}

/* ---- texts ---- */

static struct status copy_stops(struct text *t)
{
    size_t n = (size_t)t->options.n_stops;
    t->stops = calloc(n + 1, sizeof *t->stops);
    bool has_room = t->stops != NULL;
    for (size_t i = 0; i < n && has_room; i++) {
        t->stops[i] = strdup(t->options.stops[i]);
        has_room = t->stops[i] != NULL;
    }
    t->options.stops = (const char *const *)t->stops;
    return has_room ? status_ok() : status_error(STATUS_MEMORY, "out of memory for a text");
}

static struct status make_text(struct kiln_generator *g, struct text *t, const char *prompt, size_t n,
                               const struct kiln_generate_options *given)
{
    struct kiln_generate_options options = kiln_generate_defaults();
    TRY(api_take_options(&options, sizeof options, given));
    TRY(api_take_generate_options(&t->options, &options));
    TRY(api_check_text(&prompt, n, "prompt"));
    TRY(copy_stops(t));
    return generation_init(&t->generation, &g->session->session, &g->scratch, prompt, n, &t->options, 1);
}

/* With the lock. */
static struct status add(struct kiln_generator *g, uint64_t *number, const char *prompt, size_t n,
                         const struct kiln_generate_options *options)
{
    struct text **end = &g->texts, *t = calloc(1, sizeof *t);
    FAIL_IF(t == NULL, STATUS_MEMORY, "out of memory for a text");
    struct status s = make_text(g, t, prompt, n, options);
    if (failed(s)) {
        text_free(t);
        return s;
    }
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = t;
    t->generation.owner = t;
    *number = t->number = ++g->n_added;
    return s;
}

struct kiln_status kiln_generator_add(struct kiln_generator *generator, uint64_t *text, const char *prompt,
                                      size_t n, const struct kiln_generate_options *options)
{
    if (generator == NULL || text == NULL) {
        return api_status(
            status_error(STATUS_USAGE, "%s is NULL", generator == NULL ? "the generator" : "text"));
    }
    *text = 0;
    pthread_mutex_lock(&generator->lock);
    struct status s = add(generator, text, prompt, n, options);
    pthread_mutex_unlock(&generator->lock);
    return api_status(s);
}

void kiln_generator_cancel(struct kiln_generator *generator, uint64_t text)
{
    if (generator == NULL) {
        return;
    }
    pthread_mutex_lock(&generator->lock);
    for (struct text *t = generator->texts; t != NULL; t = t->next) {
        t->is_cancelled = t->is_cancelled || t->number == text;
    }
    pthread_mutex_unlock(&generator->lock);
    if (text == 0) {
        kiln_session_cancel(generator->session);
    }
}

/* ---- a generator ---- */

struct status api_take_generator_options(struct kiln_generator_options *o,
                                         const struct kiln_generator_options *given)
{
    *o = kiln_generator_defaults();
    TRY(api_take_options(o, sizeof *o, given));
    TRY(api_check_range("n_texts", o->n_texts, 1, MOST_TEXTS));
    return api_check_range("n_threads", o->n_threads, 0, INT_MAX);
}

static struct status open_generator(struct kiln_generator *g, struct kiln_model *model,
                                    const struct kiln_generator_options *given)
{
    struct kiln_generator_options o;
    TRY(api_take_generator_options(&o, given));
    TRY(api_open_session(&g->session, model, KILN_GENERATE,
                         &(struct session_options){.n_prompts = o.n_texts, .cache_bytes = o.cache_bytes}));
    kiln_session_set_threads(g->session, (int)o.n_threads);
    TRY(tokenizer_scratch_init(&g->scratch, g->session->session.tokenizer));
    return begin(g);
}

struct kiln_status kiln_generator_open(struct kiln_generator **generator, struct kiln_model *model,
                                       const struct kiln_generator_options *options)
{
    if (generator == NULL) {
        return api_status(status_error(STATUS_USAGE, "generator is NULL"));
    }
    *generator = NULL;
    if (model == NULL) {
        return api_status(status_error(STATUS_USAGE, "model is NULL"));
    }
    struct kiln_generator *g = calloc(1, sizeof *g);
    if (g == NULL) {
        return api_status(status_error(STATUS_MEMORY, "out of memory for a generator"));
    }
    pthread_mutex_init(&g->lock, NULL);
    pthread_mutex_init(&g->stepping, NULL);
    struct status s = open_generator(g, model, options);
    if (failed(s)) {
        kiln_generator_close(g);
    } else {
        *generator = g;
    }
    return api_status(s);
}

void kiln_generator_close(struct kiln_generator *generator)
{
    if (generator == NULL) {
        return;
    }
    kiln_session_cancel(generator->session); /* ends a step of another thread */
    pthread_mutex_lock(&generator->stepping);
    generator_fini(&generator->inner);
    forget(generator, true);
    pthread_mutex_unlock(&generator->stepping);
    tokenizer_scratch_fini(&generator->scratch);
    kiln_session_close(generator->session);
    free(generator->growths);
    free(generator->candidates);
    buf_fini(&generator->bytes);
    pthread_mutex_destroy(&generator->stepping);
    pthread_mutex_destroy(&generator->lock);
    free(generator);
}
