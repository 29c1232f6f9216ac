/* A file is read by the table `keys`, which names all keys that DeepSpeed has
 * (https://www.deepspeed.ai/docs/config-json); combinations of values are checked after it. */
#include "task/deepspeed_config.h"

#include "core/buf.h"
#include "core/json.h"
#include "core/log.h"
#include "core/option_value.h"
#include "io/file.h"
#include "optim/optimizer.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Values of a file before they are checked; NULL and 0: absent. */
struct reading {
    struct deepspeed_config c;
    const char *path;
    int64_t n_ranks; /* ranks that train together */
    bool own_optimizer;
    bool has_auto; /* values that another program was to fill in */
    int64_t batch, micro, steps;
    double scale_power, momentum;
    bool bfloat16, decoupled, corrected, writes_events;
    const json_t *betas;
    const char *optimizer, *scheduler, *rise, *events_path, *events_name;
};

/* ---- the text ---- */

/* The end of the comment that begins at text[at]; `at` itself if none does. */
static size_t comment_end(const char *text, size_t n, size_t at)
{
    bool is_line = text[at] == '#' || (at + 1 < n && memcmp(text + at, "//", 2) == 0);
    bool is_block = at + 1 < n && memcmp(text + at, "/*", 2) == 0;
    size_t end = at;
    if (is_line) {
        while (end < n && text[end] != '\n') {
            end++;
        }
    } else if (is_block) {
        for (end += 2; end < n && !(text[end - 1] == '*' && text[end] == '/' && end > at + 2);) {
            end++;
        }
        end += end < n;
    }
    return end;
}

/* Comments become blanks, so that lines and columns stay. */
static void blank_comments(char *text, size_t n)
{
    bool inside = false; /* a string */
    for (size_t i = 0; i < n; i++) {
        if (inside) {
            i += text[i] == '\\';
            inside = i >= n || text[i] != '"';
            continue;
        }
        inside = text[i] == '"';
        for (size_t end = comment_end(text, n, i); i < end; i++) {
            text[i] = text[i] == '\n' ? '\n' : ' ';
        }
    }
}

static bool is_auto(const json_t *value)
{
    return json_is_string(value) && strcmp(json_string_value(value), "auto") == 0;
}

/* Takes the values "auto" out of an object and those in it, and lists their keys. */
static void drop_auto(json_t *object, struct buf *names) /* NOLINT(misc-no-recursion): as deep as the file */
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, key, value)
    {
        if (is_auto(value)) {
            buf_printf(names, "%s%s", names->n > 0 ? ", " : "", key);
            json_object_del(object, key);
        } else if (json_is_object(value)) {
            drop_auto(value, names);
        }
    }
}

static struct status parse(json_t **root, const char *path, const struct file_map *map)
{
    struct buf text = {0};
    buf_append(&text, map->n > 0 ? (const char *)map->data : "", map->n);
    struct status s = buf_status(&text);
    if (!failed(s)) {
        blank_comments(text.data, text.n);
        s = json_parse(root, text.data, text.n, path);
    }
    buf_fini(&text);
    if (!failed(s) && !json_is_object(*root)) {
        json_decref(*root);
        s = status_error(STATUS_DATA, "%s must be a JSON object", path);
    }
    return s;
}

/* Reads a file whose top is an object, as DeepSpeed and transformers' Trainer read it: without the comments
 * of Hjson (// or # to the end of the line, and those between slash and asterisk), and without values "auto",
 * which the Trainer fills in; a log line names those. */
static struct status read_json(json_t **root, bool *has_auto, const char *path)
{
    struct file_map map;
    struct buf names = {0};
    TRY(file_map_open(&map, path));
    struct status s = parse(root, path, &map);
    file_map_close(&map);
    TRY(s);
    drop_auto(*root, &names);
    *has_auto = names.n > 0;
    if (names.n > 0) {
        log_warning("%s: only the Trainer of transformers fills in \"auto\"; kiln ignores these keys: %s",
                    path, buf_text(&names));
    }
    buf_fini(&names);
    return status_ok();
}

/* ---- the keys ---- */

