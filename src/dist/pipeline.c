#include "dist/pipeline.h"

#include "core/integers.h"

#include <stdbool.h>
#include <stdlib.h>

struct status pipeline_check(const struct pipeline_shape *p)
{
    CHECK(p->n_stages > 0 && p->n_chunks > 0, "%d stages of %d chunks", p->n_stages, p->n_chunks);
    return p->n_chunks == 1 || p->n_micro % p->n_stages == 0
               ? status_ok()
               : status_error(
                     STATUS_USAGE,
                     "a pipeline of %d stages with %d chunks each runs %d micro-batches at a time, but "
                     "a step has %lld, which is no multiple: change the sequences of a step, or give "
                     "each stage one chunk (in kiln plan --global_batch_size and --chunks, in kiln "
                     "pretrain-gpt --global-batch-size and --num-layers-per-virtual-pipeline-stage)",
                     p->n_stages, p->n_chunks, p->n_stages, (long long)p->n_micro);
}

/* Forwards of a stage. */
static int64_t n_forwards(const struct pipeline_shape *p)
{
    return p->n_micro * p->n_chunks;
}

int64_t pipeline_n_actions(const struct pipeline_shape *p)
{
    return 2 * n_forwards(p);
}

/* The forwards before a stage's first backward, without the one just before it.  With chunks a stage has to
 * run all but its last chunk first, and two forwards for each stage after it, since a forward and a backward
 * are on their way to it. */
static int64_t warm_up_of(const struct pipeline_shape *p, int stage)
{
    int64_t after = p->n_stages - stage - 1;
    int64_t n = p->n_chunks == 1 ? after : 2 * after + (int64_t)(p->n_chunks - 1) * p->n_stages;
    return int_smaller(n, n_forwards(p));
}

/* The k-th forward or backward: n_stages micro-batches chunk after chunk, then the next ones. */
static struct pipeline_action nth(const struct pipeline_shape *p, enum pipeline_work work, int64_t k)
{
    if (p->n_chunks == 1) {
        return (struct pipeline_action){work, 0, k};
    }
    int64_t round = (int64_t)p->n_stages * p->n_chunks;
    int chunk = (int)(k % round / p->n_stages);
    return (struct pipeline_action){work, work == PIPELINE_FORWARD ? chunk : p->n_chunks - 1 - chunk,
                                    k / round * p->n_stages + k % p->n_stages};
}

/* The first warm_up actions are forwards and the last warm_up are backwards; between them forwards and
 * backwards alternate. */
struct pipeline_action pipeline_action(const struct pipeline_shape *p, int stage, int64_t i)
{
    int64_t warm_up = warm_up_of(p, stage), n = n_forwards(p), turn = (i - warm_up) / 2;
    if (i < warm_up) {
        return nth(p, PIPELINE_FORWARD, i);
    }
    if (i >= 2 * n - warm_up) {
        return nth(p, PIPELINE_BACKWARD, i - n);
    }
    return (i - warm_up) % 2 == 0 ? nth(p, PIPELINE_FORWARD, warm_up + turn)
                                  : nth(p, PIPELINE_BACKWARD, turn);
}

int64_t pipeline_in_flight(const struct pipeline_shape *p, int stage, int chunk)
{
    int64_t now = 0, most = 0;
    if (p->n_chunks == 1) {
        return int_smaller(p->n_stages - stage, p->n_micro);
    }
    for (int64_t i = 0; i < pipeline_n_actions(p); i++) {
        struct pipeline_action a = pipeline_action(p, stage, i);
        now += a.chunk != chunk ? 0 : a.work == PIPELINE_FORWARD ? 1 : -1;
        most = now > most ? now : most;
    }
    return most;
}

int pipeline_part(const struct pipeline_shape *p, int stage, int chunk)
{
    return chunk * p->n_stages + stage;
}

/* The first layer of a part; for the part after the last one, the end of the layers. */
static int64_t first_layer(int64_t n_layers, int part, int n_parts, enum pipeline_partition by)
{
    int64_t ends = by == PIPELINE_BY_LAYERS ? 0 : 1;
    return (n_layers + 2 * ends) * part / n_parts - ends;
}

struct param_range pipeline_layers(int64_t n_layers, int part, int n_parts, enum pipeline_partition by)
{
    struct param_range r = {first_layer(n_layers, part, n_parts, by),
                            first_layer(n_layers, part + 1, n_parts, by)};
    return (struct param_range){part == 0 ? -1 : r.first, part == n_parts - 1 ? n_layers + 1 : r.end};
}

/* ---- the bubble ---- */

/* Simulation of a schedule: the times at which each part's forward and backward of each micro-batch ended; 0:
 * not yet. */
struct simulation {
    const struct pipeline_shape *p;
    double *ends[2]; /* [n_parts, n_micro] ends of forwards, of backwards */
    double *is_free; /* [n_stages] time from which the stage is free */
    int64_t *next;   /* [n_stages] action */
    const struct pipeline_times *times;
};

