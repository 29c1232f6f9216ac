/* How each key of DeepSpeed's JSON is treated (https://www.deepspeed.ai/docs/config-json).  A row with a '*'
 * after the last '.' matches all keys of that block. */
#include "core/log.h"
#include "task/deepspeed_config.h"

#include <stdio.h>
#include <string.h>

enum use {
    USED,     /* by deepspeed_config.c */
    BLOCK,    /* an object whose keys have their own rows */
    NEUTRAL,  /* changes nothing here: `why` */
    NOT_DONE, /* decides how much memory is left, and kiln does not do it: a warning says `why` */
    /* kiln does not have it, so it must be off: absent, false, 0, null, or a block with "enabled": false */
    NOT_YET,
};

#define OWN_WAY "ranks share the optimizer's state in kiln's own buckets"
#define ON_DEVICE                                                                                            \
    "weights and the optimizer's state stay on the device of --device, or in shards on ranks "               \
    "(--zero_stage); --dry-run says whether they fit"

static const struct key {
    const char *path;
    enum use use;
    const char *why;
} keys[] = {
    {"train_batch_size", USED, NULL},
    {"train_micro_batch_size_per_gpu", USED, NULL},
    {"gradient_accumulation_steps", USED, NULL},
    {"gradient_clipping", USED, NULL},
    {"bf16", BLOCK, NULL},
    {"bf16.enabled", USED, NULL},
    {"bf16.*", NEUTRAL, "master weights and gradients are fp32"},
    {"bfloat16", BLOCK, NULL},
    {"bfloat16.enabled", USED, NULL},
    {"fp16", BLOCK, NULL},
    {"fp16.enabled", USED, NULL},
    {"fp16.loss_scale", USED, NULL},
    {"fp16.initial_scale_power", USED, NULL},
    {"fp16.loss_scale_window", USED, NULL},
    {"fp16.hysteresis", USED, NULL},
    {"fp16.consecutive_hysteresis", USED, NULL},
    {"fp16.min_loss_scale", USED, NULL},
    {"fp16.auto_cast", NEUTRAL, "a model's inputs are integers"},
    {"fp16.fp16_master_weights_and_grads", NOT_YET, "master weights are fp32"},
    {"optimizer", BLOCK, NULL},
    {"optimizer.type", USED, NULL},
    {"optimizer.legacy_fusion", NEUTRAL, "optimizers are fused"},
    {"optimizer.params", BLOCK, NULL},
    {"optimizer.params.lr", USED, NULL},
    {"optimizer.params.betas", USED, NULL},
    {"optimizer.params.momentum", USED, NULL},
    {"optimizer.params.eps", USED, NULL},
    {"optimizer.params.adam_w_mode", USED, NULL},
    {"optimizer.params.bias_correction", USED, NULL},
    {"optimizer.params.max_coeff", USED, NULL},
    {"optimizer.params.min_coeff", USED, NULL},
    {"optimizer.params.weight_decay", NEUTRAL,
     "--weight_decay sets it, as the script's groups of parameters did"},
    {"optimizer.params.torch_adam", NEUTRAL, "there is one AdamW"},
    {"optimizer.params.max_grad_norm", NEUTRAL, "gradient_clipping sets it"},
    {"optimizer.params.amsgrad", NOT_YET, "second moments are means"},
    {"scheduler", BLOCK, NULL},
    {"scheduler.type", USED, NULL},
    {"scheduler.params", BLOCK, NULL},
    {"scheduler.params.warmup_min_lr", USED, NULL},
    {"scheduler.params.warmup_max_lr", USED, NULL},
    {"scheduler.params.warmup_num_steps", USED, NULL},
    {"scheduler.params.warmup_type", USED, NULL},
    {"scheduler.params.total_num_steps", USED, NULL},
    {"scheduler.params.last_batch_iteration", NEUTRAL, "a run resumes from its checkpoint"},
    {"zero_optimization", BLOCK, NULL},
    {"zero_optimization.stage", USED, NULL},
    {"zero_optimization.allgather_partitions", NEUTRAL, OWN_WAY},
    {"zero_optimization.allgather_bucket_size", NEUTRAL, OWN_WAY},
    {"zero_optimization.overlap_comm", NEUTRAL, OWN_WAY},
    {"zero_optimization.reduce_scatter", NEUTRAL, OWN_WAY},
    {"zero_optimization.reduce_bucket_size", NEUTRAL, OWN_WAY},
    {"zero_optimization.contiguous_gradients", NEUTRAL, "gradients of layers are adjacent"},
    {"zero_optimization.max_group_size", NEUTRAL, "norms are computed over whole parameters"},
    {"zero_optimization.sub_group_size", NEUTRAL, OWN_WAY},
    {"zero_optimization.round_robin_gradients", NEUTRAL, OWN_WAY},
    {"zero_optimization.load_from_fp32_weights", NEUTRAL, "checkpoints have fp32 weights"},
    {"zero_optimization.elastic_checkpoint", NEUTRAL, OWN_WAY},
    {"zero_optimization.legacy_stage1", NEUTRAL, OWN_WAY},
    {"zero_optimization.ignore_unused_parameters", NEUTRAL, "every parameter is used"},
    {"zero_optimization.cpu_offload", NOT_DONE, ON_DEVICE},
    {"zero_optimization.cpu_offload_params", NOT_DONE, ON_DEVICE},
    {"zero_optimization.cpu_offload_use_pin_memory", NEUTRAL, "everything is on the device of --device"},
    {"zero_optimization.offload_optimizer", BLOCK, NULL},
    {"zero_optimization.offload_optimizer.*", NOT_DONE, ON_DEVICE},
    {"zero_optimization.offload_param", BLOCK, NULL},
    {"zero_optimization.offload_param.*", NOT_DONE, ON_DEVICE},
    {"zero_optimization.stage3_max_live_parameters", NEUTRAL, OWN_WAY},
    {"zero_optimization.stage3_max_reuse_distance", NEUTRAL, OWN_WAY},
    {"zero_optimization.stage3_prefetch_bucket_size", NEUTRAL, OWN_WAY},
    {"zero_optimization.stage3_param_persistence_threshold", NEUTRAL, OWN_WAY},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save", NEUTRAL, OWN_WAY},
    {"zero_optimization.stage3_gather_fp16_weights_on_model_save", NEUTRAL, OWN_WAY},
    {"zero_allow_untested_optimizer", NEUTRAL, OWN_WAY},
    {"zero_force_ds_cpu_optimizer", NEUTRAL, "everything is on the device of --device"},
    {"tensorboard", BLOCK, NULL},
    {"tensorboard.enabled", USED, NULL},
    {"tensorboard.output_path", USED, NULL},
    {"tensorboard.job_name", USED, NULL},
    {"wandb", NOT_YET, "log.jsonl and event files are written"},
    {"csv_monitor", NOT_YET, "log.jsonl and event files are written"},
    {"steps_per_print", USED, NULL},
    {"wall_clock_breakdown", NEUTRAL, "--profile times operations"},
    {"memory_breakdown", NEUTRAL, "planned memory is always printed"},
    {"dump_state", NEUTRAL, "the flags are in log.jsonl"},
    {"timers", BLOCK, NULL},
    {"timers.*", NEUTRAL, "throughput is always measured"},
    {"flops_profiler", BLOCK, NULL},
    {"flops_profiler.*", NEUTRAL, "--profile times operations"},
    {"comms_logger", BLOCK, NULL},
    {"comms_logger.*", NEUTRAL, "ranks sum gradients in fp32, in kiln's own way"},
    {"communication_data_type", NEUTRAL, "ranks sum gradients in fp32, in kiln's own way"},
    {"fp32_allreduce", NEUTRAL, "ranks sum gradients in fp32, in kiln's own way"},
    {"prescale_gradients", NEUTRAL, "ranks sum gradients in fp32, in kiln's own way"},
    {"gradient_predivide_factor", NEUTRAL, "ranks sum gradients in fp32, in kiln's own way"},
    {"disable_allgather", NEUTRAL, "ranks sum gradients in fp32, in kiln's own way"},
    {"sparse_gradients", NEUTRAL, "ranks sum gradients in fp32, in kiln's own way"},
    {"dataloader_drop_last", NEUTRAL, "nothing is dropped"},
    {"vocabulary_size", NEUTRAL, "--config_file describes the model"},
    {"data_types", BLOCK, NULL},
    {"data_types.*", NEUTRAL, "gradients are added in fp32"},
    {"checkpoint", BLOCK, NULL},
    {"checkpoint.*", NEUTRAL, "checkpoints are complete, or absent"},
    {"activation_checkpointing", BLOCK, NULL},
    {"activation_checkpointing.*", NEUTRAL, "--checkpoint_activations sets it"},
    {"aio", BLOCK, NULL},
    {"aio.*", NEUTRAL, "nothing is offloaded to files"},
    {"autotuning", NOT_YET, "--dry-run says what fits"},
    {"amp", NOT_YET, "use \"bf16\" or \"fp16\""},
    {"elasticity", NOT_YET, "the batch size is fixed by the file"},
    {"sparse_attention", NOT_YET, "every token of a sequence sees all others"},
    {"progressive_layer_drop", NOT_YET, "every layer is computed"},
    {"curriculum_learning", NOT_YET, "--length_schedule lets sequences grow"},
    {"data_efficiency", NOT_YET, "samples are drawn unchanged"},
    {"quantize_training", NOT_YET, "weights are not quantized"},
    {"compression_training", NOT_YET, "weights are not compressed"},
    {"eigenvalue", NOT_YET, "weights are not quantized"},
    {"pipeline", NOT_YET, "every rank computes all layers"},
};

