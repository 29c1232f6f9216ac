#include "task/rank_options.h"

#include "core/log.h"

struct mesh rank_options_mesh(const struct rank_options *o)
{
    struct comm alone = comm_self();
    return o->mesh.shape.tp > 0 ? o->mesh : mesh_of_replicas(&alone);
}

struct comm rank_options_world(const struct rank_options *o)
{
    return rank_options_mesh(o).world;
}

struct comm rank_options_data(const struct rank_options *o)
{
    return rank_options_mesh(o).data;
}

static struct status check_batch(const struct rank_options *o, int n_ranks, int64_t n_micro)
{
    FAIL_IF(n_micro < n_ranks, STATUS_USAGE,
            "--gradient_accumulation_steps %lld counts the micro-batches of all ranks (--global_batch_size "
            "%lld), but each of %d ranks needs at least one",
            (long long)n_micro, (long long)o->global_batch_size, n_ranks);
    return status_ok();
}

static struct status check_reproducible(const struct rank_options *o, int n_ranks, bool fp8)
{
    int64_t n = o->reproducible_ranks;
    if (n == 0) {
        return status_ok();
    }
    FAIL_IF((n & (n - 1)) != 0 || n > GRADIENT_TREE_MOST_BLOCKS, STATUS_USAGE,
            "--reproducible_ranks %lld must be a power of two, at most %d", (long long)n,
            GRADIENT_TREE_MOST_BLOCKS);
    FAIL_IF(n % n_ranks != 0, STATUS_USAGE,
            "--reproducible_ranks %lld must be a multiple of the number of ranks, %d", (long long)n, n_ranks);
    return fp8 ? status_error(STATUS_USAGE,
                              "--reproducible_ranks cannot be combined with --fp8, whose factors a rank also "
                              "finds from its own micro-batches: leave out one of the two")
               : status_ok();
}

/* A rank alone shares nothing. */
static bool shares_gradients(const struct rank_options *o, int n_ranks)
{
    return o->zero_stage > 1 && n_ranks > 1;
}

bool rank_options_in_turn(const struct rank_options *o)
{
    return shares_gradients(o, rank_options_data(o).size) && o->reproducible_ranks > 0;
}

/* Stage 2 sums over ranks after each micro-batch, so that is what a block must be. */
static struct status check_order(const struct rank_options *o, int n_ranks, int64_t n_micro)
{
    if (o->reproducible_ranks == 0 || !shares_gradients(o, n_ranks) || n_micro == o->reproducible_ranks) {
        return status_ok();
    }
    return status_error(STATUS_USAGE,
                        "--reproducible_ranks %lld with --zero_stage 2 needs as many micro-batches on all "
                        "ranks together, but there are %lld: stage 2 reduces after each of them; give "
                        "--reproducible_ranks %lld if that is a power of two, or --zero_stage 1",
                        (long long)o->reproducible_ranks, (long long)n_micro, (long long)n_micro);
}

/* Words of the log for what each rank has. */
static const char *shared_by(const struct rank_options *o)
{
    static const char *const by_stage[] = {"each has all moments",
                                           "each has a shard of the moments (ZeRO stage 1)",
                                           "each has a shard of moments and gradients (ZeRO stage 2)"};
    return by_stage[o->zero_stage];
}

struct status rank_options_take(const struct rank_options *o, bool fp8, int64_t *train_batch_size,
                                int64_t *gradient_accumulation_steps)
{
    int n = rank_options_data(o).size;
    FAIL_IF(o->zero_stage > 2, STATUS_UNAVAILABLE,
            "ZeRO stage %lld is not supported: every rank keeps all weights; stage 2 shards moments and "
            "gradients",
            (long long)o->zero_stage);
    TRY(check_reproducible(o, n, fp8));
    if (o->global_batch_size > 0) {
        *train_batch_size = o->global_batch_size;
        TRY(check_batch(o, n, *gradient_accumulation_steps));
    } else {
        *train_batch_size *= n;
        *gradient_accumulation_steps *= n;
    }
    return check_order(o, n, *gradient_accumulation_steps);
}

struct trainer_ranks rank_options_ranks(const struct rank_options *o, int64_t n_micro)
{
    struct mesh mesh = rank_options_mesh(o);
    return (struct trainer_ranks){.shape = mesh.shape,
                                  .place = mesh.place,
                                  .cut = o->cut,
                                  .zero_stage = (int)o->zero_stage,
                                  .reproducible = (int)o->reproducible_ranks,
                                  .n_micro = (n_micro + mesh.shape.dp - 1) / mesh.shape.dp};
}

void rank_options_announce(const struct rank_options *o, int64_t train_batch_size,
                           int64_t gradient_accumulation_steps)
{
    struct comm world = rank_options_world(o), data = rank_options_data(o);
    if (world.size > 1) {
        log_info("ranks: %d over %s, %d on this node; a step has %lld sequences in %lld micro-batches, of "
                 "all ranks together; %s",
                 world.size, world.type->name, world.n_local, (long long)train_batch_size,
                 (long long)gradient_accumulation_steps, shared_by(o));
    }
    if (o->reproducible_ranks > 0) {
        int levels =
            gradient_tree_levels(gradient_blocks_of((int)o->reproducible_ranks, data.rank, data.size));
        log_info("sums: the same bits on up to %lld ranks, which takes %d more buffers of %sgradients",
                 (long long)o->reproducible_ranks, levels,
                 shares_gradients(o, data.size) ? "this rank's shard of " : "");
    }
}

struct status rank_options_open_watch(const struct rank_options *o, struct run_watch *w, struct backend *b,
                                      const char *command, const struct run_watch_options *watch)
{
    struct run_watch_options of_rank = *watch;
    struct comm world = rank_options_world(o);
    if (world.rank > 0 && world.emulated == NULL) {
        of_rank.migration_log = of_rank.log_level = NULL;
    }
    return run_watch_open(w, b, command, &of_rank);
}
