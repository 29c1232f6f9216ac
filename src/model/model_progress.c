#include "model/model_progress.h"

#include "model/training_state.h"

#include <stdlib.h>
#include <string.h>

static struct status take_position(struct model_progress *p, const json_t *state, const char *path)
{
    static const char *const optimizers[] = {"lamb", "lans", "adam", "adamw"};
    const char *name = json_string_value(json_object_get(state, "optimizer"));
    bool known = false;
    for (size_t i = 0; name != NULL && i < sizeof optimizers / sizeof optimizers[0]; i++) {
        known |= strcmp(name, optimizers[i]) == 0;
    }
    FAIL_IF(!known, STATUS_UNAVAILABLE,
            "%s was trained with the optimizer %.20s, which the scripts do not have, so they "
            "cannot use its moments",
            path, name == NULL ? "of an unknown name" : name);
    p->n_ranks = 1;
    p->rate = json_number_value(json_object_get(state, "learning_rate"));
    p->global_step = json_integer_value(json_object_get(state, "global_step"));
    p->step = json_integer_value(json_object_get(state, "step"));
    p->n_skipped = json_integer_value(json_object_get(state, "n_skipped"));
    return p->step >= 0 && p->step <= p->global_step && p->n_skipped >= 0 && p->n_skipped <= p->step
               ? status_ok()
               : status_error(STATUS_DATA, "%s: its trainer_state.json has no valid \"step\"", path);
}

static struct status take_moments(struct model_progress *p, const struct checkpoint *c,
                                  const struct param_table *params)
{
    float *both = calloc(2 * (size_t)params->n_elements, sizeof *both);
    FAIL_IF(both == NULL, STATUS_MEMORY, "out of memory for the moments of %lld parameters",
            (long long)params->n_elements);
    p->exp_avg = tensor_1d(both, DTYPE_F32, params->n_elements);
    p->exp_avg_sq = tensor_1d(both + params->n_elements, DTYPE_F32, params->n_elements);
    const struct training_state s = training_state_of(c);
    TRY(checkpoint_check_moments(c, params));
    TRY(training_state_read(&s, PARAM_EXP_AVG, params, 0, p->exp_avg));
    return training_state_read(&s, PARAM_EXP_AVG_SQ, params, 0, p->exp_avg_sq);
}

struct status model_progress_open(struct model_progress *p, const char *directory,
                                  const struct param_table *params)
{
    struct checkpoint c;
    char manifest[CHECKPOINT_PATH_BYTES];
    *p = (struct model_progress){0};
    TRY(checkpoint_path(manifest, "%s/manifest.json", directory));
    FAIL_IF(!file_exists(manifest), STATUS_DATA,
            "%s is not a checkpoint of kiln, so it has no state of a run to write: give a ckpt_STEP",
            directory);
    TRY(checkpoint_open(&c, directory));
    struct status s = take_position(p, c.state, directory);
    s = failed(s) ? s : take_moments(p, &c, params);
    checkpoint_close(&c);
    if (failed(s)) {
        model_progress_close(p);
    }
    return s;
}

void model_progress_close(struct model_progress *p)
{
    free(p->exp_avg.data);
    *p = (struct model_progress){0};
}
