/* weight_window: writes the weights of a network a parameter at a time, from the host: into the master, or
 * the part of it that is here, and into the copies that passes read.  Where a network has all weights in
 * fp32 in the host's memory they are written in place; else they pass through a window as large as the
 * largest parameter. */
#ifndef KILN_PASS_WEIGHT_WINDOW_H
#define KILN_PASS_WEIGHT_WINDOW_H

#include "model/weight_source.h"
#include "pass/network.h"

struct weight_window {
    struct network *n;
    bool in_place;
    void *memory;  /* owned; [the largest parameter] in the dtype of vectors */
    void *rounded; /* owned; the same number of elements in the dtype of matrices, for a device; else NULL */
};

/* Opens a window on the network's weights.  STATUS_MEMORY. */
struct status weight_window_open(struct weight_window *w, struct network *n);

/* The sink that writes through this window, which must outlive it. */
struct weight_sink weight_window_sink(struct weight_window *w);

/* Draws the initial values of a parameter into *values, as weight_sink.place gives them, for
 * weight_sink.put to write. */
struct status weight_window_draw(struct weight_window *w, const struct param *p, uint64_t seed,
                                 tensor *values);

/* Completes the copies, waits for them and closes the window.  Returns the status of the network's exec. */
struct status weight_window_close(struct weight_window *w);

#endif
