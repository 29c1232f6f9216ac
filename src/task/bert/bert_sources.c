#include "task/bert/bert_pretrain.h"

#include "core/buf.h"
#include "core/hash.h"
#include "core/log.h"
#include "data/bert/bert_loader.h"
#include "data/bert/bert_records.h"
#include "data/bert/shard_loader.h"
#include "io/file.h"
#include "model/checkpoint.h"
#include "task/pretrain_inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Devlin et al. 2018, section 3.1: the data's name does not mention these values */
static const double USUAL_MASK_RATE = 0.15, USUAL_KEEP_RATE = 0.1;

/* A token store, and what draws samples from it. */
struct drawn {
    struct token_store store;
    struct bert_loader loader;
};

/* Phase 2 draws other pairs and masks than phase 1; --seed is below 2^31, so the seeds of the phases never
 * coincide. */
static uint64_t data_seed(const struct pretrain_options *o)
{
    const uint64_t phase2 = UINT64_C(1) << 31;
    return (uint64_t)o->run.seed + (o->phase2 ? phase2 : 0);
}

static struct status out_of_memory(const struct pretrain_data *d)
{
    return status_error(STATUS_MEMORY, "out of memory for the samples of %s", d->place);
}

/* ---- HDF5 files ---- */

static const char *word_of(bool heldout)
{
    return heldout ? "test" : "training";
}

static bool is_shards(char place[PRETRAIN_PATH_BYTES], const char *directory, bool heldout)
{
    return shard_directory_find(place, directory, word_of(heldout));
}

/* Test files are in the directory of the training files if names distinguish them, or in its sibling. */
static struct status find_test_shards(bool *found, char place[PRETRAIN_PATH_BYTES],
                                      const struct pretrain_data *train)
{
    const struct shard_loader *shards = train->self;
    struct shard_list tests;
    TRY(shard_directory_list(&tests, train->place, "test"));
    bool told_apart = tests.named && shards->files.named;
    shard_list_fini(&tests);
    memcpy(place, train->place, sizeof train->place);
    *found = told_apart || shard_directory_find_test(place, train->place);
    return status_ok();
}

/* Names the data by a hash of the files' names and numbers of records, and a sample of each, since reading
 * all their bytes would take too long. */
static struct status name_shards(struct pretrain_data *d, const struct shard_loader *shards)
{
    struct buf list = {0};
    struct file_map map;
    uint32_t sample = 0;
    struct status s = status_ok();
    for (int64_t i = 0; i < shards->files.n && !failed(s); i++) {
        const char *path = shards->files.paths[i], *slash = strrchr(path, '/');
        buf_printf(&list, "%s %lld\n", slash != NULL ? slash + 1 : path, (long long)shards->n_records[i]);
        s = file_map_open(&map, path);
        sample = failed(s) ? 0 : file_map_sample(sample, &map, shards->files.n);
        file_map_close(&map);
    }
    snprintf(d->id, sizeof d->id, "shards %016llx, sample %08x",
             (unsigned long long)hash_fnv1a(list.data, list.n), sample);
    s = failed(s) ? s : buf_status(&list);
    buf_fini(&list);
    return s;
}

/* Refuses flags that draw samples: those of files are drawn already. */
static struct status refuse_drawing(const char *place, const struct pretrain_options *o)
{
    const char *mask_flag = ((const struct bert_pretrain_options *)o->own)->mask_flag;
    FAIL_IF(o->balance_tokens && rank_options_data(&o->run.ranks).size > 1, STATUS_USAGE,
            "--balance_tokens needs a token store: the .hdf5 files of %s are read in whole micro-batches; "
            "leave it out, or train on a token store, which `kiln prepare` makes",
            place);
    FAIL_IF(o->ppmi_embeddings, STATUS_USAGE,
            "--ppmi_embeddings needs a token store: the .hdf5 files of %s have no text to count in; leave it "
            "out, or train on a token store, which `kiln prepare` makes",
            place);
    FAIL_IF(mask_flag != NULL, STATUS_USAGE,
            "--%s needs a token store: the .hdf5 files of %s already have pairs and masks; leave it out, or "
            "train on a token store, which `kiln prepare` makes",
            mask_flag, place);
    return status_ok();
}

static struct status open_shards(struct pretrain_data *d, const struct pretrain_inputs *in,
                                 const struct pretrain_options *o)
{
    bool trains = d == &in->train;
    struct shard_loader *shards = d->self = calloc(1, sizeof *shards);
    struct batch_flags batch = o->run.batch;
    batch.in_order &= trains;
    TRY(shards == NULL ? out_of_memory(d) : trains ? refuse_drawing(d->place, o) : status_ok());
    TRY(shard_loader_open(
        shards, (struct shard_loader_config){
                    .directory = d->place,
                    .word = word_of(!trains),
                    .vocab_size = in->model->n_words,
                    .pad_id = tokenizer_tail_id(&in->tokenizer),
                    .seed = data_seed(o),
                    .batch = batch,
                    .allow_packed = ((const struct bert_pretrain_options *)o->own)->enable_packed_data_mode,
                }));
    d->source = shard_loader_source(shards);
    d->has_length = true;
    d->longest = shards->shape.seq_length;
    d->steps_per_epoch = (double)shards->n_total / (double)(shards->micro_size * shards->n_micro);
    return name_shards(d, shards);
}

