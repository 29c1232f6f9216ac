/* Gradients in blocks: one trainer, and 2 and 4 ranks with and without shared updates, take the same steps to
 * the bit; so do ranks that share gradients and take turns at blocks of one micro-batch; and the plan counts
 * the sums that one of them keeps. */
#include "train/trainer.h"

#include "bert_fixture.h"
#include "rank_trainer.h"

enum { LONGEST = 14, N_MICRO = 6, SEQUENCES = 3, STEPS = 3, BLOCKS = 4 };

static const double DEADLINE_S = 60, LR = 1e-2;

struct run {
    struct trainer_config config;
    struct batch_step batch;
    float *wanted; /* weights of one trainer after the last step */
    int64_t n;
    struct trainer_result result;
    bool shared, in_turn; /* the update; and the gradients, of ranks that take turns */
};

/* As batch_step_init_part. */
static struct batch_step in_turn(const struct batch_step *all, const struct comm *c,
                                 struct batch micro[N_MICRO])
{
    struct batch_step mine = *all;
    mine.micro = micro;
    mine.first_micro = c->rank;
    mine.apart = c->size;
    mine.n_micro = 0;
    for (int64_t i = c->rank; i < all->n_micro; i += c->size) {
        micro[mine.n_micro++] = all->micro[i];
    }
    return mine;
}

static void body(const struct comm *c, void *context)
{
    const struct run *r = context;
    struct trainer t;
    struct trainer_result result;
    struct trainer_config config = r->config;
    struct batch micro[N_MICRO];
    struct batch_step mine = batch_step_part(&r->batch, c->rank, c->size);
    if (r->in_turn) {
        mine = in_turn(&r->batch, c, micro);
    }
    config.ranks = replicas_of(c, r->in_turn ? 2 : r->shared);
    config.ranks.reproducible = BLOCKS;
    open_trainer_of(&t, &config, c);
    for (int64_t i = 1; i <= STEPS; i++) {
        EXPECT_OK(trainer_step(&t, &mine, i, i, LR, &result));
    }
    struct param_shard owned = t.net.owned;
    size_t n = (size_t)(owned.end - owned.begin);
    EXPECT(n > 0 && memcmp(t.net.master.data, r->wanted + owned.begin, n * sizeof *r->wanted) == 0,
           "%d ranks have other weights, %s", c->size, r->shared ? "in shards" : "whole");
    EXPECT(result.grad_norm == r->result.grad_norm, "norm %.17g, not %.17g", result.grad_norm,
           r->result.grad_norm);
    EXPECT_NEAR(trainer_result_loss(&result), trainer_result_loss(&r->result), 1e-12);
    trainer_fini(&t);
}

/* The weights of one trainer with so many blocks; the caller frees them. */
static float *alone(struct run *r, int blocks)
{
    struct trainer t;
    struct trainer_config config = r->config;
    config.ranks.reproducible = blocks;
    EXPECT_OK(trainer_init(&t, &config));
    for (int64_t i = 1; i <= STEPS; i++) {
        EXPECT_OK(trainer_step(&t, &r->batch, i, i, LR, &r->result));
    }
    r->n = tensor_count(t.net.master);
    float *weights = malloc((size_t)r->n * sizeof *weights);
    EXPECT(weights != NULL, "out of memory");
    memcpy(weights, t.net.master.data, (size_t)r->n * sizeof *weights);
    trainer_fini(&t);
    return weights;
}

static void open_run(struct run *r, enum dtype dtype, bool has_empty)
{
    *r = (struct run){0};
    fixture_step(&r->batch, N_MICRO, SEQUENCES, LONGEST);
    if (has_empty) { /* a whole block, and all that the first rank of 4 has */
        batch_clear(&r->batch.micro[0]);
        batch_step_count(&r->batch);
    }
    r->config = fixture_trainer(ops_cpu(), dtype, r->batch.micro[1].limits);
    r->config.optimizer = optimizer_defaults(&optimizer_lamb);
}

static void ranks_give_the_same_bits(enum dtype dtype, bool has_empty)
{
    struct run r;
    open_run(&r, dtype, has_empty);
    r.wanted = alone(&r, BLOCKS);
    for (int size = 1; size <= BLOCKS; size *= 2) {
        for (int shared = 0; shared < 2; shared++) {
            r.shared = shared != 0;
            run_ranks(size, DEADLINE_S, body, &r);
        }
    }
    free(r.wanted);
    struct batch_step all = r.batch;
    r.batch.n_micro = r.batch.n_all_micro = r.batch.n_to_fill = BLOCKS;
    batch_step_count(&r.batch);
    r.wanted = alone(&r, BLOCKS);
    r.in_turn = true;
    for (int size = 1; size <= BLOCKS; size *= 2) {
        run_ranks(size, DEADLINE_S, body, &r);
    }
    free(r.wanted);
    batch_step_fini(&all);
}

/* One block is the sum that there was before; four are another, or this test would compare nothing. */
static void blocks_change_the_sum(void)
{
    struct run r;
    open_run(&r, DTYPE_F32, false);
    float *none = alone(&r, 0), *one = alone(&r, 1), *four = alone(&r, BLOCKS);
    size_t bytes = (size_t)r.n * sizeof *none;
    EXPECT(memcmp(none, one, bytes) == 0, "one block");
    EXPECT(memcmp(none, four, bytes) != 0, "four blocks have the bits of one");
    free(none), free(one), free(four);
    batch_step_fini(&r.batch);
}

static void plans_count_the_sums(void)
{
    struct run r;
    struct trainer_plan plain, plan;
    open_run(&r, DTYPE_F32, false);
    EXPECT_OK(trainer_plan(&plain, &r.config));
    static const struct {
        int blocks, n_ranks, sums;
    } cases[] = {{1, 1, 0}, {2, 1, 1}, {8, 1, 3}, {8, 2, 2}, {8, 8, 0}, {1024, 1, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        r.config.ranks = (struct trainer_ranks){
            .shape.dp = cases[i].n_ranks, .place.dp = cases[i].n_ranks - 1, .reproducible = cases[i].blocks};
        EXPECT_OK(trainer_plan(&plan, &r.config));
        EXPECT(plan.gradient_bytes == (size_t)(1 + cases[i].sums) * plain.gradient_bytes,
               "%zu bytes of %d blocks", plan.gradient_bytes, cases[i].blocks);
    }
    batch_step_fini(&r.batch);
}

int main(void)
{
    ranks_give_the_same_bits(DTYPE_F32, false);
    ranks_give_the_same_bits(DTYPE_F32, true);
    ranks_give_the_same_bits(DTYPE_BF16, false);
    blocks_change_the_sum();
    plans_count_the_sums();
    return 0;
}
