#include "task/gpt/gpt_finetune.h"

#include "core/integers.h"
#include "core/log.h"
#include "corpus/document_output.h"
#include "data/gpt/token_windows.h"
#include "data/text_ids.h"
#include "model/gpt/gpt_family.h"
#include "model/model_dir.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { USUAL_LENGTH = 1024 };

/* Tokens of a piece: documents are cut, so that the split, which never cuts a sequence, can hold out a part
 * of one long text. */
enum { PIECE = 256 };

/* The run, and what its options borrow. */
struct finetuning {
    struct pretrain_options run;
    struct gpt_pretrain_options gpt;
    const struct gpt_finetune_options *given;
    struct model_dir model;
    json_t *config;
    char train[FILE_PATH_BYTES], heldout[FILE_PATH_BYTES]; /* prefixes of stores */
    char split[32];
    int64_t n_windows; /* windows to train on */
    struct pretrain_losses losses;
    struct dir_lock lock; /* lock of output_dir, with the stores in it */
};

/* ---- a text becomes a store ---- */

/* A text on its way to a store, or in a dry run only counted. */
struct text_store {
    struct document_output output;
    int32_t end; /* token after each document; -1: the tokenizer has none */
    bool counts_only;
    int64_t n_documents, n_tokens; /* counts of the text, without ends of documents */
    int64_t n_stored;              /* tokens of the store */
    struct buf ends;               /* ends of all its sequences, int64; in a dry run only */
};

static void add_sequence(struct text_store *t, const int32_t *ids, int64_t n)
{
    t->n_stored += n;
    if (t->counts_only) {
        buf_append(&t->ends, &t->n_stored, sizeof t->n_stored);
    } else {
        document_output_add(&t->output, ids, n);
    }
}

static struct status take_document(void *self, const int32_t *ids, int64_t n, int64_t n_bytes)
{
    struct text_store *t = self;
    (void)n_bytes;
    for (int64_t i = 0; i < n; i += PIECE) {
        add_sequence(t, ids + i, int_smaller(PIECE, n - i));
    }
    if (n > 0 && t->end >= 0) {
        add_sequence(t, &t->end, 1);
    }
    if (n > 0 && !t->counts_only) {
        document_output_end_document(&t->output);
    }
    t->n_documents += n > 0;
    t->n_tokens += n;
    return t->counts_only ? buf_status(&t->ends) : document_output_status(&t->output);
}

static struct status read_text(struct text_store *t, const struct tokenizer *tokenizer, const char *text)
{
    struct tokenizer_scratch scratch;
    TRY(tokenizer_scratch_init(&scratch, tokenizer));
    struct status s = text_ids_read(&scratch, text, take_document, t);
    tokenizer_scratch_fini(&scratch);
    return s;
}

static struct status write_documents(struct text_store *t, const struct tokenizer *tokenizer,
                                     const char *text)
{
    static const struct document_shuffle_config in_order = {.seed = -1};
    struct token_store_info info = {
        .vocab_hash = tokenizer->hash, .vocab_size = tokenizer->n, .lower_case = tokenizer->lower_case};
    TRY(document_output_open(&t->output, tokenizer->n, &in_order));
    TRY(read_text(t, tokenizer, text));
    return document_output_count(&t->output) > 0 ? document_output_finish(&t->output, &info)
                                                 : status_error(STATUS_DATA, "%s has no text", text);
}

/* A store that is there is one of an earlier run, or must be of the same text. */
static struct status claim_store(struct document_output *o, const char *prefix, bool dry_run)
{
    static const struct input_files none = {0};
    TRY(document_output_name(o, prefix));
    o->maker = "finetune-gpt";
    return document_output_claim(o, &none, DOCUMENT_OUTPUT_OWN, dry_run);
}

static struct status write_store(const struct tokenizer *tokenizer, const char *prefix, const char *text)
{
    struct text_store t = {.end = tokenizer->special[SPECIAL_END]};
    if (t.end < 0) {
        log_warning("the documents of %s have nothing between them: no file of the model says which token "
                    "ends a text (\"eos_token\" of tokenizer_config.json)",
                    text);
    }
    struct status s = claim_store(&t.output, prefix, false);
    s = failed(s) ? s : write_documents(&t, tokenizer, text);
    document_output_close(&t.output);
    return s;
}

/* Counts the windows to train on. */
static struct status count_windows(int64_t *n, const struct text_store *t, const char *split, int64_t length)
{
    int64_t bounds[4];
    const int64_t *ends = (const int64_t *)(const void *)t->ends.data;
    TRY(sample_order_split(bounds, split, (int64_t)(t->ends.n / sizeof *ends)));
    struct token_windows w = {.end = bounds[1] > 0 ? ends[bounds[1] - 1] : 0, .length = length};
    *n = token_windows_count(&w);
    return status_ok();
}

