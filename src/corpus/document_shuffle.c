#include "corpus/document_shuffle.h"

#include "core/log.h"
#include "core/rng.h"
#include "core/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KEY_DOCUMENT = 0x73687566,
    BITS_AGAIN = 8, /* bits of a key by which a file that is too large is distributed again */
    MOST_BITS = 12  /* most bits of a key in the first distribution */
};

/* The record of a document in a file: this head, the sizes of the sequences (i32) and their tokens. */
struct head {
    uint64_t key;
    int64_t n_sequences, n_tokens;
};

struct entry {
    uint64_t key;
    size_t at; /* offset of the document's head in the file */
};

/* ---- files that grow together ---- */

enum { LEAST_BUFFER = 4096, MOST_BUFFER = 1 << 20 };

/* The path of file i. */
static void scatter_path(char path[FILE_PATH_BYTES], const char *prefix, int i)
{
    snprintf(path, FILE_PATH_BYTES, "%.*s%d", FILE_PATH_BYTES - 12, prefix, i);
}

/* Begins n files PREFIX0, PREFIX1, ..., none of which exists, with about `memory` bytes of buffers. */
static struct status scatter_open(struct scatter_files *s, const char *prefix, int n, size_t memory)
{
    size_t each = memory / (size_t)n;
    *s = (struct scatter_files){.n = n};
    s->buffer_bytes = each < LEAST_BUFFER ? LEAST_BUFFER : each > MOST_BUFFER ? MOST_BUFFER : each;
    FAIL_IF((size_t)snprintf(s->prefix, sizeof s->prefix, "%s", prefix) >= sizeof s->prefix - 12,
            STATUS_USAGE, "the path %.60s... is too long for temporary files", prefix);
    s->buffers = malloc((size_t)n * s->buffer_bytes);
    s->buffered = calloc((size_t)n, sizeof *s->buffered);
    if (s->buffers == NULL || s->buffered == NULL) {
        free(s->buffers);
        free(s->buffered);
        *s = (struct scatter_files){0};
        return status_error(STATUS_MEMORY, "out of memory for the buffers of %d temporary files", n);
    }
    return status_ok();
}

