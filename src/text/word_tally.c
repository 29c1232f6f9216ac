#include "text/word_tally.h"

#include "core/array.h"
#include "core/buf.h"
#include "core/bytes.h"
#include "io/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A table that was taken: sorted words in memory, or their records in the file. */
struct tally_part {
    struct word_counts table; /* words in memory; sorted, without slots */
    uint64_t start, end;      /* bytes of the file; equal: the words are in memory */
};

/* A record: bytes of the word, 4; its count, 8; the word. */
enum { RECORD_HEAD = 12, BLOCK_BYTES = 1 << 16 };

struct tally_cursor {
    const struct tally_part *part;
    size_t next;     /* next word of a table in memory */
    uint64_t offset; /* offset in the file of the end of the block */
    unsigned char *block;
    size_t n_block, at;
    const char *text; /* the word under the cursor */
    size_t n_bytes;
    int64_t count;
};

static struct status out_of_memory(void)
{
    return status_error(STATUS_MEMORY, "out of memory for the words of the text");
}

struct status word_tally_init(struct word_tally *t, const char *beside, size_t memory_words)
{
    *t = (struct word_tally){.mutex = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .memory_words = memory_words};
    t->beside = beside != NULL ? strdup(beside) : NULL;
    return beside == NULL || t->beside != NULL ? status_ok() : out_of_memory();
}

void word_tally_empty(struct word_tally *t)
{
    for (size_t i = 0; i < t->n_parts; i++) {
        word_counts_fini(&t->parts[i].table);
    }
    free(t->parts);
    t->parts = NULL;
    t->n_parts = t->parts_capacity = t->n_in_memory = 0;
    if (t->fd >= 0) {
        close(t->fd);
    }
    t->fd = -1;
    t->file_bytes = 0;
}

void word_tally_fini(struct word_tally *t)
{
    word_tally_empty(t);
    free(t->beside);
    t->beside = NULL;
    pthread_mutex_destroy(&t->mutex);
}

static int compare_bytes(const char *a, size_t n_a, const char *b, size_t n_b)
{
    int c = memcmp(a, b, n_a < n_b ? n_a : n_b);
    return c != 0 ? c : (n_a > n_b) - (n_a < n_b);
}

/* qsort has no context, so the words are sorted with pointers to their text. */
struct sorted_word {
    const char *text;
    struct word_count word;
};

static int by_bytes(const void *left, const void *right)
{
    const struct sorted_word *a = left;
    const struct sorted_word *b = right;
    return compare_bytes(a->text, a->word.n_bytes, b->text, b->word.n_bytes);
}

static struct status sort_table(struct word_counts *table)
{
    struct sorted_word *sorted = malloc((table->n + 1) * sizeof *sorted);
    if (sorted == NULL) {
        return out_of_memory();
    }
    for (size_t i = 0; i < table->n; i++) {
        sorted[i] = (struct sorted_word){table->text + table->words[i].start, table->words[i]};
    }
    qsort(sorted, table->n, sizeof *sorted, by_bytes);
    for (size_t i = 0; i < table->n; i++) {
        table->words[i] = sorted[i].word;
    }
    free(sorted);
    free(table->slots); /* the slots would find the wrong words now */
    table->slots = NULL;
    table->n_slots = 0;
    return status_ok();
}

/* ---- the file ---- */

/* The file loses its name at once, so nothing is left of it however the process ends. */
static struct status open_file(struct word_tally *t)
{
    struct temporary file;
    if (t->fd >= 0) {
        return status_ok();
    }
    TRY(status_context(temporary_create_file(&file, t->beside), "no file for the words of the text"));
    t->fd = open(file.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW); /* the temporary's own is for writing only */
    temporary_remove(&file);
    return t->fd >= 0
               ? status_ok()
               : status_error(STATUS_IO, "cannot create a temporary file for the words of the text: %s",
                              strerror(errno));
}

