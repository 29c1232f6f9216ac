#include "serve/generate.h"

#include "core/rng.h"
#include "data/text_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_PROMPT = 0x67656e };

/* ---- choosing a token ---- */

static int32_t largest(const float *logits, int64_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

/* Each token that was there counts once, however often it was there (Keskar et al. 2019,
 * arXiv:1909.05858). */
static void penalize(float *logits, int64_t n, const struct generation *g, double penalty)
{
    for (size_t i = 0; i < g->ids.n; i++) {
        int32_t id = g->ids.ids[i];
        bool is_first = true;
        for (size_t k = 0; k < i && is_first; k++) {
            is_first = g->ids.ids[k] != id;
        }
        if (is_first && id < n) {
            logits[id] *= (float)(logits[id] < 0 ? penalty : 1 / penalty);
        }
    }
}

struct choice {
    float logit;
    int32_t id;
};

/* Larger logits first; of equal ones the smaller id. */
static int compare(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    return x->logit != y->logit ? (x->logit < y->logit) - (x->logit > y->logit)
                                : (x->id > y->id) - (x->id < y->id);
}

/* The number of choices, sorted, that top_k and top_p leave; turns their logits into probabilities, which do
 * not sum to 1. */
static int64_t cut(struct choice *choices, int64_t n, const struct generate_options *o)
{
    double all = 0, sum = 0, max = choices[0].logit;
    int64_t n_left = o->top_k > 0 && o->top_k < n ? o->top_k : n;
    for (int64_t i = 0; i < n_left; i++) {
        choices[i].logit = (float)exp((choices[i].logit - max) / o->temperature);
        all += choices[i].logit;
    }
    for (int64_t i = 0; i < n_left; i++) {
        sum += choices[i].logit;
        if (sum >= o->top_p * all) {
            return i + 1;
        }
    }
    return n_left;
}

int32_t generate_choose(float *logits, int64_t n, const struct generation *g,
                        const struct generate_options *o, double random)
{
    if (o->repetition_penalty != 1) {
        penalize(logits, n, g, o->repetition_penalty);
    }
    struct choice *choices = o->temperature == 0 ? NULL : malloc((size_t)n * sizeof *choices);
    if (choices == NULL) {
        return o->temperature == 0 ? largest(logits, n) : -1;
    }
    for (int32_t i = 0; i < n; i++) {
        choices[i] = (struct choice){logits[i], i};
    }
    qsort(choices, (size_t)n, sizeof *choices, compare);
    int64_t n_left = cut(choices, n, o), chosen = 0;
    double all = 0, sum = 0;
    for (int64_t i = 0; i < n_left; i++) {
        all += choices[i].logit;
    }
    while (chosen < n_left - 1 && (sum += choices[chosen].logit) <= random * all) {
        chosen++;
    }
    int32_t id = choices[chosen].id;
    free(choices);
    return id;
}

/* ---- a prompt ---- */

struct status generation_init(struct generation *g, struct session *s, const char *text, size_t n,
                              const struct generate_options *o, int64_t number)
{
    *g = (struct generation){.seed = rng_key(rng_key(o->seed, KEY_PROMPT), (uint64_t)number)};
    TRY(tokenizer_encode_ids(&s->scratch, &g->ids, text, n));
    g->n_prompt = g->ids.n;
    if (g->ids.n == 0) {
        return status_error(STATUS_DATA, "prompt %lld is empty: a decoder continues a text",
                            (long long)number);
    }
    int64_t wanted = (int64_t)g->ids.n + o->max_new_tokens;
    return wanted <= s->max_length ? status_ok()
                                   : status_error(STATUS_DATA,
                                                  "prompt %lld has %zu tokens, and --max_new_tokens is %lld: "
                                                  "together %lld, but the model reads "
                                                  "at most %lld",
                                                  (long long)number, g->ids.n, (long long)o->max_new_tokens,
                                                  (long long)wanted, (long long)s->max_length);
}

void generation_fini(struct generation *g)
{
    id_list_fini(&g->ids);
    *g = (struct generation){0};
}

/* ---- turns ---- */

/* One turn: those that have not ended, each asked for the token behind its last. */
struct turn {
    const struct session *s;
    const struct generate_options *options;
    struct generation *generations;
    int64_t *running; /* [n_running] their numbers */
    int64_t n_running;
    generate_told *told;
    void *context;
};

static int64_t length(const void *self, int64_t i)
{
    const struct turn *t = self;
    return (int64_t)t->generations[t->running[i]].ids.n;
}

static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct turn *t = self;
    const struct id_list *ids = &t->generations[t->running[i]].ids;
    memcpy(text_batch_add(out, (int64_t)ids->n, (int64_t)ids->n, -1, key), ids->ids,
           ids->n * sizeof *ids->ids);
    text_batch_masked_positions(out)[0] = (int32_t)ids->n - 1;
    text_batch_masked_labels(out)[0] = -1;
    text_batch_take_masked(out, 1);
}

static struct status take(void *self, int64_t i, const tensor outputs[REQUEST_N_OUTPUTS])
{
    struct turn *t = self;
    struct generation *g = &t->generations[t->running[i]];
    const struct generate_options *o = t->options;
    size_t n_new = g->ids.n - g->n_prompt;
    int32_t id = generate_choose(outputs[REQUEST_WORD_LOGITS].data, t->s->tokenizer->n, g, o,
                                 rng_uniform_at(g->seed, n_new));
    if (id < 0 || !id_list_append(&g->ids, id)) {
        return status_error(STATUS_MEMORY, "out of memory for a token");
    }
    bool is_end = id == t->s->tokenizer->special[SPECIAL_END] && !o->ignore_eos;
    g->ended = is_end || (int64_t)n_new + 1 == o->max_new_tokens;
    return t->told(t->context, g, t->running[i]);
}

static void find_running(struct turn *t, int64_t n)
{
    t->n_running = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!t->generations[i].ended) {
            t->running[t->n_running++] = i;
        }
    }
}

struct status generate(struct session *s, struct generation *generations, int64_t n,
                       const struct generate_options *o, generate_told *told, void *context)
{
    struct turn t = {.s = s,
                     .options = o,
                     .generations = generations,
                     .running = malloc((size_t)(n + 1) * sizeof *t.running),
                     .told = told,
                     .context = context};
    struct status status = t.running == NULL
                               ? status_error(STATUS_MEMORY, "out of memory for %lld prompts", (long long)n)
                               : status_ok();
    for (find_running(&t, failed(status) ? 0 : n); t.n_running > 0 && !failed(status); find_running(&t, n)) {
        struct request request = {
            .source = {.name = "prompts", .self = &t, .n = t.n_running, .length = length, .add = add},
            .n_asked = 1,
            .outputs = 1U << REQUEST_WORD_LOGITS,
            .take = take,
            .self = &t};
        status = packer_answer(&s->packer, &request);
    }
    free(t.running);
    return status;
}
