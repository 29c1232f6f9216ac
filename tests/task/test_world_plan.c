/* Plans of the documents' models: the bytes of BERT-5B counted by hand, times against what was published, and
 * a step as the sum of its parts. */
#include "test.h"

#include "model/model_family.h"
#include "task/world_plan.h"

#include <stdlib.h>

/* The set-up must not move: its configuration points into it. */
struct planned {
    struct model *model;
    struct device device;
    struct world_setup setup;
};

struct wanted {
    const char *file, *device;
    enum dtype dtype;
    int64_t micro, recompute;
};

static void set_up(struct planned *p, struct wanted w)
{
    char path[512];
    json_t *config;
    struct world_setup *s = &p->setup;
    snprintf(path, sizeof path, "%s/configs/%s.json", KILN_SOURCE_DIR, w.file);
    if (p->model != NULL) {
        free(p->model); /* of the set-up before */
    }
    EXPECT_OK(json_read_object(&config, path));
    EXPECT_OK(model_family_create(&p->model, config, path, MODEL_TASK_PRETRAINING));
    json_decref(config);
    *s = (struct world_setup){0};
    EXPECT_OK(machine_find(&s->machine, w.device));
    p->device = machine_device(s->machine);
    s->rates = s->machine->rates;
    s->links = (struct ring_links){s->machine->per_node, s->machine->within, s->machine->between};
    s->bench = (struct step_bench){.config = {.net = {.model = p->model,
                                                      .device = &p->device,
                                                      .ops = &ops_plan,
                                                      .precision = {.dtype = w.dtype},
                                                      .learns = true,
                                                      .recompute = w.recompute},
                                              .optimizer = optimizer_defaults(&optimizer_lans),
                                              .saving = true},
                                   .length = 128,
                                   .n_sequences = w.micro,
                                   .n_masked = 20};
    EXPECT_OK(step_bench_plan(&s->bench));
}

static struct world_plan plan(const struct planned *p, int64_t world, int stage, int64_t n_micro)
{
    struct world_plan plan;
    EXPECT_OK(world_plan_bytes(&plan, &p->setup, world, stage, n_micro));
    EXPECT_OK(world_plan_times(&plan, &p->setup));
    return plan;
}

/* Elements of a slab. */
static int64_t slab(int64_t n)
{
    return (n + 1023) / 1024 * 1024;
}

/* 63 layers of 2,560, with feed-forward layers of 10,240 and 512,035 words in 512,064 rows: 25.1e9 bytes of
 * fp32.  On 128 devices with ZeRO-2 a device has 12.6e9 of the bf16 copy, a 128th of the fp32 weights and
 * moments, and of the gradients a 128th, the input layer's, which wait for the whole backward, and a
 * layer's. */
static void test_5b(void)
{
    enum { H = 2560, F = 10240, LAYERS = 63, ROWS = 512064, WORLD = 128 };
    static struct planned p;
    set_up(&p, (struct wanted){"bert_5b", "gaudi1", DTYPE_BF16, 24, 1});
    int64_t input = slab(ROWS * H) + slab(512 * H) + slab(2 * H) + 2 * slab(H);
    int64_t layer = slab(3 * H * H) + slab(3 * H) + slab(H * H) + 2 * slab(H * F) + slab(F) + 6 * slab(H);
    int64_t heads = 2 * slab(H * H) + 4 * slab(H) + slab(ROWS) + slab(2 * H) + slab(2);
    int64_t all = input + LAYERS * layer + heads, a_128th = all / WORLD;
    /* but for biases that products add, which such a device reads in bf16 */
    int64_t vectors = 2 * slab(H) + LAYERS * 6 * slab(H) + 2 * slab(H) + slab(ROWS) + slab(2);
    struct world_plan whole, shared;
    EXPECT_OK(world_plan_bytes(&whole, &p.setup, 1, 0, 1));
    EXPECT_OK(world_plan_bytes(&shared, &p.setup, WORLD, 2, 4));
    EXPECT(whole.rank.all_elements == all, "%lld elements, by hand %lld", (long long)whole.rank.all_elements,
           (long long)all);
    EXPECT(whole.rank.trainer.net.n_params == 6282383397, "%lld parameters",
           (long long)whole.rank.trainer.net.n_params);
    EXPECT(whole.rank.working_bytes == 2 * (size_t)all && shared.rank.working_bytes == 2 * (size_t)all,
           "the copy that products read");
    EXPECT(whole.rank.master_bytes == 4 * (size_t)all && whole.rank.gradient_bytes == 4 * (size_t)all,
           "master and gradients of one device");
    EXPECT_NEAR((double)shared.rank.shard_elements, (double)a_128th, 2048);
    EXPECT_NEAR((double)shared.rank.master_bytes, 4.0 * (double)(a_128th + vectors), 4 * 2048);
    EXPECT_NEAR((double)shared.rank.gradient_bytes, 4.0 * (double)(a_128th + input + layer), 4 * 2048);
    EXPECT_NEAR((double)shared.rank.host_bytes, 12.0 * (double)a_128th, 12 * 2048);
    /* three sums of a chunk for LANS and one for the norm, of which there are about as many as 1,024
     * elements */
    EXPECT_NEAR((double)shared.rank.optimizer_bytes, 8.0 * (double)a_128th + 32.0 * (double)all / 1024, 1e6);
    /* what document 002's text says of ZeRO, of its larger model: alone it does not fit, shared out it
     * does */
    EXPECT((double)whole.rank.device_bytes > 3 * p.setup.machine->memory_bytes, "it fits alone");
    EXPECT((double)shared.rank.device_bytes < p.setup.machine->memory_bytes, "it does not fit on 128");
    /* gradients are summed four times, 127 of 128 parts of 4 bytes an element each; 2 bytes come back, and
     * vectors in fp32 */
    double sent = shared.reduce.within_bytes + shared.reduce.between_bytes;
    EXPECT_NEAR(sent, 4 * 4.0 * (double)all * 127 / 128, 1);
    sent = shared.gather.within_bytes + shared.gather.between_bytes;
    EXPECT_NEAR(sent, (2.0 * (double)all + 4.0 * (double)vectors + 32.0 * (double)all / 1024) * 127 / 128,
                1e6);
}

