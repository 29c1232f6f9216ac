#include "corpus/store_pass.h"

#include "core/clock.h"
#include "core/progress.h"
#include "corpus/repeats.h"

struct store_sink {
    struct store_builder *builder; /* NULL: a dry run */
    struct repeats repeats;
    struct progress progress;
    uint64_t total_bytes;
    int64_t start_ns;
};

static void show_progress(struct store_sink *k, uint64_t done)
{
    double rate = (double)done / clock_since_s(k->start_ns);
    double left = (double)(k->total_bytes - done) / (rate > 0 ? rate : 1);
    progress_show(&k->progress, "prepare: %.1f of %.1f MB, %.1f MB/s, %s left", (double)done / 1e6,
                  (double)k->total_bytes / 1e6, rate / 1e6, progress_time(left).text);
}

static struct status take(void *context, const struct corpus_item *item)
{
    struct store_sink *k = context;
    const struct document *d = &item->document;
    const struct document_ids *ids = item->result;
    for (int64_t i = 0; i < d->n_paragraphs; i++) {
        struct paragraph p = document_paragraph(d, i);
        repeats_add(&k->repeats, ids->hashes[i], p.text, p.n);
    }
    if (progress_due(&k->progress)) {
        show_progress(k, item->done_bytes);
    }
    return k->builder == NULL ? status_ok() : store_builder_add(k->builder, ids, d->begins);
}

struct status store_pass_run(struct corpus *c, struct store_builder *b,
                             const struct document_ids_config *config)
{
    struct store_sink k = {.builder = b, .total_bytes = c->files.total_bytes, .start_ns = clock_ns()};
    struct corpus_transform transform = document_ids_transform(config);
    struct corpus_sink sink = {&k, take};
    TRY(repeats_init(&k.repeats));
    k.progress = progress_begin(true);
    struct status s = corpus_pass_run(c, &transform, &sink);
    progress_end(&k.progress);
    if (!failed(s)) {
        repeats_tell(&k.repeats);
    }
    repeats_fini(&k.repeats);
    return s;
}
