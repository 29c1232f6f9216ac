/* What the ranks of a mesh send in a step is what the plan of the mesh says, to the byte: to slices, to
 * stages and to replicas. */
#include "rank_trainer.h"

#include "data/text_batch.h"
#include "dist/comm_peers.h"
#include "nn/decoder/decoder_config.h"
#include "train/rank_plan.h"

#include <stdlib.h>

enum { STEPS = 2, N_MICRO = 4, SEQUENCES = 2, LENGTH = 16, WORDS = 64, N_LAYERS = 4 };

/* Slices of 64 words are alike: the last one may have fewer, and then sends less. */
static const double DEADLINE_S = 120;

struct run {
    struct trainer_config config; /* configuration of a rank that has the whole model */
    struct batch_step batch;
    struct mesh_sent sent[RANKS_MOST]; /* by each rank */
};

static struct model *decoder(bool alibi)
{
    const struct decoder_config config = {.vocab_size = WORDS,
                                          .n_positions = LENGTH,
                                          .hidden_size = 32,
                                          .n_layers = N_LAYERS,
                                          .n_heads = 4,
                                          .feed_forward_size = 64,
                                          .initializer_range = 0.1,
                                          .norm_eps = 1e-5,
                                          .positions =
                                              alibi ? LAYER_POSITIONS_ALIBI : LAYER_POSITIONS_OF_INPUT,
                                          .embedding_norm = alibi};
    struct model *m;
    EXPECT_OK((alibi ? bloom_model_create : gpt2_model_create)(&m, &config, MODEL_TASK_CAUSAL_LM));
    return m;
}

/* Of full sequences: the plan is of the largest micro-batch. */
static void make_batch(struct run *r)
{
    EXPECT_OK(batch_step_init(&r->batch, 2 * N_MICRO, &text_batch_layout,
                              text_batch_limits(SEQUENCES, LENGTH, LENGTH - 1)));
    for (int32_t i = 0; i < 2 * N_MICRO * SEQUENCES; i++) {
        struct batch *b = &r->batch.micro[i / SEQUENCES];
        int32_t *ids = text_batch_add(b, LENGTH, LENGTH, -1, i);
        for (int32_t k = 0; k < LENGTH; k++) {
            ids[k] = (7 * i + 5 * k) % WORDS;
        }
        for (int32_t k = 0; k + 1 < LENGTH; k++) {
            text_batch_masked_positions(b)[k] = k;
            text_batch_masked_labels(b)[k] = ids[k + 1];
        }
        text_batch_take_masked(b, LENGTH - 1);
    }
    for (int i = 0; i < 2 * N_MICRO; i++) {
        batch_finish(&r->batch.micro[i], 0);
    }
    batch_step_count(&r->batch);
}

static void train(const struct comm *c, void *context)
{
    struct run *r = context;
    struct trainer_config config = r->config;
    struct mesh_shape shape = config.ranks.shape;
    struct trainer t;
    config.ranks.place = mesh_place_of(shape, c->rank);
    struct batch_step mine = batch_step_part(&r->batch, config.ranks.place.dp, shape.dp);
    open_trainer_of(&t, &config, c);
    for (int i = 0; i < STEPS; i++) {
        struct trainer_result result;
        EXPECT_OK(trainer_step(&t, shape.dp > 1 ? &mine : &r->batch, i + 1, i + 1, 1e-3, &result));
    }
    r->sent[c->rank] = t.sent;
    trainer_fini(&t);
}

static struct mesh_place with(struct mesh_place p, int direction, int i)
{
    *(direction == 0 ? &p.tp : direction == 1 ? &p.pp : &p.dp) = i;
    return p;
}

/* Sent, and planned, by a rank in a direction. */
static double sent_to(const struct run *r, struct mesh_place p, int direction)
{
    const struct mesh_sent *s = &r->sent[mesh_rank(r->config.ranks.shape, p)];
    return (double)(direction == 0 ? s->slices : direction == 1 ? s->stages : s->replicas) / STEPS;
}

