#include "task/pretrain_inputs.h"

#include "core/hash.h"
#include "core/integers.h"
#include "core/log.h"
#include "data/bert/bert_records.h"
#include "model/checkpoint.h"
#include "task/config_file.h"
#include "task/pretrain_settings.h"
#include "text/tokenizer_open.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Devlin et al. 2018, section 3.1: a run that has them says nothing of them */
static const double USUAL_MASK_RATE = 0.15, USUAL_KEEP_RATE = 0.1;

/* The hash of an unknown vocabulary: that of an empty file, which is what checkpoints then
 * have. */
static uint64_t unknown_vocab(void)
{
    return hash_fnv1a("", 0);
}

/* The model's vocabulary is the file's; a configuration may have more rows, but not fewer. */
static struct status check_model(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    if (in->tokenizer.n == 0 && in->model.vocab_size == 0) {
        return status_error(
            STATUS_USAGE,
            "neither %s says \"vocab_size\" nor is there a vocab.txt in or beside %s; give --vocab_file",
            o->config_file, o->input_dir);
    }
    if (in->model.vocab_size == 0) {
        in->model.vocab_size = in->tokenizer.n;
    }
    if (in->model.vocab_size < in->tokenizer.n) {
        return status_error(STATUS_DATA,
                            "%s says \"vocab_size\" %lld, but the vocabulary has %d pieces; leave "
                            "\"vocab_size\" out or use the vocabulary that the configuration was made for",
                            o->config_file, (long long)in->model.vocab_size, in->tokenizer.n);
    }
    in->model.n_words = in->tokenizer.n;
    if (in->tokenizer.n > 0 && in->model.vocab_size > in->tokenizer.n) {
        log_info("%s says \"vocab_size\" %lld, and the vocabulary has %d pieces: the other %lld rows are "
                 "trained with the rest and never predicted",
                 o->config_file, (long long)in->model.vocab_size, in->tokenizer.n,
                 (long long)(in->model.vocab_size - in->tokenizer.n));
    }
    return status_ok();
}

static struct status read_model(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    TRY(config_file_read(&in->model, o->config_file));
    in->model.sinusoidal_positions = o->sinusoidal_positions;
    in->model.positional_heads = o->positional_heads;
    return check_model(in, o);
}

/* That of the newest checkpoint of the run that goes on. */
static struct status find_own_vocab(struct pretrain_inputs *in, const struct pretrain_options *o, bool *found)
{
    struct checkpoint_steps list = {0};
    *found = false;
    if (!o->resume_from_checkpoint || !file_is_directory(o->output_dir)) {
        return status_ok();
    }
    struct status s = checkpoint_dir_list(&list, o->output_dir, "ckpt_");
    for (int i = 0; i < list.n && !*found && !failed(s); i++) {
        s = checkpoint_path(in->vocab_path, "%s/ckpt_%lld/vocab.txt", o->output_dir,
                            (long long)list.steps[i]);
        *found = !failed(s) && file_has_bytes(in->vocab_path);
    }
    free(list.steps);
    return failed(s) || !*found ? s : tokenizer_open_beside(&in->tokenizer, in->vocab_path);
}

/* Of .hdf5 files, which say nothing of it: beside them, or in the run that goes on. */
static struct status find_vocab_of_shards(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    bool found;
    TRY(tokenizer_open_near(&in->tokenizer, in->vocab_path, &found, in->train_dir));
    if (!found) {
        TRY(find_own_vocab(in, o, &found));
    }
    if (found) {
        log_info("vocabulary: %s", in->vocab_path);
        return status_ok();
    }
    in->vocab_path[0] = '\0';
    tokenizer_open_unknown(&in->tokenizer);
    log_warning("there is no vocab.txt in or beside %s: checkpoints will have an empty one; --vocab_file "
                "gives it, now, when the run is resumed, or to the commands that read the model",
                o->input_dir);
    return status_ok();
}

static struct status no_data(const struct pretrain_options *o)
{
    return status_error(STATUS_DATA,
                        "--input_dir %s %s: it wants a directory made by `kiln prepare` (of HDF5 files that "
                        "of training/ and test/, or one of the two), or one with .hdf5 files",
                        o->input_dir,
                        file_is_directory(o->input_dir) ? "has no token store and no .hdf5 files"
                        : file_exists(o->input_dir)     ? "is not a directory"
                                                        : "does not exist");
}

