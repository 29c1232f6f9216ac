/* inspect: what `kiln inspect` says of each kind of file (inspect_report.c), and of two that it compares
 * (inspect_diff.c). */
#ifndef KILN_CMD_INSPECT_H
#define KILN_CMD_INSPECT_H

#include "core/json.h"
#include "core/status.h"
#include "io/tensor_diff.h"

/* Each makes the report of a file, a directory or, of a store, a prefix, which the caller json_decref's.
 * STATUS_DATA: it is damaged. */
struct status inspect_report_checkpoint(json_t **out, const char *path);
struct status inspect_report_model(json_t **out, const char *path);
struct status inspect_report_safetensors(json_t **out, const char *path);
struct status inspect_report_foreign(json_t **out, const char *path);
struct status inspect_report_store(json_t **out, const char *prefix);
struct status inspect_report_shard(json_t **out, const char *path);

/* Indices of an element: [3, 17]. */
json_t *inspect_place(const struct stored_tensor *t, int64_t element);

/* Whether the text ends so, and has more than that. */
bool inspect_ends_with(const char *text, const char *end);

/* STATUS_MEMORY if the report is NULL. */
struct status inspect_complete(const json_t *report);

/* The name of the first tensor of a report that has NaN or infinity; NULL: none. */
const char *inspect_first_nonfinite(const json_t *report);

/* `kiln inspect --diff A B`: the first tensor in which two logs of tensors, checkpoints or models differ.
 * Makes the report, which the caller json_decref's.  *same: every tensor of one is in the other, within the
 * tolerance.  STATUS_DATA if one of them cannot be read, or if they have no name in common. */
struct status inspect_diff(json_t **report, bool *same, const char *path_a, const char *path_b,
                           struct tensor_tolerance within);

#endif
