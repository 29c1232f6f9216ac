#include "cmd/megatron_args.h"

#include "cmd/recipe.h"
#include "core/option_value.h"
#include "task/deepspeed_config.h"
#include "task/missing.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Measured in docs/numbers/decoders.md. */
static const struct recipe recipes[] = {
    {MEGATRON_RECIPES,
     "Jordan et al. 2024 and Liu et al. 2025 (arXiv:2502.16982): optimizer; docs/numbers/decoders.md: rate, "
     "schedule, no dropout",
     {{"optimizer", "muon", NULL},
      {"lr", "8e-3", NULL},
      {"lr-decay-style", "linear", NULL},
      {"lr-warmup-fraction", "0.06", "lr-warmup-samples|lr-warmup-iters"},
      {"adam-beta2", "0.98", NULL},
      {"weight-decay", "0.1", NULL},
      {"attention-dropout", "0", NULL},
      {"hidden-dropout", "0", NULL}}},
};

static bool has_alibi(const struct megatron_args *a)
{
    return strcmp(a->positions, "alibi") == 0;
}

/* With the fused kernel GELU is the tanh form, as in the original. */
static bool has_exact_gelu(const struct megatron_args *a)
{
    return a->onnx_safe || (a->no_bias_gelu_fusion && !a->openai_gelu);
}

/* ---- rules ---- */

/* Checks that flags without a default are given. */
static struct status check_given(const struct command *c, const struct megatron_args *a)
{
    static const char *const names[] = {
        "num-layers",       "hidden-size", "num-attention-heads", "seq-length", "max-position-embeddings",
        "micro-batch-size", "lr"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        FAIL_IF(!option_was_given(c, a, names[i]), STATUS_USAGE, "kiln pretrain-gpt needs --%s", names[i]);
    }
    return status_ok();
}

/* A model is GPT-2 or BLOOM, and nothing between. */
static struct status check_model(const struct megatron_args *a)
{
    const long long hidden = a->model.hidden_size, heads = a->model.n_heads, channels = a->kv_channels,
                    ffn = a->model.feed_forward_size;
    const long long positions = a->model.n_positions, length = a->run.run.batch.max_seq_length;
    const long long rows = a->model.vocab_size, divisor = a->vocab_divisor;
    FAIL_IF(hidden % heads != 0, STATUS_USAGE,
            "--hidden-size %lld is not a multiple of --num-attention-heads %lld", hidden, heads);
    FAIL_IF(channels > 0 && channels != hidden / heads, STATUS_USAGE,
            "--kv-channels %lld: it must be --hidden-size / --num-attention-heads, %lld", channels,
            hidden / heads);
    FAIL_IF(positions < length, STATUS_USAGE, "--max-position-embeddings %lld is less than --seq-length %lld",
            positions, length);
    FAIL_IF(has_alibi(a) != a->embed_layernorm, STATUS_USAGE,
            "BLOOM has --position-embedding-type alibi and --embed-layernorm, GPT-2 has neither: give both "
            "or none");
    FAIL_IF(has_alibi(a) && has_exact_gelu(a), STATUS_USAGE,
            "BLOOM has the tanh form of GELU: leave out --%s",
            a->onnx_safe ? "onnx-safe" : "no-bias-gelu-fusion");
    FAIL_IF(has_alibi(a) && ffn > 0 && ffn != 4 * hidden, STATUS_USAGE,
            "BLOOM's --ffn-hidden-size is 4 times --hidden-size, not %lld", ffn);
    FAIL_IF(rows > 0 && rows % divisor != 0, STATUS_USAGE,
            "--pad-vocab-size-to %lld is not a multiple of --make-vocab-size-divisible-by %lld", rows,
            divisor);
    return status_ok();
}

/* Checks the layers of a stage, and of a chunk where a stage has several chunks. */
static struct status check_stages(const struct megatron_args *a)
{
    const long long n = a->virtual_stage_layers, layers = a->model.n_layers,
                    stages = a->mesh.pipeline_parallel;
    bool ends = a->partition != NULL && strstr(a->partition, "embedding") != NULL;
    FAIL_IF(!ends && layers % stages != 0, STATUS_USAGE,
            "--num-layers %lld is not a multiple of --pipeline-model-parallel-size %lld", layers, stages);
    FAIL_IF(n > 0 && stages == 1, STATUS_USAGE,
            "--num-layers-per-virtual-pipeline-stage needs several stages: give "
            "--pipeline-model-parallel-size, or leave it out");
    FAIL_IF(n > 0 && layers / stages % n != 0, STATUS_USAGE,
            "--num-layers-per-virtual-pipeline-stage %lld does not divide the %lld layers of a stage", n,
            layers / stages);
    return status_ok();
}

