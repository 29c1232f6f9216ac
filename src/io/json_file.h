/* json_file: JSON documents as files; they are read by core/json.h. */
#ifndef KILN_IO_JSON_FILE_H
#define KILN_IO_JSON_FILE_H

#include "core/json.h"

/* Writes the document as json_to_text formats it, completely or not at all, and takes ownership of it.  A
 * NULL document means that memory ran out: STATUS_MEMORY. */
struct status json_file_write(const char *path, json_t *root);

#endif
