#include "io/zip_file.h"

#include "core/bytes.h"
#include "core/hash.h"
#include "core/parallel.h"

#include <stdlib.h>
#include <string.h>

/* Signatures of records, and sizes of their fixed parts. */
enum {
    LOCAL_SIGNATURE = 0x04034b50,
    CENTRAL_SIGNATURE = 0x02014b50,
    END_SIGNATURE = 0x06054b50,
    END64_SIGNATURE = 0x06064b50,
    LOCATOR64_SIGNATURE = 0x07064b50,
    CENTRAL_BYTES = 46,
    END_BYTES = 22,
    LOCATOR64_BYTES = 20,
    MAX_COMMENT_BYTES = 65535,
};

/* The directory, from the records at the end of the archive. */
struct directory {
    uint64_t n_members;
    uint64_t bytes;
    uint64_t begin;
};

/* One entry of the directory, with its ZIP64 fields applied. */
struct central {
    unsigned flags, method, disk;
    uint32_t crc;
    uint64_t compressed_bytes, bytes, begin;
    const char *name;
    size_t name_bytes;
};

static struct status damaged(const char *source, const char *what)
{
    return status_error(STATUS_DATA, "%s is a damaged archive, or cut short: %s", source, what);
}

/* The end record is followed by a comment, whose length it holds. */
static bool find_end(const unsigned char *bytes, size_t n, size_t *at)
{
    for (size_t back = END_BYTES; back <= n && back <= END_BYTES + MAX_COMMENT_BYTES; back++) {
        const unsigned char *p = bytes + (n - back);
        if (bytes_load_u32(p) == END_SIGNATURE && bytes_load_u16(p + END_BYTES - 2) == back - END_BYTES) {
            *at = n - back;
            return true;
        }
    }
    return false;
}

/* Reads the ZIP64 end record, to which a locator before the end record points. */
static struct status read_end64(struct directory *d, const unsigned char *bytes, size_t end,
                                const char *source)
{
    struct span locator = bytes_span(bytes + end - LOCATOR64_BYTES, LOCATOR64_BYTES);
    bytes_take(&locator, 8); /* signature, disk of the record */
    uint64_t at = bytes_read_u64(&locator);
    uint32_t n_disks = bytes_read_u32(&locator);
    if (at > end - LOCATOR64_BYTES || n_disks > 1) {
        return damaged(source, "its ZIP64 locator points outside it");
    }
    struct span s = bytes_span(bytes + at, end - LOCATOR64_BYTES - (size_t)at);
    uint32_t signature = bytes_read_u32(&s);
    bytes_take(&s, 8 + 2 + 2 + 4 + 4 + 8); /* size, versions, disks, members on this disk */
    d->n_members = bytes_read_u64(&s);
    d->bytes = bytes_read_u64(&s);
    d->begin = bytes_read_u64(&s);
    if (s.failed || signature != END64_SIGNATURE) {
        return damaged(source, "it has no ZIP64 end record where its locator says");
    }
    return status_ok();
}

static struct status read_directory(struct directory *d, const unsigned char *bytes, size_t n,
                                    const char *source)
{
    size_t end;
    if (!find_end(bytes, n, &end)) {
        return damaged(source, "it has no end record");
    }
    struct span s = bytes_span(bytes + end, n - end);
    bytes_take(&s, 4);
    unsigned disk = bytes_read_u16(&s);
    unsigned first_disk = bytes_read_u16(&s);
    unsigned here = bytes_read_u16(&s);
    *d = (struct directory){.n_members = bytes_read_u16(&s)};
    d->bytes = bytes_read_u32(&s);
    d->begin = bytes_read_u32(&s);
    if (end >= LOCATOR64_BYTES && bytes_load_u32(bytes + end - LOCATOR64_BYTES) == LOCATOR64_SIGNATURE) {
        TRY(read_end64(d, bytes, end, source));
    } else if (disk != 0 || first_disk != 0 || here != d->n_members) {
        return damaged(source, "it is one part of several, which kiln does not read");
    }
    if (d->begin > end || d->bytes > end - d->begin || d->n_members > d->bytes / CENTRAL_BYTES) {
        return damaged(source, "its directory is not inside it");
    }
    return status_ok();
}

