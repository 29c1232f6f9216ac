/* pass_work: the directory in which a run of `kiln prepare` keeps what it needs to be continued (pass_state),
 * and what becomes of it.
 *
 * The rule: a run without --resume never continues or removes another's work in silence; a run that ends well
 * removes its own, and one that fails keeps it if a later run can continue it. */
#ifndef KILN_CORPUS_PASS_WORK_H
#define KILN_CORPUS_PASS_WORK_H

#include "corpus/pass_state.h"

struct pass_work {
    const char *output;               /* place of the outputs, for messages */
    char directory[FILE_PATH_BYTES];  /* has run.json and the state */
    char done[FILE_PATH_BYTES];       /* the run.json of the outputs that are there; "": none is kept */
    const struct input_files *inputs; /* borrowed */
    json_t *settings;                 /* settings that decide the bytes of the output; borrowed */
    bool overwrite, resume;
    struct status (*check_outputs)(void *context); /* STATUS_USAGE: outputs are there already */
    void *context;
};

/* Loads the state of an earlier run into *at, or begins anew, with {0}.  *is_done: all outputs are there, and
 * nothing is left to do.  STATUS_USAGE: the earlier run was another, or is not to be continued. */
struct status pass_work_begin(const struct pass_work *w, struct pass_state *at, bool *is_done);

/* Saves a stage after reading. */
struct status pass_work_save_stage(const struct pass_work *w, struct pass_state *at, enum pass_stage stage);

/* Ends the work: all outputs are in their places. */
struct status pass_work_end(const struct pass_work *w);

/* Keeps the work of a run that failed with `s`, or removes it; says so, and returns whether it is kept.
 * `was_resumed`: work of an earlier run is always kept.  *at is then the last state. */
bool pass_work_keep(const struct pass_work *w, struct pass_state *at, struct status s, bool was_resumed);

#endif
