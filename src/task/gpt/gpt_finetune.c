#include "task/gpt/gpt_finetune.h"

#include "core/integers.h"
#include "core/log.h"
#include "corpus/document_output.h"
#include "data/text_ids.h"
#include "model/gpt/gpt_family.h"
#include "model/model_dir.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { USUAL_LENGTH = 1024 };

/* The run, and what its options borrow. */
struct finetuning {
    struct pretrain_options run;
    struct gpt_pretrain_options gpt;
    const struct gpt_finetune_options *given;
    struct model_dir model;
    json_t *config;
    char train[FILE_PATH_BYTES], heldout[FILE_PATH_BYTES]; /* prefixes of stores */
    char split[32];
    struct pretrain_losses losses;
};

/* ---- a text becomes a store ---- */

/* Documents on their way to a store.  They are cut into pieces, so that the split, which takes whole
 * sequences, can hold out a part of one long text. */
struct text_store {
    struct document_output output;
    int32_t end; /* behind each document; -1: the tokenizer has no such token */
};

static struct status take_document(void *self, const int32_t *ids, int64_t n, int64_t n_bytes)
{
    enum { PIECE = 256 };
    struct text_store *t = self;
    struct document_output *o = &t->output;
    (void)n_bytes;
    for (int64_t i = 0; i < n; i += PIECE) {
        document_output_add(o, ids + i, int_smaller(PIECE, n - i));
    }
    if (n > 0 && t->end >= 0) {
        document_output_add(o, &t->end, 1);
    }
    if (n > 0) {
        document_output_end_document(o);
    }
    return document_output_status(o);
}

static struct status write_documents(struct text_store *t, const struct tokenizer *tokenizer,
                                     const char *text)
{
    static const struct document_shuffle_config in_order = {.seed = -1};
    struct tokenizer_scratch scratch;
    struct token_store_info info = {
        .vocab_hash = tokenizer->hash, .vocab_size = tokenizer->n, .lower_case = tokenizer->lower_case};
    TRY(document_output_open(&t->output, tokenizer->n, &in_order));
    TRY(tokenizer_scratch_init(&scratch, tokenizer));
    struct status s = text_ids_read(&scratch, text, take_document, t);
    tokenizer_scratch_fini(&scratch);
    TRY(s);
    return document_output_count(&t->output) > 0 ? document_output_finish(&t->output, &info)
                                                 : status_error(STATUS_DATA, "%s has no text", text);
}

static struct status write_store(const struct tokenizer *tokenizer, const char *prefix, const char *text)
{
    struct text_store t = {.end = tokenizer->special[SPECIAL_END]};
    TRY(document_output_name(&t.output, prefix));
    struct status s = write_documents(&t, tokenizer, text);
    document_output_close(&t.output);
    return s;
}

struct text_size {
    int64_t n_documents, n_tokens;
};

static struct status count_document(void *self, const int32_t *ids, int64_t n, int64_t n_bytes)
{
    struct text_size *size = self;
    (void)ids, (void)n_bytes;
    size->n_documents += n > 0;
    size->n_tokens += n;
    return status_ok();
}

/* Of a dry run, which makes no store. */
static struct status announce_text(const struct tokenizer *tokenizer, const char *prefix, const char *text)
{
    struct tokenizer_scratch scratch;
    struct text_size size = {0};
    TRY(tokenizer_scratch_init(&scratch, tokenizer));
    struct status s = text_ids_read(&scratch, text, count_document, &size);
    tokenizer_scratch_fini(&scratch);
    TRY(s);
    log_info("%s: %" PRId64 " documents, %" PRId64 " tokens, of which %s.bin and .idx would be made", text,
             size.n_documents, size.n_tokens, prefix);
    return status_ok();
}

/* The prefix of what a path holds: a store's own, or that of the store that the first rank makes of a
 * text. */
static struct status find_data(struct finetuning *f, char prefix[FILE_PATH_BYTES], const char *path,
                               const char *name)
{
    struct comm world = rank_options_world(&f->run.ranks);
    bool is_store = text_ids_is_store(path);
    int n = is_store ? snprintf(prefix, FILE_PATH_BYTES, "%s", path)
                     : snprintf(prefix, FILE_PATH_BYTES, "%s/data/%s", f->run.output_dir, name);
    if (n >= PRETRAIN_PATH_BYTES) {
        return status_error(STATUS_USAGE, "the path of the tokens, %.60s..., is longer than %d bytes", prefix,
                            PRETRAIN_PATH_BYTES);
    }
    if (is_store) {
        return status_ok();
    }
    if (f->run.dry_run) {
        f->run.makes_data = true;
        return announce_text(&f->model.tokenizer, prefix, path);
    }
    struct status s = status_ok();
    if (world.rank == 0) {
        char directory[FILE_PATH_BYTES];
        file_parent(directory, prefix);
        s = file_make_directories(directory);
        s = failed(s) ? s : write_store(&f->model.tokenizer, prefix, path);
    }
    return comm_agree(&world, s);
}

