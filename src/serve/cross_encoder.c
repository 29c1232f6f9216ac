#include "serve/cross_encoder.h"

#include "core/log.h"
#include "model/model_place.h"
#include "nn/label_names.h"

#include <string.h>

static void read_activation(struct cross_encoder *c, const json_t *config, const char *path)
{
    const json_t *ours = json_object_get(config, "sentence_transformers");
    const char *name = json_string_value(json_object_get(ours, "activation_fn"));
    if (name == NULL) {
        name = json_string_value(json_object_get(config, "sbert_ce_default_activation_function"));
    }
    if (name != NULL && !sentence_activation_find(&c->activation, name)) {
        log_warning("%s: the activation %.80s is unknown here: scores of pairs are those of a sigmoid", path,
                    name);
    }
}

struct status cross_encoder_read(struct cross_encoder *c, const char *directory)
{
    char path[CHECKPOINT_PATH_BYTES];
    json_t *config;
    *c = (struct cross_encoder){.activation = SENTENCE_SIGMOID};
    if (!model_place_find_config(path, directory)) {
        return status_ok();
    }
    TRY(json_read_object(&config, path));
    read_activation(c, config, path);
    const char *problem = json_string_value(json_object_get(config, "problem_type"));
    c->is_regression = problem != NULL && strcmp(problem, label_problem_name(PROBLEM_REGRESSION)) == 0;
    json_decref(config);
    return status_ok();
}
