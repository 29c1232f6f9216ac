/* Decoders go on with prompts as `transformers` does (tests/golden/make_decoders.py), greedily and with a
 * penalty; prompts beside each other get the tokens that each gets alone, drawn or not, in a cache of any
 * size and where others leave, and logits of the same bits whether keys and values were cached or not; tokens
 * are as probable as the losses of whole texts say; stops end a text where they are; and the pages of a cache
 * are all given back. */
#define _GNU_SOURCE
#include "session_case.h"

#include "data/text_batch.h"
#include "serve/generate.h"

#include <math.h>

enum { PATH = 256, NEW = 12 };

/* Of logits in int8, in parts of the largest: a step of 1/254 of a row in each product, and bf16 between; a
 * gate multiplies two such results. */
#define INT8_BOUND       0.03
#define INT8_GATED_BOUND 0.06

static struct safetensors golden;
static char directory[64];

static const int32_t *ids_of(const char *name)
{
    const struct stored_tensor *e = safetensors_find(&golden, name);
    EXPECT(e != NULL, "there is no %s", name);
    int32_t *ids = malloc(e->bytes);
    memcpy(ids, e->data, e->bytes);
    return ids;
}

/* A prompt of ids, as if a text had been encoded. */
static struct generation prompt_of(const int32_t *ids, size_t n, uint64_t seed)
{
    struct generation g = {.n_prompt = n, .seed = seed};
    for (size_t i = 0; i < n; i++) {
        EXPECT(id_list_append(&g.ids, ids[i]), "no memory");
    }
    return g;
}

/* Prompts that are there from the beginning. */
struct prompts {
    struct generation *prompts;
    int64_t n, n_given, n_told, fails_at;
    struct generation *leaves; /* is cancelled once it has so many tokens */
    size_t leaves_at;
};

static struct status next(void *self, bool may_wait, struct generation **next)
{
    struct prompts *p = self;
    (void)may_wait;
    *next = p->n_given < p->n ? &p->prompts[p->n_given++] : NULL;
    return status_ok();
}

static struct status told(void *self, struct generation *g)
{
    struct prompts *p = self;
    if (g == p->leaves && g->ids.n - g->n_prompt == p->leaves_at) {
        g->cancelled = true;
    }
    return ++p->n_told == p->fails_at ? status_error(STATUS_PREEMPTED, "enough") : status_ok();
}

static struct status generate_all(struct session *s, struct generation *prompts, int64_t n,
                                  const struct generate_options *o)
{
    struct prompts all = {.prompts = prompts, .n = n};
    for (int64_t i = 0; i < n; i++) {
        prompts[i].options = o;
    }
    struct status status = generate(s, &(struct generation_source){next, told, &all}, NULL);
    EXPECT(s->pages.n_free == s->pages.n, "%lld of %lld pages are lost",
           (long long)(s->pages.n - s->pages.n_free), (long long)s->pages.n);
    return status;
}

static bool same_ids(const struct generation *a, const struct generation *b)
{
    return a->ids.n == b->ids.n && memcmp(a->ids.ids, b->ids.ids, b->ids.n * sizeof *b->ids.ids) == 0;
}

static void check_golden(struct session *s, const char *name, const char *kind, double penalty)
{
    char key[64];
    snprintf(key, sizeof key, "%s:%s", name, kind);
    const int32_t *ids = ids_of("ids"), *wanted = ids_of(key);
    const struct generate_options o = {
        .max_new_tokens = NEW, .choice = {.top_p = 1, .repetition_penalty = penalty}, .ignore_eos = true};
    struct generation g = prompt_of(ids + 24, 10, 0);
    EXPECT_OK(generate_all(s, &g, 1, &o));
    EXPECT(g.ids.n == 10 + NEW && g.end == GENERATION_AT_LENGTH, "%zu ids", g.ids.n);
    for (int i = 0; i < NEW; i++) {
        EXPECT(g.ids.ids[10 + i] == wanted[i], "%s: id %d is %d, not %d", key, i, g.ids.ids[10 + i],
               wanted[i]);
    }
    printf("%s: %d ids as those of transformers\n", key, NEW);
    generation_fini(&g);
    free((void *)ids);
    free((void *)wanted);
}

