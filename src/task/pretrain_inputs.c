#include "task/pretrain_inputs.h"

#include "core/hash.h"
#include "core/integers.h"
#include "core/log.h"
#include "model/checkpoint.h"
#include "task/own_files.h"
#include "text/chat_template.h"
#include "text/tokenizer_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The hash of an unknown vocabulary: that of an empty file, which is what checkpoints then
 * have. */
static uint64_t unknown_vocab(void)
{
    return hash_fnv1a("", 0);
}

/* The model's vocabulary is the file's; a configuration may have more rows, but not fewer. */
static struct status set_words(const struct pretrain_inputs *in, void *config,
                               const struct pretrain_options *o)
{
    int64_t rows = o->kind->family->sizes(config).vocab_size, n = in->tokenizer.n;
    FAIL_IF(n == 0 && rows == 0, STATUS_USAGE,
            "there is neither \"vocab_size\" in %s nor a vocab.txt in or beside %s, nor a tokenizer.json in "
            "it; give "
            "--vocab_file",
            pretrain_config_name(o), o->input_dir);
    rows = rows == 0 ? int_round_up(n, int_larger(o->vocab_multiple, 1)) : rows;
    FAIL_IF(rows < n, STATUS_DATA,
            "%s says \"vocab_size\" %lld, but the vocabulary has %lld pieces; leave \"vocab_size\" out or "
            "use the vocabulary that the configuration was made for",
            pretrain_config_name(o), (long long)rows, (long long)n);
    o->kind->family->set_words(config, rows, n);
    if (n > 0 && rows > n) {
        log_info("the vocabulary has %lld pieces, and %s %lld rows for it: the other %lld rows are trained "
                 "too, but never predicted",
                 (long long)n, o->config != NULL ? "the model" : pretrain_config_name(o), (long long)rows,
                 (long long)(rows - n));
    }
    return status_ok();
}

/* Reads the configuration of --config_file, changed by the flags; the caller frees it.  STATUS_DATA if it is
 * of another family than the run trains. */
static struct status read_config(void **config, const struct pretrain_options *o)
{
    const struct model_family *family;
    json_t *root;
    if (o->config != NULL) {
        TRY(model_family_parse_config(&family, config, o->config, pretrain_config_name(o)));
    } else {
        TRY(model_family_read_config(&family, config, &root, o->run.common.config_file));
        json_decref(root);
    }
    if (family == o->kind->family) {
        return o->kind->configure == NULL ? status_ok() : o->kind->configure(*config, o);
    }
    free(*config);
    *config = NULL;
    return status_error(STATUS_DATA, "%s is the configuration of a %s model, and this run trains %s",
                        pretrain_config_name(o), family->name, o->kind->family->name);
}

static struct status create_model(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    TRY(read_config(&in->config, o));
    TRY(set_words(in, in->config, o));
    return o->kind->family->create(&in->model, in->config, o->kind->task(o));
}

/* Opens the vocabulary of the newest checkpoint of the run that is resumed. */
static struct status find_own_vocab(struct pretrain_inputs *in, const struct pretrain_options *o, bool *found)
{
    struct checkpoint_steps list = {0};
    char checkpoints[CHECKPOINT_PATH_BYTES];
    *found = false;
    if (!o->run.resume_from_checkpoint || !file_is_directory(o->run.common.output_dir)) {
        return status_ok();
    }
    TRY(own_files_checkpoints(checkpoints, o->run.common.output_dir, pretrain_tuning_command(o)));
    struct status s = checkpoint_dir_list(&list, checkpoints, "ckpt_");
    for (int i = 0; i < list.n && !*found && !failed(s); i++) {
        char checkpoint[CHECKPOINT_PATH_BYTES];
        s = checkpoint_path(checkpoint, "%s/ckpt_%lld", checkpoints, (long long)list.steps[i]);
        s = failed(s) ? s : tokenizer_open_find_any(in->vocab_path, found, checkpoint);
        *found = *found && file_has_bytes(in->vocab_path); /* the file of an unknown vocabulary is empty */
    }
    free(list.steps);
    return failed(s) || !*found ? s : tokenizer_open_beside(&in->tokenizer, in->vocab_path);
}

