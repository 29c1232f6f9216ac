#include "cmd/pretrain_variant.h"

#include "cmd/recipe.h"
#include "core/log.h"
#include "task/deepspeed_config.h"
#include "task/missing.h"
#include "optim/optimizer.h"

#include <stdio.h>
#include <string.h>

enum { MOST_DEFAULTS = 8, MOST_FOREIGN = 10 };

struct variant {
    const char *says; /* description of the defaults, for a log line; NULL: none is written */
    struct {
        const char *flag, *text; /* where this variant's default differs from the flag's */
    } defaults[MOST_DEFAULTS];
    struct {
        const char *flag, *instead; /* flags of the other script */
    } foreign[MOST_FOREIGN];
    bool batch_in_file; /* --deepspeed_config sets batch, precision and clipping, not flags */
};

static const struct variant bert = {
    .foreign = {{"deepspeed_config", "it goes with --deepspeed"},
                {"deepscale_config", "it goes with --deepspeed"}},
};

/* Brown et al. 2020 (arXiv:2005.14165), appendix B, except the rate, since most models here are small, and
 * the schedule, which ends at 0. */
static const struct variant decoder = {
    .says = "a decoder's defaults",
    .defaults = {{"optimizer", "adamw"},
                 {"learning_rate", "1e-3"},
                 {"lr_schedule", "linear"},
                 {"adam_beta2", "0.95"},
                 {"adam_eps", "1e-8"},
                 {"weight_decay", "0.1"}},
    .foreign = {{"deepspeed_config", "it goes with --deepspeed"},
                {"deepscale_config", "it goes with --deepspeed"}},
};

static const struct variant with_deepspeed = {
    .defaults = {{"lr_schedule", "constant"}, /* without a scheduler the rate is constant */
                 {"scheduler_degree", "1.0"},
                 {"enable_packed_data_mode", "False"},
                 {"checkpoint_activations_interval", "1"},
                 {"keep_checkpoints", "0"}, /* nothing is pruned */
                 {"profile_steps", "2,3"}},
    .foreign = {{"train_batch_size", "the file's \"train_batch_size\" sets it"},
                {"gradient_accumulation_steps", "the file's batch sizes set it"},
                {"max_grad_norm", "the file's \"gradient_clipping\" sets it"},
                {"autocast", "the file's \"bf16\" sets it"},
                {"hmp", "the file's \"bf16\" sets it"},
                {"fp16", "the file's \"fp16\" sets it"},
                {"amp", "the file's \"fp16\" sets it"},
                {"use_fused_lamb", "--optimizer sets it"},
                {"use_zero_optimizer", "the file's \"zero_optimization\" sets it"}},
    .batch_in_file = true,
};

static struct status check_foreign(const struct command *c, const struct pretrain_args *a,
                                   const struct variant *v)
{
    for (int i = 0; i < MOST_FOREIGN && v->foreign[i].flag != NULL; i++) {
        FAIL_IF(option_was_given(c, a, v->foreign[i].flag), STATUS_USAGE,
                "--%s belongs to runs %s --deepspeed: %s", v->foreign[i].flag,
                v->batch_in_file ? "without" : "with", v->foreign[i].instead);
    }
    return status_ok();
}

/* NVLAMB clips at 1 whatever the file says, after the file's own clipping. */
static double clip_of(const struct deepspeed_config *d, const char *optimizer)
{
    bool own = strcmp(optimizer, "lamb") == 0;
    return !own                                                         ? d->update.max_grad_norm
           : d->update.max_grad_norm > 0 && d->update.max_grad_norm < 1 ? d->update.max_grad_norm
                                                                        : 1;
}

static struct status take_optimizer(const struct command *c, struct pretrain_args *a,
                                    const struct deepspeed_config *d)
{
    struct pretrain_options *o = &a->run;
    FAIL_IF(d->optimizer == NULL, STATUS_USAGE, "%s has no \"optimizer\", so --optimizer must choose one",
            o->deepspeed_config);
    o->optimizer = d->optimizer;
    o->run.learning_rate = option_was_given(c, a, "learning_rate") ? o->run.learning_rate : d->learning_rate;
    o->update.eps = option_was_given(c, a, "adam_eps") ? o->update.eps : d->update.eps;
    o->update.min_ratio = d->update.min_ratio;
    o->update.max_ratio = d->update.max_ratio;
    if (!option_was_given(c, a, "betas")) {
        o->update.beta1 = option_was_given(c, a, "adam_beta1") ? o->update.beta1 : d->update.beta1;
        o->update.beta2 = option_was_given(c, a, "adam_beta2") ? o->update.beta2 : d->update.beta2;
    }
    return status_ok();
}

