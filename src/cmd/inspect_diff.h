/* inspect_diff: `kiln inspect --diff A B`: the first tensor in which two logs of tensors, checkpoints or
 * models differ. */
#ifndef KILN_CMD_INSPECT_DIFF_H
#define KILN_CMD_INSPECT_DIFF_H

#include "core/json.h"
#include "io/tensor_diff.h"

/* Makes the report, which the caller json_decref's.  *same: every tensor of one is in the other, within the
 * tolerance. STATUS_DATA if one of them cannot be read, or if they have no name in common. */
struct status inspect_diff(json_t **report, bool *same, const char *path_a, const char *path_b,
                           struct tensor_tolerance within);

#endif
