/* training_state: what a run resumes from: weights, both moments and a position, as a checkpoint of kiln or
 * of another program has them.
 *
 * The rule: code that resumes from one does not know which program wrote it; the difference is in the table.
 * All are looked for here: kiln's own come first, since a run that resumed from another program's checkpoint
 * writes its own from then on. */
#ifndef KILN_MODEL_TRAINING_STATE_H
#define KILN_MODEL_TRAINING_STATE_H

#include "model/checkpoint.h"
#include "model/model_dir.h"

struct training_state_kind {
    /* STATUS_DATA unless it has what the table's parameters need, and nothing that they should have. */
    struct status (*check)(const void *self, const struct param_table *params);

    /* Fills *values with elements of the local part of a parameter, or of a moment of it, from `from` on.
     * Elements that the state does not have keep their values; if *values has the shape of the parameter, it
     * is cut to the rows that were read. */
    struct status (*read)(const void *self, enum param_kept kept, const struct param *p, int64_t from,
                          tensor *values);

    /* After reading: STATUS_DATA or STATUS_IO if a file changed meanwhile. */
    struct status (*check_files)(const void *self);

    /* Reads a file as checkpoint_read_extra does; and finds the bytes of a file of its own, NULL if it has
     * none. */
    struct status (*read_extra)(const void *self, const char *file, const char *name, tensor out);
    const struct file_map *(*find_file)(const void *self, const char *file);
    void (*close)(void *self);
};

struct training_state {
    const struct training_state_kind *kind; /* NULL: nothing was found */
    void *self;                             /* owned */
    char path[CHECKPOINT_PATH_BYTES];
    /* content of config.json, borrowed; NULL: the shapes of its tensors are all that it says */
    const json_t *config;
    uint64_t vocab_hash;
    const json_t *position; /* content of trainer_state.json, with or without the settings; borrowed */
};

/* Place to search, and the kind of checkpoint wanted. */
struct training_state_place {
    const char *directory;
    const char *own; /* directory of kiln's own of the run's kind; NULL: `directory` too */
    int64_t step;    /* step of the checkpoint; -1: the newest */
    /* the step before the first of the run's phase, for files that say nothing of phases */
    int64_t phase_began;
    bool others;    /* search those of other programs, too */
    bool universal; /* among these, a universal checkpoint */
    struct model_dir_given given;
    enum model_task task; /* task of the tensors of other programs */
};

/* kind stays NULL if the directory has no checkpoint, and none of `step` was wanted.  STATUS_NO_CHECKPOINT if
 * there is none of that step, or none that is intact. */
struct status training_state_open(struct training_state *s, const struct training_state_place *place);

/* Checks the state, and puts all weights into a sink, a parameter at a time. */
struct status training_state_read_weights(const struct training_state *s, const struct param_table *params,
                                          const struct weight_sink *sink);

/* Fills the parameters, or moments of them, in `flat`, the part of a flat host buffer of the table's layout
 * that begins at element `begin`; gaps and padded rows keep their values, and moments that there are none of
 * are zero. */
struct status training_state_read(const struct training_state *s, enum param_kept kept,
                                  const struct param_table *params, int64_t begin, tensor flat);

/* Views an open checkpoint of kiln, which the caller closes. */
struct training_state training_state_of(const struct checkpoint *c);

/* Runs that the replaced scripts began, ckpt_N.pt of NVIDIA and Habana, and DeepSpeed's folders, found by
 * their file "latest".  s->kind stays NULL if the directory has none. */
struct status foreign_state_open(struct training_state *s, const struct training_state_place *place);

/* Runs that Megatron-DeepSpeed began: whether a folder is of one, and opening it; place->given has the run's
 * configuration.  STATUS_DATA: it is of another model, or half a checkpoint. */
bool megatron_state_is_one(const char *folder);
struct status megatron_state_open(struct training_state *s, const char *folder,
                                  const struct training_state_place *place);

/* The universal checkpoint in, or named by "latest_universal" of, place->directory.  STATUS_NO_CHECKPOINT:
 * there is none. */
struct status megatron_state_open_universal(struct training_state *s,
                                            const struct training_state_place *place);

/* read_extra and find_file of a kind without files of kiln's own: zeros, and no file. */
struct status training_state_no_extra(const void *self, const char *file, const char *name, tensor out);
const struct file_map *training_state_no_file(const void *self, const char *file);

/* Safe on a zeroed struct. */
void training_state_close(struct training_state *s);

#endif
