/* megatron_args: the flags of Megatron-DeepSpeed's pretrain_gpt.py, as kiln's own settings of a run.
 *
 * The rule: what the script's parser refuses is refused here too, in one sentence; what the script would
 * do and kiln does not is refused by name, in the option table or here. */
#ifndef KILN_CMD_MEGATRON_ARGS_H
#define KILN_CMD_MEGATRON_ARGS_H

#include "cmd/rank_run.h"
#include "core/launcher.h"
#include "core/option.h"
#include "data/gpt/set_blend.h"
#include "nn/decoder/decoder_config.h"
#include "task/gpt/gpt_pretrain.h"

struct megatron_args {
    struct pretrain_options run;
    struct gpt_pretrain_options gpt;
    struct launcher_flags launcher;
    struct option_given given;
    struct option_words data_path, rampup;
    const char *set_prefixes[SET_BLEND_MOST_SETS]; /* prefixes in data_path */
    double set_weights[SET_BLEND_MOST_SETS];
    struct mesh_flags mesh;
    int64_t virtual_stage_layers;
    const char *partition;       /* NULL: by layers */
    struct decoder_config model; /* sizes that were not given are 0 */
    int64_t kv_channels, vocab_divisor;
    int64_t micro_batch_size;
    int64_t train_samples, train_iters;
    int64_t lr_decay_samples, lr_decay_iters, lr_warmup_samples, lr_warmup_iters;
    double lr_warmup_fraction, min_lr, sgd_momentum;
    const char *tokenizer_type, *data_impl, *loader_type; /* names; kiln has one kind of each */
    const char *recipe;                                   /* "modern"; NULL: none */
    const char *decay_style, *optimizer, *positions, *save, *load, *log_dir;
    int64_t save_interval, checkpoint_num_layers;
    bool embed_layernorm, no_bias_gelu_fusion, openai_gelu, onnx_safe;
    bool finetune, deepspeed, recomputes_by_deepspeed;
    bool no_log_learning_rate, no_log_loss_scale;
    char ramp_text[64]; /* words of `rampup`, for the state of the run */
};

#define MEGATRON_RECIPES "modern"

/* Checks the flags, those of a->recipe too, against each other and `n_ranks`, and sets a->run and a->gpt,
 * which borrow from `a`.  *config is what a->run.config borrows: the caller json_decref's it.  STATUS_USAGE;
 * STATUS_UNAVAILABLE: a model cut over ranks. */
struct status megatron_args_read(const struct command *c, struct megatron_args *a, int n_ranks,
                                 json_t **config);

/* --pp-partition-method: how layers are dealt to stages; NULL: by layers.  STATUS_USAGE. */
struct status megatron_partition_find(enum pipeline_partition *p, const char *name);

#endif