enum use {
    BOOL, /* a value, which is stored at `at`; one with a `why` only the engine of the library reads */
    INT,
    REAL,
    TEXT,
    LIST,
    BLOCK,    /* an object whose keys have their own rows */
    NEUTRAL,  /* changes nothing here: `why` */
    NOT_DONE, /* decides how much memory is left, and kiln does not do it: a warning says `why` */
    /* kiln does not have it, so it must be off: absent, false, 0, null, or a block with "enabled": false */
    NOT_YET,
};

#define AT(field) offsetof(struct reading, field)
#define VALUE(block, name, use, field, min, max)                                                             \
    {                                                                                                        \
        block, name, use, NULL, AT(field), min, max                                                          \
    }
#define KEYS(block, names, use, why)                                                                         \
    {                                                                                                        \
        block, names, use, why, 0, 0, 0                                                                      \
    }
#define OWN_WAY "ranks share the optimizer's state in kiln's own buckets"
#define ON_DEVICE                                                                                            \
    "weights and the optimizer's state stay on the device of --device, or in shards on ranks "               \
    "(--zero_stage); --dry-run says whether they fit"
#define SUMS "ranks sum gradients in fp32, in kiln's own way"

static const struct key {
    const char *block, *names; /* names, as "a|b"; "*": those without a row of their own */
    enum use use;
    const char *why;
    size_t at;
    double min, max; /* both 0: no limits */
} keys[] = {
    VALUE("", "train_batch_size", INT, batch, 1, 1e9),
    VALUE("", "train_micro_batch_size_per_gpu", INT, micro, 1, 1e9),
    VALUE("", "gradient_accumulation_steps", INT, steps, 1, 1e9),
    VALUE("", "gradient_clipping", REAL, c.update.max_grad_norm, 0, 1e9),
    VALUE("", "steps_per_print", INT, c.log.steps_per_print, 1, INFINITY),
    KEYS("",
         "bf16|bfloat16|fp16|optimizer|scheduler|zero_optimization|tensorboard|timers|flops_profiler|"
         "comms_logger|data_types|checkpoint|activation_checkpointing|aio",
         BLOCK, NULL),
    VALUE("bf16", "enabled", BOOL, c.bf16, 0, 0),
    KEYS("bf16", "*", NEUTRAL, "master weights and gradients are fp32"),
    VALUE("bfloat16", "enabled", BOOL, bfloat16, 0, 0),
    VALUE("fp16", "enabled", BOOL, c.fp16, 0, 0),
    VALUE("fp16", "loss_scale", REAL, c.loss_scale.fixed, 0, 1e9),
    VALUE("fp16", "initial_scale_power", REAL, scale_power, 0, 33),
    VALUE("fp16", "loss_scale_window", INT, c.loss_scale.window, 0, 0),
    VALUE("fp16", "hysteresis", INT, c.loss_scale.hysteresis, 0, 0),
    VALUE("fp16", "consecutive_hysteresis", BOOL, c.loss_scale.forgets, 0, 0),
    VALUE("fp16", "min_loss_scale", REAL, c.loss_scale.least, 0, 0),
    KEYS("fp16", "auto_cast", NEUTRAL, "a model's inputs are integers"),
    KEYS("fp16", "fp16_master_weights_and_grads", NOT_YET, "master weights are fp32"),
    VALUE("optimizer", "type", TEXT, optimizer, 0, 0),
    KEYS("optimizer", "legacy_fusion", NEUTRAL, "optimizers are fused"),
    KEYS("optimizer", "params", BLOCK, NULL),
    VALUE("optimizer.params", "lr", REAL, c.learning_rate, 0, 100),
    VALUE("optimizer.params", "betas", LIST, betas, 0, 0),
    VALUE("optimizer.params", "momentum", REAL, momentum, 0, 0),
    VALUE("optimizer.params", "eps", REAL, c.update.eps, 1e-30, 1),
    VALUE("optimizer.params", "adam_w_mode", BOOL, decoupled, 0, 0),
    VALUE("optimizer.params", "bias_correction", BOOL, corrected, 0, 0),
    VALUE("optimizer.params", "max_coeff", REAL, c.update.max_ratio, 0, 0),
    VALUE("optimizer.params", "min_coeff", REAL, c.update.min_ratio, 0, 0),
    {"optimizer.params", "weight_decay", REAL,
     "--weight_decay sets it, as the script's groups of parameters did", AT(c.update.weight_decay), 0, 100},
    KEYS("optimizer.params", "torch_adam", NEUTRAL, "there is one AdamW"),
    KEYS("optimizer.params", "max_grad_norm", NEUTRAL, "gradient_clipping sets it"),
    KEYS("optimizer.params", "amsgrad", NOT_YET, "second moments are means"),
    VALUE("scheduler", "type", TEXT, scheduler, 0, 0),
    KEYS("scheduler", "params", BLOCK, NULL),
    VALUE("scheduler.params", "warmup_min_lr", REAL, c.scheduler.min, 0, 0),
    VALUE("scheduler.params", "warmup_max_lr", REAL, c.scheduler.max, 0, 0),
    VALUE("scheduler.params", "warmup_num_steps", INT, c.scheduler.warmup_steps, 0, 0),
    VALUE("scheduler.params", "warmup_type", TEXT, rise, 0, 0),
    VALUE("scheduler.params", "total_num_steps", INT, c.scheduler.decay_steps, 0, 0),
    KEYS("scheduler.params", "last_batch_iteration", NEUTRAL, "a run resumes from its checkpoint"),
    VALUE("zero_optimization", "stage", INT, c.log.zero_stage, 0, 3),
    KEYS("zero_optimization",
         "allgather_partitions|allgather_bucket_size|overlap_comm|reduce_scatter|reduce_bucket_size|"
         "sub_group_size|round_robin_gradients|elastic_checkpoint|legacy_stage1|"
         "stage3_max_live_parameters|stage3_max_reuse_distance|stage3_prefetch_bucket_size|"
         "stage3_param_persistence_threshold|stage3_gather_16bit_weights_on_model_save|"
         "stage3_gather_fp16_weights_on_model_save",
         NEUTRAL, OWN_WAY),
    KEYS("zero_optimization", "contiguous_gradients", NEUTRAL, "gradients of layers are adjacent"),
    KEYS("zero_optimization", "max_group_size", NEUTRAL, "norms are computed over whole parameters"),
    KEYS("zero_optimization", "load_from_fp32_weights", NEUTRAL, "checkpoints have fp32 weights"),
    KEYS("zero_optimization", "ignore_unused_parameters", NEUTRAL, "every parameter is used"),
    KEYS("zero_optimization", "cpu_offload|cpu_offload_params", NOT_DONE, ON_DEVICE),
    KEYS("zero_optimization", "cpu_offload_use_pin_memory", NEUTRAL,
         "everything is on the device of --device"),
    KEYS("zero_optimization", "offload_optimizer|offload_param", BLOCK, NULL),
    KEYS("zero_optimization.offload_optimizer", "*", NOT_DONE, ON_DEVICE),
    KEYS("zero_optimization.offload_param", "*", NOT_DONE, ON_DEVICE),
    KEYS("", "zero_allow_untested_optimizer", NEUTRAL, OWN_WAY),
    KEYS("", "zero_force_ds_cpu_optimizer", NEUTRAL, "everything is on the device of --device"),
    VALUE("tensorboard", "enabled", BOOL, writes_events, 0, 0),
    VALUE("tensorboard", "output_path", TEXT, events_path, 0, 0),
    VALUE("tensorboard", "job_name", TEXT, events_name, 0, 0),
    KEYS("", "wandb|csv_monitor", NOT_YET, "log.jsonl and event files are written"),
    KEYS("", "wall_clock_breakdown", NEUTRAL, "--profile times operations"),
    KEYS("", "memory_breakdown", NEUTRAL, "planned memory is always printed"),
    KEYS("", "dump_state", NEUTRAL, "the flags are in log.jsonl"),
    KEYS("timers", "*", NEUTRAL, "throughput is always measured"),
    KEYS("flops_profiler", "*", NEUTRAL, "--profile times operations"),
    KEYS("comms_logger", "*", NEUTRAL, SUMS),
    KEYS("",
         "communication_data_type|fp32_allreduce|prescale_gradients|gradient_predivide_factor|"
         "disable_allgather|sparse_gradients",
         NEUTRAL, SUMS),
    KEYS("", "dataloader_drop_last", NEUTRAL, "nothing is dropped"),
    KEYS("", "vocabulary_size", NEUTRAL, "--config_file describes the model"),
    KEYS("data_types", "*", NEUTRAL, "gradients are added in fp32"),
    KEYS("checkpoint", "*", NEUTRAL, "checkpoints are complete, or absent"),
    KEYS("activation_checkpointing", "*", NEUTRAL, "--checkpoint_activations sets it"),
    KEYS("aio", "*", NEUTRAL, "nothing is offloaded to files"),
    KEYS("", "autotuning", NOT_YET, "--dry-run says what fits"),
    KEYS("", "amp", NOT_YET, "use \"bf16\" or \"fp16\""),
    KEYS("", "elasticity", NOT_YET, "the batch size is fixed by the file"),
    KEYS("", "sparse_attention", NOT_YET, "every token of a sequence sees all others"),
    KEYS("", "progressive_layer_drop", NOT_YET, "every layer is computed"),
    KEYS("", "curriculum_learning", NOT_YET, "--phase2 goes on with longer sequences"),
    KEYS("", "data_efficiency", NOT_YET, "samples are drawn unchanged"),
    KEYS("", "quantize_training|eigenvalue", NOT_YET, "weights are not quantized"),
    KEYS("", "compression_training", NOT_YET, "weights are not compressed"),
    KEYS("", "pipeline", NOT_YET, "every rank computes all layers"),
};

