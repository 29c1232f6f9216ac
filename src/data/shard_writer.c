#include "data/shard_writer.h"

#include "core/clock.h"
#include "core/parallel.h"
#include "core/progress.h"
#include "core/rng.h"
#include "core/stop.h"
#include "data/bert/bert_records.h"
#include "data/pack.h"
#include "data/shard_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t SHARD_BYTES = INT64_C(64) << 20;

enum { PURPOSE_ROWS = 0x726f7773, PATH_BYTES = 1024 };

/* State of one thread that draws sequences. */
struct drawer {
    struct batch_step step;
    int64_t n_tokens; /* drawn */
    struct status status;
};

struct writer {
    const struct shard_writer_config *config;
    struct bert_loader loader; /* loader of one sequence a step */
    struct drawer *drawers;    /* [parallel_n_parts()] */
    int64_t n_samples;         /* samples over all rounds */
    struct pack_strategies strategies;
};

static struct status out_of_memory(const struct writer *w)
{
    return status_error(STATUS_MEMORY, "out of memory for a file of %s; raise --n_shards",
                        w->config->directory);
}

/* Sequences [first, first + n), and what is done with number first + i, in any thread. */
struct drawing {
    struct writer *w;
    int64_t first, n;
    void (*take)(void *context, int64_t i, const struct batch *b);
    void *context;
};

static void draw_part(void *context, int part, int n_parts)
{
    const struct drawing *d = context;
    struct drawer *own = &d->w->drawers[part];
    own->n_tokens = 0;
    own->status = status_ok();
    for (int64_t i = d->n * part / n_parts; i < d->n * (part + 1) / n_parts; i++) {
        own->status = bert_loader_step(&d->w->loader, d->first + i + 1, &own->step);
        if (failed(own->status)) {
            return;
        }
        d->take(d->context, i, &own->step.micro[0]);
        own->n_tokens += own->step.micro[0].n_real_tokens;
    }
}

/* Draws all in all threads; the first error is that of the first sequence that has one. */
static struct status draw(struct drawing d, int64_t *n_tokens)
{
    parallel_run(draw_part, &d);
    *n_tokens = 0;
    for (int i = 0; i < parallel_n_parts(); i++) {
        TRY(d.w->drawers[i].status);
        *n_tokens += d.w->drawers[i].n_tokens;
    }
    return status_ok();
}

static struct status write_file(const struct writer *w, int64_t shard, const struct shard_shape *shape,
                                void *memory)
{
    char path[PATH_BYTES];
    struct hdf5_array arrays[SHARD_MAX_ARRAYS];
    int n = snprintf(path, sizeof path, "%s/%s_%s_%lld.hdf5", w->config->directory,
                     w->config->name == NULL ? "kiln" : w->config->name, w->config->word, (long long)shard);
    FAIL_IF(n < 0 || (size_t)n >= sizeof path, STATUS_USAGE, "the path %.60s... is too long",
            w->config->directory);
    return w->config->keeps_existing && file_exists(path)
               ? status_ok()
               : hdf5_file_write(path, arrays, shard_format_arrays(arrays, shape, memory));
}

/* The places of a file's n sequences, and the file's shape. */
struct layout {
    struct shard_place *targets; /* [n] */
    struct shard_shape shape;
};

static void lay_out_padded(const struct writer *w, struct layout *out, int64_t n)
{
    const struct bert_loader_config *c = &w->config->samples;
    out->shape = (struct shard_shape){
        .n = n, .seq_length = c->batch.max_seq_length, .n_predictions = c->max_predictions_per_seq};
    for (int64_t i = 0; i < n; i++) {
        out->targets[i] = (struct shard_place){.record = i};
    }
}

/* Packing yields the longest first; the file has them in a keyed random order, like samples. */
static struct status place_rows(struct writer *w, struct layout *out, const struct pack_row *rows,
                                int64_t n_rows, const int32_t *lengths, const int32_t *masked)
{
    uint64_t key = rng_key(w->config->samples.seed, PURPOSE_ROWS);
    for (int64_t r = 0; r < n_rows; r++) {
        struct shard_place t = {.record = (int64_t)rng_permute(key, (uint64_t)n_rows, (uint64_t)r)};
        for (t.slot = 0; t.slot < rows[r].n; t.slot++) {
            int64_t i = rows[r].sequences[t.slot];
            out->targets[i] = t;
            t.at += lengths[i];
            t.masked_at += masked[i];
        }
        TRY(pack_strategies_count(&w->strategies, &rows[r], lengths));
    }
    return status_ok();
}

struct sizes {
    int32_t *lengths, *masked; /* [n] */
};

static void take_sizes(void *context, int64_t i, const struct batch *b)
{
    struct sizes *s = context;
    s->lengths[i] = (int32_t)b->n_real_tokens;
    s->masked[i] = (int32_t)b->n_real_labels;
}

static struct status lay_out_packed(struct writer *w, struct layout *out, int64_t first, int64_t n)
{
    const struct bert_loader_config *c = &w->config->samples;
    struct pack_row *rows = NULL;
    int64_t n_rows = 0, n_tokens;
    int32_t *memory = calloc(2 * (size_t)n, sizeof *memory);
    if (memory == NULL) {
        return out_of_memory(w);
    }
    struct sizes sizes = {memory, memory + n};
    struct status s = draw((struct drawing){w, first, n, take_sizes, &sizes}, &n_tokens);
    if (!failed(s)) { /* a list of predictions must end with a zero */
        s = pack_sequences(&rows, &n_rows,
                           &(struct pack_problem){.n = n,
                                                  .lengths = sizes.lengths,
                                                  .masked = sizes.masked,
                                                  .row_length = c->batch.max_seq_length,
                                                  .row_masked = c->max_predictions_per_seq + PACK_MOST - 1});
    }
    if (!failed(s)) {
        out->shape = (struct shard_shape){.n = n_rows,
                                          .seq_length = c->batch.max_seq_length,
                                          .n_predictions = c->max_predictions_per_seq + PACK_MOST,
                                          .packed = true};
        s = place_rows(w, out, rows, n_rows, sizes.lengths, sizes.masked);
    }
    free(rows);
    free(memory);
    return s;
}

