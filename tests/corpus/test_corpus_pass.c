/* Tests of corpus/corpus_pass: whatever the number of threads and their speed, the sink gets the same
 * documents and results in the same order, the same error ends the pass, and little is held; and a pass goes
 * on from a place. */
#include "fixture_store.h"

#include "core/parallel.h"
#include "corpus/corpus_pass.h"
#include "corpus/source_formats.h"

#include <malloc.h>
#include <omp.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

enum { N_FILES = 40 };

/* ---- a transform: a document's text backwards, now and then slowly ---- */

struct backwards {
    struct buf text;
};

static atomic_int n_workers;

static struct status create(void **worker, const void *context)
{
    int *n_runs = calloc(1, sizeof *n_runs);
    EXPECT(n_runs != NULL && strcmp(context, "context") == 0, "create");
    atomic_fetch_add(&n_workers, 1);
    *worker = n_runs;
    return status_ok();
}

static void destroy(void *worker)
{
    atomic_fetch_sub(&n_workers, 1);
    free(worker);
}

static struct status turn(void *worker, void *result, const struct document *d)
{
    struct backwards *r = result;
    int *n_runs = worker;
    if (++*n_runs % 16 == 0) { /* time: of another document in each run, and the result is the same */
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    buf_clear(&r->text);
    for (size_t i = d->text.n; i > 0; i--) {
        buf_putc(&r->text, d->text.data[i - 1]);
    }
    bool bad = d->text.n >= 9 && memcmp(d->text.data, "transform", 9) == 0;
    return bad ? status_error(STATUS_NUMERIC, "cannot turn '%.20s'", buf_text(&d->text)) : status_ok();
}

static void fini(void *result)
{
    struct backwards *r = result;
    buf_fini(&r->text);
}

static const struct corpus_transform backwards = {.context = "context",
                                                  .worker_create = create,
                                                  .worker_destroy = destroy,
                                                  .result_bytes = sizeof(struct backwards),
                                                  .result_fini = fini,
                                                  .run = turn};

/* ---- a sink: everything end to end ---- */

struct collected {
    struct buf out;
    int64_t n_items, stop_at; /* stop_at: the number of the item that is refused; -1: none */
    struct corpus_place place;
    uint64_t done_bytes;
    atomic_bool busy;
};

static struct status collect(void *context, const struct corpus_item *item)
{
    struct collected *k = context;
    const struct backwards *r = item->result;
    EXPECT(!atomic_exchange(&k->busy, true), "two threads in the sink");
    EXPECT(item->done_bytes >= k->done_bytes, "order");
    k->done_bytes = item->done_bytes;
    bool stop = k->n_items == k->stop_at;
    if (!stop) {
        buf_puts(&k->out, item->document.begins ? "<" : "");
        buf_append(&k->out, item->document.text.data, item->document.text.n);
        if (r != NULL) {
            size_t n = item->document.text.n;
            EXPECT(r->text.n == n && r->text.data[0] == item->document.text.data[n - 1],
                   "a result of another");
        }
        k->place = item->place;
        k->n_items++;
    }
    atomic_store(&k->busy, false);
    return stop ? status_error(STATUS_USAGE, "the sink has enough") : status_ok();
}

static struct status run_pass(struct collected *k, const char *input, const struct corpus_transform *t,
                              int n_threads, struct corpus_place from)
{
    struct corpus c;
    struct corpus_sink sink = {.context = k, .take = collect};
    omp_set_num_threads(n_threads);
    EXPECT(parallel_n_parts() == n_threads, "threads");
    EXPECT_OK(corpus_open(&c, &input, 1, (struct source_options){0}));
    EXPECT_OK(corpus_seek(&c, from));
    struct status s = corpus_pass_run(&c, t, &sink);
    EXPECT(failed(s) || k->done_bytes <= c.files.total_bytes, "bytes done");
    EXPECT(atomic_load(&n_workers) == 0, "%d workers remain", atomic_load(&n_workers));
    corpus_close(&c);
    return s;
}

/* Files of documents of one to some thousand lines, and one that is given out in pieces. */
static void write_corpus(void)
{
    struct rng_stream r = rng_stream(rng_key(7, 7));
    EXPECT(mkdir(fixture_path("texts"), 0777) == 0, "mkdir");
    for (int i = 0; i < N_FILES; i++) {
        struct buf text = {0};
        for (uint32_t d = rng_below(&r, 300); d > 0; d--) {
            uint32_t n_lines = d == 100 ? 5000 : d == 1 && i == 20 ? 100000 : rng_below(&r, 20);
            for (uint32_t k = 0; k < n_lines; k++) {
                buf_printf(&text, "Line %u of %u in %d.\n", (unsigned)k, (unsigned)d, i);
            }
            buf_putc(&text, '\n');
        }
        buf_puts(&text, "The end.\nIt is.\n");
        char name[32];
        snprintf(name, sizeof name, "texts/%02d", i);
        fixture_write(name, text.data, text.n);
        buf_fini(&text);
    }
}

static void any_number_of_threads_gives_the_same(void)
{
    struct collected one = {.stop_at = -1}, plain = {.stop_at = -1};
    EXPECT_OK(run_pass(&one, fixture_path("texts"), &backwards, 1, (struct corpus_place){0}));
    EXPECT(one.n_items > 3000 && one.out.n > 5000000, "%lld items", (long long)one.n_items);
    for (int n = 2; n < 9; n += n) {
        struct collected many = {.stop_at = -1};
        EXPECT_OK(run_pass(&many, fixture_path("texts"), &backwards, n, (struct corpus_place){0}));
        EXPECT(many.n_items == one.n_items && many.out.n == one.out.n &&
                   memcmp(many.out.data, one.out.data, one.out.n) == 0,
               "%d threads give something else", n);
        buf_fini(&many.out);
    }
    EXPECT_OK(run_pass(&plain, fixture_path("texts"), NULL, 3, (struct corpus_place){0}));
    EXPECT(plain.out.n == one.out.n && memcmp(plain.out.data, one.out.data, one.out.n) == 0,
           "without a transform");
    buf_fini(&plain.out);
    buf_fini(&one.out);
}

static void a_pass_goes_on_from_a_place(void)
{
    struct collected whole = {.stop_at = -1};
    EXPECT_OK(run_pass(&whole, fixture_path("texts"), &backwards, 2, (struct corpus_place){0}));
    for (int64_t stop_at = 1; stop_at < whole.n_items; stop_at += whole.n_items / 7) {
        struct collected parts = {.stop_at = stop_at};
        EXPECT_ERROR(run_pass(&parts, fixture_path("texts"), &backwards, 3, (struct corpus_place){0}),
                     STATUS_USAGE, "enough");
        EXPECT(parts.n_items == stop_at, "%lld items", (long long)parts.n_items);
        parts.stop_at = -1;
        EXPECT_OK(run_pass(&parts, fixture_path("texts"), &backwards, 2, parts.place));
        EXPECT(parts.n_items == whole.n_items && parts.out.n == whole.out.n &&
                   memcmp(parts.out.data, whole.out.data, whole.out.n) == 0,
               "going on behind item %lld", (long long)stop_at);
        buf_fini(&parts.out);
    }
    buf_fini(&whole.out);
}

/* Of several errors the one that comes first in the text, and the sink gets all that is before it. */
static void the_first_error_ends_a_pass(void)
{
    EXPECT(mkdir(fixture_path("errors"), 0777) == 0, "mkdir");
    static const char good[] = "One.\nTwo.\n\nThree.\nFour.\n\n";
    static const char *const files[] = {good, "transform this.\nIt fails.\n\nFive.\nSix.\n",
                                        "bad \xff byte.\n", good};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char name[32];
        snprintf(name, sizeof name, "errors/%zu", i);
        fixture_write(name, files[i], strlen(files[i]));
    }
    for (int n = 1; n < 9; n += n) {
        struct collected k = {.stop_at = -1};
        EXPECT_ERROR(run_pass(&k, fixture_path("errors"), &backwards, n, (struct corpus_place){0}),
                     STATUS_NUMERIC, "cannot turn 'transform");
        EXPECT(k.n_items == 2, "%lld items before a transform's error", (long long)k.n_items);
        k = (struct collected){.out = k.out, .stop_at = -1};
        EXPECT_ERROR(run_pass(&k, fixture_path("errors"), NULL, n, (struct corpus_place){0}), STATUS_DATA,
                     "2 is not UTF-8: byte 4");
        EXPECT(k.n_items == 4, "%lld items before a reader's error", (long long)k.n_items);
        k = (struct collected){.out = k.out, .stop_at = 1};
        EXPECT_ERROR(run_pass(&k, fixture_path("errors"), &backwards, n, (struct corpus_place){0}),
                     STATUS_USAGE, "enough");
        buf_fini(&k.out);
    }
}

