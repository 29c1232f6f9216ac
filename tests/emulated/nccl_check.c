/* Data parallel steps of ranks that each have an emulated GPU: over NCCL (the fake library) they have the
 * bits of the same steps through the host's memory; the sums of buckets are queued one by one between the
 * segments of a recording, and joined once, before the update.  Each rank is a process of mpirun. */
#include "train/trainer.h"

#include "bert_fixture.h"
#include "checkop_backend.h"
#include "dev/host_view.h"
#include "dist/comm_device.h"
#include "dist/world.h"

enum { LONGEST = 8, SEQUENCES = 1, N_MICRO = 2, STEPS = 3, LAYERS = 1, BUCKETS = LAYERS + 2 };

static const double LR = 1e-2;

struct steps_case {
    const char *name;
    bool fp8, shares; /* the update */
    bool shares_gradients;
    int n_micro; /* of all ranks; 0: one each */
};

/* What a run ends with. */
struct outcome {
    float *master; /* [all elements] */
    struct trainer_result result;
};

/* A communicator that counts what it passes on. */
static struct counts {
    const struct comm_type *inner;
    int n_sums, n_joins, n_sums_at_first_join;
} counts;

static struct status counting_call(void *state, struct exec *x, const struct comm_call *call, tensor t,
                                   const int64_t *bounds)
{
    counts.n_sums += call->kind == CALL_ALL_REDUCE_SUM || call->kind == CALL_REDUCE_SCATTER_SUM;
    EXPECT(!x->recording, "%s is recorded", comm_call_name(call->kind));
    return counts.inner->call(state, x, call, t, bounds);
}

static struct status counting_join(void *state, struct exec *x)
{
    counts.n_sums_at_first_join = counts.n_joins++ == 0 ? counts.n_sums : counts.n_sums_at_first_join;
    return counts.inner->join == NULL ? status_ok() : counts.inner->join(state, x);
}

static struct trainer_config config_of(const struct steps_case *k, const struct checkop_backend *backend,
                                       const struct comm *c, struct batch_limits limits)
{
    struct trainer_config config = fixture_trainer(backend->ops, DTYPE_F32, limits);
    struct bert_model *bert = fixture_bert(&config);
    bert->config.num_hidden_layers = LAYERS;
    bert->config.intermediate_size = 32;
    fixture_bert_changed(bert);
    config.net.device = backend->device;
    config.bucket_elements = 1;
    config.net.precision = (struct precision){.dtype = k->fp8 ? DTYPE_BF16 : DTYPE_F32, .fp8 = k->fp8};
    config.ranks = (struct trainer_ranks){
        .shape.dp = c->size, .place.dp = c->rank, .zero_stage = k->shares_gradients ? 2 : k->shares};
    return config;
}

/* All sums of buckets and that of the losses come before the first join: then nothing was waited for during
 * the backward.  But where ranks share gradients the room of a bucket is the next one's. */
static void expect_order(const struct steps_case *k, const struct comm *c)
{
    if (k->shares_gradients) {
        int n_sums = BUCKETS * k->n_micro / c->size + 1;
        EXPECT(counts.n_sums == n_sums && counts.n_sums_at_first_join == 1 && counts.n_joins >= n_sums,
               "%s over %s: %d sums, %d before the first of %d joins", k->name, c->type->name, counts.n_sums,
               counts.n_sums_at_first_join, counts.n_joins);
        return;
    }
    EXPECT(counts.n_sums == BUCKETS + 1 && counts.n_sums_at_first_join == BUCKETS + 1,
           "%s over %s: %d sums, %d before the first join", k->name, c->type->name, counts.n_sums,
           counts.n_sums_at_first_join);
    EXPECT(k->fp8 || k->shares || counts.n_joins == 1, "%s over %s: %d joins", k->name, c->type->name,
           counts.n_joins);
}