static void check_beside(struct session *s, double temperature)
{
    enum { N = 11 }; /* more than are continued at once */
    const int32_t *ids = ids_of("ids");
    const struct generate_options o = {
        .max_new_tokens = NEW,
        .choice = {.temperature = temperature, .top_k = 40, .top_p = 0.95, .repetition_penalty = 1}};
    struct generation together[N], alone[N];
    for (int i = 0; i < N; i++) {
        together[i] = prompt_of(ids + i, (size_t)(1 + i), (uint64_t)i);
        alone[i] = prompt_of(ids + i, (size_t)(1 + i), (uint64_t)i);
        EXPECT_OK(generate_all(s, &alone[i], 1, &o));
    }
    EXPECT_OK(generate_all(s, together, N, &o));
    for (int i = 0; i < N; i++) {
        EXPECT(same_ids(&together[i], &alone[i]),
               "prompt %d goes on otherwise beside others, at temperature %g", i, temperature);
        generation_fini(&together[i]);
        generation_fini(&alone[i]);
    }
    free((void *)ids);
}

/* Texts that need a second page while none is free: the youngest wait, and are computed again. */
static void check_small_cache(struct session *s)
{
    enum { N = 4, PROMPT = BATCH_PAGE - 4, LEFT = N };
    const int32_t *ids = ids_of("ids");
    int32_t long_prompt[N][PROMPT], *taken = malloc((size_t)s->pages.n * sizeof *taken);
    int64_t n_taken = s->pages.n - LEFT;
    const struct generate_options o = {.max_new_tokens = NEW,
                                       .choice = {.temperature = 1.3, .top_p = 1, .repetition_penalty = 1},
                                       .ignore_eos = true};
    struct generation together[N], alone[N];
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < PROMPT; k++) {
            long_prompt[i][k] = ids[(i + k) % 20];
        }
        together[i] = prompt_of(long_prompt[i], PROMPT, (uint64_t)i);
        alone[i] = prompt_of(long_prompt[i], PROMPT, (uint64_t)i);
        EXPECT_OK(generate_all(s, &alone[i], 1, &o));
    }
    EXPECT(page_pool_take(&s->pages, taken, n_taken), "%lld pages", (long long)s->pages.n);
    struct prompts all = {.prompts = together, .n = N};
    struct generate_times times;
    for (int i = 0; i < N; i++) {
        together[i].options = &o;
    }
    EXPECT_OK(generate(s, &(struct generation_source){next, told, &all}, &times));
    EXPECT(s->pages.n_free == LEFT && times.n_put_back > 1,
           "%lld pages are free, %lld times a text was put back", (long long)s->pages.n_free,
           (long long)times.n_put_back);
    printf("a full cache: %lld times a text was computed again\n", (long long)times.n_put_back);
    page_pool_give(&s->pages, taken, n_taken);
    for (int i = 0; i < N; i++) {
        EXPECT(same_ids(&together[i], &alone[i]), "text %d goes on otherwise in a full cache", i);
        generation_fini(&together[i]);
        generation_fini(&alone[i]);
    }
    free(taken);
    free((void *)ids);
}

/* The budget is in bytes, and has room for the longest text at least. */
static void check_budget(const char *path)
{
    struct session s;
    struct session_options o = session_defaults();
    int64_t longest;
    o.n_prompts = 4;
    EXPECT_OK(session_open(&s, path, MODEL_TASK_CAUSAL_LM, &o));
    longest = (s.max_length + BATCH_PAGE - 1) / BATCH_PAGE;
    size_t page = s.net.plan.cache_bytes / (size_t)s.pages.n;
    EXPECT(s.pages.n == 4 * longest, "%lld pages", (long long)s.pages.n);
    session_close(&s);
    for (int64_t wanted = 1; wanted <= 4 * longest + 1; wanted += 2 * longest) {
        int64_t most = wanted < longest ? longest : wanted > 4 * longest ? 4 * longest : wanted;
        o.cache_bytes = (size_t)wanted * page;
        EXPECT_OK(session_open(&s, path, MODEL_TASK_CAUSAL_LM, &o));
        EXPECT(s.pages.n == most, "%lld pages, not %lld", (long long)s.pages.n, (long long)most);
        session_close(&s);
    }
}

