#include "data/shard_packer.h"

#include "core/rng.h"
#include "data/pack.h"
#include "io/file.h"
#include "io/temporary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PURPOSE_ROWS = 0x726f7773, PATH_BYTES = TEMPORARY_PATH_BYTES + 64 };

/* A run of it: one sequence in `one`, the rows that wait to be a file in `memory`. */
struct packing_run {
    struct shard_packer *packer;
    struct temporary work; /* where the files are made */
    struct batch one;
    struct shard_shape shape; /* shape of an output file, with n the rows that fit into it */
    void *memory;
    int64_t n_rows, n_files;
    struct pack_strategies strategies;
    struct shard_packing sum;
};

/* A file of the input in memory. */
struct input {
    const char *path;
    struct shard_shape shape;
    const void *memory;
    int32_t *lengths, *masked; /* [shape.n] */
};

static struct status out_of_memory(const struct packing_run *r)
{
    return status_error(STATUS_MEMORY, "out of memory for packing %s", r->packer->config.from);
}

static struct status check_shape(const struct shard_shape *shape, const char *path)
{
    return !shape->packed
               ? status_ok()
               : status_error(STATUS_DATA, "%s is packed already: it has a dataset next_sentence_positions",
                              path);
}

static struct status open_files(struct shard_packer *p)
{
    size_t largest = 0;
    TRY(shard_directory_list(&p->files, p->config.from, "training"));
    p->shapes = calloc((size_t)p->files.n, sizeof *p->shapes);
    FAIL_IF(p->shapes == NULL, STATUS_MEMORY, "out of memory for %lld files", (long long)p->files.n);
    TRY(shard_process_open(&p->process));
    for (int64_t i = 0; i < p->files.n; i++) {
        TRY(shard_process_measure(&p->process, p->files.paths[i], &p->shapes[i]));
        TRY(check_shape(&p->shapes[i], p->files.paths[i]));
        size_t bytes = shard_format_bytes(&p->shapes[i]);
        largest = bytes > largest ? bytes : largest;
        p->n_sequences += p->shapes[i].n;
    }
    return shard_process_make_room(&p->process, largest);
}

struct status shard_packer_open(struct shard_packer *p, struct shard_packer_config config)
{
    *p = (struct shard_packer){.config = config, .process = {.socket = -1, .memory = -1}};
    struct shard_shape row = {.n = 1,
                              .seq_length = config.row_length,
                              .n_predictions = config.max_predictions + PACK_MOST,
                              .packed = true};
    struct status s = shard_format_check(&row, "--output_dir");
    s.code = failed(s) ? STATUS_USAGE : s.code;
    s = failed(s) ? s : open_files(p);
    if (failed(s)) {
        shard_packer_close(p);
    }
    return s;
}

void shard_packer_close(struct shard_packer *p)
{
    shard_process_close(&p->process);
    shard_list_fini(&p->files);
    free(p->shapes);
    *p = (struct shard_packer){.process = {.socket = -1, .memory = -1}};
}

/* Sequence i of the file, checked. */
static struct status take(struct packing_run *r, const struct input *in, int64_t i)
{
    batch_clear(&r->one);
    return status_context(shard_format_add(&r->one, &in->shape, in->memory, INT32_MAX, i, 0), "%s", in->path);
}

static struct status measure(struct packing_run *r, struct input *in)
{
    const struct shard_packer_config *c = &r->packer->config;
    for (int64_t i = 0; i < in->shape.n; i++) {
        TRY(take(r, in, i));
        in->lengths[i] = (int32_t)r->one.n_real_tokens;
        in->masked[i] = (int32_t)r->one.n_real_labels;
        FAIL_IF(in->lengths[i] > c->row_length || in->masked[i] > c->max_predictions, STATUS_DATA,
                "%s: record %lld has %d tokens and %d predictions, but --max_sequence_length "
                "is %lld and --max_predictions_per_sequence %lld",
                in->path, (long long)i, (int)in->lengths[i], (int)in->masked[i], (long long)c->row_length,
                (long long)c->max_predictions);
        r->sum.n_tokens += in->lengths[i];
    }
    return status_ok();
}

static struct status part_path(char path[PATH_BYTES], const char *directory, int64_t number)
{
    int n = snprintf(path, PATH_BYTES, "%s/mixed_strategies_part_%lld.hdf5", directory, (long long)number);
    return n < PATH_BYTES ? status_ok()
                          : status_error(STATUS_USAGE, "the path %.60s... is too long", directory);
}

/* The rows that wait become a file. */
static struct status flush(struct packing_run *r)
{
    char path[PATH_BYTES];
    struct hdf5_array arrays[SHARD_MAX_ARRAYS];
    if (r->n_rows == 0) {
        return status_ok();
    }
    int n = shard_format_arrays(arrays, &r->shape, r->memory);
    for (int i = 0; i < n; i++) {
        arrays[i].dims[0] = r->n_rows;
    }
    TRY(part_path(path, r->work.path, r->n_files));
    TRY(hdf5_file_write(path, arrays, n));
    memset(r->memory, 0, shard_format_bytes(&r->shape));
    r->n_files++;
    r->n_rows = 0;
    return status_ok();
}

static struct status put_row(struct packing_run *r, const struct input *in, const struct pack_row *row)
{
    struct shard_place place = {.record = r->n_rows};
    for (place.slot = 0; place.slot < row->n; place.slot++) {
        int64_t i = row->sequences[place.slot];
        TRY(take(r, in, i));
        shard_format_put(r->memory, &r->shape, &place, &r->one);
        place.at += in->lengths[i];
        place.masked_at += in->masked[i];
    }
    TRY(pack_strategies_count(&r->strategies, row, in->lengths));
    r->n_rows++;
    return r->n_rows == r->shape.n ? flush(r) : status_ok();
}

