/* Steps that are recorded once for each size of micro-batch and replayed give the bits of steps that are
 * given op by op, whatever changes from step to step: batches, dropout masks, learning rate; and although
 * work beside (dev/queue.h) runs as late as it may in every other replay on the emulator; and in fp8 although
 * the steps given op by op look for the largest element of each factor, which those that are replayed have
 * from its maker. */
#include "bert_fixture.h"
#include "checkop_backend.h"
#include "counted_graphs.h"
#include "dev/host_view.h"
#include "gpu_tests.h"
#include "result_mean.h"

enum { LONGEST = 14, SEQUENCES = 6, STEPS = 8 };

/* Two micro-batches of other sequences for each step, of few sizes. */
static void fill_step(struct batch_step *step, int64_t number)
{
    for (int64_t i = 0; i < step->n_micro; i++) {
        batch_clear(&step->micro[i]);
        for (int64_t k = 0; k < SEQUENCES; k++) {
            fixture_add_sequence(&step->micro[i], (int32_t)((number * 2 + i) * SEQUENCES + k), LONGEST);
        }
        batch_finish(&step->micro[i], 0);
    }
    batch_step_count(step);
}

static void train(struct trainer *t, struct batch_step *step, struct trainer_result results[STEPS])
{
    for (int64_t i = 0; i < STEPS; i++) {
        fill_step(step, i);
        EXPECT_OK(trainer_step(t, step, i + 1, i + 1, 1e-2 / (double)(i + 1), &results[i]));
        if (i >= STEPS / 2) {
            EXPECT_OK(trainer_evaluate(t, step, &results[i]));
        }
    }
}

static const struct ops *noting;

static void quantize_by_finding(struct exec *x, tensor rows, tensor columns, tensor scale, tensor history,
                                tensor dbias, tensor in, enum dtype format)
{
    in.has_maxima = false;
    noting->quantize(x, rows, columns, scale, history, dbias, in, format);
}

static struct trainer_config config_in_fp8(struct trainer_config config)
{
    config.net.precision.dtype = DTYPE_BF16;
    config.net.precision.fp8 = true;
    struct bert_model *bert = fixture_bert(&config);
    bert->config.intermediate_size = 32;
    fixture_bert_changed(bert);
    return config;
}

static void compare(struct batch_step *step, struct checkop_backend backend, int64_t recompute, bool fp8,
                    bool pre_ln)
{
    struct ops finding = *backend.ops;
    struct device plain_device = *backend.device, counting_device = *backend.device;
    struct trainer plain, replaying;
    struct trainer_result wanted[STEPS], results[STEPS];
    struct trainer_config config = fixture_trainer(backend.ops, DTYPE_F32, step->micro[0].limits);
    struct host_view a, b;
    plain_device.graphs = &graphs_none; /* rounds batches up, but records nothing */
    counting_device.graphs = &graphs_counted;
    graphs_count(backend.device->graphs);
    config.net.recompute = recompute;
    struct bert_model *bert = fixture_bert(&config);
    bert->config.hidden_dropout_prob = bert->config.attention_probs_dropout_prob = 0.2;
    bert->config.layer_norm_large_model = pre_ln;
    fixture_bert_changed(bert);
    config = fp8 ? config_in_fp8(config) : config;
    noting = backend.ops;
    finding.quantize = quantize_by_finding;
    config.net.device = &plain_device;
    config.net.ops = &finding;
    EXPECT_OK(trainer_init(&plain, &config));
    config.net.device = &counting_device;
    config.net.ops = backend.ops;
    EXPECT_OK(trainer_init(&replaying, &config));
    train(&plain, step, wanted);
    train(&replaying, step, results);
    EXPECT(memcmp(results, wanted, sizeof results) == 0, "other losses");
    EXPECT_OK(host_view_open(&a, &plain.net.x, plain.net.master));
    EXPECT_OK(host_view_open(&b, &replaying.net.x, replaying.net.master));
    EXPECT(memcmp(a.host.data, b.host.data, tensor_bytes(plain.net.master)) == 0, "other weights");
    host_view_close(&b);
    host_view_close(&a);
    printf("%lld of %lld works were replayed, loss %g to %g\n", (long long)graph_counts.n_replayed,
           (long long)graph_counts.n_asked, result_mean(&wanted[0], "mlm_loss"),
           result_mean(&wanted[STEPS - 1], "mlm_loss"));
    EXPECT(graph_counts.n_replayed > graph_counts.n_asked / 4, "few were replayed");
    trainer_fini(&replaying);
    trainer_fini(&plain);
}

/* Layers that are computed again round as they did, whoever rounds them. */
static void recomputed_is_the_same(struct batch_step *step, struct checkop_backend backend)
{
    struct trainer_result results[2][STEPS];
    struct trainer_config config =
        config_in_fp8(fixture_trainer(backend.ops, DTYPE_F32, step->micro[0].limits));
    config.net.device = backend.device;
    for (int64_t recompute = 0; recompute < 2; recompute++) {
        struct trainer t;
        config.net.recompute = recompute;
        EXPECT_OK(trainer_init(&t, &config));
        train(&t, step, results[recompute]);
        trainer_fini(&t);
    }
    EXPECT(memcmp(results[0], results[1], sizeof results[0]) == 0,
           "other losses where layers are recomputed");
}

/* Work that fails while it is recorded leaves an error that names the op, and nothing that could be
 * replayed. */
static void failures_are_named(struct checkop_backend backend)
{
    struct batch_step step;
    struct trainer t;
    struct trainer_result r;
    fixture_step(&step, 1, SEQUENCES, LONGEST);
    struct trainer_config config = fixture_trainer(backend.ops, DTYPE_F32, step.micro[0].limits);
    config.net.device = backend.device;
    EXPECT_OK(trainer_init(&t, &config));
    EXPECT_OK(trainer_step(&t, &step, 1, 1, 1e-3, &r));
    enum dtype *dtype = &((struct bert_weights *)t.net.weights)->table.layers[1].attention.w_qkv.dtype,
               right = *dtype;
    *dtype = DTYPE_I32;
    EXPECT_ERROR(trainer_step(&t, &step, 2, 2, 1e-3, &r), STATUS_USAGE, "linear in layer 1");
    *dtype = right;
    t.net.x.status = status_ok();
    for (int64_t i = 2; i <= 4; i++) { /* plainly, recorded, replayed */
        EXPECT_OK(trainer_step(&t, &step, i, i, 1e-3, &r));
    }
    trainer_fini(&t);
    batch_step_fini(&step);
}

int test_cuda_replay(void)
{
    struct checkop_backend backend = checkop_find_backend("cuda");
    struct batch_step step;
    fixture_step(&step, 2, SEQUENCES, LONGEST);
    for (int64_t recompute = 0; recompute < 2; recompute++) {
        compare(&step, backend, recompute, false, false);
        if (backend.device->computes_in_fp8) {
            compare(&step, backend, recompute, true, false);
        }
    }
    compare(&step, backend, 1, backend.device->computes_in_fp8, true);
    if (backend.device->computes_in_fp8) {
        recomputed_is_the_same(&step, backend);
    }
    failures_are_named(backend);
    batch_step_fini(&step);
    return 0;
}
