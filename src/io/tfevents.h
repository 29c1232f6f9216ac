/* tfevents: event files that TensorBoard reads: scalars and texts.
 *
 * A file is a sequence of TFRecords (u64 length, masked CRC-32C of it, the bytes, masked CRC-32C of them),
 * each an Event in Protocol Buffers' encoding; the first one names the version, "brain.Event:2".  Files are
 * only ever appended to, and TensorBoard merges all files of a directory, so a resumed run opens another one.
 * Its second event, SessionLog.START, says the step from which on TensorBoard forgets what older files have.
 * Source: tensorboard/compat/proto/{event,summary}.proto, tensorflow/core/lib/io/record_writer. */
#ifndef KILN_IO_TFEVENTS_H
#define KILN_IO_TFEVENTS_H

#include "core/buf.h"
#include "io/record_log.h"

struct tfevents {
    struct record_log log;
};

struct tfevents_scalar {
    const char *tag;
    double value; /* stored as fp32 */
};

/* Creates DIRECTORY/events.out.tfevents.TIME.HOST.PID.0, and DIRECTORY if it is missing, for steps from
 * first_step on.  STATUS_IO. */
struct status tfevents_open(struct tfevents *t, const char *directory, int64_t first_step);
void tfevents_close(struct tfevents *t);

/* Appends n scalars of one step as one event; `wall_s` is in seconds since 1970.  STATUS_MEMORY; what cannot
 * be written is left out (io/record_log.h). */
struct status tfevents_write(struct tfevents *t, int64_t step, double wall_s,
                             const struct tfevents_scalar *scalars, size_t n);

/* Appends a text under NAME/text_summary, as PyTorch's SummaryWriter does. */
struct status tfevents_write_text(struct tfevents *t, int64_t step, double wall_s, const char *name,
                                  const char *text);

/* The parts of a file, for tests: n bytes as a record, and one event as a complete record. */
void tfevents_append_record(struct buf *b, const void *bytes, size_t n);
void tfevents_append_version(struct buf *b, double wall_s);
void tfevents_append_start(struct buf *b, int64_t first_step, double wall_s);
void tfevents_append_scalars(struct buf *b, int64_t step, double wall_s,
                             const struct tfevents_scalar *scalars, size_t n);
void tfevents_append_text(struct buf *b, int64_t step, double wall_s, const char *name, const char *text);

#endif
