#include "data/store_check.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/signals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

struct status store_check_add(struct store_check *c, const struct token_store *store, const char *prefix)
{
    struct store_check_item *items = realloc(c->items, ((size_t)c->n + 1) * sizeof *items);
    if (items == NULL) {
        return status_error(STATUS_MEMORY, "out of memory to check %d stores", c->n + 1);
    }
    c->items = items;
    items += c->n;
    if ((size_t)snprintf(items->prefix, STORE_CHECK_PATH_BYTES, "%s", prefix) >= STORE_CHECK_PATH_BYTES) {
        return status_error(STATUS_USAGE, "the path %.60s... is longer than %d bytes", prefix,
                            STORE_CHECK_PATH_BYTES - 1);
    }
    items->store = store;
    c->n++;
    return status_ok();
}

static struct status describe_file(struct buf *out, const char *prefix, const char *suffix, uint32_t crc)
{
    char path[STORE_CHECK_PATH_BYTES + 8];
    struct stat info;
    snprintf(path, sizeof path, "%s.%s", prefix, suffix);
    if (stat(path, &info) != 0) {
        return status_error(STATUS_IO, "cannot stat %s: %s", path, strerror(errno));
    }
    buf_printf(out, "crc32c %08" PRIx32 " of %lld bytes, inode %llu, changed %lld.%09ld: %s\n", crc,
               (long long)info.st_size, (unsigned long long)info.st_ino, (long long)info.st_ctim.tv_sec,
               info.st_ctim.tv_nsec, path);
    return status_ok();
}

static struct status describe(struct store_check *c)
{
    for (int i = 0; i < c->n; i++) {
        const struct store_check_item *item = &c->items[i];
        TRY(describe_file(&c->identity, item->prefix, "bin", item->store->info.bin_crc));
        TRY(describe_file(&c->identity, item->prefix, "idx", item->store->info.idx_crc));
    }
    return buf_status(&c->identity);
}

/* Whether these very files passed the check before. */
static bool is_kept(const struct store_check *c)
{
    struct file_map m;
    if (!file_exists(c->kept) || failed(file_map_open(&m, c->kept))) {
        return false;
    }
    bool same = m.n == c->identity.n && memcmp(m.data, c->identity.data, m.n) == 0;
    file_map_close(&m);
    return same;
}

static size_t total_bytes(const struct store_check *c)
{
    size_t n = 0;
    for (int i = 0; i < c->n; i++) {
        n += c->items[i].store->index.bin.n + c->items[i].store->index.idx.n;
    }
    return n;
}

static void *verify(void *argument)
{
    struct store_check *c = argument;
    int64_t start_ns = clock_ns();
    for (int i = c->n - 1; i >= 0 && !failed(c->status); i--) { /* held-out text, which is short, first */
        c->status = token_store_verify(c->items[i].store, c->items[i].prefix, &c->stop);
    }
    c->seconds = clock_since_s(start_ns);
    atomic_store(&c->done, true);
    return NULL;
}

/* If the thread cannot start, everything is read here. */
static void start(struct store_check *c)
{
    sigset_t before;
    signals_block(&before);
    c->running = true;
    if (pthread_create(&c->thread, NULL, verify, c) != 0) {
        c->running = false;
        verify(c);
    }
    signals_restore(&before);
}

struct status store_check_begin(struct store_check *c, const char *directory, int rank)
{
    char of_rank[24] = "";
    if (c->n == 0) {
        return status_ok();
    }
    if (rank > 0) {
        snprintf(of_rank, sizeof of_rank, "_by_rank_%d", rank);
    }
    if ((size_t)snprintf(c->kept, sizeof c->kept, "%s/.data_checked%s", directory, of_rank) >=
        sizeof c->kept) {
        return status_error(STATUS_USAGE, "the path %.60s... is longer than %zu bytes", directory,
                            sizeof c->kept - 1);
    }
    struct status described = describe(c);
    bool kept = !failed(described) && is_kept(c);
    if (failed(described) || kept) {
        c->n = 0; /* nothing left to check */
    }
    TRY(described);
    if (kept) {
        log_info("data: unchanged since its checksums were checked");
        return status_ok();
    }
    start(c);
    return status_ok();
}

bool store_check_is_pending(const struct store_check *c)
{
    return c->running && !atomic_load(&c->done);
}

/* If the result cannot be saved, the next run checks again. */
static void keep(const struct store_check *c)
{
    struct status s = file_write_atomic(c->kept, c->identity.data, c->identity.n);
    if (failed(s)) {
        log_warning("%s; the next run will read all of its data again", s.message);
    }
}

struct status store_check_take(struct store_check *c, bool wait)
{
    if (store_check_is_pending(c) && !wait) {
        return status_ok();
    }
    if (c->n == 0) {
        return c->status;
    }
    if (c->running) {
        pthread_join(c->thread, NULL);
        c->running = false;
    }
    if (!failed(c->status)) {
        log_info("data: checksums match: %.1f MiB read in %.2f s", (double)total_bytes(c) / 0x1p20,
                 c->seconds);
        keep(c);
    }
    c->n = 0;
    return c->status;
}

void store_check_close(struct store_check *c)
{
    if (c->running) {
        atomic_store(&c->stop, true);
        pthread_join(c->thread, NULL);
    }
    buf_fini(&c->identity);
    free(c->items);
    *c = (struct store_check){0};
}
