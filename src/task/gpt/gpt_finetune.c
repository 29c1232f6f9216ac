#include "task/gpt/gpt_finetune.h"

#include "core/integers.h"
#include "core/log.h"
#include "data/text_ids.h"
#include "io/dir_lock.h"
#include "model/decoder/decoder_family.h"
#include "model/model_dir.h"
#include "task/gpt/gpt_finetune_data.h"
#include "text/chat_template.h"

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
    struct gpt_samples samples; /* to train on */
    bool heldout_has_answers;
    struct pretrain_losses losses;
    struct dir_lock lock; /* lock of output_dir, with the stores in it */
};

/* ---- data ---- */

static bool is_store(const struct option_words *files)
{
    return files->n == 1 && text_ids_is_store(files->of[0]);
}

/* The first rank makes a store, unless another run writes into the directory. */
static struct status make_store(struct finetuning *f, const struct gpt_finetune_data *data,
                                const char *prefix)
{
    struct comm world = rank_options_world(&f->run.run.ranks);
    struct status s = status_ok();
    if (world.rank == 0) {
        char directory[FILE_PATH_BYTES];
        file_parent(directory, prefix);
        s = file_make_directories(directory);
        s = failed(s) || f->lock.fd >= 0 ? s : dir_lock_acquire(&f->lock, f->run.run.common.output_dir);
        s = failed(s) ? s : gpt_finetune_data_write(data, prefix);
    }
    return comm_agree(&world, s);
}

/* Finds the prefix of the store that `files` is, or of the store that is made of them; and measures it. */
static struct status find_data(struct finetuning *f, struct gpt_samples *samples,
                               char prefix[FILE_PATH_BYTES], const struct option_words *files,
                               const char *name)
{
    int64_t length = f->run.run.batch.max_seq_length;
    int n = is_store(files)
                ? snprintf(prefix, FILE_PATH_BYTES, "%s", files->of[0])
                : snprintf(prefix, FILE_PATH_BYTES, "%s/data/%s", f->run.run.common.output_dir, name);
    FAIL_IF(n >= PRETRAIN_PATH_BYTES, STATUS_USAGE,
            "the path of the tokens, %.60s..., is longer than %d bytes", prefix, PRETRAIN_PATH_BYTES);
    const struct gpt_finetune_data data = {.tokenizer = &f->model.tokenizer,
                                           .files = files,
                                           .text_field = f->given->text_field,
                                           .length = length};
    if (!is_store(files) && f->run.run.common.dry_run) {
        f->run.makes_data = true;
        return gpt_finetune_data_count(&data, samples, prefix, f->split);
    }
    TRY(is_store(files) ? status_ok() : make_store(f, &data, prefix));
    return gpt_pretrain_measure(samples, prefix, f->split, length);
}

/* ---- settings ---- */