static void run_steps(const struct steps_case *k, struct trainer *t, const struct comm *c,
                      struct batch_step *all, struct outcome *o)
{
    struct batch_step mine = batch_step_part(all, c->rank, c->size);
    struct comm counting = *c;
    struct comm_type type = *c->type;
    struct host_view v;
    type.call = counting_call;
    type.join = counting_join;
    counting.type = &type;
    t->mesh = mesh_of_replicas(&counting);
    for (int64_t i = 1; i <= STEPS; i++) {
        counts = (struct counts){.inner = c->type};
        EXPECT_OK(trainer_step(t, &mine, i, i, LR, &o->result));
        expect_order(k, c);
    }
    EXPECT_OK(host_view_open(&v, &t->net.x, t->net.master));
    o->master = malloc(tensor_bytes(t->net.master));
    EXPECT(o->master != NULL, "out of memory");
    memcpy(o->master, v.host.data, tensor_bytes(t->net.master));
    host_view_close(&v);
}

/* The steps over the communicator that is chosen for the device. */
static void run_over(const struct steps_case *k, const struct comm *world, const char *wanted,
                     const struct checkop_backend *backend, struct batch_step *all, struct outcome *o)
{
    struct comm_nccl_config nccl = {.deadline_s = 30};
    struct comm_device d;
    struct trainer t;
    struct trainer_config config = config_of(k, backend, world, all->micro[0].limits);
    EXPECT_OK(trainer_init(&t, &config));
    EXPECT_OK(comm_device_open(&d, world, &t.net.x, &nccl));
    const char *is = d.comm.stage != NULL ? "staged" : d.comm.type->name;
    EXPECT(strcmp(is, wanted) == 0, "%s, not %s", is, wanted);
    run_steps(k, &t, &d.comm, all, o);
    comm_device_close(&d);
    trainer_fini(&t);
}

static void have_the_same_bits(const struct steps_case *k, const struct comm *world,
                               const struct checkop_backend *backend, struct batch_step *all,
                               const char *library)
{
    struct outcome nccl, staged;
    struct trainer_config config = config_of(k, backend, world, all->micro[0].limits);
    struct trainer t;
    EXPECT_OK(trainer_init(&t, &config));
    size_t bytes = tensor_bytes(t.net.master);
    trainer_fini(&t);
    setenv("KILN_NCCL_LIBRARY", library, 1);
    run_over(k, world, "nccl", backend, all, &nccl);
    setenv("KILN_NCCL_LIBRARY", "/nowhere/libnccl.so.2", 1);
    run_over(k, world, "staged", backend, all, &staged);
    EXPECT(memcmp(nccl.master, staged.master, bytes) == 0, "%s: other weights", k->name);
    EXPECT(nccl.result.grad_norm == staged.result.grad_norm &&
               nccl.result.sums[0].sum == staged.result.sums[0].sum,
           "%s: norm %.17g and %.17g", k->name, nccl.result.grad_norm, staged.result.grad_norm);
    free(nccl.master);
    free(staged.master);
}

int main(int argc, char **argv)
{
    static const struct steps_case cases[] = {
        {.name = "fp32"},
        {.name = "fp8 in shards", .fp8 = true, .shares = true},
        {.name = "fp32, shared gradients", .shares = true, .shares_gradients = true, .n_micro = 2 * N_MICRO},
    };
    struct comm world;
    struct batch_step batch;
    struct checkop_backend backend = checkop_find_backend("cuda");
    EXPECT(argc == 2, "usage: mpirun -n 2 test_emulated_nccl LIBRARY");
    EXPECT_OK(world_open(&world));
    EXPECT(world.size > 1, "a rank alone; start it by mpirun");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture_step(&batch, cases[i].n_micro > 0 ? cases[i].n_micro : N_MICRO, SEQUENCES, LONGEST);
        have_the_same_bits(&cases[i], &world, &backend, &batch, argv[1]);
        batch_step_fini(&batch);
    }
    world_close(&world, status_ok());
    printf("as expected\n");
    return 0;
}