static const struct key *find(const char *path)
{
    const size_t n = sizeof keys / sizeof keys[0];
    for (size_t i = 0; i < n; i++) {
        if (strcmp(keys[i].path, path) == 0) {
            return &keys[i];
        }
    }
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; i < n && dot != NULL; i++) {
        size_t block = (size_t)(dot - path) + 1;
        if (strncmp(keys[i].path, path, block) == 0 && strcmp(keys[i].path + block, "*") == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

static bool is_off(const json_t *value)
{
    const json_t *enabled = json_is_object(value) ? json_object_get(value, "enabled") : value;
    bool zero = json_is_number(enabled) && json_number_value(enabled) == 0;
    bool none = json_is_string(enabled) && strcmp(json_string_value(enabled), "none") == 0;
    return none || json_is_false(enabled) || json_is_null(enabled) || zero ||
           (json_is_object(value) && json_object_size(value) == 0);
}

static struct status check_key(const struct key *key, const char *path, const json_t *value, const char *file)
{
    switch (key->use) {
    case USED: break;
    case BLOCK:
        if (!json_is_object(value)) {
            return status_error(STATUS_DATA, "%s: \"%s\" must be an object", file, path);
        }
        break;
    case NEUTRAL: log_info("%s: \"%s\" has no meaning here: %s", file, path, key->why); break;
    case NOT_DONE:
        if (!is_off(value)) {
            log_warning("%s: kiln does not do \"%s\": %s", file, path, key->why);
        }
        break;
    case NOT_YET:
        if (!is_off(value)) {
            return status_error(STATUS_UNAVAILABLE, "%s: \"%s\" is not supported yet: %s", file, path,
                                key->why);
        }
        break;
    }
    return status_ok();
}

/* The keys of the block at `prefix`, "" or "fp16.", and of those in it: no deeper than the table. */
static struct status check_block(const json_t *block, const char *prefix,
                                 const char *file) /* NOLINT(misc-no-recursion) */
{
    const char *name;
    const json_t *value;
    json_object_foreach((json_t *)block, name, value)
    {
        char path[160], inner[164];
        int n = snprintf(path, sizeof path, "%s%s", prefix, name);
        const struct key *key = n < (int)sizeof path ? find(path) : NULL;
        if (key == NULL) {
            return status_error(STATUS_DATA,
                                "%s: unknown key \"%s%.60s\"; correct its spelling or leave it out", file,
                                prefix, name);
        }
        TRY(check_key(key, path, value, file));
        if (key->use == BLOCK) {
            snprintf(inner, sizeof inner, "%s.", path);
            TRY(check_block(value, inner, file));
        }
    }
    return status_ok();
}

struct status deepspeed_keys_check(const json_t *root, const char *path)
{
    return check_block(root, "", path);
}
