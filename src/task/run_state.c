#include "task/run_state.h"

#include "core/log.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* One row per entry of the file, in its order. */
struct entry {
    struct json_field at;
    bool setting;  /* a setting by the user, not part of the position */
    bool optional; /* absent in files of earlier versions and, if it is of the position, where it is 0 */
};

#define ROW(key, kind, field, setting, optional)                                                             \
    {                                                                                                        \
        {key, JSON_FIELD_##kind, offsetof(struct run_state, field)}, setting, optional                       \
    }
#define ENTRY(name, kind, setting)          ROW(#name, kind, name, setting, false)
#define OPTIONAL_ENTRY(name, kind, setting) ROW(#name, kind, name, setting, true)

/* A setting of every run. */
#define SETTING(name, kind, field) ROW(#name, kind, settings.field, true, false)

/* A setting of the optimizer, of its rate, or that files of earlier versions do not have. */
#define RULE(key, kind, field) ROW(key, kind, field, true, true)

static const struct entry entries[] = {
    ENTRY(phase, INT, false),
    ENTRY(step, INT, false),
    ENTRY(global_step, INT, false),
    SETTING(seed, INT, seed),
    ENTRY(dtype, TEXT, true),
    ENTRY(optimizer, TEXT, true),
    SETTING(max_seq_length, INT, batch.max_seq_length),
    ENTRY(max_predictions_per_seq, INT, true),
    SETTING(train_batch_size, INT, batch.train_batch_size),
    SETTING(gradient_accumulation_steps, INT, batch.gradient_accumulation_steps),
    SETTING(max_steps, INT, max_steps),
    SETTING(learning_rate, REAL, learning_rate),
    SETTING(warmup_proportion, REAL, warmup_proportion),
    OPTIONAL_ENTRY(command, TEXT, false),
    RULE("weight_decay", REAL, update.weight_decay),
    RULE("max_grad_norm", REAL, update.max_grad_norm),
    RULE("adam_beta1", REAL, update.beta1),
    RULE("adam_beta2", REAL, update.beta2),
    RULE("adam_eps", REAL, update.eps),
    RULE("min_ratio", REAL, update.min_ratio),
    RULE("max_ratio", REAL, update.max_ratio),
    RULE("corrects_steps", BOOL, update.corrects_steps),
    RULE("lr_schedule", TEXT, lr_schedule),
    RULE("lr_decay_style", TEXT, lr_decay),
    RULE("scheduler_degree", REAL, rate.degree),
    RULE("constant_proportion", REAL, rate.constant),
    RULE("min_lr", REAL, rate.min),
    RULE("max_lr", REAL, rate.max),
    RULE("lr_warmup_steps", INT, rate.warmup_steps),
    RULE("lr_decay_steps", INT, rate.decay_steps),
    RULE("lr_warmup_samples", INT, rate.warmup_samples),
    RULE("lr_decay_samples", INT, rate.decay_samples),
    OPTIONAL_ENTRY(data, TEXT, false),
    OPTIONAL_ENTRY(freeze, TEXT, true),
    OPTIONAL_ENTRY(layerwise_lr_decay, REAL, true),
    OPTIONAL_ENTRY(batch_ramp, TEXT, true),
    OPTIONAL_ENTRY(length_schedule, TEXT, true),
    OPTIONAL_ENTRY(total_training_time, REAL, true),
    RULE("warmup_tokens", INT, settings.warmup_tokens),
    RULE("spike_z", REAL, settings.health.spike_z),
    OPTIONAL_ENTRY(elapsed_seconds, REAL, false),
    OPTIONAL_ENTRY(step_seconds, REAL, false),
    OPTIONAL_ENTRY(n_tokens, INT, false),
    ROW("best_loss", REAL, early.best_loss, false, true),
    ROW("best_step", INT, early.best_step, false, true),
    ROW("n_worse_evaluations", INT, early.n_worse, false, true),
    OPTIONAL_ENTRY(loss_scale, REAL, false),
    OPTIONAL_ENTRY(loss_scale_steps, INT, false),
    OPTIONAL_ENTRY(loss_scale_kept, INT, false),
    OPTIONAL_ENTRY(n_skipped, INT, false),
};

enum { N_ENTRIES = sizeof entries / sizeof entries[0] };

struct run_state run_state_begin(const struct run_settings *s, struct precision precision)
{
    return (struct run_state){.command = s->names->tunes ? s->names->command : NULL,
                              .phase = 1,
                              .settings = *s,
                              .dtype = precision_name(precision)};
}

json_t *run_state_to_json(const struct run_state *s)
{
    json_t *object = json_object();
    for (int i = 0; object != NULL && i < N_ENTRIES; i++) {
        const struct entry *e = &entries[i];
        bool is_zero = !(json_field_number(s, &e->at) != 0), unsaid = e->optional && !e->setting && is_zero;
        if (!unsaid && json_object_set_new(object, e->at.key, json_field_value(s, &e->at)) != 0) {
            json_decref(object);
            object = NULL;
        }
    }
    json_t *health = object == NULL ? NULL : health_to_json(&s->health);
    if (health != NULL && json_object_set_new(object, "health", health) != 0) {
        json_decref(object);
        object = NULL;
    }
    return object;
}

static bool has_settings(const json_t *object)
{
    bool has = false;
    for (int i = 0; i < N_ENTRIES; i++) {
        has = has || (entries[i].setting && json_object_get(object, entries[i].at.key) != NULL);
    }
    return has;
}

struct status run_state_parse(struct run_state *s, const struct run_state *now, const json_t *object,
                              const char *source)
{
    *s = *now;
    s->data = NULL;
    s->loss_scale = 0;
    s->loss_scale_steps = s->loss_scale_kept = s->n_skipped = 0;
    bool settings = has_settings(object);
    for (int i = 0; i < N_ENTRIES; i++) {
        const struct entry *e = &entries[i];
        bool must = !e->optional && (settings || !e->setting);
        if (e->at.kind == JSON_FIELD_TEXT && json_is_null(json_object_get(object, e->at.key))) {
            *(const char **)(void *)((char *)s + e->at.offset) = NULL;
        } else {
            TRY(json_field_get(s, &e->at, object, source, must));
        }
    }
    FAIL_IF(s->phase < 1 || s->phase > 2 || s->step < 0 || s->global_step < s->step, STATUS_DATA,
            "%s: phase %lld, step %lld, global step %lld is not a position of a run", source,
            (long long)s->phase, (long long)s->step, (long long)s->global_step);
    FAIL_IF(!(s->loss_scale >= 0) || s->loss_scale_steps < 0 || s->loss_scale_kept < 0 || s->n_skipped < 0 ||
                s->n_skipped > s->step,
            STATUS_DATA,
            "%s: a loss scale of %g for %lld steps, and %lld steps skipped of %lld, are impossible", source,
            s->loss_scale, (long long)s->loss_scale_steps, (long long)s->n_skipped, (long long)s->step);
    FAIL_IF(!(s->elapsed_seconds >= 0 && s->step_seconds >= 0) ||
                !isfinite(s->elapsed_seconds + s->step_seconds) || s->n_tokens < 0,
            STATUS_DATA, "%s: %g seconds, %g in the last step, and %lld tokens are impossible", source,
            s->elapsed_seconds, s->step_seconds, (long long)s->n_tokens);
    FAIL_IF(!isfinite(s->early.best_loss) || s->early.best_step < 0 || s->early.best_step > s->global_step ||
                s->early.n_worse < 0 || s->early.n_worse > s->step,
            STATUS_DATA, "%s: a best loss of %g at step %lld, %lld evaluations ago, is impossible", source,
            s->early.best_loss, (long long)s->early.best_step, (long long)s->early.n_worse);
    return health_parse(&s->health, json_object_get(object, "health"), s->step, source);
}

void run_state_keep_scale(struct run_state *s, const struct loss_scale *scale,
                          const struct trainer_result *result)
{
    s->n_skipped += result->skipped;
    if (scale->dynamic) {
        s->loss_scale = scale->value;
        s->loss_scale_steps = scale->n_good;
        s->loss_scale_kept = scale->n_kept;
    }
}

void run_state_resume_scale(const struct run_state *saved, struct loss_scale *scale)
{
    if (scale->dynamic && saved->loss_scale > 0) {
        scale->value = saved->loss_scale;
        scale->n_good = saved->loss_scale_steps;
        scale->n_kept = saved->loss_scale_kept;
    }
}

/* A checkpoint of an earlier version has no sample of the data. */
static bool is_same_data(const char *saved, const char *now)
{
    size_t n = strlen(saved);
    return strncmp(now, saved, n) == 0 && (now[n] == '\0' || strncmp(now + n, ", sample ", 9) == 0);
}

/* A position is counted in steps, so in batches of another size it is that of other samples. */
static struct status check_batch(const struct run_state *saved, const struct run_state *now, bool allowed,
                                 const char *path)
{
    bool same = saved->phase != now->phase ||
                saved->settings.batch.train_batch_size == now->settings.batch.train_batch_size;
    FAIL_IF(!same && !allowed, STATUS_DATA,
            "%s was trained in batches of %lld sequences, which now are %lld: behind its %lld steps samples "
            "would be left out or come twice; give the same batch, or --allow_other_data",
            path, (long long)saved->settings.batch.train_batch_size,
            (long long)now->settings.batch.train_batch_size, (long long)saved->step);
    return status_ok();
}

struct status run_state_check_data(const struct run_state *saved, const struct run_state *now, bool allowed,
                                   const char *path, const char *flag)
{
    TRY(check_batch(saved, now, allowed, path));
    if (saved->phase != now->phase || saved->data == NULL || is_same_data(saved->data, now->data)) {
        return status_ok();
    }
    if (allowed) {
        log_warning("%s was trained on other data (%s) than %s gives now (%s)", path, saved->data, flag,
                    now->data);
        return status_ok();
    }
    return status_error(STATUS_DATA,
                        "%s was trained on other data (%s) than %s gives now (%s), so this would not be the "
                        "run that was interrupted; --allow_other_data resumes anyway",
                        path, saved->data, flag, now->data);
}

void run_state_warn_differences(const struct run_state *saved, const struct run_state *now)
{
    for (int i = 0; i < N_ENTRIES; i++) {
        const struct entry *e = &entries[i];
        /* in 17 digits any two reals differ */
        if (e->setting &&
            strcmp(json_field_text(saved, &e->at, 17).text, json_field_text(now, &e->at, 17).text) != 0) {
            log_warning("%s was %s in the checkpoint and is %s now", e->at.key,
                        json_field_text(saved, &e->at, 6).text, json_field_text(now, &e->at, 6).text);
        }
    }
}