static struct status check_precision(const struct megatron_args *a)
{
    const struct loss_scale_rule *scale = &a->run.run.loss_scale;
    FAIL_IF(a->run.run.precision.autocast && a->run.run.precision.fp16, STATUS_USAGE,
            "--bf16 and --fp16 are two number formats: leave one out");
    FAIL_IF(scale->least > scale->first, STATUS_USAGE, "--min-loss-scale %g is above --initial-loss-scale %g",
            scale->least, scale->first);
    return status_ok();
}

/* A run counts samples or steps, in all flags. */
static struct status check_units(const struct command *c, const struct megatron_args *a)
{
    static const char *const units[] = {"iters", "samples"}, *const what[] = {"decay", "warmup"};
    bool by_samples = a->train_samples > 0;
    const char *unit = units[by_samples], *other = units[!by_samples];
    FAIL_IF(by_samples && a->train_iters > 0, STATUS_USAGE,
            "--train-samples and --train-iters both say when the run ends: leave one out");
    FAIL_IF(!by_samples && a->train_iters == 0, STATUS_USAGE,
            "kiln pretrain-gpt needs --train-samples or --train-iters, which say when the run ends");
    for (int i = 0; i < 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "lr-%s-%s", what[i], other);
        FAIL_IF(option_was_given(c, a, name), STATUS_USAGE,
                "--%s cannot be combined with --train-%s: give --lr-%s-%s", name, unit, what[i], unit);
    }
    FAIL_IF(a->lr_warmup_fraction > 0 && (a->lr_warmup_samples > 0 || a->lr_warmup_iters > 0), STATUS_USAGE,
            "--lr-warmup-fraction and --lr-warmup-%s both set the length of the warm-up: leave one out",
            unit);
    return status_ok();
}

static struct status check_rates(const struct pretrain_options *o)
{
    const struct schedule *s = &o->warmup;
    FAIL_IF(s->min > s->max, STATUS_USAGE, "--min-lr %g is above --lr %g", s->min, s->max);
    FAIL_IF(s->warmup_samples >= s->decay_samples, STATUS_USAGE,
            "the warm-up of the learning rate, %lld samples, must be shorter than its decay, %lld samples",
            (long long)s->warmup_samples, (long long)s->decay_samples);
    return status_ok();
}

static struct status check_files(const struct megatron_args *a)
{
    FAIL_IF(a->save != NULL && a->log_dir != NULL && strcmp(a->save, a->log_dir) != 0, STATUS_USAGE,
            "--save %s and --output_dir %s are different directories, but checkpoints and log.jsonl go to "
            "the same one: leave out --output_dir",
            a->save, a->log_dir);
    FAIL_IF(a->save != NULL && a->save_interval == 0, STATUS_USAGE,
            "--save needs --save-interval, the steps between checkpoints");
    FAIL_IF(a->run.run.common.output_dir == NULL, STATUS_USAGE,
            "log.jsonl and report.html need a directory: give --save, --tensorboard-dir or --output_dir");
    FAIL_IF(a->run.load_universal && a->load == NULL, STATUS_USAGE,
            "--universal-checkpoint needs --load, the directory with it");
    FAIL_IF(a->finetune && a->load == NULL, STATUS_USAGE, "--finetune needs --load, the model to start from");
    return status_ok();
}

/* ---- settings ---- */

static struct status set_model(struct megatron_args *a, json_t **config)
{
    struct decoder_config *m = &a->model;
    m->embedding_dropout = m->hidden_dropout;
    m->activation = has_exact_gelu(a) ? LAYER_GELU_EXACT : LAYER_GELU_TANH;
    m->positions = has_alibi(a) ? LAYER_POSITIONS_ALIBI : LAYER_POSITIONS_OF_INPUT;
    m->embedding_norm = a->embed_layernorm;
    a->run.kind = has_alibi(a) ? &bloom_pretrain : &gpt2_pretrain;
    a->run.own = &a->gpt;
    a->run.vocab_multiple = a->vocab_divisor;
    a->run.config = *config = a->run.kind->family->config_to_json(m, MODEL_TASK_CAUSAL_LM);
    return *config != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for the configuration");
}

