#include "task/deepspeed_config.h"

#include "core/log.h"
#include "task/deepspeed_json.h"
#include "task/optimizer_names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A file being read: its blocks, NULL if absent. */
struct reader {
    const char *path;
    const json_t *root;
    struct deepspeed_config *c;
    int64_t n_ranks; /* that train together */
    bool has_auto;   /* values that somebody else was to fill in */
};

static const json_t *block(const json_t *object, const char *name)
{
    const json_t *inner = json_object_get(object, name);
    return json_is_object(inner) ? inner : NULL;
}

static struct status get_real(const struct reader *r, const json_t *object, const char *key, double *value)
{
    return object == NULL ? status_ok() : json_get_real(object, r->path, key, false, value);
}

static struct status get_bool(const struct reader *r, const json_t *object, const char *key, bool *value)
{
    return object == NULL ? status_ok() : json_get_bool(object, r->path, key, false, value);
}

static struct status get_count(const struct reader *r, const json_t *object, const char *key, int64_t *value)
{
    *value = 0;
    TRY(json_get_int(object, r->path, key, false, value));
    if (json_object_get(object, key) != NULL && (*value < 1 || *value > 1000000000)) {
        return status_error(STATUS_DATA, "%s: \"%s\" is %lld, but must be between 1 and 1e9", r->path, key,
                            (long long)*value);
    }
    return status_ok();
}

/* Any two of the three give the third; "train_batch_size" is of all ranks, the others of one. */
static struct status read_batch(const struct reader *r)
{
    int64_t train, micro, steps;
    char ranks[40];
    snprintf(ranks, sizeof ranks, "%lld ranks", (long long)r->n_ranks);
    TRY(get_count(r, r->root, "train_batch_size", &train));
    TRY(get_count(r, r->root, "train_micro_batch_size_per_gpu", &micro));
    TRY(get_count(r, r->root, "gradient_accumulation_steps", &steps));
    if (train == 0 && micro == 0) {
        return status_error(
            STATUS_DATA,
            "%s has no batch size: give \"train_batch_size\" and \"train_micro_batch_size_per_gpu\"%s",
            r->path, r->has_auto ? " as numbers instead of \"auto\"" : "");
    }
    int64_t n = r->n_ranks;
    micro = micro > 0 ? micro : train / n / (steps > 0 ? steps : 1);
    steps = steps > 0 ? steps : train > 0 ? train / n / (micro > 0 ? micro : 1) : 1;
    train = train > 0 ? train : micro * steps * n;
    if (micro == 0 || steps == 0) {
        return status_error(
            STATUS_DATA, "%s: \"train_batch_size\" %lld is less than one sequence for each micro-batch of %s",
            r->path, (long long)train, n > 1 ? ranks : "one rank");
    }
    if (micro * steps * n != train) {
        return status_error(STATUS_DATA,
                            "%s: \"train_batch_size\" %lld is not \"train_micro_batch_size_per_gpu\" %lld "
                            "times \"gradient_accumulation_steps\" %lld times %s",
                            r->path, (long long)train, (long long)micro, (long long)steps,
                            n > 1 ? ranks : "one rank");
    }
    r->c->train_batch_size = micro * steps;
    r->c->gradient_accumulation_steps = steps;
    return status_ok();
}

static struct status check_scale(const struct loss_scale_rule *scale, const char *path)
{
    if (scale->window < 1 || scale->hysteresis < 1 || !(scale->least > 0)) {
        return status_error(
            STATUS_DATA,
            "%s: \"fp16\" has a \"loss_scale_window\" of %lld, a \"hysteresis\" of %lld and a "
            "\"min_loss_scale\" of %g: each must be above 0",
            path, (long long)scale->window, (long long)scale->hysteresis, scale->least);
    }
    return scale->least <= scale->first
               ? status_ok()
               : status_error(STATUS_DATA, "%s: \"min_loss_scale\" %g is above the first scale, %g", path,
                              scale->least, scale->first);
}

