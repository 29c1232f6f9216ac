/* The benchmark of a step on the cuda table: every op has a time, bytes and work, and both ceilings are found.
 * Linked twice: with the library for a GPU, and with the kernels emulated on the cpu. */
#include "../model/bert_fixture.h"
#include "checkop_backend.h"

#include "train/step_bench.h"

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
    b.config.device = gpu.device;
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
    return 0;
}