static const struct key *find(const char *block, const char *name)
{
    const struct key *all = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct key *k = &keys[i];
        bool here = strcmp(k->block, block) == 0;
        if (here && option_is_choice(k->names, name)) {
            return k;
        }
        all = here && strcmp(k->names, "*") == 0 ? k : all;
    }
    return all;
}

static bool is_off(const json_t *value)
{
    const json_t *enabled = json_is_object(value) ? json_object_get(value, "enabled") : value;
    bool zero = json_is_number(enabled) && json_number_value(enabled) == 0;
    bool none = json_is_string(enabled) && strcmp(json_string_value(enabled), "none") == 0;
    return none || json_is_false(enabled) || json_is_null(enabled) || zero ||
           (json_is_object(value) && json_object_size(value) == 0);
}

static struct status store(struct reading *r, const struct key *k, const char *key, const json_t *block,
                           const char *name)
{
    void *at = (char *)r + k->at;
    double value = 0;
    if (k->use == INT) {
        TRY(json_get_int(block, r->path, name, false, at));
        value = (double)*(const int64_t *)at;
    } else if (k->use == REAL) {
        TRY(json_get_real(block, r->path, name, false, at));
        value = *(const double *)at;
    } else if (k->use == LIST) {
        *(const json_t **)at = json_object_get(block, name);
    } else {
        return k->use == BOOL ? json_get_bool(block, r->path, name, false, at)
                              : json_get_string(block, r->path, name, false, at);
    }
    bool fits = k->max <= k->min || (value >= k->min && value <= k->max);
    FAIL_IF(!fits && isinf(k->max), STATUS_DATA, "%s: \"%s\" is %.10g, but must be at least %g", r->path, key,
            value, k->min);
    FAIL_IF(!fits, STATUS_DATA, "%s: \"%s\" is %.10g, but must be between %g and %.10g", r->path, key, value,
            k->min, k->max);
    return status_ok();
}

