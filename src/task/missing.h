/* missing: inputs that a dry run does not find.  It names each with what makes it, and plans without them. */
#ifndef KILN_TASK_MISSING_H
#define KILN_TASK_MISSING_H

#include <stdbool.h>

struct missing {
    int n; /* inputs that were asked for and are not there */
};

/* Whether nothing is at this path. */
bool missing_is(const char *path);

/* True if --FLAG names a path where nothing is, and logs it with `made_by`, what makes it.  path NULL: the
 * flag was not given. */
bool missing_path(struct missing *m, const char *flag, const char *path, const char *made_by);

/* Like missing_path, for weights to start from, which the prefix of a TensorFlow checkpoint may name. */
bool missing_weights(struct missing *m, const char *path);

/* Whether no weights are at this path. */
bool missing_weights_are(const char *path);

/* Like missing_path, for a model's configuration; the log line names the file of configs/ that is the same
 * model. */
bool missing_config(struct missing *m, const char *path);

/* Logs the last line of a dry run. */
void missing_end(const struct missing *m);

#endif