static double planned_to(const struct run *r, const struct rank_plan *plans, struct mesh_place p,
                         int direction)
{
    struct rank_traffic t = rank_plan_traffic(&plans[p.pp], &r->config);
    return direction == 0 ? t.slices : direction == 1 ? t.stages : t.replicas;
}

/* Sums among more than two ranks, or of shards, are not in equal parts: the ranks of such a group send what
 * is planned together. */
static void expect_planned(const struct run *r, const struct rank_plan *plans)
{
    static const char *const to[] = {"slices", "stages", "replicas"};
    const struct mesh_shape s = r->config.ranks.shape;
    const int sizes[] = {s.tp, s.pp, s.dp};
    for (int rank = 0; rank < s.tp * s.pp * s.dp; rank++) {
        for (int k = 0; k < 3; k++) {
            struct mesh_place p = mesh_place_of(s, rank);
            bool alone = sizes[k] <= 2 && (k < 2 || r->config.ranks.zero_stage == 0);
            double sent = 0, planned = 0;
            for (int i = 0; i < sizes[k]; i++) {
                struct mesh_place q = alone ? p : with(p, k, i);
                sent += sent_to(r, q, k);
                planned += planned_to(r, plans, q, k);
            }
            EXPECT(sent == planned,
                   "TP %d PP %d (%d chunks) DP %d ZeRO %d, rank %d: %g bytes to %s, planned %g", s.tp, s.pp,
                   r->config.ranks.cut.n_chunks, s.dp, r->config.ranks.zero_stage, rank, sent, to[k],
                   planned);
        }
    }
}

static void sends_what_is_planned(struct run *r, const struct model *m, struct mesh_shape shape, int n_chunks,
                                  int zero_stage, const struct optimizer_kind *optimizer, enum dtype dtype)
{
    struct rank_plan plans[4];
    r->config = (struct trainer_config){.net = {.model = m,
                                                .device = &device_cpu,
                                                .ops = ops_cpu(),
                                                .precision = {.dtype = dtype},
                                                .limits = text_batch_limits(SEQUENCES, LENGTH, LENGTH - 1),
                                                .learns = true},
                                        .ranks = {.shape = shape,
                                                  .cut = {.n_chunks = n_chunks},
                                                  .zero_stage = zero_stage,
                                                  .n_micro = 2 * N_MICRO / shape.dp},
                                        .optimizer = optimizer_defaults(optimizer),
                                        .counts_zeros = true};
    for (int stage = 0; stage < shape.pp; stage++) {
        r->config.ranks.place.pp = stage;
        EXPECT_OK(rank_plan(&plans[stage], &r->config));
    }
    run_ranks(shape.tp * shape.pp * shape.dp, DEADLINE_S, train, r);
    expect_planned(r, plans);
}

int main(void)
{
    static struct run r;
    make_batch(&r);
    for (int alibi = 0; alibi < 2; alibi++) {
        struct model *m = decoder(alibi);
        for (int zero_stage = 0; zero_stage < 2; zero_stage++) {
            for (int n_chunks = 1; n_chunks <= 2; n_chunks++) {
                sends_what_is_planned(&r, m, (struct mesh_shape){2, 2, 2}, n_chunks, zero_stage,
                                      &optimizer_adamw, DTYPE_F32);
            }
            sends_what_is_planned(&r, m, (struct mesh_shape){2, 2, 2}, 1, zero_stage, &optimizer_lamb,
                                  DTYPE_F32);
            sends_what_is_planned(&r, m, (struct mesh_shape){2, 2, 2}, 1, zero_stage, &optimizer_adamw,
                                  DTYPE_BF16);
            sends_what_is_planned(&r, m, (struct mesh_shape){1, 4, 2}, 1, zero_stage, &optimizer_adamw,
                                  DTYPE_F32);
            sends_what_is_planned(&r, m, (struct mesh_shape){4, 1, 2}, 1, zero_stage, &optimizer_adamw,
                                  DTYPE_F32);
        }
        free(m);
    }
    batch_step_fini(&r.batch);
    printf("a rank of 20 meshes sent in a step what is planned\n");
    return 0;
}