struct rows {
    void *memory;
    const struct layout *layout;
};

/* Sequences of one row have places of their own in it. */
static void take_row(void *context, int64_t i, const struct batch *b)
{
    const struct rows *r = context;
    shard_format_put(r->memory, &r->layout->shape, &r->layout->targets[i], b);
}

static struct status fill_and_write(struct writer *w, const struct layout *layout, int64_t shard,
                                    int64_t first, int64_t n, struct shard_packing *sum)
{
    void *memory = calloc(1, shard_format_bytes(&layout->shape));
    if (memory == NULL) {
        return out_of_memory(w);
    }
    struct rows rows = {memory, layout};
    int64_t n_tokens;
    struct status s = draw((struct drawing){w, first, n, take_row, &rows}, &n_tokens);
    if (!failed(s)) {
        s = write_file(w, shard, &layout->shape, memory);
    }
    sum->n_sequences += n;
    sum->n_tokens += n_tokens;
    sum->n_packs += layout->shape.n;
    free(memory);
    return s;
}

static struct status write_shard(struct writer *w, int64_t shard, int64_t first, int64_t n,
                                 struct shard_packing *sum)
{
    struct layout layout = {.targets = calloc((size_t)n, sizeof *layout.targets)};
    if (layout.targets == NULL) {
        return out_of_memory(w);
    }
    struct status s = status_ok();
    if (w->config->packed) {
        s = lay_out_packed(w, &layout, first, n);
    } else {
        lay_out_padded(w, &layout, n);
    }
    if (!failed(s)) {
        s = shard_format_check(&layout.shape, w->config->directory);
    }
    if (!failed(s)) {
        s = fill_and_write(w, &layout, shard, first, n, sum);
    }
    free(layout.targets);
    return s;
}

static int64_t count_shards(const struct writer *w)
{
    const struct shard_writer_config *c = w->config;
    struct shard_shape one = {.n = 1,
                              .seq_length = c->samples.batch.max_seq_length,
                              .n_predictions = c->samples.max_predictions_per_seq};
    int64_t n = c->n_shards;
    if (n == 0) {
        int64_t per_shard = SHARD_BYTES / (int64_t)shard_format_bytes(&one);
        n = (w->n_samples + per_shard - 1) / per_shard;
    }
    return n < w->n_samples ? n : w->n_samples;
}

static void show_progress(const struct writer *w, struct progress *p, int64_t start_ns, int64_t done,
                          int64_t n)
{
    if (progress_due(p)) {
        double left = clock_since_s(start_ns) / (double)(done > 0 ? done : 1) * (double)(n - done);
        progress_show(p, "prepare: %s, %lld of %lld %s files, %s left", w->config->directory, (long long)done,
                      (long long)n, w->config->word, progress_time(left).text);
    }
}

static struct status write_each(struct writer *w, struct shard_writer_report *report,
                                struct progress *progress)
{
    int64_t start_ns = clock_ns();
    for (int64_t k = 0; k < report->n_shards; k++) {
        FAIL_IF(stop_requested(), STATUS_PREEMPTED,
                "stopped by a signal after %lld of %lld files of %s; the same command with "
                "--resume continues there",
                (long long)k, (long long)report->n_shards, w->config->directory);
        show_progress(w, progress, start_ns, k, report->n_shards);
        int64_t first = k * w->n_samples / report->n_shards;
        int64_t end = (k + 1) * w->n_samples / report->n_shards;
        TRY(write_shard(w, k, first, end - first, &report->packing));
    }
    return status_ok();
}

static struct status write_all(struct writer *w, struct shard_writer_report *report)
{
    w->drawers = calloc((size_t)parallel_n_parts(), sizeof *w->drawers);
    if (w->drawers == NULL) {
        return out_of_memory(w);
    }
    for (int i = 0; i < parallel_n_parts(); i++) {
        TRY(bert_loader_init_step(&w->loader.config, &w->drawers[i].step));
    }
    w->n_samples = w->loader.map.n_samples * w->config->dupe_factor;
    report->n_shards = count_shards(w);
    report->packing.seq_length = w->config->samples.batch.max_seq_length;
    struct progress progress = progress_begin(true);
    struct status s = write_each(w, report, &progress);
    progress_end(&progress);
    TRY(s);
    report->packing.n_strategies = w->strategies.n;
    pack_strategies_top(&w->strategies, report->packing.top_strategies);
    return status_ok();
}

struct status shard_writer_run(struct shard_writer_report *report, const struct shard_writer_config *config)
{
    struct writer w = {.config = config};
    struct bert_loader_config one = config->samples;
    one.batch.train_batch_size = one.batch.gradient_accumulation_steps = 1;
    *report = (struct shard_writer_report){0};
    TRY(bert_loader_open(&w.loader, one));
    struct status s = write_all(&w, report);
    for (int i = 0; w.drawers != NULL && i < parallel_n_parts(); i++) {
        batch_step_fini(&w.drawers[i].step);
    }
    free(w.drawers);
    bert_loader_close(&w.loader);
    pack_strategies_fini(&w.strategies);
    return s;
}
