/* kiln pack: the command line of data/shard_packer.h. */
#define _GNU_SOURCE
#include "cmd/commands.h"
#include "cmd/settings.h"
#include "cmd/train_command.h"
#include "core/log.h"
#include "core/progress.h"
#include "data/pack.h"
#include "data/shard_packer.h"
#include "io/dir_lock.h"
#include "io/file.h"
#include "task/missing.h"
#include "text/tokenizer_files.h"
#include "text/tokenizer_open.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct pack_args {
    const char *input_dir, *output_dir;
    int64_t max_sequence_length, max_predictions_per_sequence, max_sequences_per_pack, seed;
    bool overwrite, disable_progress_bar, dry_run;
};

#define AT(field) offsetof(struct pack_args, field)

static const struct option options[] = {
    OPTION_REQUIRED_ROW("input_dir", AT(input_dir), "DIR",
                        "read the padded .hdf5 files of this directory; if some have \"training\" in their "
                        "names, only these"),
    OPTION_REQUIRED_ROW(
        "output_dir", AT(output_dir), "DIR",
        "write packed files into this directory, made if missing; DIR_metadata.json is written beside it"),
    OPTION_INT_ROW("max_sequence_length", AT(max_sequence_length), "512", 5, 65536,
                   "number of tokens per pack"),
    OPTION_INT_ROW("max_predictions_per_sequence", AT(max_predictions_per_sequence), "80", 1, 65536,
                   "maximum number of predictions per sequence"),
    OPTION_INT_ROW("max_sequences_per_pack", AT(max_sequences_per_pack), "3", 1, PACK_MOST,
                   "maximum number of sequences per pack; the layout has room for 3"),
    OPTION_INT_ROW("seed", AT(seed), "42", 0, 2147483647, "seed of the order of packs"),
    OPTION_FLAG_ROW("overwrite", AT(overwrite), "replace packed files of an earlier run"),
    OPTION_FLAG_ROW("disable_progress_bar", AT(disable_progress_bar), "do not show the live line"),
    DRY_RUN_ROW(AT(dry_run), "check everything, print what would be packed, and write nothing"),

    OPTION_IGNORED_VALUE_ROW("train_batch_size", "N", "the replaced script does not use it either"),
    OPTION_IGNORED_VALUE_ROW("local_rank", "N", "one process packs"),
    {0},
};

static struct shard_packer_config config_of(const struct pack_args *a)
{
    return (struct shard_packer_config){.input_dir = a->input_dir,
                                        .output_dir = a->output_dir,
                                        .row_length = a->max_sequence_length,
                                        .max_predictions = a->max_predictions_per_sequence,
                                        .most = (int)a->max_sequences_per_pack,
                                        .seed = (uint64_t)a->seed};
}

static bool is_same(const char *a, const char *b)
{
    char *real_a = realpath(a, NULL), *real_b = realpath(b, NULL);
    bool same = real_a != NULL && real_b != NULL && strcmp(real_a, real_b) == 0;
    free(real_a);
    free(real_b);
    return same;
}

static struct status check_output(const struct pack_args *a)
{
    enum { LONGEST_SUFFIX = sizeof "/.pack.kiln-0123456789abcdef.tmp/mixed_strategies_part_1000000.hdf5" };
    FAIL_IF(is_same(a->input_dir, a->output_dir), STATUS_USAGE,
            "--input_dir and --output_dir are both %s; packed files go elsewhere", a->input_dir);
    FAIL_IF(shard_directory_is_one(a->output_dir) && !a->overwrite, STATUS_USAGE,
            "%s already has .hdf5 files; --overwrite replaces what is there", a->output_dir);
    return a->dry_run ? file_check_directory_path(a->output_dir, LONGEST_SUFFIX)
                      : file_check_output_directory(a->output_dir, LONGEST_SUFFIX, 0);
}

static void show(void *context, int64_t file)
{
    struct progress *progress = context;
    if (progress_due(progress)) {
        progress_show(progress, "packed %" PRId64 " files", file);
    }
}

/* Puts the vocabulary that lies with the padded files to the packed ones, so that training on these finds
 * it. */
static struct status copy_vocabulary(const struct pack_args *a)
{
    struct tokenizer t;
    char path[FILE_PATH_BYTES];
    bool found;
    TRY(tokenizer_open_near(&t, path, &found, a->input_dir));
    if (!found) {
        log_warning("there is no vocab.txt in or beside %s, so %s has none either: give --vocab_file to "
                    "`kiln pretrain`, or later to each command that reads the model",
                    a->input_dir, a->output_dir);
        return status_ok();
    }
    struct status s = tokenizer_files_write(&t, a->output_dir);
    s = failed(s) ? s : tokenizer_files_write_config(&t, a->output_dir, a->max_sequence_length);
    tokenizer_fini(&t);
    if (!failed(s)) {
        log_info("vocabulary: %s, copied to %s", path, a->output_dir);
    }
    return s;
}

static struct status pack(struct shard_packer *p, const struct pack_args *a)
{
    struct shard_packing packing;
    struct dir_lock lock;
    int64_t n_files;
    TRY(file_make_directories(a->output_dir));
    TRY(dir_lock_acquire(&lock, a->output_dir));
    struct progress progress = progress_begin(!a->disable_progress_bar);
    p->config.progress = show;
    p->config.context = &progress;
    struct status s = shard_packer_run(p, &packing, &n_files);
    progress_end(&progress);
    s = failed(s) ? s : copy_vocabulary(a);
    dir_lock_release(&lock);
    TRY(s);
    log_info("%s: %" PRId64 " files, %" PRId64 " sequences in %" PRId64 " packs of %" PRId64
             " tokens: %.4g sequences a pack, %.1f %% of the tokens are text",
             a->output_dir, n_files, packing.n_sequences, packing.n_packs, packing.seq_length,
             (double)packing.n_sequences / (double)packing.n_packs,
             100 * (double)packing.n_tokens / ((double)packing.n_packs * (double)packing.seq_length));
    return status_ok();
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    (void)n_positional, (void)positional;
    const struct pack_args *a = args;
    struct missing missing = {0};
    struct shard_packer p;
    train_command_tell_replaced();
    TRY(check_output(a));
    if (a->dry_run && missing_path(&missing, "input_dir", a->input_dir,
                                   "`kiln prepare --format hdf5` makes it from text")) {
        missing_end(&missing);
        return status_ok();
    }
    TRY(shard_packer_open(&p, config_of(a)));
    struct status s = status_ok();
    log_info("%s: %" PRId64 " files, %" PRId64 " sequences", a->input_dir, p.files.n, p.n_sequences);
    if (!a->dry_run) {
        s = pack(&p, a);
    }
    shard_packer_close(&p);
    return s;
}

const struct command command_pack = {
    .name = "pack",
    .summary = "pack padded HDF5 files: up to three sequences in a row",
    .details = "Takes the flags of pack_pretraining_data_pytorch.py.  `kiln prepare --format hdf5 --packed` "
               "packs while it makes samples from text.",
    .options = options,
    .args_bytes = sizeof(struct pack_args),
    .run = run,
};