static struct status announce_text(const struct finetuning *f, const char *prefix, const char *text,
                                   int64_t *n_windows)
{
    struct text_store t = {.end = f->model.tokenizer.special[SPECIAL_END], .counts_only = true};
    TRY(claim_store(&t.output, prefix, true));
    struct status s = read_text(&t, &f->model.tokenizer, text);
    s = failed(s) || n_windows == NULL
            ? s
            : count_windows(n_windows, &t, f->split, f->run.run.batch.max_seq_length);
    buf_fini(&t.ends);
    TRY(s);
    log_info("%s: %" PRId64 " documents, %" PRId64 " tokens, of which %s.bin and .idx would be made", text,
             t.n_documents, t.n_tokens, prefix);
    return status_ok();
}

/* ---- data ---- */

/* The first rank makes a store of a text, unless another run writes into the directory. */
static struct status make_store(struct finetuning *f, const char *prefix, const char *text)
{
    struct comm world = rank_options_world(&f->run.run.ranks);
    struct status s = status_ok();
    if (world.rank == 0) {
        char directory[FILE_PATH_BYTES];
        file_parent(directory, prefix);
        s = file_make_directories(directory);
        s = failed(s) || f->lock.fd >= 0 ? s : dir_lock_acquire(&f->lock, f->run.run.common.output_dir);
        s = failed(s) ? s : write_store(&f->model.tokenizer, prefix, text);
    }
    return comm_agree(&world, s);
}

/* Finds the prefix of the store at `path`, or of the store that is made of the text there; and counts the
 * windows to train on.  n_windows NULL: the data is not trained on. */
static struct status find_data(struct finetuning *f, char prefix[FILE_PATH_BYTES], const char *path,
                               const char *name, int64_t *n_windows)
{
    bool is_store = text_ids_is_store(path);
    int n = is_store ? snprintf(prefix, FILE_PATH_BYTES, "%s", path)
                     : snprintf(prefix, FILE_PATH_BYTES, "%s/data/%s", f->run.run.common.output_dir, name);
    FAIL_IF(n >= PRETRAIN_PATH_BYTES, STATUS_USAGE,
            "the path of the tokens, %.60s..., is longer than %d bytes", prefix, PRETRAIN_PATH_BYTES);
    if (!is_store && f->run.run.common.dry_run) {
        f->run.makes_data = true;
        return announce_text(f, prefix, path, n_windows);
    }
    TRY(is_store ? status_ok() : make_store(f, prefix, path));
    return n_windows == NULL
               ? status_ok()
               : gpt_pretrain_count_windows(n_windows, prefix, f->split, f->run.run.batch.max_seq_length);
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
    FAIL_IF(o->kind == NULL, STATUS_DATA, "%s is a %s model; kiln finetune-gpt needs GPT-2 or BLOOM",
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

static struct status set_data(struct finetuning *f)
{
    const struct gpt_finetune_options *given = f->given;
    struct pretrain_options *o = &f->run;
    int64_t percent = given->validation_file != NULL ? 0 : given->validation_percent;
    snprintf(f->split, sizeof f->split, "%" PRId64 ",%" PRId64 ",0", 100 - percent, percent);
    f->gpt.split = f->split;
    TRY(find_data(f, f->train, given->train_file, "train", &f->n_windows));
    o->input_dir = f->train;
    if (given->validation_file != NULL) {
        TRY(find_data(f, f->heldout, given->validation_file, "heldout", NULL));
        o->eval_input_dir = f->heldout;
    }
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
    FAIL_IF(o->makes_data && f->n_windows < batch_of(o), STATUS_DATA,
            "%s has %" PRId64 " windows to train on: fewer than a batch of %" PRId64 " sequences of %" PRId64
            " takes; give more text, or shorter sequences",
            f->given->train_file, f->n_windows, batch_of(o), o->run.batch.max_seq_length);
    return status_ok();
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
    double steps = ceil(given->n_epochs * (double)f->n_windows / (double)batch_of(o));
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
    TRY(check_epochs(f->given));
    TRY(set_model(f));
    TRY(set_length(f));
    TRY(set_data(f));
    TRY(set_steps(f));
    f->run.losses = &f->losses;
    f->run.lock = &f->lock;
    struct status s = pretrain_run(&f->run);
    if (!failed(s)) {
        tell(&f->losses);
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
    struct status s = tune(&f);
    dir_lock_release(&f.lock);
    json_decref(f.config);
    model_dir_close(&f.model);
    return s;
}