/* A beginning that texts share is computed once, also where they come and go, and they go on as alone. */
static void check_shared_beginning(struct session *s)
{
    enum { N = 11, SHARED = 2 * BATCH_PAGE + 3, OWN = 5 };
    const int32_t *ids = ids_of("ids");
    int32_t text[SHARED + OWN];
    const struct generate_options o = {.max_new_tokens = NEW,
                                       .choice = {.temperature = 1.3, .top_p = 1, .repetition_penalty = 1},
                                       .ignore_eos = true};
    struct generation together[N], alone[N];
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < SHARED + OWN; k++) {
            text[k] = ids[(k < SHARED ? k : k + i) % 20];
        }
        size_t n =
            i == N - 1 ? SHARED - 3 : SHARED + OWN; /* the last is two pages, of which one is its own */
        together[i] = prompt_of(text, n, (uint64_t)i);
        alone[i] = prompt_of(text, n, (uint64_t)i);
        together[i].options = &o;
        EXPECT_OK(generate_all(s, &alone[i], 1, &o));
    }
    struct prompts all = {.prompts = together, .n = N};
    struct generate_times times;
    EXPECT_OK(generate(s, &(struct generation_source){next, told, &all}, &times));
    EXPECT(s->pages.n_free == s->pages.n, "pages are lost");
    int64_t most = SHARED + N * (OWN + 3 + NEW) + BATCH_PAGE;
    EXPECT(times.prompt_tokens + times.new_tokens <= most, "%lld tokens were computed, not %lld",
           (long long)(times.prompt_tokens + times.new_tokens), (long long)most);
    for (int i = 0; i < N; i++) {
        EXPECT(same_ids(&together[i], &alone[i]),
               "text %d goes on otherwise behind a beginning that it shares", i);
        generation_fini(&together[i]);
        generation_fini(&alone[i]);
    }
    free((void *)ids);
}

/* In a window that is full a text goes on as one that begins with its first tokens and its newer half. */
static void check_shift(struct session *s)
{
    enum { KEPT = 4 };
    const int32_t *ids = ids_of("ids");
    size_t window = (size_t)s->max_length, half = (window + 1 - KEPT + 1) / 2;
    struct generate_options o = {.max_new_tokens = 40,
                                 .choice = {.top_p = 1, .repetition_penalty = 1},
                                 .ignore_eos = true,
                                 .context_shift = true};
    struct generation g = prompt_of(ids, 10, 0), again = {0};
    EXPECT_OK(generate_all(s, &g, 1, &o));
    EXPECT(g.ids.n == 50 && g.end == GENERATION_AT_LENGTH && g.n_shifted > half, "%zu ids, %zu shifted",
           g.ids.n, g.n_shifted);
    again = prompt_of(g.ids.ids, KEPT, 0);
    for (size_t i = KEPT + half; i <= window; i++) {
        EXPECT(id_list_append(&again.ids, g.ids.ids[i]), "no memory");
    }
    again.n_prompt = again.ids.n;
    o.max_new_tokens = (int64_t)(window - again.n_prompt);
    EXPECT_OK(generate_all(s, &again, 1, &o));
    for (size_t i = again.n_prompt; i < again.ids.n; i++) {
        EXPECT(again.ids.ids[i] == g.ids.ids[i + half], "token %zu behind the shift", i);
    }
    generation_fini(&g);
    generation_fini(&again);
    EXPECT_OK(generation_init(
        &g, s, &s->scratch, "the end and the hand that the sea and the land, the end of the hand and the sea",
        78, &o, 1));
    EXPECT((int64_t)g.n_prompt > s->max_length, "%zu tokens are no long prompt", g.n_prompt);
    EXPECT_OK(generate_all(s, &g, 1, &o));
    EXPECT(g.end == GENERATION_AT_LENGTH, "a long prompt ends by %d", (int)g.end);
    generation_fini(&g);
    free((void *)ids);
}

