#include "data/shard_set.h"

#include "data/bert/bert_loader.h"
#include "io/hdf5_file.h"
#include "text/tokenizer_files.h"

/* The word in file names and directories for each store. */
static const char *const words[STORE_COUNT] = {[STORE_TRAIN] = "training", [STORE_HELDOUT] = "test"};

enum { PATH_BYTES = STORE_BUILDER_PATH_BYTES };

static struct status sample_config(struct bert_loader_config *samples, const struct shard_set_config *c)
{
    *samples = c->samples;
    return bert_loader_set_tokens(samples, c->tokenizer);
}

struct status shard_set_check(const struct shard_set_config *c)
{
    struct bert_loader_config samples;
    TRY(sample_config(&samples, c));
    TRY(bert_loader_check(&samples));
    return hdf5_file_version() != NULL
               ? status_ok()
               : status_error(STATUS_USAGE, "this kiln was built without HDF5 (libhdf5-dev was missing, or "
                                            "KILN_HDF5=OFF), so it cannot write .hdf5 files");
}

static struct status write_shards(const struct shard_set_config *c, enum store_builder_store store,
                                  const struct token_store *samples, struct shard_writer_report *report)
{
    char directory[PATH_BYTES];
    bool is_flat = c->dataset != NULL && !c->packed;
    int n = snprintf(directory, sizeof directory, "%s%s%s", c->directory, is_flat ? "" : "/",
                     is_flat ? "" : words[store]);
    FAIL_IF(n >= PATH_BYTES, STATUS_USAGE, "the path %.60s... is too long", c->directory);
    TRY(file_make_directories(directory));
    struct shard_writer_config config = {.directory = directory,
                                         .name = c->dataset,
                                         .word = words[store],
                                         .dupe_factor = c->dupe_factor,
                                         .n_shards = c->n_shards[store],
                                         .packed = c->packed,
                                         .keeps_existing = c->keeps_existing};
    TRY(sample_config(&config.samples, c));
    config.samples.store = &samples->index;
    TRY(shard_writer_run(report, &config));
    return c->packed ? shard_directory_write_packing(directory, &report->packing) : status_ok();
}

static struct status write_part(const struct shard_set_config *c, enum store_builder_store store,
                                struct shard_writer_report *report)
{
    char prefix[PATH_BYTES], info[PATH_BYTES + 8];
    struct token_store samples;
    *report = (struct shard_writer_report){0};
    TRY(store_builder_prefix(prefix, c->store_dir, store));
    snprintf(info, sizeof info, "%s.json", prefix);
    if (store == STORE_HELDOUT && !file_exists(info)) {
        return status_ok();
    }
    TRY(token_store_open_whole(&samples, prefix));
    struct status s = write_shards(c, store, &samples, report);
    token_store_close(&samples);
    return s;
}

struct status shard_set_write(const struct shard_set_config *c,
                              struct shard_writer_report reports[STORE_COUNT])
{
    for (int k = 0; k < STORE_COUNT; k++) {
        TRY(write_part(c, k, &reports[k]));
    }
    TRY(tokenizer_files_write(c->tokenizer, c->directory));
    return tokenizer_files_write_config(c->tokenizer, c->directory, c->samples.batch.max_seq_length);
}
