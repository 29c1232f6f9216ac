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
    struct shard_packer_config packer;
    bool overwrite;
    struct command_flags common;
};

#define AT(field) offsetof(struct pack_args, field)

static const struct option options[] = {
    OPTION_REQUIRED_ROW("input_dir", AT(packer.from), "DIR",
                        "read the padded .hdf5 files of this directory; if some have \"training\" in their "
                        "names, only these"),
    OPTION_REQUIRED_ROW(
        "output_dir", AT(packer.to), "DIR",
        "write packed files into this directory, made if missing; DIR_metadata.json is written beside it"),
    OPTION_INT_ROW("max_sequence_length", AT(packer.row_length), "512", 5, 65536,
                   "number of tokens per pack"),
    OPTION_INT_ROW("max_predictions_per_sequence", AT(packer.max_predictions), "80", 1, 65536,
                   "maximum number of predictions per sequence"),
    OPTION_INT_ROW("max_sequences_per_pack", AT(packer.most), "3", 1, PACK_MOST,
                   "maximum number of sequences per pack; the layout has room for 3"),
    OPTION_INT_ROW("seed", AT(packer.seed), "42", 0, 2147483647, "seed of the order of packs"),
    OPTION_FLAG_ROW("overwrite", AT(overwrite), "replace packed files of an earlier run"),
    OPTION_FLAG_ROW("disable_progress_bar", AT(common.disable_progress_bar), "do not show the live line"),
    DRY_RUN_ROW(AT(common.dry_run), "check everything, print what would be packed, and write nothing"),

    OPTION_IGNORED_VALUE_ROW("train_batch_size", "N", "the replaced script does not use it either"),
    OPTION_IGNORED_VALUE_ROW("local_rank", "N", "one process packs"),
    {0},
};

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
    FAIL_IF(is_same(a->packer.from, a->packer.to), STATUS_USAGE,
            "--input_dir and --output_dir are both %s; packed files go elsewhere", a->packer.from);
    FAIL_IF(shard_directory_is_one(a->packer.to) && !a->overwrite, STATUS_USAGE,
            "%s already has .hdf5 files; --overwrite replaces what is there", a->packer.to);
    return a->common.dry_run ? file_check_directory_path(a->packer.to, LONGEST_SUFFIX)
                             : file_check_output_directory(a->packer.to, LONGEST_SUFFIX, 0);
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
    TRY(tokenizer_open_near(&t, path, &found, a->packer.from));
    if (!found) {
        log_warning("there is no vocab.txt in or beside %s, so %s has none either: give --vocab_file to "
                    "`kiln pretrain`, or later to each command that reads the model",
                    a->packer.from, a->packer.to);
        return status_ok();
    }
    struct status s = tokenizer_files_write(&t, a->packer.to);
    s = failed(s) ? s : tokenizer_files_write_config(&t, a->packer.to, a->packer.row_length);
    tokenizer_fini(&t);
    if (!failed(s)) {
        log_info("vocabulary: %s, copied to %s", path, a->packer.to);
    }
    return s;
}

static struct status pack(struct shard_packer *p, const struct pack_args *a)
{
    struct shard_packing packing;
    struct dir_lock lock;
    int64_t n_files;
    TRY(file_make_directories(a->packer.to));
    TRY(dir_lock_acquire(&lock, a->packer.to));
    struct progress progress = progress_begin(!a->common.disable_progress_bar);
    p->config.progress = show;
    p->config.context = &progress;
    struct status s = shard_packer_run(p, &packing, &n_files);
    progress_end(&progress);
    s = failed(s) ? s : copy_vocabulary(a);
    dir_lock_release(&lock);
    TRY(s);
    log_info("%s: %" PRId64 " files, %" PRId64 " sequences in %" PRId64 " packs of %" PRId64
             " tokens: %.4g sequences a pack, %.1f %% of the tokens are text",
             a->packer.to, n_files, packing.n_sequences, packing.n_packs, packing.seq_length,
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
    if (a->common.dry_run && missing_path(&missing, "input_dir", a->packer.from,
                                          "`kiln prepare --format hdf5` makes it from text")) {
        missing_end(&missing);
        return status_ok();
    }
    TRY(shard_packer_open(&p, a->packer));
    struct status s = status_ok();
    log_info("%s: %" PRId64 " files, %" PRId64 " sequences", a->packer.from, p.files.n, p.n_sequences);
    if (!a->common.dry_run) {
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
