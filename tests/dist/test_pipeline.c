/* The list of 1F1B: every micro-batch once forward and once, later, backward, in order; no more in flight
 * than stages are left; and it runs to its end however little a message may wait. */
#include "dist/pipeline.h"

#include "test.h"

enum { MOST_STAGES = 9, MOST_MICRO = 20 };

static void each_micro_batch_goes_both_ways(int stage, int n_stages, int64_t n_micro)
{
    int64_t forwards = 0, backwards = 0, most = 0, limit = pipeline_in_flight(stage, n_stages, n_micro);
    int64_t in_slot[MOST_STAGES];
    EXPECT(limit >= 1 && limit <= n_stages - stage && limit <= n_micro, "%lld in flight", (long long)limit);
    for (int64_t i = 0; i < 2 * n_micro; i++) {
        struct pipeline_action a = pipeline_action(i, stage, n_stages, n_micro);
        if (a.work == PIPELINE_FORWARD) {
            EXPECT(a.micro == forwards, "forward %lld for %lld", (long long)a.micro, (long long)forwards);
            EXPECT(forwards - backwards < limit, "slot of %lld", (long long)a.micro);
            in_slot[a.micro % limit] = a.micro;
            forwards++;
        } else {
            EXPECT(a.micro == backwards && backwards < forwards, "backward %lld", (long long)a.micro);
            EXPECT(in_slot[a.micro % limit] == a.micro, "another is in the slot of %lld", (long long)a.micro);
            backwards++;
        }
        most = forwards - backwards > most ? forwards - backwards : most;
    }
    EXPECT(forwards == n_micro && backwards == n_micro, "%lld forward, %lld backward", (long long)forwards,
           (long long)backwards);
    EXPECT(most == limit, "%lld in flight, announced %lld", (long long)most, (long long)limit);
}

/* Messages that have arrived at a stage: outputs from before it, gradients from behind. */
struct arrived {
    int64_t outputs, gradients;
};

/* Whether the next action of the stage can run; runs it. */
static bool step(struct arrived *at, int64_t *next, int stage, int n_stages, int64_t n_micro)
{
    struct pipeline_action a = pipeline_action(next[stage], stage, n_stages, n_micro);
    bool forward = a.work == PIPELINE_FORWARD;
    if ((forward && stage > 0 && at[stage].outputs <= a.micro) ||
        (!forward && stage < n_stages - 1 && at[stage].gradients <= a.micro)) {
        return false;
    }
    if (forward && stage < n_stages - 1) {
        at[stage + 1].outputs++;
    } else if (!forward && stage > 0) {
        at[stage - 1].gradients++;
    }
    next[stage]++;
    return true;
}

/* With all stages working side by side, an action a turn, it takes 2 (M + S - 1) turns: no bubble but the one
 * of its ends (Narayanan et al. 2021, section 2.2.1). */
static void it_runs_to_its_end(int n_stages, int64_t n_micro)
{
    struct arrived at[MOST_STAGES] = {{0, 0}};
    int64_t next[MOST_STAGES] = {0}, turns = 0, done = 0;
    while (done < 2 * n_micro * n_stages) {
        struct arrived before[MOST_STAGES];
        int64_t ran = 0;
        memcpy(before, at, sizeof at);
        for (int s = 0; s < n_stages; s++) {
            struct arrived scratch[MOST_STAGES];
            memcpy(scratch, before, sizeof scratch); /* what others send in this turn comes in the next */
            if (next[s] < 2 * n_micro && step(scratch, next, s, n_stages, n_micro)) {
                for (int k = 0; k < n_stages; k++) {
                    at[k].outputs += scratch[k].outputs - before[k].outputs;
                    at[k].gradients += scratch[k].gradients - before[k].gradients;
                }
                ran++;
            }
        }
        EXPECT(ran > 0, "%d stages and %lld micro-batches stand still after %lld turns", n_stages,
               (long long)n_micro, (long long)turns);
        done += ran;
        turns++;
    }
    EXPECT(turns <= 2 * (n_micro + n_stages - 1), "%lld turns of %d stages and %lld micro-batches",
           (long long)turns, n_stages, (long long)n_micro);
}

static void layers_are_dealt_out(int64_t n_layers, int n_stages)
{
    EXPECT(pipeline_first_layer(n_layers, 0, n_stages) == 0, "the first layer");
    EXPECT(pipeline_first_layer(n_layers, n_stages, n_stages) == n_layers, "the last layer");
    for (int s = 0; s < n_stages; s++) {
        int64_t n =
            pipeline_first_layer(n_layers, s + 1, n_stages) - pipeline_first_layer(n_layers, s, n_stages);
        EXPECT(n >= n_layers / n_stages && n <= n_layers / n_stages + 1, "%lld layers in stage %d",
               (long long)n, s);
    }
}

int main(void)
{
    for (int n_stages = 1; n_stages <= MOST_STAGES; n_stages++) {
        for (int64_t n_micro = 1; n_micro <= MOST_MICRO; n_micro++) {
            for (int s = 0; s < n_stages; s++) {
                each_micro_batch_goes_both_ways(s, n_stages, n_micro);
            }
            it_runs_to_its_end(n_stages, n_micro);
        }
        for (int64_t n_layers = n_stages; n_layers < 30; n_layers++) {
            layers_are_dealt_out(n_layers, n_stages);
        }
    }
    return 0;
}