static struct status read_precision(const struct reader *r)
{
    struct deepspeed_config *c = r->c;
    const json_t *fp16 = block(r->root, "fp16");
    struct loss_scale_rule *scale = &c->loss_scale;
    bool old_name = false;
    double power = 32; /* this and the next are DeepSpeed's defaults */
    *scale = (struct loss_scale_rule){.window = 1000, .hysteresis = 2, .least = 1, .most = INFINITY};
    TRY(get_bool(r, block(r->root, "bf16"), "enabled", &c->bf16));
    TRY(get_bool(r, block(r->root, "bfloat16"), "enabled", &old_name));
    TRY(get_bool(r, fp16, "enabled", &c->fp16));
    TRY(get_real(r, fp16, "loss_scale", &scale->fixed));
    TRY(get_real(r, fp16, "initial_scale_power", &power));
    TRY(get_real(r, fp16, "min_loss_scale", &scale->least));
    TRY(fp16 == NULL ? status_ok() : json_get_int(fp16, r->path, "loss_scale_window", false, &scale->window));
    TRY(fp16 == NULL ? status_ok() : json_get_int(fp16, r->path, "hysteresis", false, &scale->hysteresis));
    TRY(get_bool(r, fp16, "consecutive_hysteresis", &scale->forgets));
    c->bf16 = c->bf16 || old_name;
    if (c->bf16 && c->fp16) {
        return status_error(STATUS_DATA, "%s: \"bf16\" and \"fp16\" are both enabled; leave one", r->path);
    }
    if (power < 0 || power > 33 || scale->fixed < 0 || scale->fixed > 1e9) {
        return status_error(STATUS_DATA, "%s: \"fp16\" has a scale outside 0 to 1e9, or outside 2^0 to 2^33",
                            r->path);
    }
    scale->first = exp2(power);
    return check_scale(scale, r->path);
}

static struct status read_zero(const struct reader *r)
{
    const json_t *zero = block(r->root, "zero_optimization");
    int64_t stage = 0;
    if (zero == NULL) {
        return status_ok();
    }
    TRY(json_get_int(zero, r->path, "stage", false, &stage));
    if (stage < 0 || stage > 3) {
        return status_error(STATUS_DATA, "%s: \"zero_optimization.stage\" is %lld, but must be 0, 1, 2 or 3",
                            r->path, (long long)stage);
    }
    if (stage == 3) {
        return status_error(STATUS_UNAVAILABLE,
                            "%s: \"zero_optimization.stage\" 3 is not supported: every rank keeps all "
                            "weights; stage 2 shards moments and gradients",
                            r->path);
    }
    r->c->log.zero_stage = stage;
    if (stage > 0 && r->n_ranks == 1) {
        log_info("%s: ZeRO stage %lld has no effect with one rank", r->path, (long long)stage);
    }
    return status_ok();
}

/* Event files are in OUTPUT_PATH/JOB_NAME, with DeepSpeed's defaults: the working directory and this name. */
static struct status read_logs(const struct reader *r)
{
    struct deepspeed_log_settings *l = &r->c->log;
    const json_t *o = block(r->root, "tensorboard");
    const char *path = "", *name = "DeepSpeedJobName";
    bool enabled = false;
    *l = (struct deepspeed_log_settings){.on = true, .steps_per_print = 10};
    TRY(json_get_int(r->root, r->path, "steps_per_print", false, &l->steps_per_print));
    if (l->steps_per_print < 1) {
        return status_error(STATUS_DATA, "%s: \"steps_per_print\" is %lld, but must be at least 1", r->path,
                            (long long)l->steps_per_print);
    }
    TRY(get_bool(r, o, "enabled", &enabled));
    if (o != NULL) {
        TRY(json_get_string(o, r->path, "output_path", false, &path));
        TRY(json_get_string(o, r->path, "job_name", false, &name));
    }
    int n = !enabled ? 0
                     : snprintf(l->tensorboard, sizeof l->tensorboard, "%s%s%s", path,
                                *path == '\0' ? "" : "/", *name == '\0' ? "." : name);
    return n < (int)sizeof l->tensorboard
               ? status_ok()
               : status_error(
                     STATUS_DATA,
                     "%s: \"tensorboard.output_path\" and \"tensorboard.job_name\" are longer than %zu bytes",
                     r->path, sizeof l->tensorboard - 1);
}

