#include "data/bert/shard_loader.h"

#include "core/rng.h"
#include "data/bert/bert_records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Purposes of keys: any distinct numbers. */
enum { PURPOSE_FILES = 0x66696c65, PURPOSE_RECORDS = 0x72656364 };

/* Held-out records come in the same order in every run. */
static const uint64_t HELDOUT_SEED = 0x68656c646f7574;

enum { NO_FILE = -1 };

/* The reading position: the order of the current epoch, and the contents of the two slots. */
struct shard_cursor {
    uint64_t seed, epoch;
    int64_t *order; /* [files] */
    int64_t *start; /* [files + 1] records of the epoch before each file of the order */
    bool ordered;   /* order and start belong to (seed, epoch) */
    int64_t held[SHARD_PROCESS_SLOTS];
    int64_t asked; /* the file that is being read, or NO_FILE */
    int asked_slot;
};

/* Record number g of the run under a seed. */
struct place {
    int64_t file, next_file; /* next_file follows in the order, if need be in the next epoch */
    int64_t record;
};

static uint64_t order_key(uint64_t seed, uint64_t epoch)
{
    return rng_key(rng_key(seed, PURPOSE_FILES), epoch);
}

/* A keyed permutation gives the order of any epoch without those of the epochs before it. */
static void order_files(const struct shard_loader *l, uint64_t seed, uint64_t epoch)
{
    struct shard_cursor *c = l->cursor;
    if (c->ordered && c->seed == seed && c->epoch == epoch) {
        return;
    }
    c->seed = seed;
    c->epoch = epoch;
    c->ordered = true;
    for (int64_t k = 0; k < l->files.n; k++) {
        c->order[k] = (int64_t)rng_permute(order_key(seed, epoch), (uint64_t)l->files.n, (uint64_t)k);
        c->start[k + 1] = c->start[k] + l->n_records[c->order[k]];
    }
}