static double takes(const struct simulation *s, enum pipeline_work work, int stage)
{
    const double *of = work == PIPELINE_FORWARD ? s->times->forward : s->times->backward;
    return of[stage] / s->p->n_chunks;
}

static double *end_of(const struct simulation *s, enum pipeline_work work, int part, int64_t micro)
{
    return &s->ends[work][part * s->p->n_micro + micro];
}

/* Finds when a neighbouring part has ended and its message has come.  False: it has not ended yet. */
static bool find_arrival(const struct simulation *s, enum pipeline_work work, int part, int64_t micro,
                         double *at)
{
    double end = *end_of(s, work, part, micro);
    /* lower of the two parts that the message is between */
    int lower = work == PIPELINE_FORWARD ? part : part - 1;
    *at = end + s->times->message[lower % s->p->n_stages];
    return end > 0;
}

/* Finds when the input of a part's work is there: from the part before or after it; the last part's backward
 * needs its own forward.  False: it is not there yet. */
static bool find_start(const struct simulation *s, enum pipeline_work work, int part, int64_t micro,
                       double *at)
{
    int last = s->p->n_stages * s->p->n_chunks - 1;
    if (work == PIPELINE_FORWARD) {
        *at = 0;
        return part == 0 || find_arrival(s, work, part - 1, micro, at);
    }
    if (part < last) {
        return find_arrival(s, work, part + 1, micro, at);
    }
    *at = *end_of(s, PIPELINE_FORWARD, last, micro);
    return *at > 0;
}

/* Runs a stage's actions as far as it can; returns how many. */
static int64_t run_stage(struct simulation *s, int stage)
{
    int64_t n = 0;
    for (; s->next[stage] < pipeline_n_actions(s->p); s->next[stage]++, n++) {
        struct pipeline_action a = pipeline_action(s->p, stage, s->next[stage]);
        int part = pipeline_part(s->p, stage, a.chunk);
        double at = 0;
        if (!find_start(s, a.work, part, a.micro, &at)) {
            break;
        }
        at = (at > s->is_free[stage] ? at : s->is_free[stage]) + takes(s, a.work, stage);
        *end_of(s, a.work, part, a.micro) = s->is_free[stage] = at;
    }
    return n;
}

static struct status simulate(struct simulation *s, double *longest)
{
    int64_t left = pipeline_n_actions(s->p) * s->p->n_stages;
    *longest = 0;
    while (left > 0) {
        int64_t n = 0;
        for (int stage = 0; stage < s->p->n_stages; stage++) {
            n += run_stage(s, stage);
        }
        FAIL_IF(n == 0, STATUS_INTERNAL, "the %d stages of a pipeline wait for each other", s->p->n_stages);
        left -= n;
    }
    for (int stage = 0; stage < s->p->n_stages; stage++) {
        *longest = s->is_free[stage] > *longest ? s->is_free[stage] : *longest;
    }
    return status_ok();
}

struct status pipeline_seconds(const struct pipeline_shape *p, const struct pipeline_times *times,
                               double *seconds)
{
    size_t n = (size_t)p->n_stages * (size_t)p->n_chunks * (size_t)p->n_micro;
    struct simulation s = {.p = p,
                           .ends = {calloc(n, sizeof(double)), calloc(n, sizeof(double))},
                           .is_free = calloc((size_t)p->n_stages, sizeof(double)),
                           .next = calloc((size_t)p->n_stages, sizeof(int64_t)),
                           .times = times};
    bool has_room = s.ends[0] != NULL && s.ends[1] != NULL && s.is_free != NULL && s.next != NULL;
    struct status status =
        has_room ? simulate(&s, seconds)
                 : status_error(STATUS_MEMORY, "out of memory for a schedule of %d stages", p->n_stages);
    free(s.ends[0]);
    free(s.ends[1]);
    free(s.is_free);
    free(s.next);
    return status;
}

struct status pipeline_bubble(const struct pipeline_shape *p, double forward, double backward, double *bubble)
{
    size_t n = (size_t)p->n_stages;
    double seconds = 0, *all = calloc(3 * n, sizeof *all);
    FAIL_IF(all == NULL, STATUS_MEMORY, "out of memory for a schedule of %d stages", p->n_stages);
    for (size_t i = 0; i < n; i++) {
        all[i] = forward;
        all[n + i] = backward;
    }
    struct status s = pipeline_seconds(p, &(struct pipeline_times){all, all + n, all + 2 * n}, &seconds);
    *bubble = seconds / ((double)p->n_micro * (forward + backward)) - 1;
    free(all);
    return s;
}

void pipeline_print(FILE *f, const struct pipeline_shape *p)
{
    for (int stage = 0; stage < p->n_stages; stage++) {
        fprintf(f, "stage %d:", stage);
        for (int64_t i = 0; i < pipeline_n_actions(p); i++) {
            struct pipeline_action a = pipeline_action(p, stage, i);
            fprintf(f, " %c%lld", a.work == PIPELINE_FORWARD ? 'F' : 'B', (long long)a.micro);
            if (p->n_chunks > 1) {
                fprintf(f, ".%d", a.chunk);
            }
        }
        fprintf(f, "\n");
    }
}