/* A text that leaves, after any of its tokens, leaves alone. */
static void check_leaving(struct session *s)
{
    enum { N = 5 };
    const int32_t *ids = ids_of("ids");
    const struct generate_options o = {.max_new_tokens = NEW,
                                       .choice = {.temperature = 1, .top_p = 0.95, .repetition_penalty = 1},
                                       .ignore_eos = true};
    for (size_t at = 1; at < NEW; at++) {
        struct generation whole[N], cut[N];
        struct prompts all = {.prompts = cut, .n = N, .leaves = &cut[at % N], .leaves_at = at};
        for (int i = 0; i < N; i++) {
            whole[i] = prompt_of(ids + i, (size_t)(1 + i), (uint64_t)i);
            cut[i] = prompt_of(ids + i, (size_t)(1 + i), (uint64_t)i);
            cut[i].options = &o;
        }
        EXPECT_OK(generate_all(s, whole, N, &o));
        EXPECT_OK(generate(s, &(struct generation_source){next, told, &all}, NULL));
        EXPECT(s->pages.n_free == s->pages.n, "pages are lost");
        for (int i = 0; i < N; i++) {
            bool leaves = &cut[i] == all.leaves;
            EXPECT(leaves ? cut[i].end == GENERATION_CANCELLED && cut[i].ids.n == cut[i].n_prompt + at
                          : same_ids(&cut[i], &whole[i]),
                   "text %d where text %zu left after %zu tokens", i, at % N, at);
            generation_fini(&whole[i]);
            generation_fini(&cut[i]);
        }
    }
    free((void *)ids);
}

/* A position that is not finite fails the text that reaches it, and no other. */
static void check_failing_alone(struct session *s)
{
    enum { N = 3, LAST = 20 };
    const int32_t *ids = ids_of("ids");
    const struct param *p = param_table_find(&s->net.params, "transformer.wpe.weight");
    EXPECT(p != NULL, "no positions");
    float *row = (float *)s->net.master.data + p->offset + LAST * s->model->hidden_size, before = *row;
    const struct generate_options o = {
        .max_new_tokens = NEW, .choice = {.top_p = 1, .repetition_penalty = 1}, .ignore_eos = true};
    static const size_t lengths[N] = {3, 11, 5};
    struct generation whole[N], together[N];
    for (int i = 0; i < N; i++) {
        whole[i] = prompt_of(ids + i, lengths[i], 0);
        together[i] = prompt_of(ids + i, lengths[i], 0);
    }
    EXPECT_OK(generate_all(s, whole, N, &o));
    *row = NAN;
    EXPECT_OK(generate_all(s, together, N, &o));
    *row = before;
    EXPECT(together[1].end == GENERATION_FAILED && together[1].ids.n == LAST + 1, "%zu ids",
           together[1].ids.n);
    EXPECT_ERROR(together[1].status, STATUS_NUMERIC, "not finite");
    for (int i = 0; i < N; i++) {
        EXPECT(i == 1 || same_ids(&together[i], &whole[i]), "text %d beside one that fails", i);
        generation_fini(&whole[i]);
        generation_fini(&together[i]);
    }
    free((void *)ids);
}

/* The logits behind ids[0..n), computed in parts of at most `part` tokens. */
struct probe {
    const int32_t *ids;
    int64_t n, n_cached, part;
    int32_t pages[8];
    float *logits;
    bool asked;
};

static int64_t probe_length(const void *self, int64_t i)
{
    const struct probe *p = self;
    (void)i;
    return p->n - p->n_cached < p->part ? p->n - p->n_cached : p->part;
}

static void probe_add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct probe *p = self;
    int64_t n = probe_length(p, i);
    memcpy(text_batch_add_cached(out, n, p->n_cached, p->pages, key), p->ids + p->n_cached,
           (size_t)n * sizeof *p->ids);
    text_batch_masked_positions(out)[0] = (int32_t)n - 1;
    text_batch_masked_labels(out)[0] = -1;
    text_batch_take_masked(out, 1);
}

static struct status probe_take(void *self, int64_t i, const tensor outputs[MODEL_N_OUTPUTS])
{
    struct probe *p = self;
    memcpy(p->logits, outputs[MODEL_WORD_LOGITS].data, tensor_bytes(outputs[MODEL_WORD_LOGITS]));
    p->n_cached += probe_length(p, i);
    return status_ok();
}

