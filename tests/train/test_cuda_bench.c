/* The benchmark of a step on the cuda table: every op has a time, bytes and work, both ceilings are found, and the
 * migration log tells of its kernels.
 * Linked twice: with the library for a GPU, and with the kernels emulated on the cpu. */
#define _GNU_SOURCE
#include "../model/bert_fixture.h"
#include "checkop_backend.h"

#include "io/file.h"
#include "train/migration_log.h"
#include "train/step_bench.h"

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

int main(void)
{
    struct checkop_backend gpu = checkop_find_backend("cuda");
    struct step_bench b = {
        .config = fixture_trainer(gpu.ops, DTYPE_F32, (struct bert_batch_limits){0}),
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
    b.config.device = watched.device;
    b.config.ops = watched.ops;
    b.config.optimizer = optimizer_defaults(OPTIMIZER_ADAMW);
    b.config.model.num_hidden_layers = 1;
    EXPECT_OK(step_bench_plan(&b));
    EXPECT(b.useful_flops > 0 && b.useful_flops <= b.plan.micro_flops, "%g useful of %g", b.useful_flops,
           b.plan.micro_flops);
    EXPECT_OK(step_bench_run(&b, 1, &t));
    EXPECT(t.ceilings.products > 0 && t.ceilings.copy > 0, "no ceilings");
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
