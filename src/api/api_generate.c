/* api_generate: kiln_generate of include/kiln/kiln.h. */
#include "api/api.h"
#include "serve/generate.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)KILN_AT_END == GENERATION_AT_END && (int)KILN_AT_STOP == GENERATION_AT_STOP &&
                   (int)KILN_AT_LENGTH == GENERATION_AT_LENGTH &&
                   (int)KILN_AT_CANCEL == GENERATION_CANCELLED && (int)KILN_AT_FAILURE == GENERATION_FAILED,
               "public ends are those of serve/generate.h");

void kiln_generate_options_init(struct kiln_generate_options *options, size_t size)
{
    const struct kiln_generate_options defaults = {
        .max_new_tokens = 64, .temperature = 1, .top_k = 50, .top_p = 1, .repetition_penalty = 1, .seed = 42};
    api_init_options(options, size, &defaults, sizeof defaults);
}

/* The texts of a call. */
struct call {
    struct session *session;
    struct kiln_generate_options options;
    struct generate_options inner;
    const struct text_bytes *prompts;
    struct generation *generations; /* [n] */
    size_t *n_told;                 /* [n] bytes of each that the caller has */
    size_t n, n_given;
};

static struct status next(void *self, bool may_wait, struct generation **next)
{
    struct call *c = self;
    (void)may_wait;
    *next = c->n_given < c->n ? &c->generations[c->n_given++] : NULL;
    return status_ok();
}

static struct status told(void *self, struct generation *g)
{
    struct call *c = self;
    size_t i = (size_t)(g - c->generations), from = c->n_told[i];
    TRY(g->status); /* all texts of a call, or none */
    c->n_told[i] = g->n_settled;
    if (c->options.told == NULL || c->options.told(c->options.context, i, g->ids.ids[g->ids.n - 1],
                                                   buf_text(&g->text) + from, g->n_settled - from)) {
        return status_ok();
    }
    return status_error(STATUS_PREEMPTED, "the caller has stopped the texts");
}

static struct status check_real(const char *name, double value, double min, double max)
{
    return value >= min && value <= max
               ? status_ok()
               : status_error(STATUS_USAGE, "%s is %g; it must be from %g to %g", name, value, min, max);
}

static struct status check_stops(const struct kiln_generate_options *o)
{
    FAIL_IF(o->stops == NULL && o->n_stops > 0, STATUS_USAGE, "stops is NULL, but has %zu", o->n_stops);
    for (size_t i = 0; i < o->n_stops; i++) {
        FAIL_IF(o->stops[i] == NULL || o->stops[i][0] == '\0', STATUS_USAGE, "stop %zu is %s", i,
                o->stops[i] == NULL ? "NULL" : "empty");
    }
    return status_ok();
}

struct status api_take_generate_options(struct generate_options *inner, const struct kiln_generate_options *o)
{
    TRY(api_check_range("max_new_tokens", o->max_new_tokens, 1, 1 << 20));
    TRY(api_check_range("top_k", o->top_k, 0, INT32_MAX));
    TRY(check_real("temperature", o->temperature, 0, 100));
    TRY(check_real("top_p", o->top_p, 0, 1));
    TRY(check_real("min_p", o->min_p, 0, 1));
    TRY(check_real("presence_penalty", o->presence_penalty, -100, 100));
    TRY(check_real("frequency_penalty", o->frequency_penalty, -100, 100));
    TRY(api_check_range("n_candidates", o->n_candidates, 0, GENERATE_ALTERNATIVES));
    TRY(check_real("repetition_penalty", o->repetition_penalty, 0.01, 100));
    TRY(check_stops(o));
    *inner = (struct generate_options){.max_new_tokens = o->max_new_tokens,
                                       .choice = {.temperature = o->temperature,
                                                  .top_k = o->top_k,
                                                  .top_p = o->top_p,
                                                  .repetition_penalty = o->repetition_penalty,
                                                  .min_p = o->min_p,
                                                  .presence_penalty = o->presence_penalty,
                                                  .frequency_penalty = o->frequency_penalty},
                                       .ignore_eos = o->ignore_end,
                                       .context_shift = o->context_shift,
                                       .rates = o->log_probabilities || o->n_candidates > 0,
                                       .n_alternatives = (int)o->n_candidates,
                                       .seed = o->seed,
                                       .stops = o->stops,
                                       .n_stops = (int64_t)o->n_stops};
    return status_ok();
}

/* All prompts are looked at before the first is continued. */
static struct status run(struct call *c)
{
    c->generations = calloc(c->n + 1, sizeof *c->generations);
    c->n_told = calloc(c->n + 1, sizeof *c->n_told);
    FAIL_IF(c->generations == NULL || c->n_told == NULL, STATUS_MEMORY, "out of memory for %zu prompts",
            c->n);
    for (size_t i = 0; i < c->n; i++) {
        TRY(generation_init(&c->generations[i], c->session, &c->session->scratch, c->prompts[i].bytes,
                            c->prompts[i].n, &c->inner, (int64_t)i + 1));
    }
    const struct generation_source source = {.next = next, .told = told, .self = c};
    return packer_explain(&c->session->packer, generate(c->session, &source, NULL));
}