static struct status refuse(void **worker, const void *context)
{
    (void)context;
    *worker = NULL;
    return status_error(STATUS_MEMORY, "no worker");
}

static void a_worker_that_cannot_be_had_is_an_error(void)
{
    struct corpus_transform t = backwards;
    t.worker_create = refuse;
    for (int n = 1; n < 5; n++) {
        struct collected k = {.stop_at = -1};
        EXPECT_ERROR(run_pass(&k, fixture_path("texts"), &t, n, (struct corpus_place){0}), STATUS_MEMORY,
                     "no worker");
        buf_fini(&k.out);
    }
}

static size_t most_bytes; /* that were allocated at once */

static struct status measure(void *context, const struct corpus_item *item)
{
    (void)context;
    (void)item;
    struct mallinfo2 m = mallinfo2();
    most_bytes = m.uordblks + m.hblkhd > most_bytes ? m.uordblks + m.hblkhd : most_bytes;
    return status_ok();
}

/* Long documents at every place of a batch: what they leave behind must not add up.  mallinfo2 sees the main
 * thread's memory, and none under a sanitizer. */
static void little_is_held(void)
{
    enum { LONG_BYTES = 400000, N_LONG = 120, BOUND = 24000000 };
    struct buf line = {0};
    for (int k = 0; k < LONG_BYTES; k += 8) {
        buf_puts(&line, "A word. ");
    }
    FILE *f = fopen(fixture_path("big"), "w");
    EXPECT(f != NULL, "fopen");
    for (int i = 0; i < N_LONG; i++) {
        for (int k = i * 37 % CORPUS_PASS_BATCH_DOCUMENTS; k > 0; k--) {
            fputs("Short.\n\n", f);
        }
        fprintf(f, "%s\n\n", buf_text(&line));
    }
    EXPECT(fclose(f) == 0, "fclose");
    buf_fini(&line);
    struct corpus c;
    struct corpus_sink sink = {.take = measure};
    const char *path = fixture_path("big");
    omp_set_num_threads(1);
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    EXPECT_OK(corpus_open(&c, &path, 1, (struct source_options){.format = &lines_source}));
    EXPECT_OK(corpus_pass_run(&c, &backwards, &sink));
    EXPECT(c.counts.n_documents > N_LONG && most_bytes - before < BOUND, "%zu bytes at once",
           most_bytes - before);
    corpus_close(&c);
}

int main(void)
{
    write_corpus();
    any_number_of_threads_gives_the_same();
    a_pass_goes_on_from_a_place();
    the_first_error_ends_a_pass();
    a_worker_that_cannot_be_had_is_an_error();
    little_is_held();
    fixture_remove();
    return 0;
}