static void take_schedule(const struct command *c, struct pretrain_args *a, const struct deepspeed_config *d)
{
    struct pretrain_options *o = &a->run;
    bool by_flag = option_was_given(c, a, "use_lr_scheduler") || option_was_given(c, a, "lr_schedule");
    if (by_flag && d->has_scheduler) {
        log_info("%s: the schedule of the flags replaces \"scheduler\"", o->deepspeed_config);
    } else if (d->has_scheduler) {
        o->schedule = "warmup";
        o->warmup = d->scheduler;
    } else if (!by_flag) {
        o->run.warmup_proportion = 0;
    }
}

static struct status take_file(const struct command *c, struct pretrain_args *a)
{
    struct pretrain_options *o = &a->run;
    struct deepspeed_config d;
    bool own_optimizer = option_was_given(c, a, "optimizer");
    TRY(deepspeed_config_read(&d, o->deepspeed_config, own_optimizer, rank_options_data(&o->run.ranks).size));
    o->run.batch.train_batch_size = d.batch.train_batch_size;
    o->run.batch.gradient_accumulation_steps = d.batch.gradient_accumulation_steps;
    o->run.precision.autocast = d.bf16;
    o->run.precision.fp16 = d.fp16;
    o->run.loss_scale = d.loss_scale;
    o->deepspeed_log = d.log;
    if (rank_options_data(&o->run.ranks).size > 1 && o->run.ranks.zero_stage == 0) {
        o->run.ranks.zero_stage = d.log.zero_stage;
    }
    TRY(own_optimizer ? status_ok() : take_optimizer(c, a, &d));
    o->update.max_grad_norm = clip_of(&d, o->optimizer);
    take_schedule(c, a, &d);
    return status_ok();
}

static struct status check_file(const struct pretrain_options *o)
{
    return o->deepspeed_config != NULL
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "--deepspeed needs --deepspeed_config, the JSON with batch and precision");
}

static struct status apply_deepspeed(const struct command *c, struct pretrain_args *a)
{
    struct pretrain_options *o = &a->run;
    TRY(check_file(o));
    if (option_was_given(c, a, "optimizer") && strcmp(o->optimizer, "adamw") == 0) {
        option_set_default(c, a, "adam_eps", "1e-8"); /* torch's */
    }
    /* a dry run lists a missing file */
    return o->run.common.dry_run && missing_is(o->deepspeed_config) ? status_ok() : take_file(c, a);
}

static bool is_decoder(const struct pretrain_args *a)
{
    return a->run.own == &a->gpt;
}

static void set_defaults(const struct command *c, struct pretrain_args *a, const struct variant *v)
{
    char line[256];
    int used = 0;
    for (int i = 0; i < MOST_DEFAULTS && v->defaults[i].flag != NULL; i++) {
        const char *flag = v->defaults[i].flag, *text = v->defaults[i].text;
        bool given = option_was_given(c, a, flag) ||
                     (strcmp(flag, "adam_beta2") == 0 && option_was_given(c, a, "betas"));
        if (!given) {
            option_set_default(c, a, flag, text);
            used += snprintf(line + used, sizeof line - (size_t)used, " --%s %s", flag, text);
        }
    }
    if (v->says != NULL && used > 0) {
        log_info("%s:%s", v->says, line);
    }
}

struct status pretrain_variant_apply(const struct command *c, struct pretrain_args *a)
{
    struct pretrain_options *o = &a->run;
    const struct variant *v = a->deepspeed ? &with_deepspeed : is_decoder(a) ? &decoder : &bert;
    TRY(check_foreign(c, a, v));
    set_defaults(c, a, v);
    FAIL_IF(o->update.corrects_steps && strcmp(o->optimizer, "nvlamb_exp") != 0, STATUS_USAGE,
            "--use_ds_lamb_bias_correction needs --optimizer nvlamb_exp");
    TRY(optimizer_find_by_any_name(&o->optimizer, o->optimizer, "--optimizer"));
    if (strcmp(o->optimizer, "adam") == 0 || strcmp(o->optimizer, "nvlamb_exp") == 0 ||
        strcmp(o->optimizer, "ds_fused_lamb") == 0) {
        option_set_default(c, a, "adam_eps", "1e-8"); /* torch's, the script's and DeepSpeed's */
    }
    return v->batch_in_file ? apply_deepspeed(c, a) : status_ok();
}

