/* What ranks exchange in a step: the gathers that they need and no others, and the bytes of the plan. */
#include "dist/comm_call.h"

#include "rank_steps.h"
#include "train/rank_plan.h"

/* Gathers of this rank. */
static _Thread_local int n_gathers;
static _Thread_local const struct comm_type *counted;

static struct status counting_call(void *state, struct exec *x, const struct comm_call *call, tensor t,
                                   const int64_t *bounds)
{
    n_gathers += call->kind == CALL_ALL_GATHER;
    return counted->call(state, x, call, t, bounds);
}

/* One step: those of the gradients' squares, of the sums of directions if shards cut parameters, and of
 * weights that other ranks need. */
static void count_gathers(const struct comm *c, void *context)
{
    const struct run *r = context;
    struct comm counting = *c;
    struct comm_type type = *c->type;
    struct trainer_result result;
    counted = c->type;
    type.call = counting_call;
    counting.type = &type;
    for (int in_pipeline = 0; in_pipeline < 2; in_pipeline++) {
        struct trainer t;
        struct trainer_config config = r->config;
        struct batch_step mine = in_pipeline ? r->batch : batch_step_part(&r->batch, c->rank, c->size);
        config.ranks = in_pipeline ? stages_of(c, r->batch.n_micro) : replicas_of(c, 1);
        open_trainer_of(&t, &config, &counting);
        n_gathers = 0;
        EXPECT_OK(trainer_step(&t, &mine, 1, 1, LR, &result));
        EXPECT(n_gathers == (in_pipeline ? 0 : 3), "%d gathers, %s", n_gathers,
               in_pipeline ? "in a pipeline" : "in shards");
        trainer_fini(&t);
    }
}

static void ranks_gather_what_they_need(const struct rank_case *k)
{
    struct run r;
    open_run(&r, k);
    run_ranks(4, DEADLINE_S, count_gathers, &r);
    close_run(&r);
}

/* What a rank's calls exchange in a step. */
static _Thread_local struct exchanged {
    const struct comm_type *inside;
    int rank;
    int64_t n_summed, n_scattered, n_kept, gathered_bytes;
} exchanged;

static struct status noted_call(void *state, struct exec *x, const struct comm_call *call, tensor t,
                                const int64_t *bounds)
{
    exchanged.n_summed += call->kind == CALL_ALL_REDUCE_SUM ? call->count : 0;
    exchanged.gathered_bytes += call->kind == CALL_ALL_GATHER ? (int64_t)tensor_bytes(t) : 0;
    if (call->kind == CALL_REDUCE_SCATTER_SUM) {
        exchanged.n_scattered += call->count;
        exchanged.n_kept += bounds[exchanged.rank + 1] - bounds[exchanged.rank];
    }
    return exchanged.inside->call(state, x, call, t, bounds);
}

/* What ranks exchange is what the plan says; those that share the update sum nothing whole but the losses. */
static void count_bytes(const struct comm *c, int stage, const struct run *r)
{
    struct comm noting = *c;
    struct comm_type type = *c->type;
    struct trainer t;
    struct trainer_result result;
    struct trainer_config config = r->config;
    struct rank_plan plan;
    struct batch_step mine = batch_step_part(&r->batch, c->rank, c->size);
    type.call = noted_call;
    noting.type = &type;
    int64_t most = (N_MICRO + c->size - 1) / c->size, rounds = stage == 2 ? most : 1;
    bool shares = stage > 0;
    config.ranks = replicas_of(c, stage);
    config.ranks.n_micro = most;
    EXPECT_OK(rank_plan(&plan, &config));
    open_trainer_of(&t, &config, &noting);
    exchanged = (struct exchanged){.inside = c->type, .rank = c->rank};
    EXPECT_OK(trainer_step(&t, &mine, 1, 1, LR, &result));
    int64_t whole = exchanged.n_summed - MODEL_MOST_SUMS, sums = shares ? exchanged.n_scattered : whole;
    EXPECT(shares ? whole == 0 : exchanged.n_scattered == 0, "stage %d: %lld elements whole, %lld in parts",
           stage, (long long)whole, (long long)exchanged.n_scattered);
    EXPECT(!shares || exchanged.n_kept == rounds * (t.update.shard.end - t.update.shard.begin),
           "stage %d: %lld elements are kept", stage, (long long)exchanged.n_kept);
    EXPECT((double)sums * sizeof(float) == plan.reduced_bytes * (double)rounds && plan.n_reductions == rounds,
           "stage %d: %lld elements, planned %lld times %g bytes", stage, (long long)sums,
           (long long)plan.n_reductions, plan.reduced_bytes);
    EXPECT((double)exchanged.gathered_bytes == plan.gathered_bytes,
           "stage %d: %lld bytes gathered, planned %g", stage, (long long)exchanged.gathered_bytes,
           plan.gathered_bytes);
    trainer_fini(&t);
}

static void count_bytes_of_stages(const struct comm *c, void *context)
{
    for (int stage = 0; stage < ZERO_STAGES; stage++) {
        count_bytes(c, stage, context);
    }
}

static void ranks_exchange_what_is_planned(const struct rank_case *k)
{
    struct run r;
    open_run(&r, k);
    run_ranks(4, DEADLINE_S, count_bytes_of_stages, &r);
    close_run(&r);
}

int main(void)
{
    ranks_gather_what_they_need(
        &(struct rank_case){.name = "wide, lamb", .hidden_size = 48}); /* shards cut parameters */
    ranks_exchange_what_is_planned(
        &(struct rank_case){.name = "wide, lans", .optimizer = &optimizer_lans, .hidden_size = 48});
    ranks_exchange_what_is_planned(&(struct rank_case){.name = "wide, lans, bf16",
                                                       .precision = {.dtype = DTYPE_BF16},
                                                       .optimizer = &optimizer_lans,
                                                       .hidden_size = 48});
    return 0;
}