static void probe(struct session *s, const int32_t *ids, int64_t n, int64_t part, float *logits)
{
    struct probe p = {.ids = ids, .n = n, .part = part, .logits = logits};
    EXPECT(page_pool_take(&s->pages, p.pages, 2), "no pages");
    while (p.n_cached < n) {
        struct request r = {.source = {.self = &p, .n = 1, .length = probe_length, .add = probe_add},
                            .n_asked = 1,
                            .outputs = 1U << MODEL_WORD_LOGITS,
                            .take = probe_take,
                            .self = &p};
        EXPECT_OK(packer_answer(&s->packer, &r));
    }
    page_pool_give(&s->pages, p.pages, 2);
}

/* Tokens one by one, in parts, and all at once. */
static void check_bits(struct session *s)
{
    enum { N = 20, WORDS = 4096 };
    static float whole[WORDS], parts[WORDS];
    const int32_t *ids = ids_of("ids");
    size_t bytes = (size_t)s->model->n_words * sizeof(float);
    EXPECT(s->model->n_words <= WORDS, "%lld words", (long long)s->model->n_words);
    probe(s, ids, N, N, whole);
    for (int64_t part = 1; part < 8; part += 2) {
        probe(s, ids, N, part, parts);
        EXPECT(memcmp(whole, parts, bytes) == 0, "logits of parts of %lld tokens have other bits",
               (long long)part);
    }
    free((void *)ids);
}

/* Of int8 beside fp32: the logits behind the beginnings of a text, and for how many of these the most
 * probable word is the same. */
static void check_int8(struct session *exact, struct session *int8, double bound)
{
    enum { N = 20, WORDS = 4096 };
    static float wanted[WORDS], found[WORDS];
    const int32_t *ids = ids_of("ids");
    double error = 0, largest = 0;
    int agree = 0;
    for (int64_t n = 1; n <= N; n++) {
        int64_t best = 0, best_found = 0;
        probe(exact, ids, n, n, wanted);
        probe(int8, ids, n, n, found);
        for (int64_t i = 0; i < exact->model->n_words; i++) {
            largest = fmax(largest, fabs((double)wanted[i]));
            error = fmax(error, fabs((double)wanted[i] - (double)found[i]));
            best = wanted[i] > wanted[best] ? i : best;
            best_found = found[i] > found[best_found] ? i : best_found;
        }
        agree += best == best_found;
    }
    printf("int8: logits within %.4f of their largest, the same word at %d of %d places\n", error / largest,
           agree, N);
    EXPECT(error <= bound * largest, "logits in int8 are off by %g, of %g", error, largest);
    EXPECT(agree >= N - 1, "in int8 another word is the most probable at %d of %d places", N - agree, N);
    EXPECT(error > 0, "int8 computes what fp32 does");
    free((void *)ids);
}

/* Matrices are there once: a byte an element, and a scale a row; beside them are vectors in fp32, and
 * angles of rotary positions. */
static void check_bytes(const struct network *n, size_t angles)
{
    size_t matrices = n->plan.weight_bytes - n->plan.master_bytes;
    size_t most = (size_t)n->params.n_elements + (size_t)n->params.n_rows * sizeof(float) + 1024 + angles;
    EXPECT(matrices <= most, "%zu bytes of matrices in int8, not %zu", matrices, most);
}

/* A failure in the middle ends all, and frees their pages. */
static void check_failure(struct session *s)
{
    const int32_t *ids = ids_of("ids");
    struct generation g[2] = {prompt_of(ids, 5, 0), prompt_of(ids, 3, 0)};
    struct prompts all = {.prompts = g, .n = 2, .fails_at = 5};
    const struct generate_options o = {.max_new_tokens = NEW,
                                       .choice = {.top_p = 1, .repetition_penalty = 1}};
    g[0].options = g[1].options = &o;
    EXPECT_ERROR(generate(s, &(struct generation_source){next, told, &all}, NULL), STATUS_PREEMPTED,
                 "enough");
    EXPECT(s->pages.n_free == s->pages.n, "pages are lost");
    generation_fini(&g[0]);
    generation_fini(&g[1]);
    free((void *)ids);
}

