#include "task/bert/bert_pretrain.h"

#include "data/bert/bert_loader.h"
#include "model/bert/bert_family.h"
#include "model/modernbert/modernbert_family.h"
#include "serve/fill_mask.h"

#include <stdio.h>
#include <string.h>

static enum model_task task(const struct pretrain_options *o)
{
    const struct bert_pretrain_options *own = o->own;
    return own->no_nsp ? MODEL_TASK_MASKED_LM : MODEL_TASK_PRETRAINING;
}

static struct status check(const struct pretrain_options *o)
{
    const struct bert_pretrain_options *own = o->own;
    FAIL_IF(!(own->mask_rate[0] > 0 && own->mask_rate[1] > 0), STATUS_USAGE,
            "--mask_rate must be above 0, and at most 1");
    return status_ok();
}

static struct status configure(void *config, const struct pretrain_options *o)
{
    const struct bert_pretrain_options *own = o->own;
    struct bert_config *c = config;
    c->sinusoidal_positions = own->sinusoidal_positions;
    return c->type_vocab_size > 1 || own->no_nsp
               ? status_ok()
               : status_error(
                     STATUS_USAGE,
                     "the configuration has a \"type_vocab_size\" of 1, but the second text of a pair is "
                     "of another type: give 2, or --no_nsp");
}

static void set_state(struct run_state *state, const struct pretrain_options *o)
{
    const struct bert_pretrain_options *own = o->own;
    state->max_predictions_per_seq = own->max_predictions_per_seq;
}

/* A model without next sentences has other tensors, so neither kind of run resumes from the other. */
static struct status check_checkpoint(const struct pretrain_options *o, const struct training_state *from)
{
    const json_t *classes = json_object_get(from->config, "architectures");
    const char *class = json_string_value(json_array_get(classes, 0));
    const struct bert_pretrain_options *own = o->own;
    bool alone = class != NULL && strcmp(class, bert_kind.classes[MODEL_TASK_MASKED_LM]) == 0;
    if (class == NULL || alone == own->no_nsp) {
        return status_ok();
    }
    return status_error(STATUS_USAGE,
                        "%s was trained %s --no_nsp: resume %s it, or start from its weights with "
                        "--init_checkpoint in another --output_dir",
                        from->path, alone ? "with" : "without", alone ? "with" : "without");
}

/* Assumes the special tokens of Google's uncased vocabulary. */
static struct status assume(struct batch_limits *limits, const struct pretrain_options *o)
{
    enum { PAD = 0, CLS = 101, SEP = 102, MASK = 103 };
    const struct bert_pretrain_options *own = o->own;
    struct bert_loader_config c = {
        .vocab_size = (int32_t)bert_family.usual_words,
        .pad_id = PAD,
        .cls_id = CLS,
        .sep_id = SEP,
        .mask_id = MASK,
        .batch = o->run.batch,
        .max_predictions_per_seq = own->max_predictions_per_seq,
        .masked_lm_prob = own->mask_rate[1],
        .short_seq_prob = own->short_seq_prob,
        .no_nsp = own->no_nsp,
    };
    TRY(bert_loader_check(&c));
    *limits = bert_loader_limits(&c);
    return status_ok();
}

static void advise(char *text, size_t text_bytes, const struct pretrain_options *o)
{
    const struct bert_pretrain_options *own = o->own;
    const struct {
        bool given;
        const char *flag;
    } flags[] = {{own->sinusoidal_positions, "--sinusoidal_positions"},
                 {o->ppmi_embeddings, "--ppmi_embeddings"}};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (!flags[i].given) {
            used +=
                (size_t)snprintf(text + used, text_bytes - used, "%s%s", used > 0 ? ", " : "", flags[i].flag);
        }
    }
}

/* The three most probable words for each mask: "house 0.31, city 0.12, river 0.05". */
static struct status draw(struct buf *out, struct session *s, const char *prompt, uint64_t seed)
{
    enum { BEST = 3 };
    struct fill_result r;
    (void)seed;
    TRY(fill_mask(s, prompt, strlen(prompt), BEST, &r));
    for (int64_t i = 0; i < r.n_masks * r.top_k; i++) {
        size_t n;
        const char *piece = tokenizer_piece(s->tokenizer, r.candidates[i].id, &n);
        buf_printf(out, "%s%.*s %.2f",
                   i == 0             ? ""
                   : i % r.top_k == 0 ? "; "
                                      : ", ",
                   (int)n, piece, r.candidates[i].probability);
    }
    fill_result_fini(&r);
    return buf_status(out);
}

/* The only such flag of encoders whose positions are no table. */
static void advise_embeddings(char *text, size_t text_bytes, const struct pretrain_options *o)
{
    snprintf(text, text_bytes, "%s", o->ppmi_embeddings ? "" : "--ppmi_embeddings");
}

/* Fields that do not differ. */
#define MASKED_WORDS                                                                                         \
    .sources = bert_sources, .lacks = "has no token store and no .hdf5 files",                               \
    .wants = "a directory made by `kiln prepare` (for HDF5 files the one with training/ and test/, or "      \
             "either of these), or one with .hdf5 files",                                                    \
    .sample = {.task = MODEL_TASK_MASKED_LM, .must_have = "[MASK]", .draw = draw}, .task = task,             \
    .check = check, .set_state = set_state, .assume = assume

const struct pretrain_kind bert_pretrain = {
    .family = &bert_family,
    .foreign_task = MODEL_TASK_PRETRAINING,
    .may_be_new = 1U << NAMES_POOLER | 1U << NAMES_MLM | 1U << NAMES_NSP,
    .configure = configure,
    .check_checkpoint = check_checkpoint,
    .advise = advise,
    MASKED_WORDS,
};

const struct pretrain_kind modernbert_pretrain = {
    .family = &modernbert_family,
    .foreign_task = MODEL_TASK_MASKED_LM,
    .may_be_new = 1U << NAMES_POOLER | 1U << NAMES_MLM,
    .advise = advise_embeddings,
    MASKED_WORDS,
};
