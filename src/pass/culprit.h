/* culprit: which tensor of a network went wrong first, when something that it computed is not finite. */
#ifndef KILN_PASS_CULPRIT_H
#define KILN_PASS_CULPRIT_H

#include "pass/network.h"

struct culprit {
    struct network *network;
    char name[PARAM_NAME_BYTES + 32];
    int64_t index; /* of its first element that is an infinity or NaN; -1: none found yet */
};

/* The first in the order of computation: weights, then activations of the last batch, which is run again for that, with dropout
 * if it was `training`. */
struct culprit culprit_find(struct network *n, bool training);

/* Looks on, if there is none yet: at the parameters in a flat buffer, which may be null; "gradient of". */
void culprit_look_at_params(struct culprit *c, const struct param_table *params, tensor flat,
                            const char *kind);

/* STATUS_NUMERIC unless all of `result`, in host memory, is finite: `what` was computed from the batch that stage_infer ran last,
 * and the message names the first weight or activation that is not finite. */
struct status culprit_of_result(struct network *n, tensor result, const char *what);

#endif