static struct status write_all(struct word_tally *t, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t written = pwrite(t->fd, bytes, n, (off_t)t->file_bytes);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        FAIL_IF(written <= 0, STATUS_IO,
                "writing the words of the text to a file beside %s failed after %.1f MB: %s; free some space "
                "there, or write the vocabulary elsewhere",
                t->beside, (double)t->file_bytes / 1e6,
                written < 0 ? strerror(errno) : "nothing was written");
        bytes += written;
        n -= (size_t)written;
        t->file_bytes += (uint64_t)written;
    }
    return status_ok();
}

static struct status write_table(struct word_tally *t, const struct word_counts *table)
{
    struct buf block = {0};
    struct status s = status_ok();
    for (size_t i = 0; i < table->n && !failed(s); i++) {
        const struct word_count *w = &table->words[i];
        char head[RECORD_HEAD];
        bytes_store_u32(head, w->n_bytes);
        bytes_store_u64(head + 4, (uint64_t)w->count);
        buf_append(&block, head, sizeof head);
        buf_append(&block, table->text + w->start, w->n_bytes);
        if (block.n >= BLOCK_BYTES || i + 1 == table->n) {
            s = buf_status(&block);
            s = failed(s) ? s : write_all(t, block.data, block.n);
            buf_clear(&block);
        }
    }
    buf_fini(&block);
    return s;
}

static struct status keep_part(struct word_tally *t, struct word_counts *table)
{
    struct tally_part part = {.start = t->file_bytes};
    if (!ARRAY_RESERVE(t->parts, t->parts_capacity, t->n_parts + 1)) {
        return out_of_memory();
    }
    if (t->beside == NULL || t->n_in_memory + table->n <= t->memory_words) {
        t->n_in_memory += table->n;
        part.table = *table;
        *table = (struct word_counts){0};
    } else {
        TRY(open_file(t));
        TRY(write_table(t, table));
    }
    part.end = t->file_bytes;
    t->parts[t->n_parts++] = part;
    return status_ok();
}

struct status word_tally_take(struct word_tally *t, struct word_counts *table)
{
    struct status s = status_ok();
    if (table->n > 0) {
        s = sort_table(table);
        if (!failed(s)) {
            pthread_mutex_lock(&t->mutex);
            s = keep_part(t, table);
            pthread_mutex_unlock(&t->mutex);
        }
    }
    word_counts_fini(table);
    return s;
}

/* ---- reading ---- */

