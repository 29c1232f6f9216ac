/* forecast_streams: how long launches take if some of them run beside the others (dev/queue.h): two streams that share
 * the multiprocessors of a chip.
 *
 * A block of a product fills its multiprocessor, so blocks of two launches never share one, and a kernel that memory
 * bounds leaves nothing to others.  What a launch leaves idle is all that there is to gain: gaps, waits, and
 * multiprocessors that its last wave has no block for (gpu_phases).  Where both streams want more multiprocessors than
 * there are, the launch that was ready first has those it wants, and the other what is left, at the share of its speed
 * that this comes to: the order in which a chip places blocks. */
#ifndef KILN_OPS_FORECAST_STREAMS_H
#define KILN_OPS_FORECAST_STREAMS_H

#include "ops/cuda/forecast/gpu_chips.h"

#include <stdbool.h>

enum { FORECAST_BESIDE_LAUNCHES = 64 };

/* A launch with what is left of its phases. */
struct forecast_launch {
    struct gpu_phases left;
    double ready_s; /* when it first wanted multiprocessors; INFINITY: not yet */
    int64_t piece;
};

struct forecast_streams {
    double all, edge_s; /* multiprocessors; what a wait for the other stream costs */
    double now_s;       /* the end of all that was given to the main stream */
    bool forks,
        joins; /* the next launch of the stream beside, or of the main one, waits for the other stream */
    int64_t n_pieces, n_joined;
    struct forecast_launch
        beside[FORECAST_BESIDE_LAUNCHES]; /* [n_given], a ring; n_ended of them have ended */
    int64_t n_given, n_ended;
};

void forecast_streams_init(struct forecast_streams *s, const struct gpu_chip *chip);

/* A piece of work beside begins, behind all that was given before. */
void forecast_streams_fork(struct forecast_streams *s);

/* The next launch of a stream. */
void forecast_streams_launch(struct forecast_streams *s, struct gpu_phases phases, bool beside);

/* The main stream waits for all pieces but the last n_left. */
void forecast_streams_join(struct forecast_streams *s, int n_left);

/* When all that was given has ended. */
double forecast_streams_seconds(const struct forecast_streams *s);

#endif
