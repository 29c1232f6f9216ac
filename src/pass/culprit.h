/* culprit: the first tensor of a network that is not finite, when a result is not. */
#ifndef KILN_PASS_CULPRIT_H
#define KILN_PASS_CULPRIT_H

#include "pass/network.h"

struct culprit {
    struct network *network;
    char name[PARAM_NAME_BYTES + 32];
    int64_t index; /* index of the tensor's first element that is an infinity or NaN; -1: none found yet */
};

/* Finds the first tensor in the order of computation: weights, then activations of the last batch, which is
 * run again for that, with dropout if it was `training`. */
struct culprit culprit_find(struct network *n, bool training);

/* Searches the parameters in a flat buffer, which may be null, if none is found yet; `kind` begins their
 * names: "gradient of". */
void culprit_look_at_params(struct culprit *c, const struct param_table *params, tensor flat,
                            const char *kind);

/* Adds to a STATUS_NUMERIC the name of the first weight, or activation of the last batch, that is not finite,
 * if there is one; returns other statuses unchanged.  It waits for the device. */
struct status culprit_explain(struct network *n, struct status s);

#endif
