#define _GNU_SOURCE
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
    for (int i = 0; i < c->n; i++) {
        if (strcmp(c->items[i].prefix, prefix) == 0) {
            return status_ok(); /* another part of the same store is checked already */
        }
    }
    struct store_check_item *items = realloc(c->items, ((size_t)c->n + 1) * sizeof *items);
    FAIL_IF(items == NULL, STATUS_MEMORY, "out of memory to check %d stores", c->n + 1);
    c->items = items;
    items += c->n;
    FAIL_IF((size_t)snprintf(items->prefix, STORE_CHECK_PATH_BYTES, "%s", prefix) >= STORE_CHECK_PATH_BYTES,
            STATUS_USAGE, "the path %.60s... is longer than %d bytes", prefix, STORE_CHECK_PATH_BYTES - 1);
    items->store = store;
    c->n++;
    return status_ok();
}

/* Whether PREFIX.json says the checksums. */
static bool has_sums(const struct store_check_item *item)
{
    return item->store->info.vocab_size > 0;
}

/* A line: first what the file is, then when it was written. */
static struct status describe_file(struct buf *out, const struct store_check_item *item, const char *suffix,
                                   const struct file_map *map, uint32_t crc)
{
    char path[STORE_CHECK_PATH_BYTES + 8];
    struct stat info;
    snprintf(path, sizeof path, "%s.%s", item->prefix, suffix);
    FAIL_IF(stat(path, &info) != 0, STATUS_IO, "cannot stat %s: %s", path, strerror(errno));
    buf_printf(out, "%s %08" PRIx32 " of %lld bytes, inode %llu, changed %lld.%09ld: %s\n",
               has_sums(item) ? "crc32c" : "sample", has_sums(item) ? crc : file_map_sample(0, map, 1),
               (long long)info.st_size, (unsigned long long)info.st_ino, (long long)info.st_ctim.tv_sec,
               info.st_ctim.tv_nsec, path);
    return status_ok();
}

static struct status describe(struct store_check *c)
{
    for (int i = 0; i < c->n; i++) {
        const struct store_check_item *item = &c->items[i];
        const struct token_store *store = item->store;
        TRY(describe_file(&c->identity, item, "bin", &store->index.bin, store->info.bin_crc));
        TRY(describe_file(&c->identity, item, "idx", &store->index.idx, store->info.idx_crc));
    }
    return buf_status(&c->identity);
}

/* The line of `text`, of n bytes, that ends as `line` does with its path; NULL if there is none. */
static const char *find_file(const char *text, size_t n, const char *line, size_t n_line)
{
    const char *path = memmem(line, n_line, ": ", 2), *end = text + n;
    size_t n_path = (size_t)(line + n_line - path);
    for (const char *at = text, *next; at < end; at = next) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        next = newline == NULL ? end : newline + 1;
        if ((size_t)(next - at) >= n_path && memcmp(next - n_path, path, n_path) == 0) {
            return at;
        }
    }
    return NULL;
}

/* Compares a file with what it was, by two lines of describe_file. */
static struct status compare_file(const struct store_check *c, const char *line, size_t n_line,
                                  const char *old)
{
    const char *path = (const char *)memmem(line, n_line, ": ", 2) + 2;
    int n_path = (int)(line + n_line - 1 - path);
    size_t n_content = (size_t)((const char *)memmem(line, n_line, ", inode", 7) - line);
    if (strncmp(line, old, 6) == 0 && strncmp(line, old, n_content + 1) != 0) {
        struct status s =
            status_error(STATUS_DATA, "%.*s is another file than this run was trained on (%.*s, was %.*s)",
                         n_path, path, (int)n_content, line, (int)strcspn(old, ","), old);
        FAIL_IF(!c->allows_other, STATUS_DATA, "%s; --allow_other_data resumes anyway", s.message);
        log_warning("%s", s.message);
    } else if (strncmp(line, "sample", 6) == 0 && strncmp(line, old, n_line) != 0) {
        log_warning("%.*s was written or moved since this run began, and has no checksums: if its tokens are "
                    "others, this is another run",
                    n_path, path);
    }
    return status_ok();
}

/* Compares with the files that passed the check before; whether they are the very same. */
static struct status compare_kept(const struct store_check *c, bool *same)
{
    struct file_map m;
    *same = false;
    if (!file_exists(c->kept) || failed(file_map_open(&m, c->kept))) {
        return status_ok();
    }
    struct status s = status_ok();
    const char *text = (const char *)m.data, *line = (const char *)c->identity.data;
    *same = m.n == c->identity.n && memcmp(text, line, m.n) == 0;
    for (size_t left = c->identity.n, n_line; left > 0 && !*same && !failed(s);
         left -= n_line, line += n_line) {
        n_line = (size_t)((const char *)memchr(line, '\n', left) - line) + 1;
        const char *old = c->was_resumed ? find_file(text, m.n, line, n_line) : NULL;
        s = old == NULL ? s : compare_file(c, line, n_line, old);
    }
    file_map_close(&m);
    return s;
}

/* Bytes of the files that have checksums. */
static size_t total_bytes(const struct store_check *c)
{
    size_t n = 0;
    for (int i = 0; i < c->n; i++) {
        const struct indexed *x = &c->items[i].store->index;
        n += has_sums(&c->items[i]) ? x->bin.n + x->idx.n : 0;
    }
    return n;
}

static void *verify(void *argument)
{
    struct store_check *c = argument;
    int64_t start_ns = clock_ns();
    for (int i = c->n - 1; i >= 0 && !failed(c->status); i--) { /* held-out text, which is short, first */
        const struct store_check_item *item = &c->items[i];
        c->status = has_sums(item) ? token_store_verify(item->store, item->prefix, &c->stop) : status_ok();
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
    FAIL_IF((size_t)snprintf(c->kept, sizeof c->kept, "%s/.data_checked%s", directory, of_rank) >=
                sizeof c->kept,
            STATUS_USAGE, "the path %.60s... is longer than %zu bytes", directory, sizeof c->kept - 1);
    bool kept = false;
    struct status s = describe(c);
    s = failed(s) ? s : compare_kept(c, &kept);
    if (kept && total_bytes(c) > 0) {
        log_info("data: unchanged since its checksums were checked");
    }
    if (failed(s) || kept) {
        c->n = 0; /* nothing left to check */
        return s;
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
    if (!failed(c->status) && total_bytes(c) > 0) {
        log_info("data: checksums match: %.1f MiB read in %.2f s", (double)total_bytes(c) / 0x1p20,
                 c->seconds);
    }
    if (!failed(c->status)) {
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