/* DeepSpeed's names.  All layers of a transformer have the same number of parameters. */
struct status megatron_partition_find(enum pipeline_partition *p, const char *name)
{
    static const char with_ends[] = "type:transformer|embedding";
    bool plain = name == NULL || option_is_choice("parameters|uniform|type:transformer", name);
    *p = plain ? PIPELINE_BY_LAYERS : PIPELINE_BY_LAYERS_AND_EMBEDDINGS;
    FAIL_IF(!plain && strcmp(name, with_ends) != 0, STATUS_USAGE,
            "--pp-partition-method '%.60s' is not uniform, parameters, type:transformer or %s", name,
            with_ends);
    return status_ok();
}

static struct status whole_number(int64_t *n, const char *text)
{
    char digits[32];
    size_t used = 0;
    for (const char *p = text; *p != '\0' && used + 1 < sizeof digits; p++) {
        digits[used] = *p;
        used += *p != '_';
    }
    digits[used] = '\0';
    char *end;
    errno = 0;
    *n = strtoll(digits, &end, 10);
    FAIL_IF(used == 0 || *end != '\0' || errno != 0 || *n < 0 || strlen(text) >= sizeof digits, STATUS_USAGE,
            "--rampup-batch-size needs whole numbers, not '%.40s'", text);
    return status_ok();
}

static struct status read_ramp(struct batch_growth *g, const struct option_words *words)
{
    int64_t *const fields[] = {&g->start, &g->increment, &g->n_samples};
    FAIL_IF(words->n != 3, STATUS_USAGE,
            "--rampup-batch-size needs 3 numbers, START INCREMENT SAMPLES, not %d", words->n);
    for (int i = 0; i < 3; i++) {
        TRY(whole_number(fields[i], words->of[i]));
    }
    const long long start = g->start, increment = g->increment, batch = g->batch;
    FAIL_IF(start < 1 || increment < 1 || start >= batch || g->n_samples < 1, STATUS_USAGE,
            "--rampup-batch-size %lld %lld %lld: START, INCREMENT and SAMPLES must be 1 or more, and START "
            "below --global-batch-size %lld",
            start, increment, (long long)g->n_samples, batch);
    FAIL_IF((batch - start) % increment != 0, STATUS_USAGE,
            "--rampup-batch-size: --global-batch-size %lld less the start, %lld, is not a multiple of the "
            "increment, %lld",
            batch, start, increment);
    return status_ok();
}

static struct status check_share(const char *what, int64_t batch, int64_t share, int n_ranks)
{
    FAIL_IF(batch % share != 0, STATUS_USAGE,
            "%s %lld is not a multiple of --micro-batch-size %lld times %d rank%s", what, (long long)batch,
            (long long)(share / n_ranks), n_ranks, n_ranks == 1 ? "" : "s");
    return status_ok();
}

static struct status set_batch(struct megatron_args *a, int n_ranks)
{
    struct pretrain_options *o = &a->run;
    int64_t share = a->micro_batch_size * n_ranks;
    struct batch_growth *g = &o->growth;
    g->batch = o->run.ranks.global_batch_size > 0 ? o->run.ranks.global_batch_size : share;
    TRY(check_share("--global-batch-size", g->batch, share, n_ranks));
    if (a->rampup.n > 0) {
        FAIL_IF(a->train_samples == 0, STATUS_USAGE,
                "--rampup-batch-size counts samples: give --train-samples");
        TRY(read_ramp(g, &a->rampup));
        TRY(check_share("--rampup-batch-size: the start", g->start, share, n_ranks));
        TRY(check_share("--rampup-batch-size: the increment", g->increment, share, n_ranks));
        snprintf(a->ramp_text, sizeof a->ramp_text, "%lld %lld %lld", (long long)g->start,
                 (long long)g->increment, (long long)g->n_samples);
        o->batch_ramp = a->ramp_text;
    }
    o->run.ranks.global_batch_size = o->run.batch.train_batch_size = g->batch;
    o->run.batch.gradient_accumulation_steps =
        g->batch / a->micro_batch_size; /* micro-batches of all ranks */
    return status_ok();
}

static enum schedule_decay decay_of(const char *style)
{
    return strcmp(style, "constant") == 0 ? SCHEDULE_DECAY_CONSTANT
           : strcmp(style, "linear") == 0 ? SCHEDULE_DECAY_LINEAR
                                          : SCHEDULE_DECAY_COSINE;
}