/* Only sizes and offsets that do not fit into 32 bits are in the ZIP64 extra field. */
static bool read_extra64(struct central *c, struct span extra)
{
    enum { ZIP64_TAG = 1 };
    while (bytes_left(&extra) > 0 && !extra.failed) {
        unsigned tag = bytes_read_u16(&extra);
        size_t n = bytes_read_u16(&extra);
        const unsigned char *p = bytes_take(&extra, n);
        if (p != NULL && tag == ZIP64_TAG) {
            struct span s = bytes_span(p, n);
            c->bytes = c->bytes == UINT32_MAX ? bytes_read_u64(&s) : c->bytes;
            c->compressed_bytes =
                c->compressed_bytes == UINT32_MAX ? bytes_read_u64(&s) : c->compressed_bytes;
            c->begin = c->begin == UINT32_MAX ? bytes_read_u64(&s) : c->begin;
            return !s.failed;
        }
    }
    return true; /* a malformed extra field without ZIP64 is ignored */
}

static bool read_central(struct central *c, struct span *s)
{
    uint32_t signature = bytes_read_u32(s);
    bytes_take(s, 4); /* versions */
    *c = (struct central){.flags = bytes_read_u16(s)};
    c->method = bytes_read_u16(s);
    bytes_take(s, 4); /* time, date */
    c->crc = bytes_read_u32(s);
    c->compressed_bytes = bytes_read_u32(s);
    c->bytes = bytes_read_u32(s);
    c->name_bytes = bytes_read_u16(s);
    size_t extra_bytes = bytes_read_u16(s);
    size_t comment_bytes = bytes_read_u16(s);
    c->disk = bytes_read_u16(s);
    bytes_take(s, 6); /* attributes */
    c->begin = bytes_read_u32(s);
    c->name = (const char *)bytes_take(s, c->name_bytes);
    const unsigned char *extra = bytes_take(s, extra_bytes);
    bytes_take(s, comment_bytes);
    return !s->failed && signature == CENTRAL_SIGNATURE && read_extra64(c, bytes_span(extra, extra_bytes));
}

/* The data begins after the local header, whose extra field may be longer than the one in the directory. */
static bool place_member(struct zip_member *m, const struct central *c, const unsigned char *bytes,
                         uint64_t n)
{
    enum { ENCRYPTED = 1 };
    if (c->begin > n) {
        return false;
    }
    struct span s = bytes_span(bytes + c->begin, (size_t)(n - c->begin));
    uint32_t signature = bytes_read_u32(&s);
    bytes_take(&s, 22); /* repeats the directory */
    size_t name_bytes = bytes_read_u16(&s);
    size_t extra_bytes = bytes_read_u16(&s);
    const unsigned char *name = bytes_take(&s, name_bytes);
    bytes_take(&s, extra_bytes);
    const unsigned char *data = bytes_take_items(&s, c->compressed_bytes, 1);
    if (s.failed || signature != LOCAL_SIGNATURE || name_bytes != c->name_bytes || c->disk != 0 ||
        memcmp(name, c->name, name_bytes) != 0) {
        return false;
    }
    bool is_stored = c->method == 0 && c->compressed_bytes == c->bytes && (c->flags & ENCRYPTED) == 0;
    *m = (struct zip_member){c->name,   name_bytes, data,  (size_t)c->compressed_bytes,
                             is_stored, c->begin,   c->crc};
    return true;
}

static struct status read_member(struct zip_member *m, const struct central *c, const unsigned char *bytes,
                                 uint64_t n, const char *source)
{
    const int shown = c->name_bytes < 80 ? (int)c->name_bytes : 80;
    for (size_t i = 0; i < c->name_bytes; i++) {
        if ((unsigned char)c->name[i] < ' ') {
            return damaged(source, "a member's name has control characters");
        }
    }
    FAIL_IF(!place_member(m, c, bytes, n), STATUS_DATA,
            "%s is a damaged archive, or cut short: its member %.*s is not where it says", source, shown,
            c->name);
    return status_ok();
}

