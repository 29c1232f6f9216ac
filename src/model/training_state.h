/* training_state: what a run goes on from: weights, both moments and a position, as a checkpoint of kiln or
 * of another program has them.
 *
 * The rule: who resumes from one does not know which program wrote it; the difference is in the table.  All
 * are looked for here: kiln's own come first, since a run that went on from another program's writes its own
 * from then on. */
#ifndef KILN_MODEL_TRAINING_STATE_H
#define KILN_MODEL_TRAINING_STATE_H

#include "model/checkpoint.h"
#include "model/model_dir.h"

struct training_state_kind {
    /* All weights, a parameter at a time; and the moments of a slice, as checkpoint_read_moments. */
    struct status (*read_weights)(const void *self, const struct param_table *params,
                                  const struct weight_sink *sink);
    struct status (*read_moments)(const void *self, const struct param_table *params, int64_t begin,
                                  tensor exp_avg, tensor exp_avg_sq);

    /* As checkpoint_read_extra; and the bytes of a file of its own, NULL if it has none. */
    struct status (*read_extra)(const void *self, const char *file, const char *name, tensor out);
    const struct file_map *(*find_file)(const void *self, const char *file);
    void (*close)(void *self);
};

struct training_state {
    const struct training_state_kind *kind; /* NULL: nothing was found */
    void *self;                             /* owned */
    char path[CHECKPOINT_PATH_BYTES];
    const json_t *config; /* as config.json, borrowed; NULL: the shapes of its tensors are all that it says */
    uint64_t vocab_hash;
    const json_t *position; /* as trainer_state.json, with or without the settings; borrowed */
};

/* Where to look, and what for. */
struct training_state_place {
    const char *directory;
    const char *own; /* where kiln's own of the run's kind are; NULL: in `directory` too */
    int64_t step;    /* of the checkpoint; -1: the newest */
    /* the step before the first of the run's phase: of files that say nothing of phases */
    int64_t phase_began;
    bool others;    /* those of other programs, too */
    bool universal; /* of these, a universal checkpoint */
    struct model_dir_given given;
    enum model_task task; /* for the tensors of other programs */
};

/* kind stays NULL if the directory has no checkpoint, and none of `step` was wanted.  STATUS_NO_CHECKPOINT if
 * there is none of that step, or none that is whole. */
struct status training_state_open(struct training_state *s, const struct training_state_place *place);

/* Views an open checkpoint of kiln, which the caller closes. */
struct training_state training_state_of(const struct checkpoint *c);

/* Of a kind without files of kiln's own: zeros, and no file. */
struct status training_state_no_extra(const void *self, const char *file, const char *name, tensor out);
const struct file_map *training_state_no_file(const void *self, const char *file);

/* Safe on a zeroed struct. */
void training_state_close(struct training_state *s);

#endif