static struct status set_model(struct finetuning *f)
{
    static const struct run_flag_names names = {.data = "--train_file",
                                                .output = "--output_dir",
                                                .resume = "--resume_from_checkpoint",
                                                .batch = "--train_batch_size",
                                                .command = "finetune-gpt",
                                                .tunes = true,
                                                .of_prefix = true};
    struct pretrain_options *o = &f->run;
    const struct model_family *family = f->model.family;
    o->run.names = &names;
    o->kind = gpt_pretrain_find(family);
    FAIL_IF(o->kind == NULL, STATUS_DATA, "%s is a %s model; kiln finetune-gpt needs a decoder",
            o->run.init_checkpoint, family->name);
    o->own = &f->gpt;
    o->config = f->config = family->config_to_json(f->model.config, MODEL_TASK_CAUSAL_LM);
    o->config_from = o->run.init_checkpoint;
    TRY(o->config != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for a configuration"));
    o->run.vocabulary.vocab_file =
        o->run.vocabulary.vocab_file != NULL ? o->run.vocabulary.vocab_file : f->model.place.directory;
    return status_ok();
}

static struct status set_length(struct finetuning *f)
{
    struct pretrain_options *o = &f->run;
    int64_t most = model_dir_sizes(&f->model).max_length;
    FAIL_IF(o->run.batch.max_seq_length > most, STATUS_DATA,
            "%s has %lld positions, fewer than --max_seq_length %lld", o->run.init_checkpoint,
            (long long)most, (long long)o->run.batch.max_seq_length);
    o->run.batch.max_seq_length =
        o->run.batch.max_seq_length > 0 ? o->run.batch.max_seq_length : int_smaller(most, USUAL_LENGTH);
    return status_ok();
}

/* One example is held out where the percentage of a few is none. */
static void hold_out_one(struct finetuning *f)
{
    struct gpt_samples *s = &f->samples;
    if (s->of_answers && s->n_train == s->n_examples && s->n_train > 1) {
        s->n_train--;
        snprintf(f->split, sizeof f->split, "%" PRId64 ",1,0", s->n_train);
    }
}

static struct status set_data(struct finetuning *f)
{
    const struct gpt_finetune_options *given = f->given;
    struct pretrain_options *o = &f->run;
    int64_t percent = given->validation_files.n > 0 ? 0 : given->validation_percent;
    snprintf(f->split, sizeof f->split, "%" PRId64 ",%" PRId64 ",0", 100 - percent, percent);
    f->gpt.split = f->split;
    TRY(find_data(f, &f->samples, f->train, &given->train_files, "train"));
    o->input_dir = f->train;
    int64_t longest = f->samples.n_longest;
    f->heldout_has_answers = f->samples.of_answers;
    if (given->validation_files.n > 0) {
        struct gpt_samples heldout;
        TRY(find_data(f, &heldout, f->heldout, &given->validation_files, "heldout"));
        o->eval_input_dir = f->heldout;
        longest = int_larger(longest, heldout.n_longest);
        f->heldout_has_answers = heldout.of_answers;
    } else {
        hold_out_one(f);
    }
    o->run.batch.max_seq_length = longest; /* memory is planned for it */
    return status_ok();
}

/* Sequences of a step. */
static int64_t batch_of(const struct pretrain_options *o)
{
    int64_t global = o->run.ranks.global_batch_size;
    return global > 0 ? global : o->run.batch.train_batch_size * rank_options_world(&o->run.ranks).size;
}

/* Checks in a dry run, which makes no store, what a run checks of its store: the windows fill a batch. */
static struct status check_windows(const struct finetuning *f)
{
    const struct pretrain_options *o = &f->run;
    const char *file = f->given->train_files.of[0];
    if (!o->makes_data || f->samples.n_train >= batch_of(o)) {
        return status_ok();
    }
    FAIL_IF(f->samples.of_answers, STATUS_DATA,
            "%s has %" PRId64 " examples to train on: fewer than a batch of %" PRId64 "; give more", file,
            f->samples.n_train, batch_of(o));
    return status_error(STATUS_DATA,
                        "%s has %" PRId64 " windows to train on: fewer than a batch of %" PRId64
                        " sequences of %" PRId64 " takes; give more text, or shorter sequences",
                        file, f->samples.n_train, batch_of(o), o->run.batch.max_seq_length);
}

static struct status check_epochs(const struct gpt_finetune_options *o)
{
    return o->run.run.max_steps > 0 || o->n_epochs > 0
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "--num_train_epochs 0 trains nothing: give a number above 0, or --max_steps");
}

/* Sets the number of steps: max_steps, or the steps of n_epochs. */
static struct status set_steps(struct finetuning *f)
{
    const struct gpt_finetune_options *given = f->given;
    struct pretrain_options *o = &f->run;
    TRY(check_windows(f));
    double steps = ceil(given->n_epochs * (double)f->samples.n_train / (double)batch_of(o));
    o->run.max_steps =
        given->run.run.max_steps > 0 ? given->run.run.max_steps : int_larger(1, (int64_t)steps);
    o->update.corrects_eps = true;
    o->steps_this_run = -1;
    o->resume_step = -1;
    o->eval_on_start = true;
    o->exports_model = true;
    o->run.eval_steps = o->run.eval_steps > 0 ? o->run.eval_steps : o->run.max_steps;
    return status_ok();
}

/* ---- the run ---- */

static void tell(const struct pretrain_losses *l, const char *what)
{
    if (isnan(l->after)) {
        return;
    }
    if (isnan(l->before)) {
        log_info("perplexity of held-out %s: %.2f", what, exp(l->after));
    } else {
        log_info("perplexity of held-out %s: %.2f before, %.2f after", what, exp(l->before), exp(l->after));
    }
}

static struct status tune(struct finetuning *f)
{
    TRY(check_epochs(f->given));
    TRY(set_model(f));
    TRY(set_length(f));
    TRY(set_data(f));
    TRY(set_steps(f));
    f->run.losses = &f->losses;
    f->run.lock = &f->lock;
    struct status s = pretrain_run(&f->run);
    if (!failed(s)) {
        tell(&f->losses, f->heldout_has_answers ? "answers" : "text");
    }
    return s;
}

struct status gpt_finetune_run(const struct gpt_finetune_options *o)
{
    struct finetuning f = {
        .run = o->run, .gpt = o->gpt, .given = o, .losses = {NAN, NAN}, .lock = {.fd = -1}};
    struct model_dir_given given = {.vocab_file = o->run.run.vocabulary.vocab_file};
    TRY(model_dir_open_given(&f.model, o->run.run.init_checkpoint, given));
    f.model.tokenizer.parses_special &= !o->no_parse_special_tokens;
    const char *chat = o->run.run.vocabulary.chat_template;
    struct status s = chat == NULL ? status_ok() : chat_template_give(&f.model.tokenizer, chat);
    s = failed(s) ? s : tune(&f);
    dir_lock_release(&f.lock);
    json_decref(f.config);
    model_dir_close(&f.model);
    return s;
}
