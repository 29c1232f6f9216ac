/* text_engine: computes the requests of many threads to the models on a device, in one thread of its own (Yu
 * et al. 2022, Orca, section 4).
 *
 * The rules:
 *   - Work is a request of an encoder's session or a text that a decoder's session continues.  Each session
 *     is a lane; lanes with work take turns, a batch each.
 *   - In a lane, works share batches in rotation, so that a work of one sequence does not wait for a work of
 *     10,000.  A work's results are the same bits whatever shares its batches, where the session says so.
 *   - A work is admitted completely or not at all, counted in tokens.
 *   - A work that nobody wants any more, or whose deadline has passed, leaves within one batch. */
#ifndef KILN_SERVE_TEXT_ENGINE_H
#define KILN_SERVE_TEXT_ENGINE_H

#include "serve/generate.h"
#include "serve/session.h"

struct text_engine;
struct lane;

/* A request of a caller to a lane; it does not move until it has ended. */
struct work {
    struct lane *lane;
    struct request *const *requests; /* [n_requests] of an encoder, or */
    int64_t n_requests;
    struct generation *const *generations; /* [n_generations] of a decoder */
    int64_t n_generations;
    int64_t n_tokens;    /* to be read and generated, for the admission */
    int64_t deadline_ns; /* time of core/clock; 0: none */

    /* Whether somebody waits for it; asked between batches, by the engine. NULL: always. */
    bool (*is_wanted)(void *self);

    /* Called by the engine after each token of a text.  NULL: no calls. */
    void (*told)(void *self, struct generation *g);

    /* All of it has ended, by the engine, which forgets it before.  Each request and text has a status of its
     * own; this one is of the work: STATUS_PREEMPTED: it was not wanted, or `timed_out`; STATUS_UNAVAILABLE:
     * the engine ends; a failure of the device; else the first failure of a request. */
    void (*done)(void *self, struct status status);
    void *self;

    /* The engine's. */
    bool timed_out, is_cancelled;
    int64_t n_wanted, n_begun, n_ended; /* requests or generations */
    int64_t queued_ns, begun_ns, ended_ns;
    struct work *next;
};

struct text_engine_options {
    int64_t max_queue_tokens; /* tokens of all works that have not ended; one work is always admitted */
    int64_t max_works;
};

/* The work to be done, and counts of the work that was done. */
struct text_engine_load {
    int64_t n_works, n_tokens;
    double tokens_per_s; /* mean over the last seconds with work; 0: none yet */
    int64_t n_batches, n_batch_tokens, last_batch_tokens, last_batch_texts;
    int64_t prompt_tokens, new_tokens; /* since it began */
};

/* Creates an engine without lanes or a thread.  STATUS_MEMORY. */
struct status text_engine_create(struct text_engine **e, const struct text_engine_options *o);

/* Ends all works with STATUS_UNAVAILABLE, and the thread; no more are taken. */
void text_engine_stop(struct text_engine *e);

/* Stops and frees the engine.  Safe on NULL. */
void text_engine_destroy(struct text_engine *e);

/* Adds a lane over a session, which is borrowed and used by the engine's thread alone, but for what jobs read
 * (serve/request.h).  Before text_engine_start. */
struct status text_engine_add_lane(struct text_engine *e, struct lane **lane, struct session *s);

/* Starts the thread.  STATUS_MEMORY. */
struct status text_engine_start(struct text_engine *e);

/* Hands a work over, from any thread.  False: it is full; *retry_after_s says when it may not be. */
bool text_engine_submit(struct text_engine *e, struct work *w, double *retry_after_s);

/* The work that the engine has to do now, and has done; from any thread. */
struct text_engine_load text_engine_load(struct text_engine *e);

#endif
