#include "corpus/corpus_pass.h"

#include "core/parallel.h"
#include "corpus/source_formats.h"

#include <pthread.h>
#include <stdlib.h>

/* The most text that an idle batch keeps memory for. */
enum { KEPT_BYTES = 8 * CORPUS_PASS_BATCH_BYTES };

struct batch {
    struct corpus_item items[CORPUS_PASS_BATCH_DOCUMENTS];
    int n;                /* items read */
    int n_transformed;    /* number of the first items that are transformed */
    struct status status; /* error of the next item: why it could not be read or transformed */
    bool is_done;         /* ready for the sink */
};

/* Batches are numbered as they are read; batch i is in batches[i % n_batches].
 * n_taken <= n_begun <= n_read <= n_taken + n_batches. */
struct pass {
    struct corpus *corpus;
    const struct corpus_transform *transform;
    const struct corpus_sink *sink;
    int n_threads;
    struct batch *batches;
    int64_t n_batches;

    pthread_mutex_t mutex; /* guards all fields below */
    pthread_cond_t changed;
    int64_t n_read, n_begun, n_taken; /* read; begun by a transforming thread; taken by the sink */
    bool is_reading, is_taking;
    bool read_ended;    /* nothing follows n_read */
    bool stopped;       /* an error has ended the pass */
    uint64_t n_changes; /* jobs done */
    struct status status;
};

static struct batch *batch_of(struct pass *p, int64_t number)
{
    return &p->batches[number % p->n_batches];
}

/* ---- the jobs, each without the mutex ---- */

/* The result of an item, allocated when it is first needed. */
static struct status make_result(const struct pass *p, struct corpus_item *item)
{
    if (p->transform != NULL && item->result == NULL) {
        item->result = calloc(1, p->transform->result_bytes);
        FAIL_IF(item->result == NULL, STATUS_MEMORY, "out of memory for what becomes of a document");
    }
    return status_ok();
}

/* Reads a batch; *end is true if nothing follows it. */
static void read_batch(struct pass *p, struct batch *b, bool *end)
{
    size_t n_bytes = 0;
    b->n = b->n_transformed = 0;
    b->is_done = false;
    b->status = status_ok();
    *end = false;
    while (b->n < CORPUS_PASS_BATCH_DOCUMENTS && n_bytes < CORPUS_PASS_BATCH_BYTES && !*end) {
        struct corpus_item *item = &b->items[b->n];
        b->status = make_result(p, item);
        if (!failed(b->status)) {
            b->status = corpus_next(p->corpus, &item->document, end);
        }
        *end = *end || failed(b->status);
        if (!*end) {
            item->place = corpus_place(p->corpus);
            item->done_bytes = corpus_done_bytes(p->corpus);
            item->counts = corpus_counts(p->corpus);
            n_bytes += item->document.text.n + item->document.raw.n;
            b->n++;
        }
    }
}

void converter_init(struct converter *c, const struct source_options *options)
{
    *c = (struct converter){.options = options};
}

void converter_fini(struct converter *c)
{
    for (int i = 0; i < SOURCE_N_FORMATS; i++) {
        if (c->states[i] != NULL) {
            source_formats[i]->convert_fini(c->states[i]);
        }
    }
}

struct status converter_run(struct converter *c, struct document *d)
{
    if (d->format == NULL || d->fate != DOCUMENT_KEPT) {
        return status_ok();
    }
    d->begins = true;
    TRY(d->format->convert(&c->states[source_formats_index(d->format)], c->options, d));
    if (d->n_paragraphs == 0 && d->fate == DOCUMENT_KEPT) {
        d->fate = DOCUMENT_WITHOUT_TEXT;
    }
    return status_ok();
}

/* State of one thread. */
struct worker {
    struct converter converter;
    void *transform;
};

static struct status transform_item(struct pass *p, struct corpus_item *item, struct worker *w)
{
    TRY(converter_run(&w->converter, &item->document));
    return p->transform == NULL || item->document.fate != DOCUMENT_KEPT
               ? status_ok()
               : p->transform->run(w->transform, item->result, &item->document);
}

static void transform_batch(struct pass *p, struct batch *b, struct worker *w)
{
    struct status s = status_ok();
    while (b->n_transformed < b->n && !failed(s)) {
        s = transform_item(p, &b->items[b->n_transformed], w);
        b->n_transformed += !failed(s);
    }
    if (failed(s)) {
        b->status = s;
    }
}

static void free_items(const struct pass *p, struct batch *b)
{
    for (int i = 0; i < CORPUS_PASS_BATCH_DOCUMENTS; i++) {
        struct corpus_item *item = &b->items[i];
        document_fini(&item->document);
        if (item->result != NULL && p->transform->result_fini != NULL) {
            p->transform->result_fini(item->result);
        }
        free(item->result);
        item->result = NULL;
    }
}

/* Any item may once have held a long document; if all kept that memory, it would be far more than a batch. */
static void free_large(const struct pass *p, struct batch *b)
{
    size_t kept = 0;
    for (int i = 0; i < CORPUS_PASS_BATCH_DOCUMENTS; i++) {
        kept += b->items[i].document.text.capacity + b->items[i].document.raw.capacity;
    }
    if (kept > KEPT_BYTES) {
        free_items(p, b);
    }
}

