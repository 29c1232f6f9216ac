/* inspect_report: what `kiln inspect` says of each kind of file. */
#ifndef KILN_CMD_INSPECT_REPORT_H
#define KILN_CMD_INSPECT_REPORT_H

#include "core/json.h"
#include "core/status.h"

/* Each makes the report of a file, a directory or, of a store, a prefix, which the caller json_decref's.
 * STATUS_DATA: it is damaged. */
struct status inspect_report_checkpoint(json_t **out, const char *path);
struct status inspect_report_model(json_t **out, const char *path);
struct status inspect_report_safetensors(json_t **out, const char *path);
struct status inspect_report_foreign(json_t **out, const char *path);
struct status inspect_report_store(json_t **out, const char *prefix);
struct status inspect_report_shard(json_t **out, const char *path);

/* STATUS_MEMORY if the report is NULL. */
struct status inspect_complete(const json_t *report);

/* The name of the first tensor of a report that has NaN or infinity; NULL: none. */
const char *inspect_first_nonfinite(const json_t *report);

#endif
