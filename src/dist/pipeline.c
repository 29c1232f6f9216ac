#include "dist/pipeline.h"

#include "core/integers.h"

int64_t pipeline_in_flight(int stage, int n_stages, int64_t n_micro)
{
    return int_smaller(n_stages - stage, n_micro);
}

/* Of the 2 n_micro actions the first warm_up are forwards and the last warm_up are backwards;
 * between them a forward and a backward take turns. */
struct pipeline_action pipeline_action(int64_t i, int stage, int n_stages, int64_t n_micro)
{
    int64_t warm_up = int_smaller(n_stages - stage - 1, n_micro);
    if (i < warm_up) {
        return (struct pipeline_action){PIPELINE_FORWARD, i};
    }
    if (i >= 2 * n_micro - warm_up) {
        return (struct pipeline_action){PIPELINE_BACKWARD, i - n_micro};
    }
    int64_t turn = (i - warm_up) / 2;
    return (i - warm_up) % 2 == 0 ? (struct pipeline_action){PIPELINE_FORWARD, warm_up + turn}
                                  : (struct pipeline_action){PIPELINE_BACKWARD, turn};
}

int64_t pipeline_first_layer(int64_t n_layers, int stage, int n_stages)
{
    return n_layers * stage / n_stages;
}

struct param_range pipeline_layers(int64_t n_layers, int stage, int n_stages)
{
    struct param_range r = {pipeline_first_layer(n_layers, stage, n_stages),
                            pipeline_first_layer(n_layers, stage + 1, n_stages)};
    return (struct param_range){stage == 0 ? -1 : r.first, stage == n_stages - 1 ? n_layers + 1 : r.end};
}
