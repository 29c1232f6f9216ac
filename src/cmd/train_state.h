/* train_state: OUTPUT_DIR/train.json, in which `kiln train` keeps its text, its flags, what it chose and the
 * steps that are done.
 *
 * The rule: an output directory is one run's: of one text and one set of flags.  Until something was trained,
 * another text or other flags begin it anew; then they are refused. */
#ifndef KILN_CMD_TRAIN_STATE_H
#define KILN_CMD_TRAIN_STATE_H

#include "core/json.h"
#include "corpus/input_files.h"
#include "io/dir_lock.h"

struct train_state {
    char path[FILE_PATH_BYTES], data[FILE_PATH_BYTES]; /* paths of train.json and of OUTPUT_DIR/data */
    const char *output_dir;
    json_t *root;
    struct dir_lock lock;
    bool is_dry; /* nothing is written */
};

/* Opens the state of a directory, or begins it; takes ownership of `flags`.  STATUS_USAGE: it has files of
 * somebody else, or the model of another text or of other flags; STATUS_IO: another run has it.  Close it
 * after a failure, too. */
struct status train_state_open(struct train_state *s, const char *output_dir, const struct input_files *texts,
                               json_t *flags, bool is_dry);
void train_state_close(struct train_state *s);

/* Whether an earlier start ended the step; and notes that it has ended. */
bool train_state_is_done(const struct train_state *s, const char *step);
struct status train_state_set_done(const struct train_state *s, const char *step);

/* Writes what the caller has set in `root`. */
struct status train_state_write(const struct train_state *s);

#endif