static void write_out(struct scatter_files *s, int i, const unsigned char *p, size_t n)
{
    char path[FILE_PATH_BYTES];
    if (failed(s->status) || n == 0) {
        return;
    }
    scatter_path(path, s->prefix, i);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    while (fd >= 0 && n > 0) {
        ssize_t written = write(fd, p, n);
        if (written < 0 && errno != EINTR) {
            break;
        }
        p += written > 0 ? written : 0;
        n -= written > 0 ? (size_t)written : 0;
    }
    if (n > 0) {
        s->status = status_error(STATUS_IO, "cannot write the temporary file %s: %s", path, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
}

static void flush(struct scatter_files *s, int i)
{
    write_out(s, i, s->buffers + (size_t)i * s->buffer_bytes, s->buffered[i]);
    s->buffered[i] = 0; /* NOLINT(clang-analyzer-unix.Malloc): scatter_close frees the buffers */
}

/* Appends to file i, which exists from the first byte on. */
static void scatter_put(struct scatter_files *s, int i, const void *bytes, size_t n)
{
    if (s->buffered[i] + n > s->buffer_bytes) {
        flush(s, i);
    }
    if (n > s->buffer_bytes) {
        write_out(s, i, bytes, n);
    } else if (n > 0) {
        memcpy(s->buffers + (size_t)i * s->buffer_bytes + s->buffered[i], bytes, n);
        s->buffered[i] += n;
    }
}

/* Writes out what is buffered, and closes: the first failure so far.  Safe on a zeroed struct. */
static struct status scatter_close(struct scatter_files *s)
{
    for (int i = 0; i < s->n && s->buffers != NULL; i++) {
        flush(s, i);
    }
    struct status status = s->status;
    free(s->buffers);
    free(s->buffered);
    *s = (struct scatter_files){0};
    return status;
}

/* ---- adding documents ---- */

static size_t record_bytes(const struct head *h, int token_bytes)
{
    return sizeof *h + (size_t)h->n_sequences * sizeof(int32_t) + (size_t)h->n_tokens * (size_t)token_bytes;
}

/* A file, its list of entries, and the memory that qsort takes for that list, are a third of the memory each
 * at most. */
static uint64_t most_bytes(const struct document_shuffle *s)
{
    return s->config.memory_bytes / 3;
}

static uint64_t buffer_memory(const struct document_shuffle *s)
{
    return s->config.memory_bytes / 4;
}

static int first_bits(const struct document_shuffle *s)
{
    int bits = 0; /* files of half the size: they are not equal */
    while (bits < MOST_BITS && (s->config.expected_bytes >> bits) > most_bytes(s) / 2) {
        bits++;
    }
    return bits;
}

/* The number in `n` bits of the key, after the first `from` bits. */
static int part_of(uint64_t key, int from, int n)
{
    return n == 0 ? 0 : (int)(key << from >> (64 - n));
}

struct status document_shuffle_open(struct document_shuffle *s, const struct document_shuffle_config *c,
                                    const char *directory, int token_bytes)
{
    char prefix[FILE_PATH_BYTES];
    *s = (struct document_shuffle){.config = *c, .token_bytes = token_bytes};
    s->bits = first_bits(s);
    TRY(file_is_directory(directory) ? file_remove_tree(directory) : status_ok());
    TRY(file_make_directories(directory));
    snprintf(s->directory, sizeof s->directory, "%s", directory);
    snprintf(prefix, sizeof prefix, "%.*s/", FILE_PATH_BYTES - 2, directory);
    return scatter_open(&s->files, prefix, 1 << s->bits, buffer_memory(s));
}

void document_shuffle_add(struct document_shuffle *s, const int32_t *ids, int64_t n)
{
    int32_t size = (int32_t)n;
    void *tokens = buf_extend(&s->tokens, (size_t)n * (size_t)s->token_bytes);
    buf_append(&s->sizes, &size, sizeof size);
    if (tokens != NULL) {
        indexed_pack(tokens, ids, n, s->token_bytes);
    }
}

void document_shuffle_end_document(struct document_shuffle *s)
{
    uint64_t seed = rng_key((uint64_t)s->config.seed, KEY_DOCUMENT);
    struct head h = {.key = rng_key(seed, (uint64_t)s->n_documents++),
                     .n_sequences = (int64_t)(s->sizes.n / sizeof(int32_t)),
                     .n_tokens = (int64_t)(s->tokens.n / (size_t)s->token_bytes)};
    if (s->sizes.failed || s->tokens.failed) {
        return;
    }
    int file = part_of(h.key, 0, s->bits);
    scatter_put(&s->files, file, &h, sizeof h);
    scatter_put(&s->files, file, s->sizes.data, s->sizes.n);
    scatter_put(&s->files, file, s->tokens.data, s->tokens.n);
    buf_clear(&s->sizes);
    buf_clear(&s->tokens);
}

struct status document_shuffle_status(const struct document_shuffle *s)
{
    TRY(buf_status(&s->sizes));
    TRY(buf_status(&s->tokens));
    return s->files.status;
}

/* ---- the files of documents ---- */

static struct status check_stop(void)
{
    return stop_requested() ? status_error(STATUS_PREEMPTED, "stopped by a signal; nothing was written")
                            : status_ok();
}

/* Reads the head of the document at *at of a file; sets *at to the beginning of the next document. */
static struct head read_head(const struct file_map *m, size_t *at, int token_bytes)
{
    struct head h;
    memcpy(&h, m->data + *at, sizeof h);
    *at += record_bytes(&h, token_bytes);
    CHECK(*at <= m->n, "a document ends at byte %zu of a file of %zu", *at, m->n);
    return h;
}

static int64_t count_documents(const struct file_map *m, int token_bytes)
{
    int64_t n = 0;
    for (size_t at = 0; at < m->n; n++) {
        read_head(m, &at, token_bytes);
    }
    return n;
}

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void write_document(const struct file_map *m, size_t at, int token_bytes, struct indexed_writer *w)
{
    size_t end = at;
    struct head h = read_head(m, &end, token_bytes);
    const unsigned char *sizes = m->data + at + sizeof h, *tokens = sizes + 4 * h.n_sequences;
    for (int64_t i = 0; i < h.n_sequences; i++) {
        int32_t n;
        memcpy(&n, sizes + 4 * i, sizeof n);
        indexed_writer_add_packed(w, tokens, n);
        tokens += (size_t)n * (size_t)token_bytes;
    }
    indexed_writer_end_document(w);
}

static struct status pour_sorted(struct document_shuffle *s, const struct file_map *m, int64_t n,
                                 struct indexed_writer *w)
{
    struct entry *entries = malloc(((size_t)n + 1) * sizeof *entries);
    FAIL_IF(entries == NULL, STATUS_MEMORY, "out of memory to sort %lld documents", (long long)n);
    size_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        entries[i].at = at;
        entries[i].key = read_head(m, &at, s->token_bytes).key;
    }
    qsort(entries, (size_t)n, sizeof *entries, compare);
    for (int64_t i = 0; i < n; i++) {
        write_document(m, entries[i].at, s->token_bytes, w);
    }
    free(entries);
    s->n_files++;
    return indexed_writer_status(w);
}

static struct status pour_file(struct document_shuffle *s, const char *path, int bits,
                               struct indexed_writer *w);

/* Deals a file out by the next bits of its documents' keys. */
static struct status deal_out(const struct document_shuffle *s, const struct file_map *m, const char *prefix,
                              int bits)
{
    struct scatter_files files;
    TRY(scatter_open(&files, prefix, 1 << BITS_AGAIN, buffer_memory(s)));
    for (size_t at = 0, end = 0; at < m->n && !failed(files.status); at = end) {
        struct head h = read_head(m, &end, s->token_bytes);
        scatter_put(&files, part_of(h.key, bits, BITS_AGAIN), m->data + at, end - at);
    }
    return scatter_close(&files);
}

static struct status pour_all(struct document_shuffle *s, const char *prefix, int n, int bits,
                              struct indexed_writer *w)
{
    char path[FILE_PATH_BYTES];
    for (int i = 0; i < n; i++) {
        scatter_path(path, prefix, i);
        TRY(check_stop());
        TRY(file_exists(path) ? pour_file(s, path, bits, w) : status_ok());
    }
    return status_ok();
}

/* A file of one document, however large, is never dealt out; nor are keys without bits left. */
static struct status pour_file(struct document_shuffle *s, const char *path, int bits,
                               struct indexed_writer *w)
{
    struct file_map m;
    char prefix[FILE_PATH_BYTES];
    TRY(file_map_open(&m, path));
    int64_t n = count_documents(&m, s->token_bytes);
    bool is_too_large = m.n > most_bytes(s) && n > 1 && bits + BITS_AGAIN <= 64;
    snprintf(prefix, sizeof prefix, "%.*s_", FILE_PATH_BYTES - 2, path);
    struct status status = is_too_large ? deal_out(s, &m, prefix, bits) : pour_sorted(s, &m, n, w);
    file_map_close(&m);
    unlink(path);
    TRY(status);
    return is_too_large ? pour_all(s, prefix, 1 << BITS_AGAIN, bits + BITS_AGAIN, w) : status_ok();
}

struct status document_shuffle_pour(struct document_shuffle *s, struct indexed_writer *w)
{
    char prefix[FILE_PATH_BYTES];
    TRY(document_shuffle_status(s));
    TRY(scatter_close(&s->files));
    snprintf(prefix, sizeof prefix, "%.*s/", FILE_PATH_BYTES - 2, s->directory);
    TRY(pour_all(s, prefix, 1 << s->bits, s->bits, w));
    CHECK(w->n_documents == s->n_documents, "%lld documents of %lld", (long long)w->n_documents,
          (long long)s->n_documents);
    log_info("shuffled %lld documents by the seed %lld, in %lld parts", (long long)s->n_documents,
             (long long)s->config.seed, (long long)s->n_files);
    return status_ok();
}

void document_shuffle_close(struct document_shuffle *s)
{
    scatter_close(&s->files);
    if (s->directory[0] != '\0') {
        file_remove_tree(s->directory);
    }
    buf_fini(&s->sizes);
    buf_fini(&s->tokens);
    *s = (struct document_shuffle){0};
}