static void release_shards(struct pretrain_data *d)
{
    if (d->self != NULL) {
        shard_loader_close(d->self);
    }
}

static void close_shards(struct pretrain_data *d)
{
    release_shards(d);
    free(d->self);
}

static void announce_shards(const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    const struct shard_loader *l = in->train.self;
    bool packs = ((const struct bert_pretrain_options *)o->own)->enable_packed_data_mode;
    const char *unit = l->shape.packed ? "packs" : "sequences";
    int64_t batch = l->micro_size * l->n_micro;
    log_info("data: %s: %lld files, %lld %s of up to %lld tokens, two files in %.1f MiB of memory; an epoch "
             "is %.1f steps of %lld %s",
             l->config.directory, (long long)l->files.n, (long long)l->n_total, unit,
             (long long)l->shape.seq_length, (double)(SHARD_PROCESS_SLOTS * l->process->slot_bytes) / 0x1p20,
             in->train.steps_per_epoch, (long long)batch, unit);
    if (l->shape.packed) {
        log_info("packed data: %.4g sequences per pack, so a step has %lld micro-batches of %lld packs "
                 "instead of --gradient_accumulation_steps %lld",
                 l->sequences_per_record, (long long)l->n_micro, (long long)l->micro_size,
                 (long long)o->run.batch.gradient_accumulation_steps);
    } else if (packs) {
        log_info("the data is not packed: --enable_packed_data_mode has no effect");
    }
    if (l->shape.seq_length != o->run.batch.max_seq_length) {
        log_info("--max_seq_length %lld has no effect: the files have %lld",
                 (long long)o->run.batch.max_seq_length, (long long)l->shape.seq_length);
    }
}

static const struct pretrain_source bert_shards = {
    .name = "directory of HDF5 files",
    .recognises = is_shards,
    .find_heldout = find_test_shards,
    .open = open_shards,
    .release = release_shards,
    .close = close_shards,
    .announce = announce_shards,
};

/* ---- token stores ---- */

/* Last row of the table, so it accepts any directory: opening it reports what is missing there. */
static bool is_store(char place[PRETRAIN_PATH_BYTES], const char *directory, bool heldout)
{
    (void)heldout;
    snprintf(place, PRETRAIN_PATH_BYTES, "%s", directory);
    return true;
}

static struct status find_store_heldout(bool *found, char place[PRETRAIN_PATH_BYTES],
                                        const struct pretrain_data *train)
{
    char path[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(path, "%s/heldout.idx", train->place));
    *found = file_exists(path);
    memcpy(place, train->place, sizeof train->place);
    return status_ok();
}

/* Names the data by the checksums of the store, and by how samples are drawn where that is not as usual. */
static void name_store(struct pretrain_data *d, const struct bert_pretrain_options *own)
{
    const struct token_store_info *info = &d->store->info;
    int n = snprintf(d->id, sizeof d->id, "store %08x-%08x%s%s%s%s", info->bin_crc, info->idx_crc,
                     own->no_nsp ? ", no pairs" : "", own->whole_word_masks ? ", whole words" : "",
                     own->even_masks ? ", in turns" : "", own->shifted_positions ? ", shifted" : "");
    if (own->mask_rate[0] != own->mask_rate[1]) {
        n += snprintf(d->id + n, sizeof d->id - (size_t)n, ", masks %.9g:%.9g", own->mask_rate[0],
                      own->mask_rate[1]);
    } else if (own->mask_rate[0] != USUAL_MASK_RATE) {
        n += snprintf(d->id + n, sizeof d->id - (size_t)n, ", masks %.9g", own->mask_rate[0]);
    }
    if (own->mask_keep_rate != USUAL_KEEP_RATE) {
        snprintf(d->id + n, sizeof d->id - (size_t)n, ", keep %.9g", own->mask_keep_rate);
    }
}

/* Sets what only training has: values that change during the run, and how ranks share a step. */
static void set_training(struct bert_loader_config *c, const struct pretrain_inputs *in,
                         const struct pretrain_options *o)
{
    const struct bert_pretrain_options *own = o->own;
    bool ramps = own->mask_rate[0] != own->mask_rate[1];
    c->batch.in_order = o->run.batch.in_order;
    c->part = in->part;
    c->n_groups = pretrain_groups(o);
    c->balance_tokens = o->balance_tokens;
    c->mask_rate = ramps ? (struct ramp){own->mask_rate[0], own->mask_rate[1], 1} : (struct ramp){0};
}