static int compare_places(const void *a, const void *b)
{
    const struct zip_member *x = a;
    const struct zip_member *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int compare_names(const void *a, const void *b)
{
    const struct zip_member *x = a;
    const struct zip_member *y = b;
    size_t shorter = x->name_bytes < y->name_bytes ? x->name_bytes : y->name_bytes;
    int order = shorter == 0 ? 0 : memcmp(x->name, y->name, shorter);
    return order != 0 ? order : (x->name_bytes > y->name_bytes) - (x->name_bytes < y->name_bytes);
}

/* Checks overlaps and duplicates; sorts the members by name. */
static struct status check_members(struct zip_file *z, const unsigned char *bytes, const char *source)
{
    qsort(z->members, z->n, sizeof *z->members, compare_places);
    for (size_t i = 1; i < z->n; i++) {
        const struct zip_member *m = &z->members[i - 1];
        if (m->data + m->n > bytes + m[1].begin) {
            return damaged(source, "two of its members overlap");
        }
    }
    qsort(z->members, z->n, sizeof *z->members, compare_names);
    for (size_t i = 1; i < z->n; i++) {
        if (compare_names(&z->members[i - 1], &z->members[i]) == 0) {
            return damaged(source, "two of its members have the same name");
        }
    }
    return status_ok();
}

static struct status read_members(struct zip_file *z, const unsigned char *bytes, const struct directory *d,
                                  const char *source)
{
    struct span s = bytes_span(bytes + d->begin, (size_t)d->bytes);
    z->members = calloc((size_t)d->n_members + 1, sizeof *z->members);
    FAIL_IF(z->members == NULL, STATUS_MEMORY, "out of memory for the members of %s", source);
    for (; z->n < d->n_members; z->n++) {
        struct central c;
        if (!read_central(&c, &s)) {
            return damaged(source, "its directory is malformed");
        }
        TRY(read_member(&z->members[z->n], &c, bytes, d->begin, source));
    }
    return check_members(z, bytes, source);
}

struct status zip_file_parse(struct zip_file *z, const void *bytes, size_t n, const char *source)
{
    struct directory d = {0};
    *z = (struct zip_file){0};
    TRY(read_directory(&d, bytes, n, source));
    struct status s = read_members(z, bytes, &d, source);
    if (failed(s)) {
        zip_file_close(z);
    }
    return s;
}

/* The sums of all members, which threads share. */
struct summing {
    const struct zip_file *z;
    struct hash_crc32_tables tables;
    bool *is_right; /* [n] */
};

static bool has_sum(const struct zip_member *m)
{
    return m->is_stored && m->n > 0;
}

static void sum_part(void *context, int part, int n_parts)
{
    struct summing *s = context;
    for (size_t i = (size_t)part; i < s->z->n; i += (size_t)n_parts) {
        const struct zip_member *m = &s->z->members[i];
        s->is_right[i] = has_sum(m) && hash_crc32(&s->tables, 0, m->data, m->n) == m->crc;
    }
}

struct status zip_file_check_sums(const struct zip_file *z, const char *source)
{
    struct summing s = {.z = z, .is_right = calloc(z->n + 1, sizeof *s.is_right)};
    const struct zip_member *wrong = NULL;
    size_t n_right = 0;
    FAIL_IF(s.is_right == NULL, STATUS_MEMORY, "out of memory for the members of %s", source);
    hash_crc32_init(&s.tables);
    parallel_run(sum_part, &s);
    for (size_t i = z->n; i-- > 0;) {
        n_right += s.is_right[i];
        wrong = has_sum(&z->members[i]) && !s.is_right[i] ? &z->members[i] : wrong;
    }
    free(s.is_right);
    return wrong == NULL || n_right == 0
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s is damaged: the CRC-32 of its member %.*s is wrong, while %zu other "
                              "members are right",
                              source, wrong->name_bytes < 80 ? (int)wrong->name_bytes : 80, wrong->name,
                              n_right);
}

void zip_file_close(struct zip_file *z)
{
    free(z->members);
    *z = (struct zip_file){0};
}

const struct zip_member *zip_file_find(const struct zip_file *z, const char *name, size_t name_bytes)
{
    const struct zip_member key = {.name = name, .name_bytes = name_bytes};
    return z->n == 0 ? NULL : bsearch(&key, z->members, z->n, sizeof key, compare_names);
}