/* ---- settings ---- */

static struct status set_model(struct finetuning *f)
{
    struct pretrain_options *o = &f->run;
    const struct model_family *family = f->model.family;
    o->kind = family == &gpt2_family ? &gpt2_finetune : family == &bloom_family ? &bloom_finetune : NULL;
    if (o->kind == NULL) {
        return status_error(STATUS_DATA, "%s is a %s model; kiln finetune-gpt needs GPT-2 or BLOOM",
                            o->init_checkpoint, family->name);
    }
    o->own = &f->gpt;
    o->config = f->config = family->config_to_json(f->model.config, MODEL_TASK_CAUSAL_LM);
    o->config_from = o->init_checkpoint;
    TRY(o->config != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for a configuration"));
    o->vocab_file = o->vocab_file != NULL ? o->vocab_file : f->model.place.directory;
    return status_ok();
}

static struct status set_length(struct finetuning *f)
{
    struct pretrain_options *o = &f->run;
    int64_t most = model_dir_sizes(&f->model).max_length;
    if (o->max_seq_length > most) {
        return status_error(STATUS_DATA, "%s has %lld positions, fewer than --max_seq_length %lld",
                            o->init_checkpoint, (long long)most, (long long)o->max_seq_length);
    }
    o->max_seq_length = o->max_seq_length > 0 ? o->max_seq_length : int_smaller(most, USUAL_LENGTH);
    return status_ok();
}

static struct status set_data(struct finetuning *f)
{
    const struct gpt_finetune_options *given = f->given;
    struct pretrain_options *o = &f->run;
    TRY(find_data(f, f->train, given->train_file, "train"));
    o->input_dir = f->train;
    if (given->validation_file != NULL) {
        TRY(find_data(f, f->heldout, given->validation_file, "heldout"));
        o->eval_input_dir = f->heldout;
    }
    int64_t percent = given->validation_file != NULL ? 0 : given->validation_percent;
    snprintf(f->split, sizeof f->split, "%" PRId64 ",%" PRId64 ",0", 100 - percent, percent);
    f->gpt.split = f->split;
    return status_ok();
}

/* The steps of so many epochs. */
static struct status count_steps(const struct finetuning *f, int64_t *n_steps)
{
    const struct pretrain_options *o = &f->run;
    int64_t n_windows;
    TRY(gpt_pretrain_count_windows(&n_windows, f->train, f->split, o->max_seq_length));
    int64_t global = o->ranks.global_batch_size,
            batch = global > 0 ? global : o->train_batch_size * rank_options_world(&o->ranks).size;
    *n_steps = int_larger(1, (int64_t)ceil(f->given->n_epochs * (double)n_windows / (double)batch));
    return status_ok();
}

/* A dry run without a store plans one step. */
static struct status set_steps(struct finetuning *f)
{
    struct pretrain_options *o = &f->run;
    o->max_steps = int_larger(1, f->given->max_steps);
    if (f->given->max_steps <= 0 && !o->makes_data) {
        TRY(count_steps(f, &o->max_steps));
    }
    o->corrects_eps = true;
    o->steps_this_run = -1;
    o->resume_step = -1;
    o->eval_on_start = true;
    o->exports_model = true;
    o->eval_steps = o->eval_steps > 0 ? o->eval_steps : o->max_steps;
    return status_ok();
}

/* ---- the run ---- */

static void tell(const struct pretrain_losses *l)
{
    if (isnan(l->after)) {
        return;
    }
    if (isnan(l->before)) {
        log_info("perplexity of held-out text: %.2f", exp(l->after));
    } else {
        log_info("perplexity of held-out text: %.2f before, %.2f after", exp(l->before), exp(l->after));
    }
}

static struct status tune(struct finetuning *f)
{
    TRY(set_model(f));
    TRY(set_length(f));
    TRY(set_data(f));
    TRY(set_steps(f));
    f->run.losses = &f->losses;
    struct status s = pretrain_run(&f->run);
    if (!failed(s)) {
        tell(&f->losses);
    }
    return s;
}

struct status gpt_finetune_run(const struct gpt_finetune_options *o)
{
    struct finetuning f = {.run = o->run, .gpt = o->gpt, .given = o, .losses = {NAN, NAN}};
    struct model_dir_given given = {.vocab_file = o->run.vocab_file};
    TRY(model_dir_open_given(&f.model, o->run.init_checkpoint, given));
    struct status s = tune(&f);
    json_decref(f.config);
    model_dir_close(&f.model);
    return s;
}