static struct status read_block(struct reading *r, const json_t *block, const char *path);

/* The key `name` of a block; `path` is its name from the top, "fp16.enabled". */
static struct status read_key(struct reading *r, const struct key *k, const char *path, const json_t *block,
                              const char *name) /* NOLINT(misc-no-recursion): as deep as the table */
{
    const json_t *value = json_object_get(block, name);
    if (k->why != NULL && k->use <= NEUTRAL) {
        log_info("%s: \"%s\" has no meaning here: %s", r->path, path, k->why);
    }
    if (k->use < BLOCK) {
        bool unread = r->own_optimizer && strncmp(k->block, "optimizer", 9) == 0;
        return unread ? status_ok() : store(r, k, path, block, name);
    }
    if (k->use == BLOCK) {
        return json_is_object(value)
                   ? read_block(r, value, path)
                   : status_error(STATUS_DATA, "%s: \"%s\" must be an object", r->path, path);
    }
    if (k->use == NOT_DONE && !is_off(value)) {
        log_warning("%s: kiln does not do \"%s\": %s", r->path, path, k->why);
    }
    return k->use == NOT_YET && !is_off(value)
               ? status_error(STATUS_UNAVAILABLE, "%s: \"%s\" is not supported yet: %s", r->path, path,
                              k->why)
               : status_ok();
}

