/* Steps whose gradients are summed bucket by bucket are replayed too: recordings with a segment for each
 * bucket give the bits of steps that are given op by op, and when a bucket is summed its gradients are
 * complete, although work beside runs as late as it may in every other replay on the emulator. */
#include "gpu_tests.h"
#include "train/trainer.h"

#include "bert_fixture.h"
#include "checkop_backend.h"
#include "counted_graphs.h"
#include "dev/host_view.h"
#include "dist/comm_call.h"

enum { LONGEST = 8, SEQUENCES = 2, N_MICRO = 2, STEPS = 4, LAYERS = 3 };

static const double LR = 1e-2;

struct segments_case {
    const char *name;
    int64_t bucket_elements;
    int n_buckets;
    int64_t recompute;
    bool fp8;
};

static struct trainer_config config_of(const struct segments_case *k, const struct checkop_backend *backend,
                                       const struct device *device, struct batch_limits limits)
{
    struct trainer_config config = fixture_trainer(backend->ops, DTYPE_F32, limits);
    struct bert_model *bert = fixture_bert(&config);
    bert->config.num_hidden_layers = LAYERS;
    bert->config.intermediate_size = 32;
    fixture_bert_changed(bert);
    config.net.device = device;
    config.net.recompute = k->recompute;
    config.bucket_elements = k->bucket_elements;
    config.net.precision = (struct precision){.dtype = k->fp8 ? DTYPE_BF16 : DTYPE_F32, .fp8 = k->fp8};
    return config;
}

/* A rank alone, whose sums note what they are given. */
struct seen {
    const struct trainer *t;
    int n_sums;
    float *grad; /* [all elements] of the sums of a step, put together */
};

static struct status note_gradients(void *state, struct exec *x, const struct comm_call *call, tensor t,
                                    const int64_t *bounds)
{
    struct seen *s = state;
    struct host_view v;
    (void)bounds;
    ptrdiff_t at = (const char *)t.data - (const char *)s->t->grad.data;
    if (call->kind != CALL_ALL_REDUCE_SUM || at < 0 || (size_t)at >= tensor_bytes(s->t->grad)) {
        return call->status; /* the sums of the losses */
    }
    TRY(host_view_open(&v, x, t));
    memcpy((char *)s->grad + at, v.host.data, tensor_bytes(t));
    host_view_close(&v);
    s->n_sums++;
    return status_ok();
}

static void expect_same(struct trainer *of, tensor wanted, const void *got, const char *what, int64_t step)
{
    struct host_view v;
    EXPECT_OK(host_view_open(&v, &of->net.x, wanted));
    EXPECT(memcmp(v.host.data, got, tensor_bytes(wanted)) == 0, "step %lld: other %s", (long long)step, what);
    host_view_close(&v);
}

static void expect_same_result(const struct trainer_result *got, const struct trainer_result *wanted,
                               int64_t step)
{
    EXPECT(got->grad_norm == wanted->grad_norm, "step %lld: norm %.17g, not %.17g", (long long)step,
           got->grad_norm, wanted->grad_norm);
    for (int i = 0; i < wanted->n_sums; i++) {
        EXPECT(got->sums[i].sum == wanted->sums[i].sum, "step %lld: %s %.17g, not %.17g", (long long)step,
               wanted->sums[i].of->name, got->sums[i].sum, wanted->sums[i].sum);
    }
}

/* One step of both: the gradients that are summed are those of the whole step, and all else is the same. */
static void compare_step(struct trainer *plain, struct trainer *replaying, const struct comm *c,
                         struct batch_step *batch, int64_t step)
{
    const struct seen *seen = c->state;
    struct trainer_result wanted, result;
    struct host_view master;
    EXPECT_OK(trainer_step(replaying, batch, step, step, LR, &result));
    trainer_begin_step(plain, step, step, LR);
    trainer_queue_gradients(plain, batch);
    expect_same(plain, plain->grad, seen->grad, "gradients when they were summed", step);
    EXPECT_OK(trainer_update(plain, batch, step, &wanted));
    expect_same_result(&result, &wanted, step);
    EXPECT_OK(host_view_open(&master, &replaying->net.x, replaying->net.master));
    expect_same(plain, plain->net.master, master.host.data, "weights", step);
    host_view_close(&master);
}

