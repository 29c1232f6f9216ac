#include "io/zip_writer.h"

#include "core/bytes.h"

#include <string.h>

/* Signatures of records, and numbers of their fields. */
enum {
    LOCAL_SIGNATURE = 0x04034b50,
    CENTRAL_SIGNATURE = 0x02014b50,
    END_SIGNATURE = 0x06054b50,
    END64_SIGNATURE = 0x06064b50,
    LOCATOR64_SIGNATURE = 0x07064b50,
    LOCAL_BYTES = 30,
    ZIP64_EXTRA = 1,
    PADDING_EXTRA = 0x4246, /* "FB", as PyTorch has it */
    EXTRA_BYTES = 4,        /* kind and size of an extra field */
    VERSION = 20,
    VERSION64 = 45,
    FIRST_DAY = 0x21, /* 1980-01-01: archives of equal members are equal */
};

static void put_u16(struct buf *b, uint64_t value)
{
    unsigned char bytes[2];
    bytes_store_u16(bytes, (uint16_t)value);
    buf_append(b, bytes, sizeof bytes);
}

static void put_u32(struct buf *b, uint64_t value)
{
    unsigned char bytes[4];
    bytes_store_u32(bytes, (uint32_t)value);
    buf_append(b, bytes, sizeof bytes);
}

static void put_u64(struct buf *b, uint64_t value)
{
    unsigned char bytes[8];
    bytes_store_u64(bytes, value);
    buf_append(b, bytes, sizeof bytes);
}

/* Whether a number goes into a ZIP64 field; the plain field is then all ones. */
static bool is_large(uint64_t value)
{
    return value >= UINT32_MAX;
}

static uint64_t plain(uint64_t value)
{
    return is_large(value) ? UINT32_MAX : value;
}

/* The fields that both headers of a member have, from the version needed on. */
static void put_fields(struct buf *b, const char *name, uint64_t n, uint32_t crc, bool is_64, size_t extra)
{
    put_u16(b, is_64 ? VERSION64 : VERSION);
    put_u16(b, 0); /* flags */
    put_u16(b, 0); /* stored */
    put_u16(b, 0); /* time */
    put_u16(b, FIRST_DAY);
    put_u32(b, crc);
    put_u32(b, plain(n));
    put_u32(b, plain(n));
    put_u16(b, strlen(name));
    put_u16(b, extra);
}

static void put_header(struct buf *b, const char *name, uint64_t place, uint64_t n, uint32_t crc)
{
    static const unsigned char zeros[ZIP_ALIGNMENT];
    size_t sizes = is_large(n) ? EXTRA_BYTES + 16 : 0;
    uint64_t data = place + LOCAL_BYTES + strlen(name) + sizes + EXTRA_BYTES;
    size_t padding = (size_t)(-data % ZIP_ALIGNMENT);
    put_u32(b, LOCAL_SIGNATURE);
    put_fields(b, name, n, crc, is_large(n), sizes + EXTRA_BYTES + padding);
    buf_puts(b, name);
    if (sizes > 0) {
        put_u16(b, ZIP64_EXTRA);
        put_u16(b, 16);
        put_u64(b, n);
        put_u64(b, n);
    }
    put_u16(b, PADDING_EXTRA);
    put_u16(b, padding);
    buf_append(b, zeros, padding);
}

static void put_entry(struct buf *b, const char *name, uint64_t place, uint64_t n, uint32_t crc)
{
    bool is_64 = is_large(n) || is_large(place);
    size_t fields = (is_large(n) ? 16 : 0) + (is_large(place) ? 8 : 0);
    put_u32(b, CENTRAL_SIGNATURE);
    put_u16(b, is_64 ? VERSION64 : VERSION); /* made by */
    put_fields(b, name, n, crc, is_64, is_64 ? EXTRA_BYTES + fields : 0);
    put_u16(b, 0); /* comment */
    put_u16(b, 0); /* disk */
    put_u16(b, 0); /* attributes */
    put_u32(b, 0);
    put_u32(b, plain(place));
    buf_puts(b, name);
    if (is_64) {
        put_u16(b, ZIP64_EXTRA);
        put_u16(b, fields);
    }
    if (is_large(n)) {
        put_u64(b, n);
        put_u64(b, n);
    }
    if (is_large(place)) {
        put_u64(b, place);
    }
}

void zip_writer_describe(struct buf *header, struct buf *entry, const char *name, uint64_t place, uint64_t n,
                         uint32_t crc)
{
    put_header(header, name, place, n, crc);
    put_entry(entry, name, place, n, crc);
}

void zip_writer_end(struct buf *end, uint64_t n_members, uint64_t begin, uint64_t bytes)
{
    bool many = n_members >= UINT16_MAX;
    if (many || is_large(begin) || is_large(bytes)) {
        put_u32(end, END64_SIGNATURE);
        put_u64(end, 44); /* the rest of this record */
        put_u16(end, VERSION64);
        put_u16(end, VERSION64);
        put_u32(end, 0); /* disks */
        put_u32(end, 0);
        put_u64(end, n_members);
        put_u64(end, n_members);
        put_u64(end, bytes);
        put_u64(end, begin);
        put_u32(end, LOCATOR64_SIGNATURE);
        put_u32(end, 0);
        put_u64(end, begin + bytes);
        put_u32(end, 1);
    }
    put_u32(end, END_SIGNATURE);
    put_u16(end, 0); /* disks */
    put_u16(end, 0);
    put_u16(end, many ? UINT16_MAX : n_members);
    put_u16(end, many ? UINT16_MAX : n_members);
    put_u32(end, plain(bytes));
    put_u32(end, plain(begin));
    put_u16(end, 0); /* comment */
}

struct status zip_writer_open(struct zip_writer *w, const char *path)
{
    *w = (struct zip_writer){0};
    hash_crc32_init(&w->tables);
    return file_writer_open(&w->file, path);
}

/* Memory that is missing is the file's failure: nothing is written after it. */
static void note(struct file_writer *file, const struct buf *b)
{
    if (!failed(file->status)) {
        file->status = buf_status(b);
    }
}

void zip_writer_put(struct zip_writer *w, const char *name, const void *data, size_t n)
{
    struct buf header = {0};
    zip_writer_describe(&header, &w->directory, name, w->file.n_bytes, n, hash_crc32(&w->tables, 0, data, n));
    note(&w->file, &header);
    file_writer_put(&w->file, header.data, header.n);
    file_writer_put(&w->file, data, n);
    buf_fini(&header);
    w->n_members++;
}

struct status zip_writer_commit(struct zip_writer *w)
{
    struct buf end = {0};
    uint64_t begin = w->file.n_bytes;
    zip_writer_end(&end, w->n_members, begin, w->directory.n);
    note(&w->file, &w->directory);
    note(&w->file, &end);
    file_writer_put(&w->file, w->directory.data, w->directory.n);
    file_writer_put(&w->file, end.data, end.n);
    struct status s = file_writer_commit(&w->file);
    buf_fini(&end);
    buf_fini(&w->directory);
    return s;
}