/* A weight that is too large is named as what it makes not finite, whatever its type. */
static void check_not_finite(struct session *s)
{
    const int32_t *ids = ids_of("ids");
    struct generate_options o = {.max_new_tokens = NEW, .choice = {.top_p = 1, .repetition_penalty = 1}};
    struct generation g = prompt_of(ids, 5, 0);
    const struct param *p = s->net.params.params;
    while (!p->by_product) { /* every token goes through the first product */
        p++;
    }
    float *scale = (float *)s->net.scales.data + p->row, before = *scale;
    *scale = INFINITY;
    EXPECT_OK(generate_all(s, &g, 1, &o));
    EXPECT(g.end == GENERATION_FAILED, "it ends by %d", (int)g.end);
    EXPECT_ERROR(g.status, STATUS_NUMERIC, "are not finite");
    EXPECT_ERROR(packer_explain(&s->packer, g.status), STATUS_NUMERIC, "the first such tensor is");
    *scale = before;
    generation_fini(&g);
    free((void *)ids);
}

/* A stop that is a part of what comes ends the text before it; one that only begins does not. */
static void check_stops(struct session *s)
{
    const int32_t *ids = ids_of("ids");
    char part[8] = {0}, begins[8] = {0};
    const char *const stops[] = {part, begins};
    struct generate_options o = {.max_new_tokens = NEW, .choice = {.top_p = 1, .repetition_penalty = 1}};
    struct generation free_one = prompt_of(ids, 5, 0), g = prompt_of(ids, 5, 0);
    EXPECT_OK(generate_all(s, &free_one, 1, &o));
    EXPECT(free_one.text.n > 6 && free_one.n_settled == free_one.text.n, "%zu bytes of text",
           free_one.text.n);
    memcpy(part, buf_text(&free_one.text) + 3, 3);
    begins[0] = buf_text(&free_one.text)[0], begins[1] = 1;
    o.stops = stops, o.n_stops = 2;
    EXPECT_OK(generate_all(s, &g, 1, &o));
    size_t at = (size_t)(strstr(buf_text(&free_one.text), part) - buf_text(&free_one.text));
    EXPECT(g.end == GENERATION_AT_STOP && g.text.n == at && g.n_settled == at &&
               memcmp(buf_text(&g.text), buf_text(&free_one.text), at) == 0,
           "%zu bytes before the stop at %zu", g.text.n, at);
    generation_fini(&free_one);
    generation_fini(&g);
    free((void *)ids);
}

/* The losses of ids[first + 1..n), computed at once, behind what is cached. */
struct losses {
    const int32_t *ids;
    int64_t n, first, end;
    const int32_t *pages; /* NULL: nothing is cached */
    float *losses;
};

static int64_t losses_length(const void *self, int64_t i)
{
    const struct losses *l = self;
    (void)i;
    return l->end - l->first;
}

static void losses_add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct losses *l = self;
    int64_t n = losses_length(l, i);
    int32_t *to = l->pages == NULL ? text_batch_add(out, n, n, -1, key)
                                   : text_batch_add_cached(out, n, l->first, l->pages, key);
    memcpy(to, l->ids + l->first, (size_t)n * sizeof *to);
    for (int64_t k = 0; k < n; k++) {
        text_batch_masked_positions(out)[k] = (int32_t)k;
        text_batch_masked_labels(out)[k] = l->ids[l->first + k + 1];
    }
    text_batch_take_masked(out, n);
}

static struct status losses_take(void *self, int64_t i, const tensor outputs[MODEL_N_OUTPUTS])
{
    struct losses *l = self;
    (void)i;
    memcpy(l->losses + l->first, outputs[MODEL_WORD_LOSSES].data,
           (size_t)(l->end - l->first) * sizeof *l->losses);
    return status_ok();
}

/* At most `part` tokens at a time. */
static void compute_losses(struct session *s, struct losses *l, int64_t part)
{
    for (l->first = 0; l->first < l->n - 1; l->first = l->end) {
        l->end = l->first + part < l->n - 1 ? l->first + part : l->n - 1;
        struct request r = {.source = {.self = l, .n = 1, .length = losses_length, .add = losses_add},
                            .n_asked = l->end - l->first,
                            .outputs = 1U << MODEL_WORD_LOSSES,
                            .take = losses_take,
                            .self = l};
        EXPECT_OK(packer_answer(&s->packer, &r));
    }
}

