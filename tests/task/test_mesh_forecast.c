/* Predicted steps of meshes: one device's is that of world_plan; what ranks send takes the time of the links
 * that lie between them; and stages take the turns of their pipeline. */
#include "test.h"

#include "nn/decoder/decoder_config.h"
#include "task/mesh_forecast.h"

#include <math.h>
#include <stdlib.h>

enum { N_LAYERS = 8, HIDDEN = 64, LENGTH = 32, N_MICRO = 16, MOST_STAGES = 8 };

struct planned {
    struct model *model;
    struct device device;
    struct world_setup setup;
    struct trainer_config config;
    struct rank_plan stages[MOST_STAGES];
    struct mesh_forecast f;
};

static void set_up(struct planned *p)
{
    const struct decoder_config config = {.vocab_size = 512,
                                          .n_positions = LENGTH,
                                          .hidden_size = HIDDEN,
                                          .n_layers = N_LAYERS,
                                          .n_heads = 8,
                                          .feed_forward_size = 4 * HIDDEN,
                                          .initializer_range = 0.02,
                                          .norm_eps = 1e-5};
    struct world_setup *s = &p->setup;
    EXPECT_OK(gpt2_model_create(&p->model, &config, MODEL_TASK_CAUSAL_LM));
    EXPECT_OK(machine_find(&s->machine, "a100"));
    p->device = machine_device(s->machine);
    s->rates = s->machine->rates;
    s->links = world_links(s->machine, 0);
    s->bench = (struct step_bench){.config = {.net = {.model = p->model,
                                                      .device = &p->device,
                                                      .ops = &ops_plan,
                                                      .precision = {.dtype = DTYPE_BF16},
                                                      .learns = true},
                                              .optimizer = optimizer_defaults(&optimizer_adamw)},
                                   .length = LENGTH,
                                   .n_sequences = 2};
    EXPECT_OK(step_bench_plan(&s->bench));
}

static void forecast(struct planned *p, struct mesh_shape shape, int n_chunks, int zero_stage)
{
    p->config = p->setup.bench.config;
    p->config.ranks = (struct trainer_ranks){
        .shape = shape, .cut = {.n_chunks = n_chunks}, .zero_stage = zero_stage, .n_micro = N_MICRO};
    for (int i = 0; i < shape.pp; i++) {
        p->config.ranks.place.pp = i;
        EXPECT_OK(rank_plan(&p->stages[i], &p->config));
    }
    EXPECT_OK(mesh_forecast_run(&p->f, &p->setup, &p->config, p->stages));
}

#define EXPECT_SAME(a, b)                                                                                    \
    EXPECT(fabs((a) - (b)) <= 1e-9 * fabs(b), "%.12g, not %.12g", (double)(a), (double)(b))

static void one_device_is_that_of_a_world(struct planned *p)
{
    struct world_plan w;
    forecast(p, (struct mesh_shape){1, 1, 1}, 1, 0);
    EXPECT_OK(world_plan_bytes(&w, &p->setup, 1, 0, N_MICRO));
    EXPECT_OK(world_plan_times(&w, &p->setup));
    EXPECT(p->f.step_s > 0, "no time");
    EXPECT_SAME(p->f.step_s, w.step_s.slow);
    forecast(p, (struct mesh_shape){1, 1, 4}, 1, 1);
    EXPECT_OK(world_plan_bytes(&w, &p->setup, 4, 1, N_MICRO));
    EXPECT_OK(world_plan_times(&w, &p->setup));
    EXPECT_SAME(p->f.step_s, w.step_s.slow);
}

/* Eight devices make a node, which slices fill first. */
static void traffic_takes_the_links_between(struct planned *p)
{
    const struct ring_links *l = &p->setup.links;
    forecast(p, (struct mesh_shape){8, 1, 2}, 1, 0);
    EXPECT_SAME(p->f.replicas_s, p->stages[0].reduced_bytes * 2 / 2 / l->between);
    EXPECT_SAME(p->f.slowest.slices_s, p->stages[0].tensor_bytes / N_MICRO / l->within);
    forecast(p, (struct mesh_shape){4, 1, 2}, 1, 0);
    EXPECT_SAME(p->f.replicas_s, p->stages[0].reduced_bytes * 2 / 2 / l->within);
    double message = 2 * LENGTH * HIDDEN * 2;
    forecast(p, (struct mesh_shape){8, 2, 1}, 1, 0);
    EXPECT_SAME(p->f.slowest.message_s, message / l->between);
    EXPECT_SAME(p->f.tied_s, (p->stages[0].tied_bytes + p->stages[1].tied_bytes) / l->between);
    forecast(p, (struct mesh_shape){1, 2, 1}, 1, 0);
    EXPECT_SAME(p->f.slowest.message_s, message / l->within);
}

/* With links that take no time, and ends that compute more than other stages. */
static void stages_take_turns(struct planned *p)
{
    p->setup.links = (struct ring_links){8, 1e30, 1e30};
    double idle[2];
    for (int n_chunks = 1; n_chunks <= 2; n_chunks++) {
        forecast(p, (struct mesh_shape){1, 4, 1}, n_chunks, 0);
        double busy = N_MICRO * p->f.slowest.passes_s;
        EXPECT(p->f.turns_s > busy && p->f.turns_s <= busy * (1 + 3.0 / N_MICRO), "%g s of turns, %g of work",
               p->f.turns_s, busy);
        idle[n_chunks - 1] = mesh_forecast_idle(&p->f, &p->config);
        EXPECT_SAME(idle[n_chunks - 1], (p->f.turns_s - busy) / p->f.step_s);
    }
    EXPECT(idle[1] < 0.6 * idle[0], "chunks leave %g of %g", idle[1], idle[0]);
}

int main(void)
{
    static struct planned p;
    set_up(&p);
    one_device_is_that_of_a_world(&p);
    traffic_takes_the_links_between(&p);
    stages_take_turns(&p);
    free(p.model);
    return 0;
}
