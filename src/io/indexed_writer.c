/* indexed_writer: the writing half of io/indexed.h. */
#include "io/indexed.h"

#include <unistd.h>

static const int64_t U16_VOCAB_LIMIT = 65500; /* Megatron's best_fitting_dtype */

static const char *const suffixes[INDEXED_N_PARTS] = {".bin", ".sizes", ".bounds"};

static struct status open_part(struct indexed_writer *w, const char *prefix, const char *suffix,
                               struct append_file *part, const struct append_mark *from)
{
    char path[FILE_PATH_BYTES];
    FAIL_IF((size_t)snprintf(path, sizeof path, "%s%s", prefix, suffix) >= sizeof path, STATUS_USAGE,
            "the path %.60s... is longer than %zu bytes", prefix, sizeof path - 1);
    return part == NULL ? file_writer_open(&w->idx, path) : append_file_open(part, path, *from);
}

struct status indexed_writer_continue(struct indexed_writer *w, const char *prefix, int64_t vocab_size,
                                      const struct indexed_place *from)
{
    *w = (struct indexed_writer){.token_bytes = vocab_size < U16_VOCAB_LIMIT ? 2 : 4};
    w->n_sequences = (int64_t)(from->parts[INDEXED_SIZES].n_bytes / sizeof(int32_t));
    w->n_documents = (int64_t)(from->parts[INDEXED_BOUNDS].n_bytes / sizeof(int64_t));
    w->n_tokens = (int64_t)(from->parts[INDEXED_BIN].n_bytes / (uint64_t)w->token_bytes);
    struct status s = open_part(w, prefix, ".idx", NULL, NULL);
    for (int i = 0; i < INDEXED_N_PARTS && !failed(s); i++) {
        s = open_part(w, prefix, suffixes[i], &w->parts[i], &from->parts[i]);
    }
    if (failed(s)) {
        indexed_writer_close(w);
    }
    return s;
}

struct status indexed_writer_open(struct indexed_writer *w, const char *prefix, int64_t vocab_size)
{
    return indexed_writer_continue(w, prefix, vocab_size, &(struct indexed_place){0});
}

void indexed_pack(void *tokens, const int32_t *ids, int64_t n, int token_bytes)
{
    uint16_t *narrow = tokens;
    if (token_bytes == 4) {
        memcpy(tokens, ids, (size_t)n * 4);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        CHECK(ids[i] >= 0 && ids[i] <= UINT16_MAX, "id %d", (int)ids[i]);
        narrow[i] = (uint16_t)ids[i];
    }
}

static void end_sequence(struct indexed_writer *w, int64_t n)
{
    CHECK(n >= 0 && n <= INT32_MAX, "a sequence of %lld tokens", (long long)n);
    append_file_put(&w->parts[INDEXED_SIZES], &(int32_t){(int32_t)n}, sizeof(int32_t));
    w->n_sequences++;
    w->n_tokens += n;
}

void indexed_writer_add(struct indexed_writer *w, const int32_t *ids, int64_t n)
{
    enum { CHUNK = 1024 };
    unsigned char chunk[4 * CHUNK];
    for (int64_t done = 0; done < n; done += CHUNK) {
        int64_t m = n - done < CHUNK ? n - done : CHUNK;
        indexed_pack(chunk, ids + done, m, w->token_bytes);
        append_file_put(&w->parts[INDEXED_BIN], chunk, (size_t)m * (size_t)w->token_bytes);
    }
    end_sequence(w, n);
}

void indexed_writer_add_packed(struct indexed_writer *w, const void *tokens, int64_t n)
{
    append_file_put(&w->parts[INDEXED_BIN], tokens, (size_t)n * (size_t)w->token_bytes);
    end_sequence(w, n);
}

void indexed_writer_end_document(struct indexed_writer *w)
{
    append_file_put(&w->parts[INDEXED_BOUNDS], &w->n_sequences, sizeof w->n_sequences);
    w->n_documents++;
}

struct status indexed_writer_status(const struct indexed_writer *w)
{
    for (int i = 0; i < INDEXED_N_PARTS; i++) {
        TRY(w->parts[i].status);
    }
    return status_ok();
}