static struct place find_place(const struct shard_loader *l, uint64_t seed, uint64_t g)
{
    const struct shard_cursor *c = l->cursor;
    uint64_t n = (uint64_t)l->n_total, n_files = (uint64_t)l->files.n;
    order_files(l, seed, g / n);
    int64_t at = (int64_t)(g % n), low = 0, high = l->files.n - 1;
    while (low < high) { /* the last file that begins at or before `at` */
        int64_t middle = (low + high + 1) / 2;
        if (c->start[middle] <= at) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    int64_t file = c->order[low];
    uint64_t key = rng_key(rng_key(rng_key(seed, PURPOSE_RECORDS), c->epoch), (uint64_t)file);
    uint64_t in_file = (uint64_t)(at - c->start[low]);
    return (struct place){
        .file = file,
        .next_file = low + 1 < l->files.n ? c->order[low + 1]
                                          : (int64_t)rng_permute(order_key(seed, c->epoch + 1), n_files, 0),
        .record =
            (int64_t)(l->config.batch.in_order ? in_file
                                               : rng_permute(key, (uint64_t)l->n_records[file], in_file)),
    };
}

static struct shard_shape shape_of(const struct shard_loader *l, int64_t file)
{
    struct shard_shape shape = l->shape;
    shape.n = l->n_records[file];
    return shape;
}

/* The slot that holds the file, or -1. */
static int find_slot(const struct shard_cursor *c, int64_t file)
{
    for (int k = 0; k < SHARD_PROCESS_SLOTS; k++) {
        if (c->held[k] == file) {
            return k;
        }
    }
    return -1;
}

static struct status take_asked(const struct shard_loader *l)
{
    struct shard_cursor *c = l->cursor;
    int64_t file = c->asked;
    if (file == NO_FILE) {
        return status_ok();
    }
    c->asked = NO_FILE;
    TRY(shard_process_wait(l->process));
    c->held[c->asked_slot] = file;
    return status_ok();
}

static struct status ask(const struct shard_loader *l, int64_t file, int slot)
{
    struct shard_cursor *c = l->cursor;
    struct shard_shape shape = shape_of(l, file);
    c->held[slot] = NO_FILE;
    TRY(shard_process_ask(l->process, l->files.paths[file], &shape, slot));
    c->asked = file;
    c->asked_slot = slot;
    return status_ok();
}

/* Waits until the file is in memory, and requests the next one. */
static struct status hold(const struct shard_loader *l, struct place p, const void **memory)
{
    struct shard_cursor *c = l->cursor;
    int slot = find_slot(c, p.file);
    if (slot < 0) {
        TRY(take_asked(l));
        slot = find_slot(c, p.file);
    }
    if (slot < 0) {
        TRY(ask(l, p.file, 0));
        TRY(take_asked(l));
        slot = 0;
    }
    if (c->asked == NO_FILE && find_slot(c, p.next_file) < 0) {
        TRY(ask(l, p.next_file, 1 - slot));
    }
    *memory = shard_process_slot(l->process, slot);
    return status_ok();
}

static struct status add_record(const struct shard_loader *l, struct batch *b, uint64_t seed, uint64_t g,
                                int64_t index)
{
    const void *memory;
    struct place p = find_place(l, seed, g);
    struct shard_shape shape = shape_of(l, p.file);
    int64_t key = index * (shape.packed ? BERT_RECORDS_MAX_PACKED : 1);
    TRY(hold(l, p, &memory));
    return status_context(
        shard_format_add(b, &shape, memory, (int32_t)l->config.vocab_size, p.record, (int32_t)key), "%s",
        l->files.paths[p.file]);
}

static struct status fill(const void *self, int64_t step, struct batch_step *out)
{
    const struct shard_loader *l = self;
    int64_t last = batch_step_number(out, out->n_micro - 1);
    CHECK(step >= 1 && last < l->n_micro, "step %lld up to micro-batch %lld", (long long)step,
          (long long)last);
    uint64_t first = ((uint64_t)step - 1) * (uint64_t)(l->micro_size * l->n_micro);
    for (int64_t k = 0; k < out->n_micro; k++) {
        int64_t begin = batch_step_number(out, k) * l->micro_size;
        batch_clear(&out->micro[k]);
        for (int64_t i = begin; i < begin + l->micro_size; i++) {
            TRY(add_record(l, &out->micro[k], l->config.seed, first + (uint64_t)i, i));
        }
        batch_finish(&out->micro[k], l->config.pad_id);
    }
    batch_step_count(out);
    return status_ok();
}

static int64_t heldout_batches(const void *self, int64_t n)
{
    const struct shard_loader *l = self;
    int64_t all = n < l->n_total ? n : l->n_total;
    return (all + l->micro_size - 1) / l->micro_size;
}

static struct status heldout(const void *self, int64_t n, int64_t index, struct batch *out)
{
    const struct shard_loader *l = self;
    CHECK(index >= 0 && index < heldout_batches(l, n), "held-out batch %lld", (long long)index);
    int64_t begin = index * l->micro_size, end = n < l->n_total ? n : l->n_total;
    end = end - begin < l->micro_size ? end : begin + l->micro_size;
    batch_clear(out);
    for (int64_t i = begin; i < end; i++) {
        TRY(add_record(l, out, HELDOUT_SEED, (uint64_t)i, i - begin));
    }
    batch_finish(out, l->config.pad_id);
    return status_ok();
}

/* Counts the labels of one file: pieces of the text, drawn uniformly when it was masked. */
static struct status count_words(const void *self, double *counts, int64_t vocab_size)
{
    const struct shard_loader *l = self;
    const void *memory;
    struct shard_shape shape = shape_of(l, 0);
    TRY(hold(l, (struct place){.file = 0, .next_file = 0}, &memory));
    shard_format_count_labels(counts, vocab_size, &shape, memory);
    return status_ok();
}

static struct status check_batch(const struct shard_loader *l)
{
    const struct shard_loader_config *c = &l->config;
    TRY(batch_check_cut(c->batch.train_batch_size, c->batch.gradient_accumulation_steps));
    int64_t micro = c->batch.train_batch_size / c->batch.gradient_accumulation_steps;
    int64_t most = (INT32_MAX - BATCH_TOKEN_BUCKET) / l->shape.seq_length;
    FAIL_IF(micro > most || c->batch.train_batch_size > INT32_MAX / BERT_RECORDS_MAX_PACKED, STATUS_USAGE,
            "a batch of %lld records of %lld tokens, %lld at a time, is too large",
            (long long)c->batch.train_batch_size, (long long)l->shape.seq_length, (long long)micro);
    return status_ok();
}

/* Measures every file; all must be of one kind. */
static struct status measure_files(struct shard_loader *l, int64_t *largest)
{
    l->n_records = calloc((size_t)l->files.n, sizeof *l->n_records);
    FAIL_IF(l->n_records == NULL, STATUS_MEMORY, "out of memory for %lld files", (long long)l->files.n);
    for (int64_t i = 0; i < l->files.n; i++) {
        struct shard_shape shape;
        TRY(shard_process_measure(l->process, l->files.paths[i], &shape));
        l->n_records[i] = shape.n;
        l->n_total += shape.n;
        *largest = shape.n > *largest ? shape.n : *largest;
        shape.n = 0;
        l->shape = i == 0 ? shape : l->shape;
        FAIL_IF(shape.seq_length != l->shape.seq_length || shape.n_predictions != l->shape.n_predictions ||
                    shape.packed != l->shape.packed,
                STATUS_DATA,
                "%s has %lld tokens and %lld predictions %s, but %s has %lld and %lld %s: "
                "they cannot be trained on together",
                l->files.paths[i], (long long)shape.seq_length, (long long)shape.n_predictions,
                shape.packed ? "packed" : "padded", l->files.paths[0], (long long)l->shape.seq_length,
                (long long)l->shape.n_predictions, l->shape.packed ? "packed" : "padded");
    }
    return status_ok();
}

static struct status make_cursor(struct shard_loader *l)
{
    struct shard_cursor *c = calloc(1, sizeof *c);
    l->cursor = c;
    if (c != NULL) {
        c->order = calloc((size_t)l->files.n, sizeof *c->order);
        c->start = calloc((size_t)l->files.n + 1, sizeof *c->start);
    }
    FAIL_IF(c == NULL || c->order == NULL || c->start == NULL, STATUS_MEMORY,
            "out of memory for the order of %lld files", (long long)l->files.n);
    c->asked = NO_FILE;
    c->held[0] = c->held[1] = NO_FILE;
    return status_ok();
}

/* Packed or not: the datasets and the metadata file next to the directory must agree. */
static struct status check_packing(const struct shard_loader *l, bool has_metadata)
{
    const char *directory = l->config.directory;
    FAIL_IF(has_metadata && !l->shape.packed, STATUS_DATA,
            "%s is padded, not packed: it has no dataset next_sentence_positions; but there "
            "is %s_metadata.json, which belongs to packed data; remove or rename one of them",
            directory, directory);
    FAIL_IF(l->shape.packed && !l->config.allow_packed, STATUS_USAGE,
            "%s is packed data, but --enable_packed_data_mode is False", directory);
    return status_ok();
}

/* Sequences per pack: by the metadata; without it the replaced system's values for 128 and 512 tokens, and
 * for other lengths those of the first file. */
static struct status find_average(struct shard_loader *l, bool has_metadata, double metadata)
{
    const void *memory;
    struct shard_shape shape = shape_of(l, 0);
    l->sequences_per_record = 1;
    if (!l->shape.packed) {
        return status_ok();
    }
    if (has_metadata) {
        l->sequences_per_record = metadata;
    } else if (shape.seq_length == 128) {
        l->sequences_per_record = 1.2;
    } else if (shape.seq_length == 512) {
        l->sequences_per_record = 2.0;
    } else {
        TRY(hold(l, (struct place){.file = 0, .next_file = 0}, &memory));
        l->sequences_per_record = (double)shard_format_count_sequences(&shape, memory) / (double)shape.n;
    }
    return status_ok();
}

/* The replaced system rounds half to even, which would make 0 of 1 micro-batch with two sequences a pack. */
static int64_t packed_micro_batches(int64_t n, double sequences_per_record)
{
    double rounded = nearbyint((double)n / (sequences_per_record > 1 ? sequences_per_record : 1));
    return rounded < 1 ? 1 : (int64_t)rounded;
}

static struct status open_files(struct shard_loader *l)
{
    const struct shard_loader_config *c = &l->config;
    bool has_metadata;
    double average = 1;
    int64_t largest = 0;
    TRY(shard_directory_list(&l->files, c->directory, c->word));
    TRY(shard_directory_read_average(c->directory, &has_metadata, &average));
    l->process = calloc(1, sizeof *l->process);
    FAIL_IF(l->process == NULL, STATUS_MEMORY, "out of memory for reading %s", c->directory);
    TRY(shard_process_open(l->process));
    TRY(measure_files(l, &largest));
    TRY(check_packing(l, has_metadata));
    TRY(check_batch(l));
    struct shard_shape shape = l->shape;
    shape.n = largest;
    TRY(shard_process_make_room(l->process, shard_format_bytes(&shape)));
    TRY(make_cursor(l));
    TRY(find_average(l, has_metadata, average));
    l->micro_size = c->batch.train_batch_size / c->batch.gradient_accumulation_steps;
    l->n_micro = packed_micro_batches(c->batch.gradient_accumulation_steps, l->sequences_per_record);
    return status_ok();
}

struct status shard_loader_open(struct shard_loader *l, struct shard_loader_config config)
{
    *l = (struct shard_loader){.config = config};
    struct status s = open_files(l);
    if (failed(s)) {
        shard_loader_close(l);
    }
    return s;
}

void shard_loader_close(struct shard_loader *l)
{
    if (l->process != NULL) {
        shard_process_close(l->process);
    }
    if (l->cursor != NULL) {
        free(l->cursor->order);
        free(l->cursor->start);
    }
    free(l->cursor);
    free(l->process);
    free(l->n_records);
    shard_list_fini(&l->files);
    *l = (struct shard_loader){0};
}

struct batch_source shard_loader_source(const struct shard_loader *l)
{
    struct batch_limits limits =
        text_batch_limits(l->micro_size, l->shape.seq_length, l->shape.n_predictions);
    if (l->shape.packed) {
        limits.n_sequences = l->micro_size * BERT_RECORDS_MAX_PACKED + 1;
    }
    return (struct batch_source){.self = l,
                                 .layout = &text_batch_layout,
                                 .limits = limits,
                                 .n_micro = l->n_micro,
                                 .fill = fill,
                                 .heldout_batches = heldout_batches,
                                 .heldout = heldout,
                                 .count_words = count_words};
}
