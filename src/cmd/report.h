/* report: lays out a JSON object for people: a line per value, objects indented, lists of objects as
 * tables. */
#ifndef KILN_CMD_REPORT_H
#define KILN_CMD_REPORT_H

#include "core/json.h"

/* The text, with control characters shown as '?'; free() it.  NULL if memory runs out. */
char *report_to_text(const json_t *object);

#endif