void api_take_probabilities(double *own, struct kiln_candidate *candidates,
                            const struct token_probability *row, int64_t n)
{
    if (own != NULL) {
        *own = row[0].log_p;
    }
    for (int64_t k = 0; k < n; k++) {
        candidates[k] = (struct kiln_candidate){row[1 + k].id, row[1 + k].log_p};
    }
}

static void take_rates(struct kiln_continuation *t, double *log_ps, struct kiln_candidate *candidates,
                       const struct generation *g)
{
    int64_t k = g->options->n_alternatives;
    for (size_t i = 0; i < t->n_ids; i++) {
        api_take_probabilities(&log_ps[i], &candidates[(int64_t)i * k], &g->rated[(int64_t)i * (1 + k)], k);
    }
    t->log_probabilities = log_ps;
    t->candidates = k > 0 ? candidates : NULL;
}

/* One block: the texts, the probabilities, the candidates, the ids, the bytes. */
static struct status take_texts(struct kiln_continuations *out, const struct call *c)
{
    bool rates = c->inner.rates;
    size_t n_ids = 0, n_bytes = 0, n_candidates = (size_t)c->inner.n_alternatives;
    for (size_t i = 0; i < c->n; i++) {
        n_ids += c->generations[i].ids.n - c->generations[i].n_prompt;
        n_bytes += c->generations[i].text.n + 1;
    }
    size_t n_rated = rates ? n_ids : 0;
    struct kiln_continuation *texts = malloc(
        c->n * sizeof *texts + n_rated * (sizeof(double) + n_candidates * sizeof(struct kiln_candidate)) +
        n_ids * sizeof(int32_t) + n_bytes + 1);
    FAIL_IF(texts == NULL, STATUS_MEMORY, "out of memory for %zu texts", c->n);
    double *log_ps = (double *)(texts + c->n);
    struct kiln_candidate *candidates = (struct kiln_candidate *)(log_ps + n_rated);
    int32_t *ids = (int32_t *)(candidates + n_rated * n_candidates);
    char *bytes = (char *)(ids + n_ids);
    for (size_t i = 0; i < c->n; i++) {
        const struct generation *g = &c->generations[i];
        size_t n_new = g->ids.n - g->n_prompt;
        memcpy(ids, g->ids.ids + g->n_prompt, n_new * sizeof *ids);
        memcpy(bytes, buf_text(&g->text), g->text.n);
        bytes[g->text.n] = '\0';
        texts[i] = (struct kiln_continuation){.text = bytes,
                                              .n = g->text.n,
                                              .ids = ids,
                                              .n_ids = n_new,
                                              .n_prompt_ids = g->n_prompt,
                                              .end = (enum kiln_end)g->end};
        if (rates) {
            take_rates(&texts[i], log_ps, candidates, g);
            log_ps += n_new;
            candidates += n_new * n_candidates;
        }
        ids += n_new;
        bytes += g->text.n + 1;
    }
    *out = (struct kiln_continuations){.texts = texts, .n = c->n};
    return status_ok();
}

static struct status generate_all(struct kiln_session *session, struct kiln_continuations *out,
                                  const struct kiln_text *prompts, size_t n_prompts,
                                  const struct kiln_generate_options *options)
{
    struct text_bytes *inner;
    struct call c = {.options = kiln_generate_defaults(), .n = n_prompts};
    TRY(api_begin_task(session, KILN_GENERATE));
    TRY(api_take_options(&c.options, sizeof c.options, options));
    TRY(api_take_generate_options(&c.inner, &c.options));
    TRY(api_take_texts(&inner, prompts, n_prompts, "prompts"));
    c.session = &session->session;
    c.prompts = inner;
    struct status s = run(&c);
    s = failed(s) ? s : take_texts(out, &c);
    for (size_t i = 0; c.generations != NULL && i < n_prompts; i++) {
        generation_fini(&c.generations[i]);
    }
    free(c.generations);
    free(c.n_told);
    free(inner);
    return s;
}

struct kiln_status kiln_generate(struct kiln_session *session, struct kiln_continuations *continuations,
                                 const struct kiln_text *prompts, size_t n_prompts,
                                 const struct kiln_generate_options *options)
{
    if (continuations == NULL) {
        return api_status(status_error(STATUS_USAGE, "continuations is NULL"));
    }
    *continuations = (struct kiln_continuations){0};
    return api_status(generate_all(session, continuations, prompts, n_prompts, options));
}

void kiln_continuations_free(struct kiln_continuations *continuations)
{
    if (continuations != NULL) {
        free(continuations->texts);
        *continuations = (struct kiln_continuations){0};
    }
}