static struct status read_block(struct reading *r, const json_t *block,
                                const char *path) /* NOLINT(misc-no-recursion) */
{
    const char *name;
    const json_t *value;
    json_object_foreach((json_t *)block, name, value)
    {
        char inner[160];
        int n = snprintf(inner, sizeof inner, "%s%s%s", path, *path == '\0' ? "" : ".", name);
        const struct key *k = n < (int)sizeof inner ? find(path, name) : NULL;
        TRY(k == NULL ? status_error(STATUS_DATA,
                                     "%s: unknown key \"%s%s%.60s\"; correct its spelling or leave it out",
                                     r->path, path, *path == '\0' ? "" : ".", name)
                      : read_key(r, k, inner, block, name));
    }
    return status_ok();
}

/* ---- what values say together ---- */

/* Any two of the three give the third; "train_batch_size" is of all ranks, the others of one. */
static struct status set_batch(struct reading *r)
{
    int64_t n = r->n_ranks, train = r->batch, micro = r->micro, steps = r->steps;
    char ranks[40];
    snprintf(ranks, sizeof ranks, "%lld ranks", (long long)n);
    FAIL_IF(train == 0 && micro == 0, STATUS_DATA,
            "%s has no batch size: give \"train_batch_size\" and \"train_micro_batch_size_per_gpu\"%s",
            r->path, r->has_auto ? " as numbers instead of \"auto\"" : "");
    micro = micro > 0 ? micro : train / n / (steps > 0 ? steps : 1);
    steps = steps > 0 ? steps : train > 0 ? train / n / (micro > 0 ? micro : 1) : 1;
    train = train > 0 ? train : micro * steps * n;
    FAIL_IF(micro == 0 || steps == 0, STATUS_DATA,
            "%s: \"train_batch_size\" %lld is less than one sequence for each micro-batch of %s", r->path,
            (long long)train, n > 1 ? ranks : "one rank");
    FAIL_IF(micro * steps * n != train, STATUS_DATA,
            "%s: \"train_batch_size\" %lld is not \"train_micro_batch_size_per_gpu\" %lld times "
            "\"gradient_accumulation_steps\" %lld times %s",
            r->path, (long long)train, (long long)micro, (long long)steps, n > 1 ? ranks : "one rank");
    r->c.batch.train_batch_size = micro * steps;
    r->c.batch.gradient_accumulation_steps = steps;
    return status_ok();
}

static struct status check_scale(const struct loss_scale_rule *scale, const char *path)
{
    FAIL_IF(scale->window < 1 || scale->hysteresis < 1 || !(scale->least > 0), STATUS_DATA,
            "%s: \"fp16\" has a \"loss_scale_window\" of %lld, a \"hysteresis\" of %lld and a "
            "\"min_loss_scale\" of %g: each must be above 0",
            path, (long long)scale->window, (long long)scale->hysteresis, scale->least);
    return scale->least <= scale->first
               ? status_ok()
               : status_error(STATUS_DATA, "%s: \"min_loss_scale\" %g is above the first scale, %g", path,
                              scale->least, scale->first);
}

