#include "cmd/pretrain_recipe.h"

#include "core/buf.h"
#include "core/log.h"

#include <string.h>

enum { MOST_FLAGS = 16 };

struct recipe {
    const char *name, *source;
    struct {
        const char *flag, *text;
        const char *unless; /* not if this flag was given, which says the same in another way; may be NULL */
    } flags[MOST_FLAGS];
};

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
      {"train_batch_size", "16", "batch_ramp"}}},
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

static const struct recipe *find(const char *name)
{
    const struct recipe *r = recipes;
    while (strcmp(r->name, name) != 0) {
        r++;
        CHECK(r < recipes + sizeof recipes / sizeof recipes[0], "recipe %s", name);
    }
    return r;
}

struct status pretrain_recipe_apply(const struct command *c, struct pretrain_args *a)
{
    struct buf sets = {0}, kept = {0};
    if (a->recipe == NULL) {
        return status_ok();
    }
    const struct recipe *r = find(a->recipe);
    if (a->deepspeed && strcmp(a->recipe, "deepspeed") != 0) {
        return status_error(STATUS_USAGE,
                            "--recipe %s and --deepspeed are two recipes: leave one of them out", a->recipe);
    }
    for (int i = 0; i < MOST_FLAGS && r->flags[i].flag != NULL; i++) {
        const char *flag = r->flags[i].flag, *text = r->flags[i].text, *unless = r->flags[i].unless;
        bool replaced = unless != NULL && option_was_given(c, a, unless);
        if (!replaced && option_give(c, a, flag, text)) {
            bool bare = strcmp(text, "true") == 0;
            buf_printf(&sets, " --%s%s%s", flag, bare ? "" : " ", bare ? "" : text);
        } else {
            buf_printf(&kept, "%s--%s", kept.n == 0 ? "" : ", ", replaced ? unless : flag);
        }
    }
    log_info("recipe %s:%s", r->name, buf_text(&sets));
    log_info("its sources: %s", r->source);
    if (kept.n > 0) {
        log_info("the command line has its own %s", buf_text(&kept));
    }
    buf_fini(&sets);
    buf_fini(&kept);
    return status_ok();
}