static struct status set_rates(struct megatron_args *a)
{
    struct pretrain_options *o = &a->run;
    struct schedule *s = &o->warmup;
    bool by_samples = a->train_samples > 0;
    int64_t unit = by_samples ? 1 : o->run.batch.train_batch_size,
            given = by_samples ? a->lr_decay_samples : a->lr_decay_iters;
    int64_t all = by_samples ? a->train_samples : a->train_iters;
    s->decay = decay_of(a->decay_style);
    s->decay_samples = unit * (given > 0 ? given : all);
    s->warmup_samples = unit * (by_samples ? a->lr_warmup_samples : a->lr_warmup_iters);
    if (a->lr_warmup_fraction > 0) {
        s->warmup_samples = (int64_t)(a->lr_warmup_fraction * (double)s->decay_samples);
    }
    s->growth = o->growth;
    s->max = o->run.learning_rate;
    s->min = a->min_lr;
    o->schedule = "anneal";
    return check_rates(o);
}

/* A last part of a batch is left out, as in the original. */
static struct status set_steps(struct megatron_args *a)
{
    struct pretrain_options *o = &a->run;
    struct gpt_pretrain_options *own = &a->gpt;
    bool by_samples = a->train_samples > 0;
    o->run.max_steps = by_samples ? batch_growth_steps(&o->growth, a->train_samples) : a->train_iters;
    o->steps_this_run = -1;
    FAIL_IF(o->run.max_steps == 0, STATUS_USAGE, "--train-samples %lld is less than one batch, %lld",
            (long long)a->train_samples, (long long)batch_growth_at(&o->growth, 1).batch);
    int64_t evaluation = o->eval_iters * o->run.batch.train_batch_size;
    own->n_wanted[0] = by_samples ? a->train_samples : a->train_iters * o->run.batch.train_batch_size;
    own->n_wanted[1] = (o->run.max_steps / o->run.eval_steps + 1) * evaluation;
    own->n_wanted[2] = evaluation;
    o->run.eval_steps = o->eval_iters > 0 ? o->run.eval_steps : 0;
    return status_ok();
}

/* One set, or pairs of a weight and a set. */
static struct status set_data(struct megatron_args *a)
{
    const struct option_words *w = &a->data_path;
    int n_sets = w->n / 2;
    FAIL_IF(w->n == 0, STATUS_USAGE,
            "kiln pretrain-gpt needs --data-path PREFIX, of PREFIX.bin and PREFIX.idx");
    FAIL_IF(
        w->n > 1 && (w->n % 2 != 0 || n_sets > SET_BLEND_MOST_SETS), STATUS_USAGE,
        "--data-path has %d words: it takes one PREFIX, or a weight and a PREFIX for each of at most %d sets",
        w->n, SET_BLEND_MOST_SETS);
    for (int i = 0; i < n_sets; i++) {
        const char *text = w->of[2 * i], *prefix = w->of[2 * i + 1];
        char *end;
        double weight = strtod(text, &end);
        FAIL_IF(end == text || *end != '\0' || !(weight > 0) || !isfinite(weight), STATUS_USAGE,
                "--data-path: the weight of %s must be a number above 0, not '%.40s'", prefix, text);
        a->set_prefixes[i] = prefix;
        a->set_weights[i] = weight;
    }
    a->gpt.n_sets = n_sets;
    a->gpt.set_prefixes = a->set_prefixes;
    a->gpt.set_weights = a->set_weights;
    a->run.input_dir = n_sets > 0 ? a->set_prefixes[0] : w->of[0];
    return status_ok();
}

static struct status set_files(struct megatron_args *a)
{
    struct pretrain_options *o = &a->run;
    o->run.common.output_dir = a->log_dir != NULL ? a->log_dir
                               : a->save != NULL  ? a->save
                                                  : o->megatron_log.tensorboard;
    o->run.skip_checkpoint = a->save == NULL;
    o->run.num_steps_per_checkpoint = a->save_interval;
    o->run.init_checkpoint = a->finetune ? a->load : NULL;
    o->run.load_dir = a->finetune ? NULL : a->load;
    o->run.resume_from_checkpoint = o->run.load_dir != NULL;
    o->resume_step = -1;
    return check_files(a);
}

