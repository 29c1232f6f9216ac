#include "task/config_file.h"

struct status config_file_read(struct bert_config *config, const char *path)
{
    json_t *object;
    TRY(json_read_object(&object, path));
    struct status s = bert_config_parse(config, object, path);
    json_decref(object);
    return s;
}
