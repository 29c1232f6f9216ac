/* A decoder on the cuda table goes on as on the cpu, and tells the same probabilities, to its rounding:
 * greedily and drawn, with penalties and biases, whose changes do not all fit a group; and a text whose
 * logits are not finite fails. */
#define _GNU_SOURCE
#include "gpu_tests.h"
#include "session_case.h"

#include "checkop_backend.h"
#include "serve/generate.h"

#include <math.h>

enum { TEXTS = 3, PROMPT = 9, NEW = 6, ALTERNATIVES = 4 };

struct prompts {
    struct generation texts[TEXTS];
    int n_given;
};

static struct status next(void *self, bool may_wait, struct generation **next)
{
    struct prompts *p = self;
    (void)may_wait;
    *next = p->n_given < TEXTS ? &p->texts[p->n_given++] : NULL;
    return status_ok();
}

static struct status told(void *self, struct generation *g)
{
    (void)self, (void)g;
    return status_ok();
}

static void generate_all(struct session *s, struct prompts *p, const struct generate_options *o)
{
    static const int32_t ids[PROMPT + TEXTS] = {5, 90, 17, 230, 41, 8, 77, 152, 63, 19, 204, 111};
    *p = (struct prompts){0};
    for (int i = 0; i < TEXTS; i++) {
        EXPECT_OK(generation_init_ids(&p->texts[i], s, ids + i, PROMPT, o, i));
    }
    EXPECT_OK(generate(s, &(struct generation_source){next, told, p}, NULL));
}

static void fini(struct prompts *p)
{
    for (int i = 0; i < TEXTS; i++) {
        generation_fini(&p->texts[i]);
    }
}

static void compare(struct session *host, struct session *device, const struct generate_options *o)
{
    struct prompts a, b;
    generate_all(host, &a, o);
    generate_all(device, &b, o);
    for (int i = 0; i < TEXTS; i++) {
        const struct generation *x = &a.texts[i], *y = &b.texts[i];
        EXPECT(x->ids.n == PROMPT + NEW && y->ids.n == x->ids.n && y->n_rated == x->n_rated,
               "text %d: %zu and %zu ids, %zu and %zu rated", i, x->ids.n, y->ids.n, x->n_rated, y->n_rated);
        for (size_t k = 0; k < x->ids.n; k++) {
            EXPECT(x->ids.ids[k] == y->ids.ids[k], "text %d: id %zu is %d, not %d", i, k, y->ids.ids[k],
                   x->ids.ids[k]);
        }
        for (size_t k = 0; k < x->n_rated * (1 + ALTERNATIVES); k++) {
            EXPECT(x->rated[k].id == y->rated[k].id, "text %d: rating %zu", i, k);
            EXPECT_NEAR(y->rated[k].log_p, x->rated[k].log_p, 1e-4);
        }
    }
    fini(&a);
    fini(&b);
}

static void expect_failure(struct session *s, const struct generate_options *o)
{
    struct prompts p;
    const float nan = NAN;
    exec_copy_in(&s->net.x, s->net.master.data, &nan, sizeof nan);
    generate_all(s, &p, o);
    for (int i = 0; i < TEXTS; i++) {
        EXPECT_ERROR(p.texts[i].status, STATUS_NUMERIC, "are not finite");
    }
    EXPECT_ERROR(packer_explain(&s->packer, p.texts[0].status), STATUS_NUMERIC, "the weight ");
    fini(&p);
}

int test_cuda_generate(void)
{
    static const struct token_bias biases[] = {{3, 4}, {100, -2}};
    struct checkop_backend gpu = checkop_find_backend("cuda");
    struct session_options in_fp32 = {.backend = {gpu.device, gpu.ops}, .dtype = DTYPE_F32},
                           by_cpu = session_defaults();
    struct generate_options o = {.max_new_tokens = NEW,
                                 .choice = {.top_p = 1, .repetition_penalty = 1},
                                 .ignore_eos = true,
                                 .rates_prompt = true,
                                 .n_alternatives = ALTERNATIVES};
    struct safetensors golden;
    struct session host, device;
    char directory[64], path[SESSION_CASE_PATH];
    EXPECT_OK(safetensors_open(&golden, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors"));
    session_case_directory(directory, sizeof directory);
    session_case_write(&golden, directory, NULL);
    snprintf(path, sizeof path, "%s/gpt2", directory);
    EXPECT_OK(session_open(&host, path, MODEL_TASK_CAUSAL_LM, &by_cpu));
    EXPECT_OK(session_open(&device, path, MODEL_TASK_CAUSAL_LM, &in_fp32));
    compare(&host, &device, &o);
    o.choice = (struct token_choice_options){.temperature = 1.2,
                                             .top_k = 60,
                                             .top_p = 0.95,
                                             .repetition_penalty = 1.2,
                                             .min_p = 0.001,
                                             .presence_penalty = 0.3,
                                             .frequency_penalty = 0.2,
                                             .biases = biases,
                                             .n_biases = 2};
    compare(&host, &device, &o);
    device.net.choices.n_changes = PROMPT + NEW + 2; /* of one row */
    compare(&host, &device, &o);
    expect_failure(&device, &o);
    session_close(&device);
    session_close(&host);
    EXPECT_OK(file_remove_tree(directory));
    safetensors_close(&golden);
    return 0;
}