/* Makes at least n bytes of the file available after c->at. */
static struct status fill(const struct word_tally *t, struct tally_cursor *c, size_t n)
{
    if (c->n_block - c->at >= n) {
        return status_ok();
    }
    memmove(c->block, c->block + c->at, c->n_block - c->at);
    c->n_block -= c->at;
    c->at = 0;
    while (c->n_block < n) {
        uint64_t left = c->part->end - c->offset;
        size_t wanted = BLOCK_BYTES - c->n_block;
        ssize_t got =
            pread(t->fd, c->block + c->n_block, left < wanted ? (size_t)left : wanted, (off_t)c->offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        FAIL_IF(got <= 0, STATUS_IO, "reading the words of the text from a file beside %s failed: %s",
                t->beside, got < 0 ? strerror(errno) : "the file has become shorter");
        c->n_block += (size_t)got;
        c->offset += (uint64_t)got;
    }
    return status_ok();
}

/* Moves to the next word; *end is true after the last. */
static struct status advance(const struct word_tally *t, struct tally_cursor *c, bool *end)
{
    const struct tally_part *p = c->part;
    if (p->start == p->end) {
        *end = c->next == p->table.n;
        if (!*end) {
            const struct word_count *w = &p->table.words[c->next++];
            c->text = p->table.text + w->start;
            c->n_bytes = w->n_bytes;
            c->count = w->count;
        }
        return status_ok();
    }
    *end = c->offset == p->end && c->at == c->n_block;
    if (*end) {
        return status_ok();
    }
    TRY(fill(t, c, RECORD_HEAD));
    size_t n_bytes = bytes_load_u32(c->block + c->at);
    CHECK(n_bytes <= WORD_TALLY_MAX_BYTES, "a word of %zu bytes", n_bytes);
    TRY(fill(t, c, RECORD_HEAD + n_bytes));
    c->n_bytes = n_bytes;
    c->count = (int64_t)bytes_load_u64(c->block + c->at + 4);
    c->text = (const char *)c->block + c->at + RECORD_HEAD;
    c->at += RECORD_HEAD + n_bytes;
    return status_ok();
}

static bool comes_first(const struct word_tally_reader *r, size_t left, size_t right)
{
    const struct tally_cursor *a = &r->cursors[left];
    const struct tally_cursor *b = &r->cursors[right];
    return compare_bytes(a->text, a->n_bytes, b->text, b->n_bytes) < 0;
}

/* Moves the cursor at i to its place in the part of the heap below it. */
static void sift(struct word_tally_reader *r, size_t i)
{
    size_t moved = r->heap[i];
    for (size_t child; (child = 2 * i + 1) < r->n; i = child) {
        child += child + 1 < r->n && comes_first(r, r->heap[child + 1], r->heap[child]);
        if (!comes_first(r, r->heap[child], moved)) {
            break;
        }
        r->heap[i] = r->heap[child];
    }
    r->heap[i] = moved;
}

/* Moves the first cursor on; one that has ended leaves the heap. */
static struct status advance_first(struct word_tally_reader *r)
{
    bool end;
    TRY(advance(r->tally, &r->cursors[r->heap[0]], &end));
    if (end) {
        r->heap[0] = r->heap[--r->n];
    }
    if (r->n > 0) {
        sift(r, 0);
    }
    return status_ok();
}

/* A cursor at the beginning of a part of the tally. */
static struct status add_cursor(struct word_tally_reader *r, size_t number)
{
    struct tally_cursor *c = &r->cursors[number];
    const struct tally_part *part = &r->tally->parts[number];
    *c = (struct tally_cursor){.part = part, .offset = part->start, .text = ""};
    if (part->start < part->end) {
        c->block = malloc(BLOCK_BYTES);
        if (c->block == NULL) {
            return out_of_memory();
        }
    }
    bool end;
    TRY(advance(r->tally, c, &end));
    if (!end) {
        r->heap[r->n++] = number;
    }
    return status_ok();
}

struct status word_tally_open(struct word_tally_reader *r, const struct word_tally *t)
{
    *r = (struct word_tally_reader){.tally = t};
    r->cursors = calloc(t->n_parts + 1, sizeof *r->cursors);
    r->heap = calloc(t->n_parts + 1, sizeof *r->heap);
    struct status s = r->cursors != NULL && r->heap != NULL ? status_ok() : out_of_memory();
    for (size_t i = 0; i < t->n_parts && !failed(s); i++) {
        s = add_cursor(r, i);
    }
    if (failed(s)) {
        word_tally_close(r);
        return s;
    }
    for (size_t i = r->n / 2; i-- > 0;) {
        sift(r, i);
    }
    return s;
}

struct status word_tally_next(struct word_tally_reader *r, bool *end)
{
    *end = r->n == 0;
    if (*end) {
        return status_ok();
    }
    const struct tally_cursor *first = &r->cursors[r->heap[0]];
    CHECK(first->n_bytes <= sizeof r->word, "a word of %zu bytes", first->n_bytes);
    memcpy(r->word, first->text, first->n_bytes);
    r->n_bytes = first->n_bytes;
    r->count = 0;
    for (; r->n > 0; first = &r->cursors[r->heap[0]]) {
        if (compare_bytes(first->text, first->n_bytes, r->word, r->n_bytes) != 0) {
            break;
        }
        r->count += first->count;
        TRY(advance_first(r));
    }
    return status_ok();
}

void word_tally_close(struct word_tally_reader *r)
{
    for (size_t i = 0; r->cursors != NULL && i < r->tally->n_parts; i++) {
        free(r->cursors[i].block);
    }
    free(r->cursors);
    free(r->heap);
    *r = (struct word_tally_reader){0};
}