static struct status read_betas(const struct reader *r, const json_t *params)
{
    const json_t *betas = json_object_get(params, "betas");
    if (betas == NULL) {
        return status_ok();
    }
    const json_t *first = json_array_get(betas, 0), *second = json_array_get(betas, 1);
    r->c->beta1 = json_number_value(first);
    r->c->beta2 = json_number_value(second);
    bool fine = json_array_size(betas) == 2 && json_is_number(first) && json_is_number(second) &&
                r->c->beta1 >= 0 && r->c->beta1 < 1 && r->c->beta2 >= 0 && r->c->beta2 < 1;
    return fine ? status_ok()
                : status_error(STATUS_DATA, "%s: \"betas\" must be two numbers from 0 to below 1", r->path);
}

/* The momentum of SGD, which others do not read, is kept as the first of the betas. */
static struct status read_momentum(const struct reader *r, const json_t *params)
{
    double *momentum = &r->c->beta1;
    *momentum = 0;
    TRY(get_real(r, params, "momentum", momentum));
    return *momentum >= 0 && *momentum < 1
               ? status_ok()
               : status_error(STATUS_DATA, "%s: \"momentum\" is %g, but must be from 0 to below 1", r->path,
                              *momentum);
}

/* DeepSpeed's own names: its Adam decays as AdamW unless "adam_w_mode" is false, its Lamb bounds the
 * ratio. */
static const char *optimizer_of(const char *type, bool decoupled)
{
    return strcasecmp(type, "adam") == 0 && decoupled ? "adamw"
           : strcasecmp(type, "lamb") == 0            ? "ds_fused_lamb"
                                                      : type;
}

/* The bounds of Lamb's ratio. */
static struct status read_ratios(const struct reader *r, const json_t *params)
{
    struct deepspeed_config *c = r->c;
    bool given = json_object_get(params, "max_coeff") != NULL || json_object_get(params, "min_coeff") != NULL;
    if (!given) {
        return status_ok();
    }
    if (c->optimizer == NULL || strcmp(c->optimizer, optimizer_ds_fused_lamb.name) != 0) {
        return status_error(STATUS_DATA, "%s: \"max_coeff\" and \"min_coeff\" belong to the optimizer Lamb",
                            r->path);
    }
    c->min_ratio = optimizer_ds_fused_lamb.min_ratio;
    c->max_ratio = optimizer_ds_fused_lamb.max_ratio;
    TRY(get_real(r, params, "min_coeff", &c->min_ratio));
    TRY(get_real(r, params, "max_coeff", &c->max_ratio));
    return c->min_ratio >= 0 && c->min_ratio <= c->max_ratio && c->max_ratio > 0 && c->max_ratio <= 1e6
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s: \"min_coeff\" is %g and \"max_coeff\" is %g; they must be 0 <= min_coeff "
                              "<= max_coeff <= 1e6, and max_coeff above 0",
                              r->path, c->min_ratio, c->max_ratio);
}

static struct status read_optimizer(const struct reader *r)
{
    struct deepspeed_config *c = r->c;
    const json_t *o = block(r->root, "optimizer"), *params = o == NULL ? NULL : block(o, "params");
    const char *type = NULL;
    char where[1100];
    bool decoupled = true, corrected = true;
    if (o == NULL) {
        return status_ok();
    }
    TRY(json_get_string(o, r->path, "type", true, &type));
    TRY(get_bool(r, params, "adam_w_mode", &decoupled));
    TRY(get_bool(r, params, "bias_correction", &corrected));
    TRY(get_real(r, params, "lr", &c->learning_rate));
    TRY(get_real(r, params, "eps", &c->eps));
    TRY(get_real(r, params, "weight_decay", &c->weight_decay));
    TRY(params == NULL ? status_ok() : read_betas(r, params));
    TRY(strcasecmp(type, "sgd") == 0 ? read_momentum(r, params) : status_ok());
    if (!corrected) {
        return status_error(
            STATUS_UNAVAILABLE,
            "%s: \"bias_correction\": false is not supported yet: moments are always corrected", r->path);
    }
    if (c->learning_rate < 0 || c->learning_rate > 100 || c->eps < 1e-30 || c->eps > 1) {
        return status_error(STATUS_DATA, "%s: \"lr\" must be between 0 and 100, \"eps\" between 1e-30 and 1",
                            r->path);
    }
    if (c->weight_decay < 0 || c->weight_decay > 100) {
        return status_error(STATUS_DATA, "%s: \"weight_decay\" is %g, but must be between 0 and 100", r->path,
                            c->weight_decay);
    }
    snprintf(where, sizeof where, "%.1000s: optimizer", r->path);
    struct status s = optimizer_names_find(&c->optimizer, optimizer_of(type, decoupled), where);
    s.code = s.code == STATUS_USAGE ? STATUS_DATA : s.code;
    TRY(s);
    return read_ratios(r, params);
}