/* What was rated are the losses of the text, and nearly those of a whole text, summed in another order. */
static void expect_losses(struct session *s, struct session *whole, const struct generation *g)
{
    enum { MOST = 512, PAGES = MOST / BATCH_PAGE, PART = 23 };
    static float values[MOST], of_whole[MOST];
    int32_t pages[PAGES];
    int64_t n_pages = ((int64_t)g->ids.n + BATCH_PAGE - 1) / BATCH_PAGE;
    struct losses l = {.ids = g->ids.ids, .n = (int64_t)g->ids.n, .pages = pages, .losses = values};
    EXPECT(l.n <= MOST && page_pool_take(&s->pages, pages, n_pages), "%zu ids", g->ids.n);
    compute_losses(s, &l, PART);
    page_pool_give(&s->pages, pages, n_pages);
    l.pages = NULL, l.losses = of_whole;
    compute_losses(whole, &l, MOST);
    EXPECT(g->first_rated + g->n_rated == g->ids.n, "%zu rows from %zu of %zu ids", g->n_rated,
           g->first_rated, g->ids.n);
    size_t step = 1 + (size_t)g->options->n_alternatives;
    for (size_t i = 0; i < g->n_rated; i++) {
        const struct token_probability *row = g->rated + i * step;
        size_t at = g->first_rated + i;
        EXPECT(row->id == g->ids.ids[at] && row->log_p == -values[at - 1] &&
                   fabs((double)row->log_p + (double)of_whole[at - 1]) < 1e-5,
               "token %zu, %d: log p %.9g, but the losses are %.9g and %.9g", at, row->id, (double)row->log_p,
               (double)values[at - 1], (double)of_whole[at - 1]);
        for (size_t k = 1; k < step; k++) {
            EXPECT(k == 1 ? row[1].log_p >= row->log_p : row[k].log_p <= row[k - 1].log_p,
                   "alternative %zu of token %zu", k, at);
        }
    }
}

/* Tokens of prompts and new ones are rated in any company, a part or a page at a time, as in the whole. */
static void check_rates(struct session *s, const char *path, size_t longest)
{
    enum { N = 5, MOST = 400 };
    const int32_t *ids = ids_of("ids");
    int32_t text[MOST];
    struct session losses;
    struct session_options in_losses = session_defaults();
    struct generation alone[N], together[N];
    struct generate_options o = {.choice = {.temperature = 1.3, .top_p = 1, .repetition_penalty = 1},
                                 .ignore_eos = true,
                                 .rates_prompt = true,
                                 .n_alternatives = 3};
    in_losses.batching = BATCHING_LOSSES;
    EXPECT_OK(session_open(&losses, path, MODEL_TASK_CAUSAL_LM, &in_losses));
    for (int i = 0; i < MOST; i++) {
        text[i] = ids[i % 20];
    }
    for (int64_t n_new = 0; n_new <= 4; n_new += 4) {
        o.max_new_tokens = n_new;
        for (int i = 0; i < N; i++) { /* which begin alike */
            size_t n = i == 0 ? 1 : longest * (size_t)i / (N - 1);
            EXPECT_OK(generation_init_ids(&alone[i], s, text, n, &o, i));
            EXPECT_OK(generation_init_ids(&together[i], s, text, n, &o, i));
            EXPECT_OK(generate_all(s, &alone[i], 1, &o));
            EXPECT(alone[i].end == GENERATION_AT_LENGTH && alone[i].ids.n == n + (size_t)n_new, "%zu ids",
                   alone[i].ids.n);
            if (n + (size_t)n_new > 1) {
                expect_losses(s, &losses, &alone[i]);
            }
        }
        EXPECT_OK(generate_all(s, together, N, &o));
        for (int i = 0; i < N; i++) {
            EXPECT(same_ids(&alone[i], &together[i]) && alone[i].n_rated == together[i].n_rated, "text %d",
                   i);
            EXPECT(alone[i].n_rated == 0 || memcmp(alone[i].rated, together[i].rated,
                                                   4 * alone[i].n_rated * sizeof *alone[i].rated) == 0,
                   "text %d is rated otherwise beside others", i);
            generation_fini(&alone[i]);
            generation_fini(&together[i]);
        }
    }
    session_close(&losses);
    free((void *)ids);
}