/* --vocab_file, or that of the training data. */
static struct status find_vocab(struct pretrain_inputs *in, const struct pretrain_options *o, bool is_shards)
{
    bool found;
    if (o->vocab_file != NULL) {
        TRY(checkpoint_path(in->vocab_path, "%s", o->vocab_file));
        return tokenizer_open_beside(&in->tokenizer, in->vocab_path);
    }
    if (is_shards) {
        return find_vocab_of_shards(in, o);
    }
    TRY(tokenizer_open_find(in->vocab_path, &found, in->train_dir));
    return found ? tokenizer_open_beside(&in->tokenizer, in->vocab_path) : no_data(o);
}

/* Phase 2 draws other pairs and masks than phase 1; --seed is below 2^31, so the seeds of the phases never
 * coincide. */
static uint64_t data_seed(const struct pretrain_options *o)
{
    const uint64_t phase2 = UINT64_C(1) << 31;
    return (uint64_t)o->seed + (o->phase2 ? phase2 : 0);
}

/* Held-out samples of a store are as long as the training samples, whatever the flags say. */
static struct status open_loader(struct pretrain_data *d, const struct pretrain_inputs *in,
                                 const struct pretrain_options *o)
{
    const struct shard_shape *shards = &in->train.shards.shape;
    bool flags_rule = shards->seq_length == 0;
    struct bert_loader_config config = {
        .store = &d->store.index,
        .seed = data_seed(o),
        .max_seq_length = flags_rule ? o->max_seq_length : shards->seq_length,
        .max_predictions_per_seq =
            flags_rule ? o->max_predictions_per_seq
                       : shards->n_predictions - (shards->packed ? BERT_RECORDS_MAX_PACKED : 0),
        .train_batch_size = o->train_batch_size,
        .gradient_accumulation_steps = o->gradient_accumulation_steps,
        .masked_lm_prob = o->mask_rate[1],
        .mask_keep_rate = o->mask_keep_rate != USUAL_KEEP_RATE ? &o->mask_keep_rate : NULL,
        .short_seq_prob = o->short_seq_prob,
        .no_nsp = o->no_nsp,
        .even_masks = o->even_masks,
        .n_positions = o->shifted_positions ? in->model.max_position_embeddings : 0,
        .whole_words = o->whole_word_masks ? &in->tokenizer : NULL,
        .in_order = o->in_order && d == &in->train,
    };
    if (d == &in->train) {
        config.part = in->part;
        config.n_groups = pretrain_groups(o);
        config.balance_tokens = o->balance_tokens;
        config.n_micro = o->n_micro;
        config.n_shorter = o->n_shorter;
        memcpy(config.shorter, o->shorter, sizeof config.shorter);
        config.mask_rate = o->mask_rate[0] != o->mask_rate[1]
                               ? (struct ramp){o->mask_rate[0], o->mask_rate[1], 1}
                               : (struct ramp){0};
    }
    TRY(bert_loader_set_tokens(&config, &in->tokenizer));
    TRY(bert_loader_open(&d->loader, config));
    d->source = bert_loader_source(&d->loader);
    return status_ok();
}

static struct status open_store(struct pretrain_data *d, const char *directory, const char *name,
                                const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    char path[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(path, "%s/%s", directory, name));
    TRY(token_store_open(&d->store, path));
    TRY(token_store_check_vocab(&d->store, path, in->tokenizer.hash, in->tokenizer.n));
    return status_context(open_loader(d, in, o), "%s", path);
}

static struct status open_shards(struct pretrain_data *d, const char *directory, const char *word,
                                 const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    TRY(shard_loader_open(&d->shards, (struct shard_loader_config){
                                          .directory = directory,
                                          .word = word,
                                          .vocab_size = bert_config_n_words(&in->model),
                                          .pad_id = tokenizer_tail_id(&in->tokenizer),
                                          .seed = data_seed(o),
                                          .train_batch_size = o->train_batch_size,
                                          .gradient_accumulation_steps = o->gradient_accumulation_steps,
                                          .allow_packed = o->enable_packed_data_mode,
                                          .in_order = o->in_order && d == &in->train,
                                      }));
    d->source = shard_loader_source(&d->shards);
    return status_ok();
}

