#include "io/gguf_writer.h"

#include "core/bytes.h"

#include <stdlib.h>
#include <string.h>

/* Elements that are converted at once, complete blocks; and their bytes. */
enum { CHUNK = 1 << 16, ROOM = 4 * CHUNK };

void gguf_writer_init(struct gguf_writer *w)
{
    *w = (struct gguf_writer){0};
}

/* ---- fields ---- */

static void put_u32(struct buf *b, uint32_t value)
{
    unsigned char bytes[4];
    bytes_store_u32(bytes, value);
    buf_append(b, bytes, sizeof bytes);
}

static void put_u64(struct buf *b, uint64_t value)
{
    unsigned char bytes[8];
    bytes_store_u64(bytes, value);
    buf_append(b, bytes, sizeof bytes);
}

static void put_text(struct buf *b, const char *text, size_t n)
{
    put_u64(b, n);
    buf_append(b, text, n);
}

static void put_key(struct gguf_writer *w, const char *key, enum gguf_value type)
{
    put_text(&w->pairs, key, strlen(key));
    put_u32(&w->pairs, type);
    w->n_pairs++;
}

void gguf_put_bytes(struct gguf_writer *w, const char *key, const void *text, size_t n)
{
    put_key(w, key, GGUF_VALUE_TEXT);
    put_text(&w->pairs, text, n);
}

void gguf_put_text(struct gguf_writer *w, const char *key, const char *text)
{
    gguf_put_bytes(w, key, text, strlen(text));
}

void gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t value)
{
    put_key(w, key, GGUF_VALUE_U32);
    put_u32(&w->pairs, value);
}

void gguf_put_f32(struct gguf_writer *w, const char *key, float value)
{
    put_key(w, key, GGUF_VALUE_F32);
    buf_append(&w->pairs, &value, sizeof value);
}

void gguf_put_bool(struct gguf_writer *w, const char *key, bool value)
{
    unsigned char byte = value;
    put_key(w, key, GGUF_VALUE_BOOL);
    buf_append(&w->pairs, &byte, 1);
}

void gguf_put_list(struct gguf_writer *w, const char *key, enum gguf_value type, uint64_t n)
{
    put_key(w, key, GGUF_VALUE_ARRAY);
    put_u32(&w->pairs, type);
    put_u64(&w->pairs, n);
}

void gguf_put_list_text(struct gguf_writer *w, const char *text, size_t n)
{
    put_text(&w->pairs, text, n);
}

void gguf_put_list_i32(struct gguf_writer *w, int32_t value)
{
    put_u32(&w->pairs, (uint32_t)value);
}

void gguf_put_list_f32(struct gguf_writer *w, float value)
{
    buf_append(&w->pairs, &value, sizeof value);
}

/* ---- the file ---- */

static uint64_t aligned(uint64_t at)
{
    return (at + GGUF_ALIGNMENT - 1) / GGUF_ALIGNMENT * GGUF_ALIGNMENT;
}

static uint64_t bytes_of(const struct gguf_item *item)
{
    uint64_t bytes;
    CHECK(gguf_type_bytes(&bytes, item->type, (uint64_t)tensor_count(item->shape)), "%s is too large",
          item->name);
    return bytes;
}

/* Describes a tensor in the file's header; dims are written with the fastest first. */
static void put_item(struct buf *b, const struct gguf_item *item, uint64_t at)
{
    put_text(b, item->name, strlen(item->name));
    put_u32(b, (uint32_t)item->shape.n_dims);
    for (int i = item->shape.n_dims - 1; i >= 0; i--) {
        put_u64(b, (uint64_t)item->shape.dims[i]);
    }
    put_u32(b, item->type);
    put_u64(b, at);
}

static void put_header(struct buf *b, const struct gguf_writer *w)
{
    uint64_t at = 0;
    put_u32(b, GGUF_MAGIC);
    put_u32(b, GGUF_VERSION);
    put_u64(b, (uint64_t)w->n);
    put_u64(b, w->n_pairs);
    buf_append(b, buf_text(&w->pairs), w->pairs.n);
    for (int i = 0; i < w->n; i++) {
        put_item(b, &w->items[i], at);
        at = aligned(at + bytes_of(&w->items[i]));
    }
}

static void put_padding(struct file_writer *file)
{
    static const unsigned char zeros[GGUF_ALIGNMENT];
    file_writer_put(file, zeros, (size_t)(aligned(file->n_bytes) - file->n_bytes));
}

void gguf_writer_discard(struct gguf_writer *w)
{
    buf_fini(&w->pairs);
    free(w->room);
    w->room = NULL;
}

static struct status begin(struct gguf_writer *w, const char *path)
{
    struct buf header = {0};
    w->room = malloc(ROOM);
    put_header(&header, w);
    struct status s = w->room == NULL || w->pairs.failed
                          ? status_error(STATUS_MEMORY, "out of memory for the header of %s", path)
                          : buf_status(&header);
    s = failed(s) ? s : file_writer_open(&w->file, path);
    if (!failed(s)) {
        file_writer_put(&w->file, header.data, header.n);
        put_padding(&w->file);
    }
    buf_fini(&header);
    return s;
}

struct status gguf_writer_open(struct gguf_writer *w, const char *path, const struct gguf_item *items, int n)
{
    w->items = items;
    w->n = n;
    struct status s = begin(w, path);
    if (failed(s)) {
        gguf_writer_discard(w);
    }
    return s;
}

/* The least magnitude that would be infinite in fp16: half a step above its largest number. */
#define F16_INFINITE 65520.0F

static void check_range(struct gguf_writer *w, const struct gguf_item *item, const float *from, int64_t n)
{
    for (int64_t i = 0; item->type == GGUF_F16 && i < n; i++) {
        if ((from[i] >= F16_INFINITE || from[i] <= -F16_INFINITE) && !failed(w->file.status)) {
            w->file.status = status_error(
                STATUS_NUMERIC, "the tensor %s has the value %g, which fp16 cannot hold; take bf16 or f32",
                item->name, (double)from[i]);
        }
    }
}

void gguf_writer_put(struct gguf_writer *w, tensor t)
{
    CHECK(w->next < w->n, "tensor %d of %d", w->next + 1, w->n);
    const struct gguf_item *item = &w->items[w->next++];
    CHECK(tensor_is_dense(t) && t.dtype == DTYPE_F32 && tensor_count(t) == tensor_count(item->shape), "%s",
          item->name);
    const float *from = t.data;
    for (int64_t left = tensor_count(t); left > 0;) {
        int64_t n = left < CHUNK ? left : CHUNK;
        uint64_t bytes = 0;
        CHECK(gguf_type_bytes(&bytes, item->type, (uint64_t)n), "%s", item->name);
        check_range(w, item, from, n);
        gguf_encode(item->type, w->room, from, n);
        file_writer_put(&w->file, w->room, (size_t)bytes);
        from += n;
        left -= n;
    }
    put_padding(&w->file);
}

struct status gguf_writer_commit(struct gguf_writer *w)
{
    CHECK(w->next == w->n || failed(w->file.status), "%d of %d tensors", w->next, w->n);
    gguf_writer_discard(w);
    return file_writer_commit(&w->file);
}