/* Finds the vocabulary of data that does not name one: next to the data, or in the run that is resumed. */
static struct status find_vocab_beside(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    bool found;
    TRY(tokenizer_open_near(&in->tokenizer, in->vocab_path, &found, in->train.place));
    if (!found) {
        TRY(find_own_vocab(in, o, &found));
    }
    if (found) {
        log_info("vocabulary: %s", in->vocab_path);
        return status_ok();
    }
    in->vocab_path[0] = '\0';
    tokenizer_open_unknown(&in->tokenizer);
    log_warning("there is no vocab.txt in or beside %s, nor a tokenizer.json in it: checkpoints will have an "
                "empty one; give "
                "--vocab_file now, when you resume, or to the commands that read the model",
                o->input_dir);
    return status_ok();
}

static struct status no_data(const struct pretrain_options *o, const char *flag, const char *path)
{
    bool may_have = file_is_directory(path) && o->kind->has_too_many != NULL;
    const char *many = may_have ? o->kind->has_too_many(path) : NULL;
    return status_error(STATUS_DATA, "%s %s %s: it needs %s", flag, path,
                        many != NULL              ? many
                        : o->run.names->of_prefix ? "is not the PREFIX of PREFIX.idx and PREFIX.bin"
                        : path != o->input_dir    ? o->kind->lacks
                        : file_is_directory(path) ? o->kind->lacks
                        : file_exists(path)       ? "is not a directory"
                                                  : "does not exist",
                        o->kind->wants);
}

static struct status open_vocab(struct tokenizer *t, const struct pretrain_options *o)
{
    int64_t max_length;
    if (file_is_directory(o->run.vocabulary.vocab_file)) {
        return tokenizer_open_directory(t, &max_length, o->run.vocabulary.vocab_file);
    }
    return o->run.vocabulary.merge_file != NULL
               ? tokenizer_open_merges(t, o->run.vocabulary.vocab_file, o->run.vocabulary.merge_file)
               : tokenizer_open_beside(t, o->run.vocabulary.vocab_file);
}

/* Opens the vocabulary that --vocab_file names, which must be given, with the chat template that is. */
static struct status open_given(struct tokenizer *t, const struct pretrain_options *o)
{
    const char *chat = o->run.vocabulary.chat_template;
    TRY(open_vocab(t, o));
    return chat != NULL ? chat_template_give(t, chat) : status_ok();
}

/* Opens the vocabulary of --vocab_file, or of the training data. */
static struct status find_vocab(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    bool found;
    if (o->run.vocabulary.vocab_file != NULL) {
        TRY(checkpoint_path(in->vocab_path, "%s", o->run.vocabulary.vocab_file));
        return open_given(&in->tokenizer, o);
    }
    if (!in->train.from->needs_vocabulary) {
        return find_vocab_beside(in, o);
    }
    TRY(tokenizer_open_find(in->vocab_path, &found, in->train.place));
    return found ? tokenizer_open_beside(&in->tokenizer, in->vocab_path)
                 : no_data(o, o->run.names->data, o->input_dir);
}

/* Sets d->from to the first source that recognises the directory; NULL: none does. */
static void find_source(struct pretrain_data *d, const char *directory, bool heldout,
                        const struct pretrain_options *o)
{
    const struct pretrain_source *const *source = o->kind->sources;
    while (*source != NULL && ((*source)->of_prefix != o->run.names->of_prefix ||
                               !(*source)->recognises(d->place, directory, heldout))) {
        source++;
    }
    d->from = *source;
}

static struct status open_heldout_of(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    const char *directory = o->eval_input_dir;
    find_source(&in->heldout, directory, true, o);
    if (in->heldout.from == NULL) {
        return no_data(o, "--eval_input_dir", directory);
    }
    FAIL_IF(in->heldout.from->needs_vocabulary && in->tokenizer.n == 0, STATUS_USAGE,
            "--eval_input_dir %s is a %s, which needs a vocabulary: add --vocab_file", directory,
            in->heldout.from->name);
    return in->heldout.from->open(&in->heldout, in, o);
}