/* The test shards that belong to the training shards: in their directory if names distinguish them, or in its
 * sibling. */
static struct status open_test_shards(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    struct shard_list tests;
    TRY(shard_directory_list(&tests, in->train_dir, "test"));
    bool told_apart = tests.named && in->train.shards.files.named;
    shard_list_fini(&tests);
    if (told_apart) {
        return open_shards(&in->heldout, in->train_dir, "test", in, o);
    }
    return shard_directory_find_test(in->heldout_dir, in->train_dir)
               ? open_shards(&in->heldout, in->heldout_dir, "test", in, o)
               : status_ok();
}

static struct status open_heldout(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    const char *directory = o->eval_input_dir;
    if (o->eval_steps == 0) {
        return status_ok();
    }
    if (directory != NULL && shard_directory_find(in->heldout_dir, directory, "test")) {
        return open_shards(&in->heldout, in->heldout_dir, "test", in, o);
    }
    if (directory != NULL) {
        return in->tokenizer.n > 0
                   ? open_store(&in->heldout, directory, "heldout", in, o)
                   : status_error(
                         STATUS_USAGE,
                         "--eval_input_dir %s is a token store, which wants a vocabulary: add --vocab_file",
                         directory);
    }
    if (in->train.shards.files.n > 0) {
        return open_test_shards(in, o);
    }
    char path[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(path, "%s/heldout.idx", o->input_dir));
    return file_exists(path) ? open_store(&in->heldout, o->input_dir, "heldout", in, o) : status_ok();
}

struct status pretrain_inputs_check_length(const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    int64_t shards = int_larger(in->train.shards.shape.seq_length, in->heldout.shards.shape.seq_length);
    int64_t longest = int_larger(shards, in->train.loader.config.max_seq_length);
    if (in->model.max_position_embeddings < longest) {
        return status_error(STATUS_DATA, "%s has \"max_position_embeddings\" %lld, fewer than %s %lld",
                            o->config_file, (long long)in->model.max_position_embeddings,
                            longest > shards ? "--max_seq_length" : "the length of the files,",
                            (long long)longest);
    }
    return status_ok();
}

/* Identifies the training data: by the checksums of a store and how samples are drawn from it where that is
 * not as usual, or by a hash of the shards' names and numbers of records, since reading all their bytes would
 * take too long. */
static struct status name_data(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    const struct shard_loader *shards = &in->train.shards;
    struct buf list = {0};
    if (shards->files.n == 0) {
        const struct token_store_info *info = &in->train.store.info;
        int n =
            snprintf(in->data_id, sizeof in->data_id, "store %08x-%08x%s%s%s%s", info->bin_crc, info->idx_crc,
                     o->no_nsp ? ", no pairs" : "", o->whole_word_masks ? ", whole words" : "",
                     o->even_masks ? ", in turns" : "", o->shifted_positions ? ", shifted" : "");
        if (o->mask_rate[0] != o->mask_rate[1]) {
            n += snprintf(in->data_id + n, sizeof in->data_id - (size_t)n, ", masks %.9g:%.9g",
                          o->mask_rate[0], o->mask_rate[1]);
        } else if (o->mask_rate[0] != USUAL_MASK_RATE) {
            n += snprintf(in->data_id + n, sizeof in->data_id - (size_t)n, ", masks %.9g", o->mask_rate[0]);
        }
        if (o->mask_keep_rate != USUAL_KEEP_RATE) {
            snprintf(in->data_id + n, sizeof in->data_id - (size_t)n, ", keep %.9g", o->mask_keep_rate);
        }
        return status_ok();
    }
    for (int64_t i = 0; i < shards->files.n; i++) {
        const char *path = shards->files.paths[i], *slash = strrchr(path, '/');
        buf_printf(&list, "%s %lld\n", slash != NULL ? slash + 1 : path, (long long)shards->n_records[i]);
    }
    snprintf(in->data_id, sizeof in->data_id, "shards %016llx",
             (unsigned long long)hash_fnv1a(list.data, list.n));
    struct status s = buf_status(&list);
    buf_fini(&list);
    return s;
}