static struct status take_batch(struct pass *p, struct batch *b)
{
    for (int i = 0; i < b->n_transformed; i++) {
        const struct document *d = &b->items[i].document;
        p->corpus->fates[d->fate] += d->format != NULL;
        if (d->fate == DOCUMENT_KEPT) {
            TRY(p->sink->take(p->sink->context, &b->items[i]));
        } else if (p->sink->leave_out != NULL) {
            TRY(p->sink->leave_out(p->sink->context, &b->items[i]));
        }
    }
    free_large(p, b);
    return b->status;
}

/* ---- who does what, all with the mutex ---- */

enum job { JOB_NONE, JOB_READ, JOB_TRANSFORM, JOB_TAKE, JOB_HELP };

/* The sink comes first, so that batches become free; then reading, as long as a thread may run out of work.
 * A thread that finds nothing to do helps to unpack, or waits. */
static enum job choose_job(struct pass *p)
{
    if (p->stopped || (p->read_ended && p->n_taken == p->n_read)) {
        return JOB_NONE;
    }
    if (!p->is_taking && p->n_taken < p->n_begun && batch_of(p, p->n_taken)->is_done) {
        return JOB_TAKE;
    }
    bool room = p->n_read < p->n_taken + p->n_batches;
    if (!p->is_reading && !p->read_ended && room && p->n_read - p->n_begun < p->n_threads) {
        return JOB_READ;
    }
    return p->n_begun < p->n_read ? JOB_TRANSFORM : JOB_HELP;
}

static void stop(struct pass *p, struct status s)
{
    if (!p->stopped) {
        p->stopped = true;
        p->status = s;
    }
}

static void do_read(struct pass *p)
{
    struct batch *b = batch_of(p, p->n_read);
    bool end;
    p->is_reading = true;
    pthread_mutex_unlock(&p->mutex);
    read_batch(p, b, &end);
    pthread_mutex_lock(&p->mutex);
    p->is_reading = false;
    p->read_ended = end;
    p->n_read++;
}

static void do_transform(struct pass *p, struct worker *worker)
{
    struct batch *b = batch_of(p, p->n_begun++);
    pthread_mutex_unlock(&p->mutex);
    transform_batch(p, b, worker);
    pthread_mutex_lock(&p->mutex);
    b->is_done = true;
}

static void do_take(struct pass *p)
{
    struct batch *b = batch_of(p, p->n_taken);
    p->is_taking = true;
    pthread_mutex_unlock(&p->mutex);
    struct status s = take_batch(p, b);
    pthread_mutex_lock(&p->mutex);
    p->is_taking = false;
    p->n_taken++;
    if (failed(s)) {
        stop(p, s);
    }
}

/* Waits, unless something has changed meanwhile, if there is nothing to unpack. */
static void do_help(struct pass *p)
{
    uint64_t n_changes = p->n_changes;
    pthread_mutex_unlock(&p->mutex);
    bool helped = corpus_help(p->corpus);
    pthread_mutex_lock(&p->mutex);
    if (!helped && p->n_changes == n_changes) {
        pthread_cond_wait(&p->changed, &p->mutex);
    }
}

static void do_jobs(struct pass *p, struct worker *worker)
{
    for (enum job job; (job = choose_job(p)) != JOB_NONE;) {
        if (job == JOB_HELP) {
            do_help(p);
            continue;
        }
        if (job == JOB_READ) {
            do_read(p);
        } else if (job == JOB_TRANSFORM) {
            do_transform(p, worker);
        } else {
            do_take(p);
        }
        p->n_changes++;
        pthread_cond_broadcast(&p->changed);
    }
}

static void run_thread(void *context, int part, int n_parts)
{
    struct pass *p = context;
    const struct corpus_transform *t = p->transform;
    struct worker worker = {.transform = NULL};
    struct status s = status_ok();
    converter_init(&worker.converter, &p->corpus->options);
    (void)part;
    (void)n_parts;
    if (t != NULL && t->worker_create != NULL) {
        s = t->worker_create(&worker.transform, t->context);
    }
    pthread_mutex_lock(&p->mutex);
    if (failed(s) && choose_job(p) != JOB_NONE) { /* not if this part runs last, for want of a thread */
        stop(p, s);
        p->n_changes++;
        pthread_cond_broadcast(&p->changed);
    }
    do_jobs(p, &worker);
    pthread_mutex_unlock(&p->mutex);
    if (t != NULL && worker.transform != NULL && t->worker_destroy != NULL) {
        t->worker_destroy(worker.transform);
    }
    converter_fini(&worker.converter);
}

struct status corpus_pass_run(struct corpus *c, const struct corpus_transform *transform,
                              const struct corpus_sink *sink)
{
    struct pass p = {.corpus = c,
                     .transform = transform,
                     .sink = sink,
                     .n_threads = parallel_n_parts(),
                     .mutex = PTHREAD_MUTEX_INITIALIZER,
                     .changed = PTHREAD_COND_INITIALIZER};
    /* per thread one batch in work, one waiting for work and one waiting for the sink, so that a slow one
     * stops nobody */
    p.n_batches = 3 * (int64_t)p.n_threads;
    p.batches = calloc((size_t)p.n_batches, sizeof *p.batches);
    FAIL_IF(p.batches == NULL, STATUS_MEMORY, "out of memory for the documents of %d threads", p.n_threads);
    parallel_run(run_thread, &p);
    for (int64_t i = 0; i < p.n_batches; i++) {
        free_items(&p, &p.batches[i]);
    }
    free(p.batches);
    pthread_cond_destroy(&p.changed);
    pthread_mutex_destroy(&p.mutex);
    return p.status;
}
