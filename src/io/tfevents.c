#include "io/tfevents.h"

#include "core/bytes.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/host.h"
#include "io/file.h"
#include "io/protobuf.h"

#include <string.h>
#include <unistd.h>

/* Event and Summary, by their field numbers. */
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION = 7 };
enum { SESSION_STATUS = 1, SESSION_START = 1 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN = 1, PLUGIN_NAME = 1 };
enum { TENSOR_DTYPE = 1, TENSOR_SHAPE = 2, TENSOR_STRING = 8, SHAPE_DIM = 2, DIM_SIZE = 1, DTYPE_STRING = 7 };

static void append_u32(struct buf *b, uint32_t v)
{
    unsigned char bytes[4];
    bytes_store_u32(bytes, v);
    buf_append(b, bytes, sizeof bytes);
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
    struct buf event = {0};
    protobuf_put_double(&event, EVENT_WALL_TIME, wall_s);
    protobuf_put_text(&event, EVENT_FILE_VERSION, "brain.Event:2");
    append_event(b, &event);
}

/* Frees the content. */
static void put_event(struct buf *b, int64_t step, double wall_s, int field, struct buf *content)
{
    struct buf event = {0};
    protobuf_put_double(&event, EVENT_WALL_TIME, wall_s);
    protobuf_put_int(&event, EVENT_STEP, step);
    protobuf_put_message(&event, field, content);
    buf_fini(content);
    append_event(b, &event);
}

void tfevents_append_start(struct buf *b, int64_t first_step, double wall_s)
{
    struct buf session = {0};
    protobuf_put_int(&session, SESSION_STATUS, SESSION_START);
    put_event(b, first_step, wall_s, EVENT_SESSION, &session);
}

void tfevents_append_scalars(struct buf *b, int64_t step, double wall_s,
                             const struct tfevents_scalar *scalars, size_t n)
{
    struct buf summary = {0};
    for (size_t i = 0; i < n; i++) {
        struct buf value = {0};
        protobuf_put_text(&value, VALUE_TAG, scalars[i].tag);
        protobuf_put_float(&value, VALUE_SIMPLE, (float)scalars[i].value);
        protobuf_put_message(&summary, SUMMARY_VALUE, &value);
        buf_fini(&value);
    }
    put_event(b, step, wall_s, EVENT_SUMMARY, &summary);
}

/* A text is a tensor of one string, [1], with the name of the plugin that shows it. */
static void put_text_value(struct buf *value, const char *text)
{
    struct buf plugin = {0}, metadata = {0}, dim = {0}, shape = {0}, t = {0};
    protobuf_put_text(&plugin, PLUGIN_NAME, "text");
    protobuf_put_message(&metadata, METADATA_PLUGIN, &plugin);
    protobuf_put_int(&dim, DIM_SIZE, 1);
    protobuf_put_message(&shape, SHAPE_DIM, &dim);
    protobuf_put_int(&t, TENSOR_DTYPE, DTYPE_STRING);
    protobuf_put_message(&t, TENSOR_SHAPE, &shape);
    protobuf_put_text(&t, TENSOR_STRING, text);
    protobuf_put_message(value, VALUE_TENSOR, &t);
    protobuf_put_message(value, VALUE_METADATA, &metadata);
    struct buf *const parts[] = {&plugin, &metadata, &dim, &shape, &t};
    for (int i = 0; i < 5; i++) {
        buf_fini(parts[i]);
    }
}

void tfevents_append_text(struct buf *b, int64_t step, double wall_s, const char *name, const char *text)
{
    struct buf summary = {0}, value = {0}, tag = {0};
    buf_printf(&tag, "%s/text_summary", name);
    protobuf_put_text(&value, VALUE_TAG, tag.failed ? "" : buf_text(&tag));
    put_text_value(&value, text);
    protobuf_put_message(&summary, SUMMARY_VALUE, &value);
    put_event(b, step, wall_s, EVENT_SUMMARY, &summary);
    buf_fini(&tag);
    buf_fini(&value);
}

/* Writes the contents of `b` and frees it. */
static struct status write_records(struct tfevents *t, struct buf *b)
{
    struct status s = buf_status(b);
    if (!failed(s)) {
        record_log_append(&t->log, b->data, b->n);
    }
    buf_fini(b);
    return s;
}

struct status tfevents_open(struct tfevents *t, const char *directory, int64_t first_step)
{
    double now = clock_wall_s();
    struct buf path = {0}, b = {0};
    *t = (struct tfevents){0};
    TRY(file_make_directories(directory));
    buf_printf(&path, "%s/events.out.tfevents.%lld.%s.%ld.0", directory, (long long)now, host_name().text,
               (long)getpid());
    struct status s = buf_status(&path);
    s = failed(s) ? s : record_log_open(&t->log, buf_text(&path), false);
    buf_fini(&path);
    TRY(s);
    tfevents_append_version(&b, now);
    tfevents_append_start(&b, first_step, now);
    return write_records(t, &b);
}

void tfevents_close(struct tfevents *t)
{
    record_log_close(&t->log);
}

struct status tfevents_write(struct tfevents *t, int64_t step, double wall_s,
                             const struct tfevents_scalar *scalars, size_t n)
{
    struct buf b = {0};
    if (t->log.file == NULL) {
        return status_ok();
    }
    tfevents_append_scalars(&b, step, wall_s, scalars, n);
    return write_records(t, &b);
}

struct status tfevents_write_text(struct tfevents *t, int64_t step, double wall_s, const char *name,
                                  const char *text)
{
    struct buf b = {0};
    if (t->log.file == NULL) {
        return status_ok();
    }
    tfevents_append_text(&b, step, wall_s, name, text);
    return write_records(t, &b);
}