/* The shares that rows assume were found so; BERT-1.5B's rate was not used for it.  The published runs
 * computed all rows of the last layer, of which kiln leaves five in six out: by FLOPs 2.6 % of BERT-Large's
 * work, 1.3 % of BERT-1.5B's. */
static void test_published(void)
{
    static const double large = 1.026, of_1_5b = 1.013;
    static struct planned p;
    set_up(&p, (struct wanted){"bert_large", "gaudi1", DTYPE_BF16, 64, 0});
    EXPECT_NEAR(plan(&p, 8, 0, 128).sequences.fast, large * 1489, 15);
    EXPECT_NEAR(plan(&p, 32, 0, 32).sequences.fast, large * 5810, 200);
    set_up(&p, (struct wanted){"bert_large", "a100", DTYPE_F16, 64, 0});
    EXPECT_NEAR(plan(&p, 1, 0, 128).sequences.fast, large * 580, 6);
    set_up(&p, (struct wanted){"bert_large", "h200", DTYPE_BF16, 256, 0}); /* measured without the update */
    EXPECT_NEAR(256 / plan(&p, 1, 0, 1).passes_s, large * 1861, 10);
    set_up(&p, (struct wanted){"bert_1.5b", "gaudi1", DTYPE_BF16, 16, 0});
    struct world_plan published = plan(&p, 8, 1, 96);
    EXPECT_NEAR(published.sequences.fast, of_1_5b * 302.5, 0.05 * 302.5);
    EXPECT((double)published.rank.device_bytes < p.setup.machine->memory_bytes, "ZeRO-1 does not fit");
    EXPECT((double)plan(&p, 8, 0, 96).rank.device_bytes > p.setup.machine->memory_bytes,
           "without ZeRO it fits");
}

/* One GPU's step is the one that `kiln bench --predict` prints. */
static void test_one_gpu(void)
{
    static struct planned p;
    static struct step_forecast f;
    set_up(&p, (struct wanted){"bert_large", "h200", DTYPE_BF16, 64, 0});
    EXPECT_OK(step_forecast_run(&f, &p.setup.bench, &p.setup.rates));
    struct world_plan one = plan(&p, 1, 0, 1), four = plan(&p, 1, 0, 4);
    EXPECT_NEAR(one.step_s.fast, f.step_s, 1e-9);
    EXPECT_NEAR(one.step_s.slow, f.step_s, 1e-9);
    EXPECT_NEAR(four.step_s.fast, f.step_s + 3 * f.passes_s, 1e-9);
    EXPECT_NEAR(four.sequences.fast, 256 / four.step_s.fast, 1e-6);
    struct world_plan shared = plan(&p, 8, 1, 1), whole = plan(&p, 8, 0, 1);
    EXPECT(shared.update_s < 0.4 * whole.update_s, "an eighth of the update takes %g of %g s",
           shared.update_s, whole.update_s);
}

static void test_overlap(void)
{
    static struct planned p;
    set_up(&p, (struct wanted){"bert_large", "gaudi1", DTYPE_BF16, 16, 0});
    struct world_plan fast = plan(&p, 8, 1, 3);
    EXPECT_NEAR(fast.left_s, 0, 0);
    EXPECT_NEAR(fast.step_s.fast, 3 * fast.passes_s + fast.update_s + fast.gather.seconds, 1e-9);
    EXPECT_NEAR(fast.step_s.slow - fast.step_s.fast, fast.reduce.seconds, 1e-9);
    p.setup.links.within = 1e9; /* so slow that a backward does not hide it */
    struct world_plan slow = plan(&p, 8, 1, 3), all = plan(&p, 8, 0, 3), each = plan(&p, 8, 2, 3);
    EXPECT_NEAR(slow.left_s, slow.reduce.seconds - 2.0 / 3 * slow.passes_s, 1e-9);
    EXPECT_NEAR(all.reduce.seconds, 2 * slow.reduce.seconds, 1e-9);
    EXPECT_NEAR(each.reduce.seconds, 3 * slow.reduce.seconds, 1e-9);
    EXPECT_NEAR(each.left_s, 3 * slow.left_s, 1e-9);
    EXPECT(slow.sequences.fast < fast.sequences.fast && slow.sequences.slow < slow.sequences.fast,
           "links cost nothing");
}

static void test_unknown_rate(void)
{
    static struct planned p;
    struct world_plan w;
    set_up(&p, (struct wanted){"bert_tiny", "gaudi1", DTYPE_F32, 16, 0});
    EXPECT_OK(world_plan_bytes(&w, &p.setup, 1, 0, 1));
    EXPECT_ERROR(world_plan_times(&w, &p.setup), STATUS_USAGE,
                 "the rate of products in fp32 is not known for gaudi1: add --autocast");
}

int main(void)
{
    test_5b();
    test_published();
    test_one_gpu();
    test_overlap();
    test_unknown_rate();
    printf("test_world_plan: BERT-5B's bytes by hand, published rates, steps by their parts\n");
    return 0;
}