static struct status read_scheduler(const struct reader *r)
{
    const json_t *o = block(r->root, "scheduler"), *params = o == NULL ? NULL : block(o, "params");
    const char *type = NULL, *rise = "log";
    struct schedule s = {.kind = SCHEDULE_WARMUP, .max = 1e-3, .warmup_steps = 1000};
    if (o == NULL) {
        return status_ok();
    }
    TRY(json_get_string(o, r->path, "type", true, &type));
    bool decays = strcmp(type, "WarmupDecayLR") == 0;
    if (!decays && strcmp(type, "WarmupLR") != 0) {
        return status_error(STATUS_UNAVAILABLE,
                            "%s: scheduler %s is not supported yet; use WarmupLR or WarmupDecayLR", r->path,
                            type);
    }
    if (params != NULL) {
        TRY(get_real(r, params, "warmup_min_lr", &s.min));
        TRY(get_real(r, params, "warmup_max_lr", &s.max));
        TRY(json_get_int(params, r->path, "warmup_num_steps", false, &s.warmup_steps));
        TRY(json_get_int(params, r->path, "total_num_steps", false, &s.decay_steps));
        TRY(json_get_string(params, r->path, "warmup_type", false, &rise));
    }
    s.is_log = strcmp(rise, "log") == 0;
    s.warmup_steps = s.warmup_steps < 2 ? 2 : s.warmup_steps; /* as DeepSpeed does */
    if (!s.is_log && strcmp(rise, "linear") != 0) {
        return status_error(STATUS_DATA,
                            "%s: \"warmup_type\" is \"%.40s\", but must be \"log\" or \"linear\"", r->path,
                            rise);
    }
    if (decays != (s.decay_steps > 0)) {
        return status_error(STATUS_DATA, "%s: \"total_num_steps\" belongs to WarmupDecayLR, which needs it",
                            r->path);
    }
    if (decays && s.decay_steps < s.warmup_steps) {
        return status_error(STATUS_DATA,
                            "%s: \"total_num_steps\" %lld is less than \"warmup_num_steps\" %lld", r->path,
                            (long long)s.decay_steps, (long long)s.warmup_steps);
    }
    if (s.min < 0 || s.max < s.min || s.max > 100) {
        return status_error(STATUS_DATA,
                            "%s: rates must rise from \"warmup_min_lr\" to \"warmup_max_lr\", at most 100",
                            r->path);
    }
    r->c->has_scheduler = true;
    r->c->scheduler = s;
    return status_ok();
}

static struct status read_all(const struct reader *r, bool own_optimizer)
{
    struct deepspeed_config *c = r->c;
    TRY(deepspeed_keys_check(r->root, r->path));
    TRY(read_batch(r));
    TRY(read_precision(r));
    TRY(read_logs(r));
    TRY(read_zero(r));
    TRY(get_real(r, r->root, "gradient_clipping", &c->gradient_clipping));
    if (c->gradient_clipping < 0 || c->gradient_clipping > 1e9) {
        return status_error(STATUS_DATA, "%s: \"gradient_clipping\" is %g, but must be between 0 and 1e9",
                            r->path, c->gradient_clipping);
    }
    if (own_optimizer && block(r->root, "optimizer") != NULL) {
        log_info("%s: --optimizer replaces \"optimizer\"", r->path);
    }
    TRY(own_optimizer ? status_ok() : read_optimizer(r));
    return read_scheduler(r);
}

struct status deepspeed_config_read(struct deepspeed_config *c, const char *path, bool own_optimizer,
                                    int n_ranks)
{
    json_t *root;
    *c = (struct deepspeed_config){.learning_rate = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    struct reader r = {.path = path, .c = c, .n_ranks = n_ranks};
    TRY(deepspeed_json_read(&root, &r.has_auto, path));
    r.root = root;
    struct status s = read_all(&r, own_optimizer);
    json_decref(root);
    return s;
}
