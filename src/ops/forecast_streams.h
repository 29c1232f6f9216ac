/* forecast_streams: how long launches take if some of them run beside the others (dev/queue.h): two CUDA
 * streams share the multiprocessors of a chip.
 *
 * A block of a product fills its multiprocessor, so blocks of two launches never share one, and a
 * memory-bound kernel leaves nothing to others.  The gain is limited to what a launch leaves idle: gaps,
 * waits, and multiprocessors for which its last wave has no block (gpu_phases).  If both streams want more
 * multiprocessors than there are, the launch that was ready first gets what it wants and the other gets the
 * rest, at a proportional share of its speed.  That is the order in which a chip places blocks. */
#ifndef KILN_OPS_FORECAST_STREAMS_H
#define KILN_OPS_FORECAST_STREAMS_H

#include "ops/cuda/forecast/gpu_chips.h"

#include <stdbool.h>

enum { FORECAST_BESIDE_LAUNCHES = 64 };

/* A launch and the remainder of its phases. */
struct forecast_launch {
    struct gpu_phases left;
    double ready_s; /* when it first wanted multiprocessors; INFINITY: not yet */
    int64_t piece;
};

struct forecast_streams {
    double all, edge_s; /* the number of multiprocessors; the cost of a wait for the other stream */
    double now_s;       /* the end of all launches given to the main stream */
    bool forks,
        joins; /* the next launch of the stream beside, or of the main one, waits for the other stream */
    int64_t n_pieces, n_joined;
    struct forecast_launch
        beside[FORECAST_BESIDE_LAUNCHES]; /* [n_given], a ring; n_ended of them have ended */
    int64_t n_given, n_ended;
};

void forecast_streams_init(struct forecast_streams *s, const struct gpu_chip *chip);

/* Begins a piece of work beside, after all launches given before. */
void forecast_streams_fork(struct forecast_streams *s);

/* The next launch of a stream. */
void forecast_streams_launch(struct forecast_streams *s, struct gpu_phases phases, bool beside);

/* The main stream waits for all pieces except the last n_left. */
void forecast_streams_join(struct forecast_streams *s, int n_left);

/* The time at which all launches have ended. */
double forecast_streams_seconds(const struct forecast_streams *s);

#endif