static struct status open_heldout(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    bool found;
    if (o->run.eval_steps == 0) {
        return status_ok();
    }
    if (o->eval_input_dir != NULL) {
        return open_heldout_of(in, o);
    }
    TRY(in->train.from->find_heldout(&found, in->heldout.place, &in->train));
    in->heldout.from = found ? in->train.from : NULL;
    return found ? in->heldout.from->open(&in->heldout, in, o) : status_ok();
}

static struct status open_test(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    bool found;
    if (o->eval_iters == 0 || in->train.from->find_test == NULL) {
        return status_ok();
    }
    TRY(in->train.from->find_test(&found, in->test.place, &in->train));
    in->test.from = found ? in->train.from : NULL;
    return found ? in->test.from->open(&in->test, in, o) : status_ok();
}

/* STATUS_DATA if the model has fewer positions than the data. */
static struct status check_length(const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    int64_t of_files = int_larger(in->train.has_length ? in->train.longest : 0,
                                  in->heldout.has_length ? in->heldout.longest : 0);
    int64_t longest = int_larger(in->train.longest, in->heldout.longest);
    FAIL_IF(longest > in->model->max_length, STATUS_DATA, "%s has %lld positions, fewer than %s %lld",
            pretrain_config_name(o), (long long)in->model->max_length,
            longest > of_files ? "--max_seq_length" : "the length of the files,", (long long)longest);
    return status_ok();
}

static struct status open_all(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    find_source(&in->train, o->input_dir, false, o);
    TRY(in->train.from != NULL ? status_ok() : no_data(o, o->run.names->data, o->input_dir));
    TRY(find_vocab(in, o));
    TRY(create_model(in, o));
    TRY(in->train.from->open(&in->train, in, o));
    if (in->train.store != NULL) {
        TRY(tokenizer_set_lower_case(&in->tokenizer, in->train.store->info.lower_case));
    }
    TRY(open_heldout(in, o));
    TRY(open_test(in, o));
    in->limits = batch_limits_both(in->train.source.limits, in->heldout.source.limits);
    return check_length(in, o);
}

struct status pretrain_inputs_open(struct pretrain_inputs *in, const struct pretrain_options *o,
                                   struct run_part part)
{
    *in = (struct pretrain_inputs){.part = part};
    struct status s = open_all(in, o);
    if (failed(s)) {
        pretrain_inputs_close(in);
    }
    return s;
}

static struct status begin(struct pretrain_data *d, const struct pretrain_options *o)
{
    return d->from != NULL && d->from->begin != NULL ? d->from->begin(d, o) : status_ok();
}

struct status pretrain_inputs_begin(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    TRY(begin(&in->train, o));
    TRY(begin(&in->heldout, o));
    return begin(&in->test, o);
}

static struct status add_check(const struct pretrain_data *d, struct store_check *check)
{
    if (d->from != NULL && d->from->add_checks != NULL) {
        return d->from->add_checks(d, check);
    }
    return d->store == NULL ? status_ok() : store_check_add(check, d->store, d->store_path);
}

struct status pretrain_inputs_add_checks(const struct pretrain_inputs *in, struct store_check *check)
{
    TRY(add_check(&in->train, check));
    return add_check(&in->heldout, check);
}

static void close_data(struct pretrain_data *d)
{
    if (d->from != NULL) {
        d->from->close(d);
    }
    *d = (struct pretrain_data){0};
}

void pretrain_inputs_release_heldout(struct pretrain_inputs *in)
{
    if (in->heldout.from->release != NULL) {
        in->heldout.from->release(&in->heldout);
    }
    in->heldout.source = (struct batch_source){0};
}

void pretrain_inputs_close(struct pretrain_inputs *in)
{
    close_data(&in->test);
    close_data(&in->heldout);
    close_data(&in->train);
    free(in->model);
    free(in->config);
    tokenizer_fini(&in->tokenizer);
    *in = (struct pretrain_inputs){0};
}