/* The samples of files are drawn. */
static struct status refuse_drawing(const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    if (o->batch_ramp != NULL || o->length_schedule != NULL) {
        return status_error(STATUS_USAGE,
                            "--%s cannot be: the .hdf5 files of %s are read in whole batches; leave it out, "
                            "or train on a token store, which `kiln prepare` makes",
                            o->batch_ramp != NULL ? "batch_ramp" : "length_schedule", in->train_dir);
    }
    if (o->balance_tokens && rank_options_world(&o->ranks).size > 1) {
        return status_error(
            STATUS_USAGE,
            "--balance_tokens cannot be: the .hdf5 files of %s are read in whole micro-batches; leave it "
            "out, or train on a token store, which `kiln prepare` makes",
            in->train_dir);
    }
    if (o->ppmi_embeddings) {
        return status_error(STATUS_USAGE,
                            "--ppmi_embeddings cannot be: the .hdf5 files of %s have no text to count in; "
                            "leave it out, or train on a token store, which `kiln prepare` makes",
                            in->train_dir);
    }
    return o->mask_flag == NULL
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "--%s cannot be: the .hdf5 files of %s have pairs and masks that were drawn "
                              "already; leave it out, or train on a token store, which `kiln prepare` makes",
                              o->mask_flag, in->train_dir);
}