static struct status set_precision(struct reading *r)
{
    struct deepspeed_config *c = &r->c;
    c->bf16 = c->bf16 || r->bfloat16;
    c->loss_scale.first = exp2(r->scale_power);
    return c->bf16 && c->fp16
               ? status_error(STATUS_DATA, "%s: \"bf16\" and \"fp16\" are both enabled; leave one", r->path)
               : check_scale(&c->loss_scale, r->path);
}

static struct status check_zero(const struct reading *r)
{
    int64_t stage = r->c.log.zero_stage;
    if (stage > 0 && stage < 3 && r->n_ranks == 1) {
        log_info("%s: ZeRO stage %lld has no effect with one rank", r->path, (long long)stage);
    }
    return stage < 3 ? status_ok()
                     : status_error(STATUS_UNAVAILABLE,
                                    "%s: \"zero_optimization.stage\" 3 is not supported: every rank keeps "
                                    "all weights; stage 2 shards moments and gradients",
                                    r->path);
}

/* Event files are in OUTPUT_PATH/JOB_NAME. */
static struct status set_logs(struct reading *r)
{
    struct deepspeed_log_settings *l = &r->c.log;
    const char *path = r->events_path, *name = r->events_name;
    int n = !r->writes_events ? 0
                              : snprintf(l->tensorboard, sizeof l->tensorboard, "%s%s%s", path,
                                         *path == '\0' ? "" : "/", *name == '\0' ? "." : name);
    return n < (int)sizeof l->tensorboard
               ? status_ok()
               : status_error(
                     STATUS_DATA,
                     "%s: \"tensorboard.output_path\" and \"tensorboard.job_name\" are longer than %zu bytes",
                     r->path, sizeof l->tensorboard - 1);
}

/* The momentum of SGD, which others do not read, is kept as the first of the betas. */
static struct status set_betas(struct reading *r)
{
    struct deepspeed_config *c = &r->c;
    const json_t *first = json_array_get(r->betas, 0), *second = json_array_get(r->betas, 1);
    if (r->betas != NULL) {
        c->update.beta1 = json_number_value(first);
        c->update.beta2 = json_number_value(second);
    }
    bool numbers = json_array_size(r->betas) == 2 && json_is_number(first) && json_is_number(second) &&
                   c->update.beta1 >= 0 && c->update.beta1 < 1 && c->update.beta2 >= 0 && c->update.beta2 < 1;
    FAIL_IF(r->betas != NULL && !numbers, STATUS_DATA, "%s: \"betas\" must be two numbers from 0 to below 1",
            r->path);
    c->update.beta1 = strcasecmp(r->optimizer, "sgd") == 0 ? r->momentum : c->update.beta1;
    return c->update.beta1 >= 0 && c->update.beta1 < 1
               ? status_ok()
               : status_error(STATUS_DATA, "%s: \"momentum\" is %g, but must be from 0 to below 1", r->path,
                              c->update.beta1);
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
static struct status set_ratios(struct reading *r, const json_t *params)
{
    struct deepspeed_config *c = &r->c;
    if (json_object_get(params, "max_coeff") == NULL && json_object_get(params, "min_coeff") == NULL) {
        return status_ok();
    }
    FAIL_IF(strcmp(c->optimizer, optimizer_ds_fused_lamb.name) != 0, STATUS_DATA,
            "%s: \"max_coeff\" and \"min_coeff\" belong to the optimizer Lamb", r->path);
    if (!json_is_number(json_object_get(params, "max_coeff"))) {
        c->update.max_ratio = optimizer_ds_fused_lamb.max_ratio;
    }
    if (!json_is_number(json_object_get(params, "min_coeff"))) {
        c->update.min_ratio = optimizer_ds_fused_lamb.min_ratio;
    }
    return c->update.min_ratio >= 0 && c->update.min_ratio <= c->update.max_ratio &&
                   c->update.max_ratio > 0 && c->update.max_ratio <= 1e6
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s: \"min_coeff\" is %g and \"max_coeff\" is %g; they must be 0 <= min_coeff "
                              "<= max_coeff <= 1e6, and max_coeff above 0",
                              r->path, c->update.min_ratio, c->update.max_ratio);
}

