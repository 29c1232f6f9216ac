#include "io/json_file.h"

#include "io/file.h"

#include <stdlib.h>
#include <string.h>

struct status json_file_write(const char *path, json_t *root)
{
    char *text = root == NULL ? NULL : json_to_text(root);
    json_decref(root);
    FAIL_IF(text == NULL, STATUS_MEMORY, "out of memory for %s", path);
    struct status s = file_write_atomic(path, text, strlen(text));
    free(text);
    return s;
}