/* Packs come out longest first; in the files they stand in a keyed order. */
static struct status put_rows(struct packing_run *r, const struct input *in, int64_t file,
                              const struct pack_row *rows, int64_t n_rows)
{
    uint64_t key = rng_key(rng_key((uint64_t)r->packer->config.seed, PURPOSE_ROWS), (uint64_t)file);
    for (int64_t k = 0; k < n_rows; k++) {
        TRY(put_row(r, in, &rows[rng_permute(key, (uint64_t)n_rows, (uint64_t)k)]));
    }
    r->sum.n_packs += n_rows;
    r->sum.n_sequences += in->shape.n;
    return status_ok();
}

static struct status pack_input(struct packing_run *r, struct input *in, int64_t file)
{
    const struct shard_packer_config *c = &r->packer->config;
    struct pack_row *rows = NULL;
    int64_t n_rows = 0;
    TRY(measure(r, in));
    TRY(pack_sequences(&rows, &n_rows,
                       &(struct pack_problem){.n = in->shape.n,
                                              .lengths = in->lengths,
                                              .masked = in->masked,
                                              .row_length = c->row_length,
                                              /* a list of predictions must end with a zero */
                                              .row_masked = c->max_predictions + PACK_MOST - 1,
                                              .most = (int)c->most}));
    struct status s = put_rows(r, in, file, rows, n_rows);
    free(rows);
    return s;
}

/* Packs a file of the input, while the process reads the next one. */
static struct status pack_file(struct packing_run *r, int64_t file)
{
    struct shard_packer *p = r->packer;
    struct input in = {.path = p->files.paths[file], .shape = p->shapes[file]};
    TRY(shard_process_wait(&p->process));
    in.memory = shard_process_slot(&p->process, (int)(file % SHARD_PROCESS_SLOTS));
    if (file + 1 < p->files.n) {
        TRY(shard_process_ask(&p->process, p->files.paths[file + 1], &p->shapes[file + 1],
                              (int)((file + 1) % SHARD_PROCESS_SLOTS)));
    }
    in.lengths = calloc(2 * (size_t)in.shape.n, sizeof *in.lengths);
    if (in.lengths == NULL) {
        return out_of_memory(r);
    }
    in.masked = in.lengths + in.shape.n;
    struct status s = pack_input(r, &in, file);
    free(in.lengths);
    return s;
}

static struct status pack_files(struct packing_run *r)
{
    struct shard_packer *p = r->packer;
    int64_t longest = 0;
    for (int64_t i = 0; i < p->files.n; i++) {
        longest = p->shapes[i].seq_length > longest ? p->shapes[i].seq_length : longest;
    }
    TRY(text_batch_init(&r->one, text_batch_limits(1, longest, longest + PACK_MOST)));
    r->memory = calloc(1, shard_format_bytes(&r->shape));
    if (r->memory == NULL) {
        return out_of_memory(r);
    }
    TRY(shard_process_ask(&p->process, p->files.paths[0], &p->shapes[0], 0));
    for (int64_t i = 0; i < p->files.n; i++) {
        TRY(pack_file(r, i));
        if (p->config.progress != NULL) {
            p->config.progress(p->config.context, i + 1);
        }
    }
    return flush(r);
}

/* Files of an earlier run go, so that no training mixes the two. */
static struct status remove_old(const char *directory)
{
    char path[PATH_BYTES];
    for (int64_t i = 0;; i++) {
        TRY(part_path(path, directory, i));
        if (!file_exists(path)) {
            return status_ok();
        }
        FAIL_IF(remove(path) != 0, STATUS_IO, "cannot remove %s: %s", path, strerror(errno));
    }
}

static struct status put_in_place(const struct packing_run *r)
{
    const char *directory = r->packer->config.to;
    char from[PATH_BYTES], to[PATH_BYTES];
    TRY(remove_old(directory));
    for (int64_t i = 0; i < r->n_files; i++) {
        TRY(part_path(from, r->work.path, i));
        TRY(part_path(to, directory, i));
        FAIL_IF(rename(from, to) != 0, STATUS_IO, "cannot rename %s to %s: %s", from, to, strerror(errno));
    }
    TRY(file_sync_directory(directory));
    return shard_directory_write_packing(directory, &r->sum);
}

struct status shard_packer_run(struct shard_packer *p, struct shard_packing *packing, int64_t *n_files)
{
    char place[FILE_PATH_BYTES];
    struct packing_run r = {.packer = p,
                            .work = {.fd = -1},
                            .shape = {.n = SHARD_PACKER_ROWS,
                                      .seq_length = p->config.row_length,
                                      .n_predictions = p->config.max_predictions + PACK_MOST,
                                      .packed = true},
                            .sum = {.seq_length = p->config.row_length}};
    int n = snprintf(place, sizeof place, "%s/pack", p->config.to);
    FAIL_IF(n >= (int)sizeof place, STATUS_USAGE, "the path %.60s... is too long", p->config.to);
    temporary_clean(place);
    TRY(temporary_create_directory(&r.work, place));
    struct status s = pack_files(&r);
    r.sum.n_strategies = r.strategies.n;
    pack_strategies_top(&r.strategies, r.sum.top_strategies);
    s = failed(s) ? s : put_in_place(&r);
    *packing = r.sum;
    *n_files = r.n_files;
    temporary_remove(&r.work);
    pack_strategies_fini(&r.strategies);
    batch_fini(&r.one);
    free(r.memory);
    return s;
}