static struct status set_optimizer(struct reading *r, const json_t *block)
{
    char where[1100];
    if (block == NULL || r->own_optimizer) {
        if (block != NULL) {
            log_info("%s: --optimizer replaces \"optimizer\"", r->path);
        }
        return status_ok();
    }
    TRY(json_get_string(block, r->path, "type", true, &r->optimizer));
    TRY(set_betas(r));
    FAIL_IF(!r->corrected, STATUS_UNAVAILABLE,
            "%s: \"bias_correction\": false is not supported yet: moments are always corrected", r->path);
    snprintf(where, sizeof where, "%.1000s: optimizer", r->path);
    struct status s =
        optimizer_find_by_any_name(&r->c.optimizer, optimizer_of(r->optimizer, r->decoupled), where);
    s.code = s.code == STATUS_USAGE ? STATUS_DATA : s.code;
    TRY(s);
    return set_ratios(r, json_object_get(block, "params"));
}

static struct status set_scheduler(struct reading *r, const json_t *block)
{
    struct schedule *s = &r->c.scheduler;
    if (block == NULL) {
        return status_ok();
    }
    TRY(json_get_string(block, r->path, "type", true, &r->scheduler));
    bool decays = strcmp(r->scheduler, "WarmupDecayLR") == 0;
    FAIL_IF(!decays && strcmp(r->scheduler, "WarmupLR") != 0, STATUS_UNAVAILABLE,
            "%s: scheduler %s is not supported yet; use WarmupLR or WarmupDecayLR", r->path, r->scheduler);
    s->is_log = strcmp(r->rise, "log") == 0;
    s->warmup_steps = s->warmup_steps < 2 ? 2 : s->warmup_steps; /* DeepSpeed does the same */
    r->c.has_scheduler = true;
    FAIL_IF(!s->is_log && strcmp(r->rise, "linear") != 0, STATUS_DATA,
            "%s: \"warmup_type\" is \"%.40s\", but must be \"log\" or \"linear\"", r->path, r->rise);
    FAIL_IF(decays != (s->decay_steps > 0), STATUS_DATA,
            "%s: \"total_num_steps\" belongs to WarmupDecayLR, which needs it", r->path);
    FAIL_IF(decays && s->decay_steps < s->warmup_steps, STATUS_DATA,
            "%s: \"total_num_steps\" %lld is less than \"warmup_num_steps\" %lld", r->path,
            (long long)s->decay_steps, (long long)s->warmup_steps);
    return s->min >= 0 && s->max >= s->min && s->max <= 100
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s: rates must rise from \"warmup_min_lr\" to \"warmup_max_lr\", at most 100",
                              r->path);
}

static struct status read_all(struct reading *r, const json_t *root)
{
    TRY(read_block(r, root, ""));
    TRY(set_batch(r));
    TRY(set_precision(r));
    TRY(set_logs(r));
    TRY(check_zero(r));
    TRY(set_optimizer(r, json_object_get(root, "optimizer")));
    return set_scheduler(r, json_object_get(root, "scheduler"));
}

struct status deepspeed_config_read(struct deepspeed_config *c, const char *path, bool own_optimizer,
                                    int n_ranks)
{
    json_t *root;
    /* DeepSpeed's defaults */
    struct reading r = {
        .c = {.learning_rate = 1e-3,
              .update = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
              .loss_scale = {.window = 1000, .hysteresis = 2, .least = 1, .most = INFINITY},
              .log = {.on = true, .steps_per_print = 10},
              .scheduler = {.kind = SCHEDULE_WARMUP, .max = 1e-3, .warmup_steps = 1000}},
        .path = path,
        .n_ranks = n_ranks,
        .own_optimizer = own_optimizer,
        .scale_power = 32,
        .decoupled = true,
        .corrected = true,
        .rise = "log",
        .events_path = "",
        .events_name = "DeepSpeedJobName",
    };
    TRY(read_json(&root, &r.has_auto, path));
    struct status s = read_all(&r, root);
    *c = r.c;
    json_decref(root);
    return s;
}