/* Three works: two micro-batches, of which only the last is in segments, and the update. */
static void expect_counts(const struct segments_case *k, int64_t step)
{
    const struct graph_counts *n = &graph_counts;
    int64_t works = N_MICRO + 1, segments = N_MICRO + k->n_buckets, times = step < 2 ? 0 : step - 2;
    int64_t recorded = step < 2 ? 0 : 1;
    EXPECT(n->n_recorded == recorded * works && n->n_segments == recorded * segments,
           "%s, step %lld: %lld works and %lld segments recorded", k->name, (long long)step,
           (long long)n->n_recorded, (long long)n->n_segments);
    EXPECT(n->n_replayed == times * works && n->n_replayed_segments == times * segments,
           "%s, step %lld: %lld works and %lld segments replayed", k->name, (long long)step,
           (long long)n->n_replayed, (long long)n->n_replayed_segments);
}

/* Steps of one of two ranks, of which the other adds nothing, against those of one alone. */
static void steps_are_replayed(const struct segments_case *k, const struct checkop_backend *backend,
                               struct batch_step *batch)
{
    struct device plain_device = *backend->device, counting_device = *backend->device;
    struct trainer plain, replaying;
    struct comm noting = comm_self();
    struct comm_type type = *noting.type;
    plain_device.graphs = &graphs_none;
    counting_device.graphs = &graphs_counted;
    graphs_count(backend->device->graphs);
    struct trainer_config config = config_of(k, backend, &plain_device, batch->micro[0].limits);
    EXPECT_OK(trainer_init(&plain, &config));
    config.net.device = &counting_device;
    EXPECT_OK(trainer_init(&replaying, &config));
    EXPECT(replaying.net.stage.buckets.n == k->n_buckets, "%d buckets", replaying.net.stage.buckets.n);
    struct seen seen = {.t = &replaying, .grad = malloc(tensor_bytes(replaying.grad))};
    EXPECT(seen.grad != NULL, "out of memory");
    type.call = note_gradients;
    noting.type = &type;
    noting.state = &seen;
    noting.size = 2;
    replaying.mesh = mesh_of_replicas(&noting);
    for (int64_t i = 1; i <= STEPS; i++) {
        seen.n_sums = 0;
        compare_step(&plain, &replaying, &noting, batch, i);
        EXPECT(seen.n_sums == k->n_buckets, "%d sums of gradients", seen.n_sums);
        expect_counts(k, i);
    }
    printf("%s: %d sums a step, %lld segments replayed, the same bits\n", k->name, k->n_buckets,
           (long long)graph_counts.n_replayed_segments);
    free(seen.grad);
    trainer_fini(&replaying);
    trainer_fini(&plain);
}

int test_cuda_segments(void)
{
    static const struct segments_case cases[] = {
        {.name = "a layer each", .bucket_elements = 1, .n_buckets = LAYERS + 2},
        {.name = "some layers each", .bucket_elements = 20000, .n_buckets = 3},
        {.name = "all in one", .n_buckets = 1},
        {.name = "recomputed", .bucket_elements = 1, .n_buckets = LAYERS + 2, .recompute = 1},
        {.name = "fp8", .bucket_elements = 1, .n_buckets = LAYERS + 2, .fp8 = true},
    };
    struct checkop_backend backend = checkop_find_backend("cuda");
    struct batch_step batch;
    fixture_step(&batch, N_MICRO, SEQUENCES, LONGEST);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (!cases[i].fp8 || backend.device->computes_in_fp8) {
            steps_are_replayed(&cases[i], &backend, &batch);
        }
    }
    batch_step_fini(&batch);
    return 0;
}