/* Held-out samples of a store are as long as the training samples, whatever the flags say. */
static struct status open_loader(struct pretrain_data *d, const struct pretrain_inputs *in,
                                 const struct pretrain_options *o)
{
    const struct bert_pretrain_options *own = o->own;
    struct drawn *drawn = d->self;
    const struct shard_shape *files =
        in->train.from == &bert_shards ? &((const struct shard_loader *)in->train.self)->shape : NULL;
    struct bert_loader_config config = {
        .store = &drawn->store.index,
        .seed = data_seed(o),
        .batch = o->run.batch,
        .max_predictions_per_seq = files == NULL
                                       ? own->max_predictions_per_seq
                                       : files->n_predictions - (files->packed ? BERT_RECORDS_MAX_PACKED : 0),
        .masked_lm_prob = own->mask_rate[1],
        .mask_keep_rate = own->mask_keep_rate != USUAL_KEEP_RATE ? &own->mask_keep_rate : NULL,
        .short_seq_prob = own->short_seq_prob,
        .no_nsp = own->no_nsp,
        .even_masks = own->even_masks,
        .n_positions = own->shifted_positions ? in->model->max_length : 0,
        .whole_words = own->whole_word_masks ? &in->tokenizer : NULL,
    };
    config.batch.in_order = false;
    config.batch.max_seq_length = files == NULL ? o->run.batch.max_seq_length : files->seq_length;
    if (d == &in->train) {
        set_training(&config, in, o);
    }
    TRY(bert_loader_set_tokens(&config, &in->tokenizer));
    return bert_loader_open(&drawn->loader, config);
}

static struct status open_store(struct pretrain_data *d, const struct pretrain_inputs *in,
                                const struct pretrain_options *o)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct drawn *drawn = d->self = calloc(1, sizeof *drawn);
    TRY(drawn == NULL ? out_of_memory(d) : status_ok());
    TRY(checkpoint_path(path, "%s/%s", d->place, d == &in->train ? "train" : "heldout"));
    TRY(token_store_open(&drawn->store, path));
    TRY(token_store_check_vocab(&drawn->store, path, in->tokenizer.hash, in->tokenizer.n));
    TRY(status_context(open_loader(d, in, o), "%s", path));
    d->source = bert_loader_source(&drawn->loader);
    d->store = &drawn->store;
    snprintf(d->store_path, sizeof d->store_path, "%s", path);
    d->balance = drawn->loader.balance;
    d->longest = drawn->loader.config.batch.max_seq_length;
    d->steps_per_epoch = (double)drawn->loader.map.n_samples / (double)o->run.batch.train_batch_size;
    d->n_tokens = (double)drawn->store.info.n_tokens;
    name_store(d, o->own);
    return status_ok();
}

static void release_store(struct pretrain_data *d)
{
    struct drawn *drawn = d->self;
    if (drawn != NULL) {
        bert_loader_close(&drawn->loader);
    }
}

static void close_store(struct pretrain_data *d)
{
    struct drawn *drawn = d->self;
    release_store(d);
    if (drawn != NULL) {
        token_store_close(&drawn->store);
    }
    free(drawn);
}

/* Logs how samples are drawn, where flags say it; and the limit that cuts the masks of the longest. */
static void announce_masks(const struct pretrain_options *o)
{
    const struct bert_pretrain_options *own = o->own;
    double most = fmax(own->mask_rate[0], own->mask_rate[1]);
    int64_t wanted = (int64_t)nearbyint((double)o->run.batch.max_seq_length * most);
    char from[40] = "";
    if (own->mask_rate[0] != own->mask_rate[1]) {
        snprintf(from, sizeof from, "%g, and at the end ", own->mask_rate[0]);
    }
    if (own->mask_flag != NULL) {
        log_info("samples: %s, masks of %s%g of the %s%s",
                 own->no_nsp ? "one segment each, without next sentences" : "pairs of segments", from,
                 own->mask_rate[1], own->whole_word_masks ? "tokens, in whole words" : "tokens",
                 own->even_masks ? ", in turns" : "");
    }
    if (wanted > own->max_predictions_per_seq) {
        log_info("masks: %g of %lld tokens are %lld, but --max_predictions_per_seq allows %lld in a sequence",
                 most, (long long)o->run.batch.max_seq_length, (long long)wanted,
                 (long long)own->max_predictions_per_seq);
    }
}

static void announce_store(const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    const struct drawn *drawn = in->train.self;
    announce_masks(o);
    log_info("data: %s: %.2f M tokens, %lld samples of up to %lld tokens; an epoch is %.1f steps of %lld "
             "sequences",
             o->input_dir, (double)drawn->store.info.n_tokens / 1e6, (long long)drawn->loader.map.n_samples,
             (long long)o->run.batch.max_seq_length, in->train.steps_per_epoch,
             (long long)o->run.batch.train_batch_size);
}

static const struct pretrain_source bert_store = {
    .name = "token store",
    .needs_vocabulary = true,
    .recognises = is_store,
    .find_heldout = find_store_heldout,
    .open = open_store,
    .release = release_store,
    .close = close_store,
    .announce = announce_store,
};

const struct pretrain_source *const bert_sources[] = {&bert_shards, &bert_store, NULL};