/* A prompt without tokens begins with the special one, where there is one. */
static void check_empty(struct session *s)
{
    struct generation g;
    const struct generate_options one = {.max_new_tokens = 1};
    s->dir.tokenizer.special[SPECIAL_BEGIN] = 7;
    EXPECT_OK(generation_init(&g, s, &s->scratch, "", 0, &one, 3));
    EXPECT(g.n_prompt == 1 && g.ids.ids[0] == s->tokenizer->special[SPECIAL_BEGIN], "it begins with %d",
           g.ids.ids[0]);
    generation_fini(&g);
    s->dir.tokenizer.special[SPECIAL_BEGIN] = -1;
    EXPECT_ERROR(generation_init(&g, s, &s->scratch, "", 0, &one, 3), STATUS_DATA, "prompt 3 is empty");
    generation_fini(&g);
}

static void check_model(const char *name)
{
    const bool is_rotary = strcmp(name, "gpt2") != 0 && strcmp(name, "bloom") != 0;
    const bool is_gated = is_rotary && strcmp(name, "pythia") != 0;
    char path[PATH];
    struct session s;
    struct session_options o = session_defaults();
    struct generation g;
    const struct generate_options too_long = {.max_new_tokens = 24,
                                              .choice = {.top_p = 1, .repetition_penalty = 1}};
    snprintf(path, sizeof path, "%s/%s", directory, name);
    EXPECT_OK(session_open(&s, path, MODEL_TASK_CAUSAL_LM, &o));
    check_golden(&s, name, "greedy", 1);
    check_golden(&s, name, "penalized", 1.5);
    check_beside(&s, 0);
    check_beside(&s, 1.3);
    check_budget(path);
    check_leaving(&s);
    check_bits(&s);
    check_failure(&s);
    check_stops(&s);
    check_empty(&s);
    if (strcmp(name, "bloom") == 0) { /* which has room for longer texts */
        check_small_cache(&s);
        check_shared_beginning(&s);
        check_rates(&s, path, 300);
    }
    if (strcmp(name, "gpt2") == 0) {
        check_failing_alone(&s);
        check_shift(&s);
        check_rates(&s, path, 20);
        EXPECT_ERROR(generation_init(&g, &s, &s.scratch, "and the", 7, &too_long, 1), STATUS_DATA,
                     "reads at most 24");
        generation_fini(&g);
    }
    session_close(&s);
    o.dtype = DTYPE_BF16;
    EXPECT_OK(session_open(&s, path, MODEL_TASK_CAUSAL_LM, &o));
    check_beside(&s, 1.3);
    check_bits(&s);
    session_close(&s);
    o.int8 = true;
    struct session exact;
    struct session_options in_fp32 = session_defaults();
    EXPECT_OK(session_open(&s, path, MODEL_TASK_CAUSAL_LM, &o));
    EXPECT_OK(session_open(&exact, path, MODEL_TASK_CAUSAL_LM, &in_fp32));
    check_beside(&s, 1.3);
    check_bits(&s);
    check_int8(&exact, &s, is_gated ? INT8_GATED_BOUND : INT8_BOUND);
    check_not_finite(&s);
    check_bytes(&s.net,
                is_rotary ? (size_t)s.max_length * 12 * sizeof(float) : 0); /* heads of 4, 6 or 12 columns */
    session_close(&exact);
    session_close(&s);
    o.int8 = false;
    EXPECT_ERROR(session_open(&s, path, MODEL_TASK_MASKED_LM, &o), STATUS_DATA,
                 "this model answers: generate");
}

int main(void)
{
    EXPECT_OK(safetensors_open(&golden, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors"));
    session_case_directory(directory, sizeof directory);
    session_case_write(&golden, directory, NULL);
    check_model("gpt2");
    check_model("bloom");
    check_model("llama");
    check_model("qwen2");
    check_model("mistral_window");
    check_model("smollm3");
    check_model("phi3");
    check_model("qwen3");
    check_model("olmo2");
    check_model("pythia");
    EXPECT_OK(file_remove_tree(directory));
    safetensors_close(&golden);
    return 0;
}
