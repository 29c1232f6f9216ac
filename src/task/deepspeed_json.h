/* deepspeed_json: the text of DeepSpeed's configurations, which DeepSpeed and transformers' Trainer read more
 * freely than JSON. */
#ifndef KILN_TASK_DEEPSPEED_JSON_H
#define KILN_TASK_DEEPSPEED_JSON_H

#include "core/json.h"

/* Reads a file whose top is an object, without the comments of Hjson (// or # to the end of the line, and
 * those between slash and asterisk).  Values "auto", which the Trainer fills in, are left out, and a log line
 * names them: *has_auto tells.  The caller json_decref's it. */
struct status deepspeed_json_read(json_t **root, bool *has_auto, const char *path);

#endif