/* Sets kiln's options that have another name or another unit. */
static struct status set_rest(struct megatron_args *a, int n_ranks)
{
    struct pretrain_options *o = &a->run;
    bool is_sgd = strcmp(a->optimizer, "sgd") == 0, is_muon = strcmp(a->optimizer, "muon") == 0;
    int64_t n = a->virtual_stage_layers;
    o->run.ranks.cut.n_chunks = n > 0 ? (int)(a->model.n_layers / a->mesh.pipeline_parallel / n) : 1;
    TRY(megatron_partition_find(&o->run.ranks.cut.partition, a->partition));
    o->run.loss_scale.most = INFINITY;
    /* The replaced system's bf16 shares the optimizer's state over ranks at stage 0 too. */
    if (o->run.precision.autocast && n_ranks > 1 && o->run.ranks.zero_stage == 0) {
        o->run.ranks.zero_stage = 1;
    }
    /* the replaced script's adam is apex's FusedAdam, which is AdamW */
    o->optimizer = is_sgd || is_muon ? a->optimizer : "adamw";
    o->update.corrects_eps = !is_sgd;
    o->update.beta1 = is_sgd ? a->sgd_momentum : o->update.beta1;
    o->loss_norm = "global";
    o->checkpoint_activations_interval = a->checkpoint_num_layers;
    o->megatron_log.on = true;
    o->megatron_log.learning_rate = !a->no_log_learning_rate;
    o->megatron_log.loss_scale = !a->no_log_loss_scale;
    FAIL_IF(a->recomputes_by_deepspeed && !o->checkpoint_activations, STATUS_USAGE,
            "--deepspeed-activation-checkpointing does nothing alone: add --checkpoint-activations");
    return status_ok();
}

/* Compares --deepspeed_config with the flags: both must say the same. */
static struct status compare_file(const struct command *c, struct megatron_args *a, int n_ranks)
{
    struct pretrain_options *o = &a->run;
    const char *path = o->deepspeed_config;
    struct deepspeed_config d;
    TRY(deepspeed_config_read(&d, path, true, n_ranks));
    int64_t micro = d.batch.train_batch_size / d.batch.gradient_accumulation_steps;
    const struct {
        const char *key, *flag;
        double of_file, of_flag;
    } rows[] = {
        {"train_batch_size", "global-batch-size", (double)(d.batch.train_batch_size * n_ranks),
         (double)o->run.batch.train_batch_size},
        {"train_micro_batch_size_per_gpu", "micro-batch-size", (double)micro, (double)a->micro_batch_size},
        {"gradient_clipping", "clip-grad", d.update.max_grad_norm, o->update.max_grad_norm},
        {"bf16", "bf16", d.bf16, o->run.precision.autocast},
        {"fp16", "fp16", d.fp16, o->run.precision.fp16},
        {"zero_optimization.stage", "zero-stage", (double)d.log.zero_stage,
         option_was_given(c, a, "zero-stage") && !o->run.precision.autocast ? (double)o->run.ranks.zero_stage
                                                                            : (double)d.log.zero_stage},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        FAIL_IF(rows[i].of_file < rows[i].of_flag || rows[i].of_file > rows[i].of_flag, STATUS_USAGE,
                "%s: \"%s\" is %g, but --%s is %g: make them equal", path, rows[i].key, rows[i].of_file,
                rows[i].flag, rows[i].of_flag);
    }
    if (o->run.precision.fp16) {
        o->run.loss_scale = d.loss_scale;
    }
    return status_ok();
}

static struct status check_file(const struct command *c, struct megatron_args *a, int n_ranks)
{
    const char *path = a->run.deepspeed_config;
    FAIL_IF(a->deepspeed && path == NULL, STATUS_USAGE, "--deepspeed needs --deepspeed_config, its JSON");
    return path == NULL || (a->run.run.common.dry_run && missing_is(path)) ? status_ok()
                                                                           : compare_file(c, a, n_ranks);
}

struct status megatron_args_read(const struct command *c, struct megatron_args *a, int n_ranks,
                                 json_t **config)
{
    TRY(recipe_apply(c, a, recipes, sizeof recipes / sizeof recipes[0], a->recipe));
    TRY(check_given(c, a));
    TRY(check_model(a));
    TRY(set_model(a, config));
    TRY(check_stages(a));
    TRY(check_precision(a));
    TRY(check_units(c, a));
    TRY(set_batch(a, n_ranks));
    TRY(set_rates(a));
    TRY(set_steps(a));
    TRY(set_rest(a, n_ranks));
    TRY(set_data(a));
    TRY(set_files(a));
    return check_file(c, a, n_ranks);
}
