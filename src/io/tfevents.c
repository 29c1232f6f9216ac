#include "io/tfevents.h"

#include "core/bytes.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/host.h"
#include "io/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Protocol Buffers: a field begins with number << 3 | wire type. */
enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* Event and Summary, by their field numbers. */
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };

static void append_varint(struct buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) {
        buf_putc(b, (char)(v | 0x80));
    }
    buf_putc(b, (char)v);
}

static void append_key(struct buf *b, unsigned field, enum wire_type type)
{
    append_varint(b, (uint64_t)field << 3 | (unsigned)type);
}

static void append_u32(struct buf *b, uint32_t v)
{
    unsigned char bytes[4];
    bytes_store_u32(bytes, v);
    buf_append(b, bytes, sizeof bytes);
}

static void append_u64(struct buf *b, uint64_t v)
{
    unsigned char bytes[8];
    bytes_store_u64(bytes, v);
    buf_append(b, bytes, sizeof bytes);
}

static void append_double(struct buf *b, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    append_key(b, field, WIRE_64);
    append_u64(b, bits);
}

static void append_float(struct buf *b, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    append_key(b, field, WIRE_32);
    append_u32(b, bits);
}

static void append_bytes(struct buf *b, unsigned field, const void *bytes, size_t n)
{
    append_key(b, field, WIRE_BYTES);
    append_varint(b, n);
    buf_append(b, bytes, n);
}

/* Appends `inner` as a field of `outer`; frees inner and passes on its failure. */
static void append_message(struct buf *outer, unsigned field, struct buf *inner)
{
    append_bytes(outer, field, inner->data, inner->n);
    outer->failed |= inner->failed;
    buf_fini(inner);
}

static uint32_t masked_crc(const void *bytes, size_t n)
{
    return hash_mask_crc(hash_crc32c(0, bytes, n));
}

void tfevents_append_record(struct buf *b, const void *bytes, size_t n)
{
    unsigned char length[8];
    bytes_store_u64(length, n);
    buf_append(b, length, sizeof length);
    append_u32(b, masked_crc(length, sizeof length));
    buf_append(b, bytes, n);
    append_u32(b, masked_crc(bytes, n));
}

/* Appends the event as a record; frees the event and passes on its failure. */
static void append_event(struct buf *b, struct buf *event)
{
    tfevents_append_record(b, event->data, event->n);
    b->failed |= event->failed;
    buf_fini(event);
}

void tfevents_append_version(struct buf *b, double wall_s)
{
    static const char version[] = "brain.Event:2";
    struct buf event = {0};
    append_double(&event, EVENT_WALL_TIME, wall_s);
    append_bytes(&event, EVENT_FILE_VERSION, version, sizeof version - 1);
    append_event(b, &event);
}

void tfevents_append_scalars(struct buf *b, int64_t step, double wall_s,
                             const struct tfevents_scalar *scalars, size_t n)
{
    struct buf event = {0}, summary = {0};
    for (size_t i = 0; i < n; i++) {
        struct buf value = {0};
        append_bytes(&value, VALUE_TAG, scalars[i].tag, strlen(scalars[i].tag));
        append_float(&value, VALUE_SIMPLE, (float)scalars[i].value);
        append_message(&summary, SUMMARY_VALUE, &value);
    }
    append_double(&event, EVENT_WALL_TIME, wall_s);
    append_key(&event, EVENT_STEP, WIRE_VARINT);
    append_varint(&event, (uint64_t)step);
    append_message(&event, EVENT_SUMMARY, &summary);
    append_event(b, &event);
}

/* Writes the contents of `b` and frees it. */
static struct status write_records(struct tfevents *t, struct buf *b)
{
    struct status s = buf_status(b);
    if (!failed(s) && (fwrite(b->data, 1, b->n, t->file) != b->n || fflush(t->file) != 0)) {
        s = status_error(STATUS_IO, "cannot write %s: %s", t->path, strerror(errno));
    }
    buf_fini(b);
    if (failed(s)) {
        tfevents_close(t);
    }
    return s;
}

struct status tfevents_open(struct tfevents *t, const char *directory)
{
    double now = clock_wall_s();
    *t = (struct tfevents){0};
    TRY(file_make_directories(directory));
    int n = snprintf(t->path, sizeof t->path, "%s/events.out.tfevents.%lld.%s.%ld.0", directory,
                     (long long)now, host_name().text, (long)getpid());
    if (n >= (int)sizeof t->path) {
        return status_error(STATUS_USAGE, "the path %.60s... is longer than %zu bytes", directory,
                            sizeof t->path - 1);
    }
    TRY(file_lines_open(&t->file, t->path, false));
    struct buf b = {0};
    tfevents_append_version(&b, now);
    return write_records(t, &b);
}

void tfevents_close(struct tfevents *t)
{
    if (t->file != NULL) {
        fclose(t->file);
        t->file = NULL;
    }
}

struct status tfevents_write(struct tfevents *t, int64_t step, double wall_s,
                             const struct tfevents_scalar *scalars, size_t n)
{
    struct buf b = {0};
    if (t->file == NULL) {
        return status_ok();
    }
    tfevents_append_scalars(&b, step, wall_s, scalars, n);
    return write_records(t, &b);
}
