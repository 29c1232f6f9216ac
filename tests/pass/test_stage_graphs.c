/* Work is recorded only while nobody looks: neither at ops nor at activations. */
#include "counted_graphs.h"

#include "ops/op_watch.h"
#include "ops/ops.h"
#include "pass/stage.h"
#include "test.h"

static const struct {
    bool is_watched, is_tapped, has_failed;
    int64_t n_asked; /* recordings that the device was asked for */
} cases[] = {
    {false, false, false, 1}, {true, false, false, 0}, {false, true, false, 0},
    {true, true, false, 0},   {false, false, true, 0}, {true, true, true, 0},
};

int main(void)
{
    struct device device = device_cpu;
    struct op_watch watch;
    struct stage_tap tap = {0};
    device.graphs = &graphs_counted;
    op_watch_init(&watch, ops_cpu());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct exec x = {.device = &device, .ops = cases[i].is_watched ? &watch.table : ops_cpu()};
        struct stage_slot slot = {0};
        struct stage s = {.x = &x, .slots = &slot, .slot = &slot, .tap = cases[i].is_tapped ? &tap : NULL};
        x.status = cases[i].has_failed ? status_error(STATUS_IO, "a failure") : status_ok();
        graphs_count(&graphs_none);
        bool gives = stage_graph_begin(&s, STAGE_EVALUATE);
        stage_graph_end(&s, STAGE_EVALUATE);
        EXPECT(graph_counts.n_asked == cases[i].n_asked && gives == !cases[i].has_failed,
               "case %zu: %lld recordings, work is given: %d", i, (long long)graph_counts.n_asked, gives);
    }
    return 0;
}