static const struct recipe recipes[] = {
    {"modern",
     "Jordan et al. 2024 and Liu et al. 2025 (arXiv:2502.16982): optimizer; Izsak et al. 2021 "
     "(arXiv:2104.07705): schedule, no pairs; Ankner et al. 2024 (arXiv:2305.15096): masks; Kiyono et al. "
     "2021 (arXiv:2109.05644): shifted positions; docs/numbers.md: small batches, positions that begin as "
     "sinusoids, words that begin as what stands beside them",
     {{"optimizer", "muon", NULL},
      {"learning_rate", "2e-3", NULL},
      {"adam_beta2", "0.98", "betas"},
      {"weight_decay", "0.1", NULL},
      {"lr_schedule", "linear", NULL},
      {"warmup_proportion", "0.06", "warmup_tokens"},
      {"no_nsp", "true", NULL},
      {"short_seq_prob", "0", NULL},
      {"mask_rate", "0.3:0.15", NULL},
      {"sinusoidal_positions", "true", NULL},
      {"shifted_positions", "true", NULL},
      {"ppmi_embeddings", "true", NULL},
      {"train_batch_size", "16", NULL}}},
    {"reference",
     "phase 1 of BERT-large in the replaced script: You et al. 2020 (arXiv:1904.00962), Devlin et al. 2018 "
     "(arXiv:1810.04805)",
     {{"optimizer", "lamb", NULL},
      {"learning_rate", "6e-3", NULL},
      {"lr_schedule", "poly", NULL},
      {"scheduler_degree", "0.5", NULL},
      {"warmup_proportion", "0.2843", "warmup_tokens"},
      {"weight_decay", "0.01", NULL},
      {"short_seq_prob", "0.1", NULL}}},
    {"deepspeed",
     "the replaced script for BERT-1.5B and 5B, with batch, precision and more from --deepspeed_config",
     {{"deepspeed", "true", NULL}}},
};

static const struct recipe decoder_recipe = {
    "modern",
    "Jordan et al. 2024 and Liu et al. 2025 (arXiv:2502.16982): optimizer; docs/numbers/decoders.md: rate, "
    "schedule, small batches",
    {{"optimizer", "muon", NULL},
     {"learning_rate", "8e-3", NULL},
     {"adam_beta2", "0.98", "betas"},
     {"weight_decay", "0.1", NULL},
     {"lr_schedule", "linear", NULL},
     {"warmup_proportion", "0.06", "warmup_tokens"},
     {"train_batch_size", "16", NULL}}};

/* Rotary positions neither begin as sinusoids nor are shifted. */
static const struct recipe modernbert_recipe = {"modern",
                                                "Warner et al. 2024 (arXiv:2412.13663): model; Jordan et al. "
                                                "2024 and Liu et al. 2025 (arXiv:2502.16982): "
                                                "optimizer; Izsak et al. 2021 (arXiv:2104.07705): schedule; "
                                                "Ankner et al. 2024 (arXiv:2305.15096): masks; "
                                                "docs/decisions/0126_modernbert.md: measured beside BERT's",
                                                {{"optimizer", "muon", NULL},
                                                 {"learning_rate", "2e-3", NULL},
                                                 {"adam_beta2", "0.98", "betas"},
                                                 {"weight_decay", "0.1", NULL},
                                                 {"lr_schedule", "linear", NULL},
                                                 {"warmup_proportion", "0.06", "warmup_tokens"},
                                                 {"short_seq_prob", "0", NULL},
                                                 {"mask_rate", "0.3:0.15", NULL},
                                                 {"ppmi_embeddings", "true", NULL},
                                                 {"train_batch_size", "16", NULL}}};

static struct status apply_modernbert_recipe(const struct command *c, struct pretrain_args *a)
{
    FAIL_IF(a->recipe != NULL && strcmp(a->recipe, "modern") != 0, STATUS_USAGE,
            "--recipe %s is BERT's, but this run trains a %s model: --recipe modern has one for it",
            a->recipe, a->run.kind->family->name);
    return recipe_apply(c, a, &modernbert_recipe, 1, a->recipe);
}

static struct status apply_decoder_recipe(const struct command *c, struct pretrain_args *a)
{
    FAIL_IF(strcmp(a->recipe, "reference") == 0, STATUS_USAGE,
            "--recipe reference is BERT-large's, but --config_file %s describes a %s model",
            a->run.run.common.config_file, a->run.kind->family->name);
    TRY(recipe_apply(c, a, &decoder_recipe, 1, a->recipe));
    if (a->dropout > 0) {
        log_info("dropout is %g, as %s says; the recipe was measured at 0", a->dropout,
                 a->run.run.common.config_file);
    }
    return status_ok();
}

struct status pretrain_variant_apply_recipe(const struct command *c, struct pretrain_args *a)
{
    FAIL_IF(a->deepspeed && a->recipe != NULL && strcmp(a->recipe, "deepspeed") != 0, STATUS_USAGE,
            "--recipe %s and --deepspeed are two recipes: leave one of them out", a->recipe);
    if (is_decoder(a) && a->recipe != NULL && strcmp(a->recipe, "deepspeed") != 0) {
        return apply_decoder_recipe(c, a);
    }
    if (a->run.kind == &modernbert_pretrain) {
        return apply_modernbert_recipe(c, a);
    }
    return recipe_apply(c, a, recipes, sizeof recipes / sizeof recipes[0], a->recipe);
}
