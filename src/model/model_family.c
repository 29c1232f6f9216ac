#include "model/model_family.h"

#include "model/bert_family.h"

#include <string.h>

/* All families; add a new one here. */
static const struct model_family *const families[] = {&bert_family, NULL};

const struct model_family *model_family_at(size_t i)
{
    return families[i];
}

const struct model_family *model_family_find(const json_t *config)
{
    const json_t *type = json_object_get(config, "model_type");
    for (size_t i = 0; json_is_string(type) && families[i] != NULL; i++) {
        for (const char *const *known = families[i]->model_types; *known != NULL; known++) {
            if (strcmp(*known, json_string_value(type)) == 0) {
                return families[i];
            }
        }
    }
    return families[0];
}
