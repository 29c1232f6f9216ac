/* The bytes of a device, by kind, are the parameter table's arithmetic for every stage and number of devices,
 * and with one device those of trainer_plan, to the byte.
 *
 * By hand, of the fixture's model: 39 slabs of 1,024 elements: 6 of the input layer, 12 of each of two
 * layers, 9 of the heads. Shards end where slabs do: 20 of 39 slabs are the larger half, 10 the largest
 * quarter.  Slabs of LayerNorms and biases: 2 of the input layer, 8 of each layer, 6 of the heads.
 * 46 parameters are 47 chunks, since the words' 70 x 16 are two. */
#include "bert_fixture.h"

#include "data/prefetch.h"
#include "train/rank_plan.h"

enum {
    SLAB = 1024,
    ALL = 39 * SLAB,
    VECTORS = (2 + 2 * 8 + 6) * SLAB,
    CHUNKS = 47,
    UNSUMMED = (6 + 12) * SLAB
};

static struct trainer_config config_of(enum dtype dtype)
{
    struct trainer_config c = fixture_trainer(ops_cpu(), dtype, text_batch_limits(4, 16, 4));
    c.saving = true;
    return c;
}

static struct rank_plan plan_of(enum dtype dtype, int64_t world, int stage)
{
    struct trainer_config c = config_of(dtype);
    struct rank_plan z;
    c.ranks = (struct trainer_ranks){.shape.dp = (int)world, .zero_stage = stage, .n_micro = 3};
    EXPECT_OK(rank_plan(&z, &c));
    return z;
}

static void expect_bytes(const char *what, size_t actual, size_t wanted)
{
    EXPECT(actual == wanted, "%s: %zu bytes, by hand %zu", what, actual, wanted);
}

/* One device shares nothing at any stage. */
static void test_alone(enum dtype dtype)
{
    struct trainer_config c = config_of(dtype);
    struct trainer_plan p;
    EXPECT_OK(trainer_plan(&p, &c));
    for (int stage = 0; stage < ZERO_STAGES; stage++) {
        struct rank_plan z = plan_of(dtype, 1, stage);
        expect_bytes("all", z.device_bytes + z.host_bytes, p.total_bytes);
        expect_bytes("weights", z.master_bytes + z.working_bytes, p.net.weight_bytes);
        expect_bytes("gradients", z.gradient_bytes, p.gradient_bytes);
        expect_bytes("moments", z.optimizer_bytes, p.optimizer_bytes);
        expect_bytes("activations", z.activation_bytes, p.net.activation_bytes);
        expect_bytes("scratch", z.scratch_bytes, p.net.workspace_bytes + p.net.beside_bytes);
        expect_bytes("libraries", z.library_bytes, p.net.library_bytes);
        expect_bytes("host", z.host_bytes, p.saving_bytes);
        expect_bytes("batches", z.batch_bytes, prefetch_bytes(&c.net.model->layout, c.net.limits, 3));
        expect_bytes("needed", rank_plan_needed(&z, c.net.device), p.total_bytes + z.batch_bytes);
        EXPECT(z.rest_bytes < 1024, "%zu bytes are of no kind", z.rest_bytes);
    }
}

/* Bytes that are shared out: [world][stage]. */
static const struct by_hand {
    int64_t world;
    int stage;
    size_t shard, master, gradients, host;
} by_hand[] = {
    {2, 0, 20 * SLAB, 4 * ALL, 4 * ALL, 12 * 20 * SLAB},
    {2, 1, 20 * SLAB, 4 * (20 * SLAB + VECTORS), 4 * ALL, 12 * 20 * SLAB},
    {2, 2, 20 * SLAB, 4 * (20 * SLAB + VECTORS), 4 * (20 * SLAB + UNSUMMED), 12 * 20 * SLAB},
    {4, 0, 10 * SLAB, 4 * ALL, 4 * ALL, 12 * 10 * SLAB},
    {4, 1, 10 * SLAB, 4 * (10 * SLAB + VECTORS), 4 * ALL, 12 * 10 * SLAB},
    {4, 2, 10 * SLAB, 4 * (10 * SLAB + VECTORS), 4 * (10 * SLAB + UNSUMMED), 12 * 10 * SLAB},
};

/* Sums of chunks for norms stay whole, and their two buffers end at multiples of the arena's alignment. */
static void expect_moments(const struct rank_plan *z, size_t elements)
{
    size_t least = 8 * elements + CHUNKS * 3 * sizeof(double);
    EXPECT(z->optimizer_bytes >= least && z->optimizer_bytes <= least + 2 * ARENA_ALIGNMENT,
           "%zu bytes of moments and sums, by hand %zu", z->optimizer_bytes, least);
}