struct status indexed_writer_save(struct indexed_writer *w, struct indexed_place *place)
{
    for (int i = 0; i < INDEXED_N_PARTS; i++) {
        TRY(append_file_sync(&w->parts[i]));
        place->parts[i] = w->parts[i].mark;
    }
    return status_ok();
}

/* ---- the index ---- */

static void put(void *context, const unsigned char *bytes, size_t n)
{
    struct indexed_writer *w = context;
    block_sums_add(&w->idx_sums, bytes, n);
    file_writer_put(&w->idx, bytes, n);
}

static void put_u64(struct indexed_writer *w, uint64_t value)
{
    put(w, (const unsigned char *)&value, sizeof value);
}

struct pointers {
    struct indexed_writer *writer;
    uint64_t next;
};

/* Puts pointers in blocks: a call of put for each pointer takes twice the time. */
static void put_pointers(void *context, const unsigned char *sizes, size_t n)
{
    enum { BLOCK = 1024 };
    struct pointers *p = context;
    uint64_t block[BLOCK];
    size_t n_sizes = n / sizeof(int32_t);
    for (size_t begin = 0; begin < n_sizes; begin += BLOCK) {
        size_t n_block = n_sizes - begin < BLOCK ? n_sizes - begin : BLOCK;
        for (size_t i = 0; i < n_block; i++) {
            int32_t size;
            memcpy(&size, sizes + (begin + i) * sizeof size, sizeof size);
            block[i] = p->next;
            p->next += (uint64_t)size * (uint64_t)p->writer->token_bytes;
        }
        put(p->writer, (const unsigned char *)block, n_block * sizeof *block);
    }
}

static struct status put_index(struct indexed_writer *w)
{
    const struct append_file *sizes = &w->parts[INDEXED_SIZES], *bounds = &w->parts[INDEXED_BOUNDS];
    unsigned char code = w->token_bytes == 2 ? INDEXED_CODE_U16 : INDEXED_CODE_I32;
    struct pointers pointers = {.writer = w};
    put(w, (const unsigned char *)indexed_magic, INDEXED_MAGIC_BYTES);
    put_u64(w, INDEXED_VERSION);
    put(w, &code, 1);
    put_u64(w, (uint64_t)w->n_sequences);
    put_u64(w, (uint64_t)w->n_documents + 1);
    TRY(append_file_read(sizes->path, sizes->mark.n_bytes, put, w));
    TRY(append_file_read(sizes->path, sizes->mark.n_bytes, put_pointers, &pointers));
    put_u64(w, 0);
    return append_file_read(bounds->path, bounds->mark.n_bytes, put, w);
}

static struct status commit(struct indexed_writer *w)
{
    for (int i = 0; i < INDEXED_N_PARTS; i++) {
        TRY(append_file_sync(&w->parts[i]));
    }
    TRY(put_index(w));
    block_sums_end(&w->idx_sums);
    block_sums_end(&w->parts[INDEXED_BIN].sums);
    TRY(buf_status(&w->idx_sums.crcs));
    TRY(buf_status(&w->parts[INDEXED_BIN].sums.crcs));
    return file_writer_commit(&w->idx);
}

struct status indexed_writer_commit(struct indexed_writer *w, struct indexed_sums *sums)
{
    TRY(commit(w));
    if (sums != NULL) {
        *sums = (struct indexed_sums){w->parts[INDEXED_BIN].sums, w->idx_sums};
        w->parts[INDEXED_BIN].sums = w->idx_sums = (struct block_sums){0};
    }
    indexed_writer_close(w);
    return status_ok();
}

void indexed_writer_abandon(struct indexed_writer *w)
{
    for (int i = 0; i < INDEXED_N_PARTS; i++) {
        if (w->parts[i].buffer != NULL) {
            unlink(w->parts[i].path);
        }
    }
    indexed_writer_close(w);
}

void indexed_writer_close(struct indexed_writer *w)
{
    file_writer_abandon(&w->idx);
    block_sums_fini(&w->idx_sums);
    for (int i = 0; i < INDEXED_N_PARTS; i++) {
        append_file_close(&w->parts[i]);
    }
}
