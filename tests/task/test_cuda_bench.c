/* The benchmark of a step on the cuda table: every op has a time, bytes and work, both ceilings are found,
 * and the migration log tells of its kernels. */
#define _GNU_SOURCE
#include "bert_fixture.h"
#include "checkop_backend.h"
#include "gpu_tests.h"

#include "io/file.h"
#include "watch/migration_log.h"
#include "task/step_bench.h"

#include <stdlib.h>

/* What the table says of its kernels: fp32 has no attention with matrix instructions. */
static void expect_kernels(const char *path)
{
    struct file_map map;
    struct buf text = {0};
    EXPECT_OK(file_map_open(&map, path));
    buf_append(&text, map.data, map.n);
    file_map_close(&map);
    EXPECT(strstr(buf_text(&text), "_modified]: attention(fp32 [") != NULL &&
               strstr(buf_text(&text), "cuda: plain attention: fp32 has no kernel") != NULL &&
               strstr(buf_text(&text), "_match]: adamw(fp32 [") != NULL,
           "%s", buf_text(&text));
    buf_fini(&text);
}

static void no_cast(struct exec *x, tensor out, tensor in)
{
    (void)out, (void)in;
    exec_fail(x, STATUS_INTERNAL, "cast", "copies are measured by a kernel of ours");
}

/* The ceiling of copies is the device's own, whose bytes arrive. */
static void expect_copies(const struct checkop_backend *gpu)
{
    enum { N = 64 };
    int32_t there[N], back[N];
    void *context, *memory;
    struct ops without_cast = *gpu->ops;
    double per_s = 0;
    without_cast.cast = no_cast;
    EXPECT_OK(ceiling_copy(&(struct backend){gpu->device, &without_cast},
                           (struct ceiling_size){16, 16, 256, 2, 0}, &per_s));
    EXPECT(per_s > 0, "%g bytes/s", per_s);
    EXPECT_OK(gpu->device->open(&context));
    EXPECT_OK(gpu->device->allocate(&memory, 2 * sizeof there, "a copy"));
    for (int i = 0; i < N; i++) {
        there[i] = 7 * i + 1;
    }
    EXPECT_OK(gpu->device->copy_in(context, memory, there, sizeof there));
    EXPECT_OK(gpu->device->copy_within(context, (char *)memory + sizeof there, memory, sizeof there));
    EXPECT_OK(gpu->device->copy_out(context, back, (char *)memory + sizeof there, sizeof back));
    EXPECT(memcmp(there, back, sizeof there) == 0, "a copy within the device's memory is another");
    gpu->device->release(memory, 2 * sizeof there);
    gpu->device->close(context);
}

static struct bert_model one_layer(enum model_task task)
{
    struct bert_config c = fixture_config();
    c.num_hidden_layers = 1;
    return bert_model(&c, task);
}

/* Questions one after the other: recorded once, then replayed, however often; what is timed inside is not
 * among them. */
static void expect_answers(const struct checkop_backend *gpu)
{
    struct step_bench b = {
        .config = fixture_trainer(gpu->ops, DTYPE_F32, (struct batch_limits){0}),
        .plain = {gpu->device, gpu->ops},
        .ceiling_size = {16, 16, 256, 2, 0},
        .n_sequences = 2,
        .length = 12,
        .min_length = 4,
    };
    struct step_times t;
    b.config.net.device = gpu->device;
    b.config.net.learns = false;
    struct bert_model answers = one_layer(MODEL_TASK_QUESTION_ANSWERING);
    b.config.net.model = &answers.blocks.model;
    EXPECT_OK(step_bench_plan(&b));
    int64_t tokens = step_bench_tokens(&b);
    EXPECT(tokens > 8 && tokens < 24 && b.useful_flops > 0, "%lld tokens, %g useful", (long long)tokens,
           b.useful_flops);
    EXPECT_OK(step_bench_run(&b, 3, &t));
    EXPECT(t.latency.n >= 3 && t.latency.median_s > 0 && t.latency.p99_s >= t.latency.median_s,
           "%lld answers, median %g s, 99 %% within %g s", (long long)t.latency.n, t.latency.median_s,
           t.latency.p99_s);
}

int test_cuda_bench(void)
{
    struct checkop_backend gpu = checkop_find_backend("cuda");
    expect_copies(&gpu);
    expect_answers(&gpu);
    struct step_bench b = {
        .config = fixture_trainer(gpu.ops, DTYPE_F32, (struct batch_limits){0}),
        .plain = {gpu.device, gpu.ops},
        .ceiling_size = {16, 16, 256, 2, 0},
        .n_sequences = 1,
        .length = 12,
    };
    struct step_times t;
    struct buf text = {0};
    double ops_s = 0;
    char directory[] = "/tmp/kiln_cuda_bench_XXXXXX", path[64];
    struct backend watched = b.plain;
    struct migration_log log;
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    snprintf(path, sizeof path, "%s/log", directory);
    EXPECT_OK(migration_log_open(&log, path, "test", &watched));
    b.config.net.device = watched.device;
    b.config.net.ops = watched.ops;
    b.config.optimizer = optimizer_defaults(&optimizer_adamw);
    struct bert_model trained = one_layer(MODEL_TASK_PRETRAINING);
    b.config.net.model = &trained.blocks.model;
    EXPECT_OK(step_bench_plan(&b));
    EXPECT(b.useful_flops > 0 && b.useful_flops <= b.plan.micro_flops, "%g useful of %g", b.useful_flops,
           b.plan.micro_flops);
    EXPECT_OK(step_bench_run(&b, 1, &t));
    EXPECT(t.ceilings.products > 0 && t.ceilings.copy > 0, "no ceilings");
    EXPECT(t.latency.n >= 1 && t.latency.passes_s > 0 && t.latency.passes_s < 2 * t.latency.p99_s,
           "%lld steps on a device that records, forward and backward %g s of %g s", (long long)t.latency.n,
           t.latency.passes_s, t.latency.median_s);
    for (int i = 0; i < OP_WATCH_N_OPS; i++) {
        const struct op_total *o = &t.totals[i];
        EXPECT(o->n_calls == 0 || (o->ns > 0 && o->bytes > 0), "%s: %lld ns, %g bytes", o->op,
               (long long)o->ns, o->bytes);
        ops_s += (double)o->ns * 1e-9;
    }
    EXPECT(ops_s > 0 && ops_s < 1.01 * t.seconds, "%g s of ops in a step of %g s", ops_s, t.seconds);
    op_report_append(&text, t.totals, t.seconds, &t.ceilings);
    EXPECT_OK(buf_status(&text));
    EXPECT(strstr(buf_text(&text), "\nattention_backward ") != NULL, "%s", buf_text(&text));
    fputs(buf_text(&text), stdout);
    buf_fini(&text);
    migration_log_close(&log, status_ok());
    expect_kernels(path);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