static void test_shared(void)
{
    struct rank_plan alone = plan_of(DTYPE_BF16, 1, 0);
    expect_bytes("master", alone.master_bytes, 4 * ALL);
    expect_bytes("working copy", alone.working_bytes, 2 * ALL);
    expect_bytes("gradients", alone.gradient_bytes, 4 * ALL);
    expect_moments(&alone, ALL);
    for (size_t i = 0; i < sizeof by_hand / sizeof by_hand[0]; i++) {
        const struct by_hand *h = &by_hand[i];
        struct rank_plan z = plan_of(DTYPE_BF16, h->world, h->stage);
        expect_bytes("shard", (size_t)z.shard_elements, h->shard);
        expect_bytes("master", z.master_bytes, h->master);
        expect_bytes("working copy", z.working_bytes, 2 * ALL);
        expect_bytes("gradients", z.gradient_bytes, h->gradients);
        expect_bytes("host", z.host_bytes, h->host);
        expect_moments(&z, h->stage > 0 ? h->shard : ALL);
        expect_bytes("activations", z.activation_bytes, alone.activation_bytes);
        expect_bytes("less than alone", alone.device_bytes - z.device_bytes,
                     alone.master_bytes - z.master_bytes + alone.gradient_bytes - z.gradient_bytes +
                         alone.optimizer_bytes - z.optimizer_bytes + alone.rest_bytes - z.rest_bytes);
    }
}

/* The bytes that a trainer asks its device for. */
static size_t allocated;

static struct status note_bytes(void **memory, size_t bytes, const char *what)
{
    allocated += bytes;
    return device_cpu.allocate(memory, bytes, what);
}

/* What is announced of a rank is what its trainer takes, to the byte: where shards of the master are, as
 * where they are not. */
static void test_taken(enum dtype dtype)
{
    static struct device noting;
    noting = device_cpu;
    noting.allocate = note_bytes;
    for (int stage = 0; stage < ZERO_STAGES; stage++) {
        struct trainer_config c = config_of(dtype);
        struct trainer t;
        struct rank_plan z = plan_of(dtype, 2, stage);
        c.net.device = &noting;
        c.ranks = (struct trainer_ranks){.shape.dp = 2, .zero_stage = stage};
        allocated = 0;
        EXPECT_OK(trainer_init(&t, &c));
        expect_bytes("allocated", allocated, z.device_bytes - z.library_bytes);
        expect_bytes("gradients", t.plan.gradient_bytes, stage == 2 ? 4 * (20 * SLAB + UNSUMMED) : 4 * ALL);
        bool shared = stage > 0 && dtype == DTYPE_BF16;
        expect_bytes("the master", tensor_bytes(t.net.master), shared ? 4 * 20 * SLAB : 4 * ALL);
        trainer_fini(&t);
    }
}

static void test_traffic(void)
{
    for (int stage = 0; stage < ZERO_STAGES; stage++) {
        struct rank_plan z = plan_of(DTYPE_BF16, 2, stage);
        EXPECT_NEAR(z.reduced_bytes, 4 * ALL, 0);
        EXPECT(z.n_reductions == (stage == 2 ? 3 : 1), "%lld sums", (long long)z.n_reductions);
        EXPECT_NEAR(z.gathered_bytes, stage == 0 ? 0 : 2 * ALL + 4 * VECTORS + 8 * CHUNKS, 0);
    }
    /* two shards end with a parameter; 39 of a slab each cut some, so LAMB's sums are exchanged too */
    EXPECT_NEAR(plan_of(DTYPE_F32, 2, 1).gathered_bytes, 4 * ALL + 8 * CHUNKS, 0);
    EXPECT_NEAR(plan_of(DTYPE_F32, 39, 1).gathered_bytes, 4 * ALL + 8 * 3 * CHUNKS, 0);
}

/* In fp32 passes read the master itself, which must be whole. */
static void test_fp32(void)
{
    struct rank_plan z = plan_of(DTYPE_F32, 2, 2);
    expect_bytes("master", z.master_bytes, 4 * ALL);
    expect_bytes("no copy", z.working_bytes, 0);
    expect_bytes("gradients", z.gradient_bytes, 4 * (20 * SLAB + UNSUMMED));
}

static bool fits(int64_t world, int stage, double bytes)
{
    struct trainer_config c = config_of(DTYPE_BF16);
    struct rank_plan z = plan_of(DTYPE_BF16, world, stage);
    return (double)rank_plan_needed(&z, c.net.device) <= bytes;
}

static void test_smallest(void)
{
    struct trainer_config c = config_of(DTYPE_BF16);
    int64_t world;
    int stage;
    c.ranks.n_micro = 3;
    for (size_t i = 0; i < sizeof by_hand / sizeof by_hand[0]; i++) {
        const struct by_hand *h = &by_hand[i];
        struct rank_plan z = plan_of(DTYPE_BF16, h->world, h->stage);
        double bytes = (double)rank_plan_needed(&z, c.net.device);
        EXPECT_OK(rank_plan_smallest(&c, bytes, &world, &stage));
        EXPECT(world >= 1 && fits(world, stage, bytes), "%lld devices at stage %d do not fit",
               (long long)world, stage);
        EXPECT(stage == 0 || !fits(world, stage - 1, bytes), "%lld devices need no stage %d",
               (long long)world, stage);
        EXPECT(world == 1 || !fits(world / 2, ZERO_STAGES - 1, bytes), "half of %lld devices are enough",
               (long long)world);
    }
    EXPECT_OK(rank_plan_smallest(&c, 1000, &world, &stage));
    EXPECT(world == 0, "%lld devices of 1,000 bytes", (long long)world);
}

int main(void)
{
    test_alone(DTYPE_F32);
    test_alone(DTYPE_BF16);
    test_shared();
    test_taken(DTYPE_F32);
    test_taken(DTYPE_BF16);
    test_traffic();
    test_fp32();
    test_smallest();
    printf("test_zero_plan: bytes of 1, 2 and 4 devices at three stages are those counted by hand\n");
    return 0;
}
