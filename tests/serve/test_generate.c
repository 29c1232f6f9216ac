/* Decoders go on with prompts as `transformers` does (tests/golden/make_decoders.py), greedily and with a
 * penalty; prompts beside each other get the tokens that each gets alone, drawn or not; and the cuts of a
 * distribution are what they say. */
#define _GNU_SOURCE
#include "session_case.h"

#include "core/rng.h"
#include "serve/generate.h"

enum { PATH = 256, NEW = 12 };

static struct safetensors golden;
static char directory[64];

static const int32_t *ids_of(const char *name)
{
    const struct safetensors_entry *e = safetensors_find(&golden, name);
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

static struct status count(void *context, const struct generation *g, int64_t number)
{
    (void)g, (void)number;
    ++*(int64_t *)context;
    return status_ok();
}

static void check_golden(struct session *s, const char *name, const char *kind, double penalty)
{
    char key[64];
    int64_t n_told = 0;
    snprintf(key, sizeof key, "%s:%s", name, kind);
    const int32_t *ids = ids_of("ids"), *wanted = ids_of(key);
    const struct generate_options o = {
        .max_new_tokens = NEW, .top_p = 1, .repetition_penalty = penalty, .ignore_eos = true};
    struct generation g = prompt_of(ids + 24, 10, 0);
    EXPECT_OK(generate(s, &g, 1, &o, count, &n_told));
    EXPECT(g.ids.n == 10 + NEW && n_told == NEW && g.ended, "%zu ids", g.ids.n);
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
    enum { N = 5 };
    const int32_t *ids = ids_of("ids");
    const struct generate_options o = {.max_new_tokens = NEW,
                                       .temperature = temperature,
                                       .top_k = 40,
                                       .top_p = 0.95,
                                       .repetition_penalty = 1};
    struct generation together[N], alone[N];
    int64_t n_told = 0;
    for (int i = 0; i < N; i++) {
        together[i] = prompt_of(ids + i, (size_t)(1 + 2 * i), (uint64_t)i);
        alone[i] = prompt_of(ids + i, (size_t)(1 + 2 * i), (uint64_t)i);
        EXPECT_OK(generate(s, &alone[i], 1, &o, count, &n_told));
    }
    EXPECT_OK(generate(s, together, N, &o, count, &n_told));
    for (int i = 0; i < N; i++) {
        EXPECT(together[i].ids.n == alone[i].ids.n &&
                   memcmp(together[i].ids.ids, alone[i].ids.ids, alone[i].ids.n * sizeof *ids) == 0,
               "prompt %d goes on otherwise beside others, at temperature %g", i, temperature);
        generation_fini(&together[i]);
        generation_fini(&alone[i]);
    }
    free((void *)ids);
}

static void check_model(const char *name)
{
    char path[PATH];
    struct session s;
    struct session_options o = session_defaults();
    struct generation g;
    const struct generate_options too_long = {.max_new_tokens = 24, .top_p = 1, .repetition_penalty = 1};
    snprintf(path, sizeof path, "%s/%s", directory, name);
    EXPECT_OK(session_open(&s, path, MODEL_TASK_CAUSAL_LM, &o));
    check_golden(&s, name, "greedy", 1);
    check_golden(&s, name, "penalized", 1.5);
    check_beside(&s, 0);
    check_beside(&s, 1.3);
    EXPECT_ERROR(generation_init(&g, &s, "", 0, &too_long, 3), STATUS_DATA, "prompt 3 is empty");
    generation_fini(&g);
    if (strcmp(name, "gpt2") == 0) {
        EXPECT_ERROR(generation_init(&g, &s, "and the", 7, &too_long, 1), STATUS_DATA, "reads at most 24");
        generation_fini(&g);
    }
    session_close(&s);
    EXPECT_ERROR(session_open(&s, path, MODEL_TASK_ENCODER, &o), STATUS_DATA, "this model answers: generate");
}

/* ---- the choice of a token ---- */

static void count_choices(int counts[5], const struct generate_options *o)
{
    enum { DRAWS = 4000 };
    const struct generation none = {.n_prompt = 0};
    memset(counts, 0, 5 * sizeof *counts);
    for (uint64_t i = 0; i < DRAWS; i++) {
        /* probabilities 0.4, 0.3, 0.2, 0.1, 0 */
        float logits[5] = {logf(0.2f), logf(0.4f), logf(0.1f), logf(0.3f), -INFINITY};
        counts[generate_choose(logits, 5, &none, o, rng_uniform_at(9, i))]++;
    }
}

static void test_cuts(void)
{
    int n[5];
    count_choices(n, &(struct generate_options){.temperature = 1, .top_p = 1, .repetition_penalty = 1});
    EXPECT(abs(n[1] - 1600) < 120 && abs(n[3] - 1200) < 120 && abs(n[0] - 800) < 120 &&
               abs(n[2] - 400) < 120 && n[4] == 0,
           "drawn %d %d %d %d %d", n[0], n[1], n[2], n[3], n[4]);
    count_choices(
        n, &(struct generate_options){.temperature = 1, .top_k = 2, .top_p = 1, .repetition_penalty = 1});
    EXPECT(n[0] == 0 && n[2] == 0 && abs(n[1] - 2286) < 130, "top_k 2: %d of %d", n[1], n[3]);
    count_choices(n, &(struct generate_options){.temperature = 1, .top_p = 0.65, .repetition_penalty = 1});
    EXPECT(n[0] == 0 && n[2] == 0 && n[3] > 0, "top_p 0.65 leaves two");
    count_choices(n, &(struct generate_options){.temperature = 1, .top_p = 0.75, .repetition_penalty = 1});
    EXPECT(n[0] > 0 && n[2] == 0, "top_p 0.75 leaves three");
    count_choices(n, &(struct generate_options){.temperature = 0.01, .top_p = 1, .repetition_penalty = 1});
    EXPECT(n[1] == 4000, "cold: %d", n[1]);
    count_choices(n, &(struct generate_options){.temperature = 0, .top_p = 1, .repetition_penalty = 1});
    EXPECT(n[1] == 4000, "greedy: %d", n[1]);
}

/* Once for each token, whatever its sign. */
static void test_penalty(void)
{
    static const int32_t ids[] = {1, 1, 2};
    float logits[3] = {2, 3, -1};
    struct generation g = prompt_of(ids, 3, 0);
    const struct generate_options o = {.top_p = 1, .repetition_penalty = 2};
    EXPECT(generate_choose(logits, 3, &g, &o, 0) == 0, "a token that was there wins");
    EXPECT(logits[0] == 2 && logits[1] == 1.5f && logits[2] == -2, "%g %g %g", (double)logits[0],
           (double)logits[1], (double)logits[2]);
    generation_fini(&g);
}

int main(void)
{
    EXPECT_OK(safetensors_open(&golden, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors"));
    session_case_directory(directory, sizeof directory);
    session_case_write(&golden, directory, NULL);
    test_cuts();
    test_penalty();
    check_model("gpt2");
    check_model("bloom");
    EXPECT_OK(file_remove_tree(directory));
    safetensors_close(&golden);
    return 0;
}