void pretrain_inputs_announce(const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    if (in->assumed) {
        log_info("data: planned for steps of %lld sequences of up to %lld tokens in %lld micro-batches, as "
                 "the flags say",
                 (long long)o->run.batch.train_batch_size, (long long)o->run.batch.max_seq_length,
                 (long long)o->run.batch.gradient_accumulation_steps);
        return;
    }
    if (in->heldout.source.self == NULL && o->run.eval_steps > 0) {
        log_info("no evaluation on held-out text: %s has none%s", o->input_dir,
                 !o->run.names->of_prefix ? ", and there is no --eval_input_dir" : " by its split");
    }
    if (in->train.from->announce != NULL) {
        in->train.from->announce(in, o);
    }
}

struct status pretrain_inputs_check_vocab(const struct pretrain_inputs *in, uint64_t vocab_hash,
                                          const char *path)
{
    FAIL_IF(vocab_hash != in->tokenizer.hash && vocab_hash != unknown_vocab() && in->tokenizer.n > 0,
            STATUS_DATA,
            "%s was trained with another vocabulary than this run's (hash %016llx against %016llx); prepare "
            "the text with the model's own vocab.txt",
            path, (unsigned long long)vocab_hash, (unsigned long long)in->tokenizer.hash);
    return status_ok();
}

/* ---- what a dry run plans with where its inputs are not there yet ---- */

bool pretrain_inputs_find_missing(const struct pretrain_options *o, struct missing *m)
{
    char data[PRETRAIN_PATH_BYTES];
    snprintf(data, sizeof data, "%s%s", o->input_dir, o->run.names->of_prefix ? ".idx" : "");
    if (o->config == NULL) {
        missing_config(m, o->run.common.config_file);
    }
    if (!o->makes_data) {
        missing_path(m, o->run.names->data + strlen("--"), data,
                     "`kiln prepare` makes it from text, `kiln pack` makes packed files from padded ones");
        missing_path(m, "eval_input_dir", o->eval_input_dir, "`kiln prepare` makes it from text");
    }
    missing_path(m, "deepspeed_config", o->deepspeed_config,
                 "DeepSpeed's JSON; planned without its batch and precision");
    missing_path(m, "vocab_file", o->run.vocabulary.vocab_file,
                 "`kiln vocab` makes one from text; Google's models have theirs beside them");
    missing_path(m, "merge_file", o->run.vocabulary.merge_file, "the merges of the vocabulary");
    missing_weights(m, o->run.init_checkpoint);
    return m->n > 0 || o->makes_data;
}

static struct status assume_words(const struct model_family *family, void *config,
                                  const struct pretrain_options *o)
{
    struct tokenizer t;
    int64_t n = 0, rows = family->sizes(config).vocab_size;
    if (o->run.vocabulary.vocab_file != NULL && !missing_is(o->run.vocabulary.vocab_file) &&
        (o->run.vocabulary.merge_file == NULL || !missing_is(o->run.vocabulary.merge_file))) {
        TRY(open_vocab(&t, o));
        n = t.n;
        tokenizer_fini(&t);
    } else if (rows == 0) {
        n = family->usual_words;
        log_info("planned with a vocabulary of %lld pieces", (long long)n);
    }
    rows = rows == 0 ? int_round_up(n, int_larger(o->vocab_multiple, 1)) : rows;
    family->set_words(config, rows, n > 0 ? n : rows);
    return status_ok();
}

static struct status assume_model(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    TRY(read_config(&in->config, o));
    TRY(assume_words(o->kind->family, in->config, o));
    TRY(o->kind->family->create(&in->model, in->config, o->kind->task(o)));
    return check_length(in, o);
}

struct status pretrain_inputs_assume(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    *in = (struct pretrain_inputs){.assumed = true};
    TRY(o->kind->assume(&in->limits, o));
    in->train.source.n_micro = o->run.batch.gradient_accumulation_steps;
    in->train.longest = o->run.batch.max_seq_length;
    return o->config == NULL && missing_is(o->run.common.config_file) ? status_ok() : assume_model(in, o);
}
