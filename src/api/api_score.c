/* api_score: kiln_score of include/kiln/kiln.h: prompts whose own tokens are rated, and that are continued by
 * one token at most. */
#include "api/api.h"

#include <stdlib.h>
#include <string.h>

void kiln_score_options_init(struct kiln_score_options *options, size_t size)
{
    api_init_options(options, size, &(struct kiln_score_options){0}, sizeof *options);
}

/* The texts of a call. */
struct scoring {
    struct session *session;
    struct kiln_score_options options;
    struct generate_options inner;
    const struct text_bytes *texts;
    struct generation *generations; /* [n] */
    size_t n, n_given;
};

/* A single token is rated by nothing. */
static bool is_asked(const struct generation *g)
{
    return g->n_prompt > 1 || g->options->max_new_tokens > 0;
}

static struct status next(void *self, bool may_wait, struct generation **next)
{
    struct scoring *c = self;
    (void)may_wait;
    while (c->n_given < c->n && !is_asked(&c->generations[c->n_given])) {
        c->n_given++;
    }
    *next = c->n_given < c->n ? &c->generations[c->n_given++] : NULL;
    return status_ok();
}

static struct status told(void *self, struct generation *g)
{
    (void)self;
    return g->status;
}

/* The tokens of a text, after the one that begins it. */
static struct status encode(struct id_list *ids, const struct scoring *c, size_t i)
{
    struct session *s = c->session;
    struct id_list own = {0};
    int32_t begin = s->tokenizer->special[SPECIAL_BEGIN];
    FAIL_IF(c->options.begin && begin < 0, STATUS_DATA, "the model has no token that begins a text");
    struct status status = tokenizer_encode_document(&s->scratch, &own, c->texts[i].bytes, c->texts[i].n);
    bool has_room = !c->options.begin || (own.n > 0 && own.ids[0] == begin) || id_list_append(ids, begin);
    for (size_t k = 0; k < own.n && has_room; k++) {
        has_room = id_list_append(ids, own.ids[k]);
    }
    id_list_fini(&own);
    return !failed(status) && !has_room ? status_error(STATUS_MEMORY, "out of memory for a text") : status;
}

static struct status make(struct scoring *c, size_t i)
{
    struct id_list ids = {0};
    struct status s = encode(&ids, c, i);
    int64_t most = c->session->max_length - c->inner.max_new_tokens;
    if (!failed(s) && (ids.n == 0 || (int64_t)ids.n > most)) {
        s = status_error(STATUS_DATA, "text %zu has %zu tokens; the model reads 1 to %lld%s", i, ids.n,
                         (long long)most, c->options.next ? ", and one after them" : "");
    }
    s = failed(s)
            ? s
            : generation_init_ids(&c->generations[i], c->session, ids.ids, ids.n, &c->inner, (int64_t)i + 1);
    id_list_fini(&ids);
    return s;
}

static struct status run(struct scoring *c)
{
    c->generations = calloc(c->n + 1, sizeof *c->generations);
    FAIL_IF(c->generations == NULL, STATUS_MEMORY, "out of memory for %zu texts", c->n);
    for (size_t i = 0; i < c->n; i++) {
        TRY(make(c, i));
    }
    const struct generation_source source = {.next = next, .told = told, .self = c};
    return packer_explain(&c->session->packer, generate(c->session, &source, NULL));
}

static void take_text(struct kiln_text_score *t, double *log_ps, struct kiln_candidate *candidates,
                      const struct generation *g)
{
    int64_t k = g->options->n_alternatives;
    for (size_t i = 0; i < g->n_rated; i++) {
        bool is_own = i + 1 < t->n;
        api_take_probabilities(is_own ? &log_ps[i] : NULL, &candidates[(int64_t)i * k],
                               &g->rated[(int64_t)i * (1 + k)], k);
        t->log_probability += is_own ? log_ps[i] : 0;
    }
    t->log_probabilities = log_ps;
    t->candidates = k > 0 ? candidates : NULL;
}

/* One block: the texts, the probabilities, the candidates, the ids. */
static struct status take_texts(struct kiln_scores *out, const struct scoring *c)
{
    size_t n = 0, k = (size_t)c->inner.n_alternatives;
    for (size_t i = 0; i < c->n; i++) {
        n += c->generations[i].n_prompt;
    }
    struct kiln_text_score *texts =
        malloc(c->n * sizeof *texts +
               n * (sizeof(double) + k * sizeof(struct kiln_candidate) + sizeof(int32_t)) + 1);
    FAIL_IF(texts == NULL, STATUS_MEMORY, "out of memory for the scores of %zu texts", c->n);
    double *log_ps = (double *)(texts + c->n);
    struct kiln_candidate *candidates = (struct kiln_candidate *)(log_ps + n);
    int32_t *ids = (int32_t *)(candidates + n * k);
    for (size_t i = 0; i < c->n; i++) {
        const struct generation *g = &c->generations[i];
        memcpy(ids, g->ids.ids, g->n_prompt * sizeof *ids);
        texts[i] = (struct kiln_text_score){.ids = ids, .n = g->n_prompt};
        take_text(&texts[i], log_ps, candidates, g);
        log_ps += g->n_prompt;
        candidates += g->n_prompt * k;
        ids += g->n_prompt;
    }
    *out = (struct kiln_scores){.texts = texts, .n = c->n};
    return status_ok();
}

static struct status score(struct kiln_session *session, struct kiln_scores *out,
                           const struct kiln_text *texts, size_t n, const struct kiln_score_options *options)
{
    struct text_bytes *inner;
    struct scoring c = {.options = kiln_score_defaults(), .n = n};
    TRY(api_begin_task(session, KILN_GENERATE));
    TRY(api_take_options(&c.options, sizeof c.options, options));
    TRY(api_check_range("n_candidates", c.options.n_candidates, 0, GENERATE_ALTERNATIVES));
    TRY(api_take_texts(&inner, texts, n, "texts"));
    c.session = &session->session;
    c.texts = inner;
    c.inner = (struct generate_options){.max_new_tokens = c.options.next,
                                        .choice = {.repetition_penalty = 1, .top_p = 1},
                                        .rates_prompt = true,
                                        .n_alternatives = (int)c.options.n_candidates};
    struct status s = run(&c);
    s = failed(s) ? s : take_texts(out, &c);
    for (size_t i = 0; c.generations != NULL && i < n; i++) {
        generation_fini(&c.generations[i]);
    }
    free(c.generations);
    free(inner);
    return s;
}

struct kiln_status kiln_score(struct kiln_session *session, struct kiln_scores *scores,
                              const struct kiln_text *texts, size_t n_texts,
                              const struct kiln_score_options *options)
{
    if (scores == NULL) {
        return api_status(status_error(STATUS_USAGE, "scores is NULL"));
    }
    *scores = (struct kiln_scores){0};
    return api_status(score(session, scores, texts, n_texts, options));
}

void kiln_scores_free(struct kiln_scores *scores)
{
    if (scores != NULL) {
        free(scores->texts);
        *scores = (struct kiln_scores){0};
    }
}
