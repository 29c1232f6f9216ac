/* api: the structs behind the handles of include/kiln/kiln.h, and what its functions share.
 *
 * The rule: every argument is checked here, so that nothing a caller passes reaches a CHECK; a call that
 * fails leaves an empty result. */
#ifndef KILN_API_API_H
#define KILN_API_API_H

#include "serve/generate.h"

#include <kiln/kiln.h>

#include <pthread.h>
#include <stdatomic.h>

struct kiln_model {
    struct session weights; /* the model, from session_open_model; or its files alone */
    struct session_options options;
    bool without_weights;
    pthread_mutex_t tokenizing; /* guards the scratch of `weights` */
    atomic_int n_references;    /* the caller's hold, and one for each session */
};

struct kiln_session {
    struct kiln_model *model;
    enum kiln_task task;
    struct session session;
    atomic_bool cancelled;
};

/* Opens a session as kiln_session_open does, with options of batches and of the cache. */
struct status api_open_session(struct kiln_session **session, struct kiln_model *model, enum kiln_task task,
                               const struct session_options *o);

/* A generator's options over the defaults; STATUS_USAGE names the one that is wrong. */
struct status api_take_generator_options(struct kiln_generator_options *o,
                                         const struct kiln_generator_options *given);

/* Converts an inner status to a public one. */
struct kiln_status api_status(struct status s);

/* Whether a run has the log, until it is closed. */
bool api_run_goes_on(void);

/* The log goes where kiln_log_to said, again. */
void api_restore_log(void);

/* Prepares a session for a call: STATUS_USAGE if it is NULL, STATUS_PREEMPTED if it was cancelled. */
struct status api_begin(struct kiln_session *s);

/* api_begin for a call of one task: STATUS_USAGE if the session was opened for another. */
struct status api_begin_task(struct kiln_session *s, enum kiln_task task);

/* STATUS_USAGE for a NULL text with n > 0; NULL with n 0 becomes "". */
struct status api_check_text(const char **text, size_t n, const char *name);

/* Converts texts to inner form, in an array with one more element, which the caller frees; `name` is for
 * messages: "texts". */
struct status api_take_texts(struct text_bytes **out, const struct kiln_text *texts, size_t n,
                             const char *name);

/* Writes the caller's options, which may be NULL or of an older header, over the defaults in out[known].
 * STATUS_USAGE: their size. */
struct status api_take_options(void *out, size_t known, const void *given);

/* Writes default options [known] to the caller's, which are of the given size; nothing if they are NULL. */
void api_init_options(void *out, size_t size, const void *defaults, size_t known);

/* The inner form of options; STATUS_USAGE names the one that is wrong. */
struct status api_take_generate_options(struct generate_options *inner,
                                        const struct kiln_generate_options *o);

/* Copies a row of probabilities: the token's own, unless NULL, and those of n candidates. */
void api_take_probabilities(double *own, struct kiln_candidate *candidates,
                            const struct token_probability *row, int64_t n);

/* STATUS_USAGE unless min <= value <= max. */
struct status api_check_range(const char *name, int64_t value, int64_t min, int64_t max);

#endif