static struct status open_all(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    bool is_shards = shard_directory_find(in->train_dir, o->input_dir, "training");
    TRY(file_is_directory(o->input_dir) ? status_ok() : no_data(o));
    TRY(find_vocab(in, o, is_shards));
    TRY(read_model(in, o));
    if (is_shards) {
        TRY(refuse_drawing(in, o));
        TRY(open_shards(&in->train, in->train_dir, "training", in, o));
    } else {
        TRY(open_store(&in->train, o->input_dir, "train", in, o));
        TRY(tokenizer_set_lower_case(&in->tokenizer, in->train.store.info.lower_case));
    }
    TRY(open_heldout(in, o));
    TRY(name_data(in, o));
    const struct batch_limits *a = &in->train.source.limits, *b = &in->heldout.source.limits;
    in->limits = (struct batch_limits){
        int_larger(a->n_tokens, b->n_tokens), int_larger(a->n_sequences, b->n_sequences),
        int_larger(a->n_labels, b->n_labels), int_larger(a->max_seqlen, b->max_seqlen)};
    return pretrain_inputs_check_length(in, o);
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

struct status pretrain_inputs_add_checks(const struct pretrain_inputs *in, const struct pretrain_options *o,
                                         struct store_check *check)
{
    char path[CHECKPOINT_PATH_BYTES];
    if (in->train.store.index.n_tokens > 0) {
        TRY(checkpoint_path(path, "%s/train", o->input_dir));
        TRY(store_check_add(check, &in->train.store, path));
    }
    if (in->heldout.store.index.n_tokens > 0) {
        TRY(checkpoint_path(path, "%s/heldout",
                            o->eval_input_dir != NULL ? o->eval_input_dir : o->input_dir));
        TRY(store_check_add(check, &in->heldout.store, path));
    }
    return status_ok();
}

static void close_loaders(struct pretrain_data *d)
{
    shard_loader_close(&d->shards);
    bert_loader_close(&d->loader);
    d->source = (struct batch_source){0};
}

static void close_data(struct pretrain_data *d)
{
    close_loaders(d);
    token_store_close(&d->store);
    *d = (struct pretrain_data){0};
}

void pretrain_inputs_close_heldout(struct pretrain_inputs *in)
{
    close_loaders(&in->heldout);
}

void pretrain_inputs_close(struct pretrain_inputs *in)
{
    close_data(&in->heldout);
    close_data(&in->train);
    tokenizer_fini(&in->tokenizer);
    *in = (struct pretrain_inputs){0};
}

static void announce_shards(const struct shard_loader *l, const struct pretrain_options *o)
{
    const char *unit = l->shape.packed ? "packs" : "sequences";
    int64_t batch = l->micro_size * l->n_micro;
    log_info("data: %s: %lld files, %lld %s of up to %lld tokens, two files in %.1f MiB of memory; an epoch "
             "is %.1f steps of %lld %s",
             l->config.directory, (long long)l->files.n, (long long)l->n_total, unit,
             (long long)l->shape.seq_length, (double)(SHARD_PROCESS_SLOTS * l->process->slot_bytes) / 0x1p20,
             (double)l->n_total / (double)batch, (long long)batch, unit);
    if (l->shape.packed) {
        log_info("packed data: %.4g sequences a pack, so a step has %lld micro-batches of %lld packs in "
                 "place of --gradient_accumulation_steps %lld",
                 l->sequences_per_record, (long long)l->n_micro, (long long)l->micro_size,
                 (long long)o->gradient_accumulation_steps);
    } else if (o->enable_packed_data_mode) {
        log_info("the data is not packed: --enable_packed_data_mode has no effect");
    }
    if (l->shape.seq_length != o->max_seq_length) {
        log_info("--max_seq_length %lld has no effect: the files have %lld", (long long)o->max_seq_length,
                 (long long)l->shape.seq_length);
    }
}

/* How samples are drawn, where the flags say it; and the limit that cuts the masks of the longest. */
static void announce_masks(const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    double most = fmax(o->mask_rate[0], o->mask_rate[1]);
    int64_t wanted = (int64_t)nearbyint((double)o->max_seq_length * most);
    char from[40] = "";
    if (o->mask_rate[0] != o->mask_rate[1]) {
        snprintf(from, sizeof from, "%g, and at the end ", o->mask_rate[0]);
    }
    if (o->mask_flag != NULL) {
        log_info("samples: %s, masks of %s%g of the %s%s",
                 o->no_nsp ? "one segment each, without next sentences" : "pairs of segments", from,
                 o->mask_rate[1], o->whole_word_masks ? "tokens, in whole words" : "tokens",
                 o->even_masks ? ", in turns" : "");
    }
    if (ramp_is_given(&o->n_micro)) {
        log_info("batch: from %.0f to %.0f micro-batches of %lld sequences in the first %g of the run",
                 o->n_micro.from, o->n_micro.to,
                 (long long)(o->train_batch_size / o->gradient_accumulation_steps), o->n_micro.share);
    }
    for (int i = 0; i < o->n_shorter; i++) {
        log_info("length: up to %lld tokens until %.4g of the run", (long long)o->shorter[i].max_seq_length,
                 o->shorter[i].until);
    }
    if (wanted > o->max_predictions_per_seq) {
        log_info("masks: %g of %lld tokens are %lld, but --max_predictions_per_seq allows %lld in a sequence",
                 most, (long long)in->train.loader.config.max_seq_length, (long long)wanted,
                 (long long)o->max_predictions_per_seq);
    }
}

void pretrain_inputs_announce(const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    if (in->assumed) {
        log_info("data: planned for steps of %lld sequences of up to %lld tokens in %lld micro-batches, as "
                 "the flags say",
                 (long long)o->train_batch_size, (long long)o->max_seq_length,
                 (long long)o->gradient_accumulation_steps);
        return;
    }
    if (in->heldout.source.self == NULL && o->eval_steps > 0) {
        log_info("no evaluation on held-out text: %s has none, and there is no --eval_input_dir",
                 o->input_dir);
    }
    if (in->train.shards.files.n > 0) {
        announce_shards(&in->train.shards, o);
        return;
    }
    int64_t n = in->train.loader.map.n_samples;
    announce_masks(in, o);
    log_info("data: %s: %.2f M tokens, %lld samples of up to %lld tokens; an epoch is %.1f steps of %lld "
             "sequences",
             o->input_dir, (double)in->train.store.info.n_tokens / 1e6, (long long)n,
             (long long)o->max_seq_length, (double)n / (double)o->train_batch_size,
             (long long)o->train_batch_size);
}

double pretrain_inputs_steps_per_epoch(const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    const struct shard_loader *shards = &in->train.shards;
    return shards->n_total > 0 ? (double)shards->n_total / (double)(shards->micro_size * shards->n_micro)
                               : (double)in->train.loader.map.n_samples / (double)o->train_batch_size;
}

struct status pretrain_inputs_check_vocab(const struct pretrain_inputs *in, uint64_t vocab_hash,
                                          const char *path)
{
    if (vocab_hash != in->tokenizer.hash && vocab_hash != unknown_vocab() && in->tokenizer.n > 0) {
        return status_error(STATUS_DATA,
                            "%s was trained with another vocabulary than this run's (hash %016llx against "
                            "%016llx); prepare the text with the model's own vocab.txt",
                            path, (unsigned long long)vocab_hash, (unsigned long long)in->tokenizer.hash);
    }
    return status_ok();
}
