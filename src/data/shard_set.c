#include "data/shard_set.h"

#include "io/hdf5_file.h"
#include "text/tokenizer_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The word in file names and directories for each store. */
static const char *const words[STORE_COUNT] = {[STORE_TRAIN] = "training", [STORE_HELDOUT] = "test"};

enum { PATH_BYTES = STORE_BUILDER_PATH_BYTES };

/* OUTPUT_DIR/a b c */
static struct status make_path(char path[PATH_BYTES], const struct shard_set_config *c, const char *a,
                               const char *b, const char *end)
{
    int n = snprintf(path, PATH_BYTES, "%s/%s%s%s", c->output_dir, a, b, end);
    return n < PATH_BYTES ? status_ok()
                          : status_error(STATUS_USAGE, "the path %.60s... is too long", c->output_dir);
}

/* The same in the temporary directory. */
static struct status make_work_path(char path[PATH_BYTES], const struct shard_set_config *c, const char *a,
                                    const char *end)
{
    int n = snprintf(path, PATH_BYTES, "%s/%s%s", c->work->path, a, end);
    return n < PATH_BYTES ? status_ok()
                          : status_error(STATUS_USAGE, "the path %.60s... is too long", c->output_dir);
}

static struct status sample_config(struct bert_loader_config *samples, const struct shard_set_config *c)
{
    *samples = (struct bert_loader_config){.seed = c->seed,
                                           .max_seq_length = c->max_seq_length,
                                           .max_predictions_per_seq = c->max_predictions_per_seq,
                                           .train_batch_size = 1,
                                           .gradient_accumulation_steps = 1,
                                           .masked_lm_prob = c->masked_lm_prob,
                                           .short_seq_prob = c->short_seq_prob,
                                           .whole_words = c->whole_word_masks ? c->tokenizer : NULL};
    return bert_loader_set_tokens(samples, c->tokenizer);
}

struct status shard_set_check(const struct shard_set_config *c)
{
    struct bert_loader_config samples;
    TRY(sample_config(&samples, c));
    TRY(bert_loader_check(&samples));
    if (hdf5_file_version() == NULL) {
        return status_error(STATUS_USAGE, "this kiln was built without HDF5 (libhdf5-dev was missing, or "
                                          "KILN_HDF5=OFF), so it cannot write .hdf5 files");
    }
    for (int k = 0; k < STORE_COUNT && !c->overwrite; k++) {
        char path[PATH_BYTES];
        TRY(make_path(path, c, words[k], "", ""));
        if (file_exists(path)) {
            return status_error(STATUS_USAGE, "%s already has %s; --overwrite replaces what is there",
                                c->output_dir, words[k]);
        }
    }
    return status_ok();
}

static struct status remove_if_there(const char *path)
{
    return file_exists(path) ? file_remove_tree(path) : status_ok();
}

struct status shard_set_begin(const struct shard_set_config *c, char store_directory[PATH_BYTES])
{
    TRY(make_path(store_directory, c, "prepare", "", ""));
    temporary_clean(store_directory);
    TRY(temporary_create_directory(c->work, store_directory));
    struct status s = make_work_path(store_directory, c, "", "");
    if (failed(s)) {
        shard_set_abandon(c);
    }
    return s;
}

void shard_set_abandon(const struct shard_set_config *c)
{
    temporary_remove(c->work);
}

static struct status write_shards(const struct shard_set_config *c, enum store_builder_store store,
                                  const struct token_store *samples, struct shard_writer_report *report)
{
    char directory[PATH_BYTES];
    TRY(make_work_path(directory, c, words[store], ""));
    TRY(file_make_directories(directory));
    struct shard_writer_config config = {.directory = directory,
                                         .word = words[store],
                                         .dupe_factor = c->dupe_factor,
                                         .n_shards = c->n_shards,
                                         .packed = c->packed};
    TRY(sample_config(&config.samples, c));
    config.samples.store = &samples->index;
    TRY(shard_writer_run(report, &config));
    return c->packed ? shard_directory_write_packing(directory, &report->packing) : status_ok();
}

static struct status write_part(const struct shard_set_config *c, enum store_builder_store store,
                                struct shard_writer_report *report)
{
    char directory[PATH_BYTES], prefix[PATH_BYTES];
    struct token_store samples;
    *report = (struct shard_writer_report){0};
    TRY(store_builder_prefix(prefix, c->work->path, store));
    TRY(make_work_path(directory, c, store == STORE_TRAIN ? "train" : "heldout", ".json"));
    if (store == STORE_HELDOUT && !file_exists(directory)) {
        return status_ok();
    }
    TRY(token_store_open(&samples, prefix));
    struct status s = write_shards(c, store, &samples, report);
    token_store_close(&samples);
    return s;
}

/* Replaces OUTPUT_DIR/NAME by the one in the temporary directory, if that exists. */
static struct status move(const struct shard_set_config *c, const char *name, const char *end)
{
    char from[PATH_BYTES], to[PATH_BYTES];
    TRY(make_path(to, c, name, end, ""));
    TRY(remove_if_there(to));
    TRY(make_work_path(from, c, name, end));
    if (file_exists(from) && rename(from, to) != 0) {
        return status_error(STATUS_IO, "cannot rename %s to %s: %s", from, to, strerror(errno));
    }
    return status_ok();
}

struct status shard_set_write(const struct shard_set_config *c,
                              struct shard_writer_report reports[STORE_COUNT])
{
    for (int k = 0; k < STORE_COUNT; k++) {
        TRY(write_part(c, k, &reports[k]));
    }
    TRY(tokenizer_files_write(c->tokenizer, c->output_dir));
    TRY(tokenizer_files_write_config(c->tokenizer, c->output_dir, c->max_seq_length));
    for (int k = 0; k < STORE_COUNT; k++) {
        TRY(move(c, words[k], "_metadata.json"));
        TRY(move(c, words[k], ""));
    }
    return file_sync_directory(c->output_dir);
}
