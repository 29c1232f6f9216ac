/* byte_stream: the bytes of a file from the beginning to the end, unpacked if the file is compressed.  Each
 * kind of file is a table in its own file (plain_stream.c, gzip_stream.c, bzip2_stream.c,
 * archive_stream.c); byte_stream.c has the list.
 *
 * The rule: a stream reads forward in bounded memory, and its bytes depend on the file alone, not on the
 * number of threads that help to unpack it.  Damaged parts of a bzip2 file are left out, named and counted;
 * there the stream has a gap. */
#ifndef KILN_IO_BYTE_STREAM_H
#define KILN_IO_BYTE_STREAM_H

#include "core/status.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* A place in the unpacked bytes; {0} is the beginning. */
struct byte_place {
    uint64_t offset;
    /* unpacking can begin at this bit of the file, with the byte at this offset */
    uint64_t from_bit, from_offset;
};

struct byte_stream {
    const struct byte_stream_kind *kind; /* NULL: not open */
    const char *path;                    /* borrowed */
    int fd;
    uint64_t file_bytes; /* size of the file when it was opened */
    uint64_t file_at;    /* bytes of the file read so far, for progress */
    uint64_t offset;     /* unpacked bytes read so far */
    bool at_gap;         /* the bytes that follow in the file were damaged, and are left out */
    bool ends_early;     /* the file ended where more had to follow; known at the end */
    int64_t n_damaged;   /* parts left out */
    bool quiet;          /* faults of files are counted, not logged; the caller sets it */
    void *state;         /* the kind's own */

    pthread_mutex_t mutex; /* guards all fields below */
    pthread_cond_t left;
    int n_helpers;
    bool accepts_help;
};

struct byte_stream_kind {
    const char *name; /* "plain", "gzip" */
    bool (*recognises)(const unsigned char *head,
                       size_t n); /* NULL in the last row, which takes every file */
    struct status (*open)(struct byte_stream *s);
    struct status (*read)(struct byte_stream *s, void *to, size_t n, size_t *got);
    struct status (*seek)(struct byte_stream *s, struct byte_place place);
    struct byte_place (*place)(const struct byte_stream *s, uint64_t offset);
    bool (*help)(struct byte_stream *s); /* NULL: one thread does all */
    void (*close)(struct byte_stream *s);
};

extern const struct byte_stream_kind plain_stream, gzip_stream, bzip2_stream, archive_stream;

/* A stream that is not open; it serves one file after the other. */
void byte_stream_init(struct byte_stream *s);
void byte_stream_fini(struct byte_stream *s);

/* Opens a regular file, which byte_stream_close closes.  `wanted_bytes` is its size when it was listed:
 * STATUS_IO if it is now shorter.  STATUS_DATA if it cannot be opened. */
struct status byte_stream_open(struct byte_stream *s, const char *path, uint64_t wanted_bytes);
void byte_stream_close(struct byte_stream *s);

/* Reads at most n > 0 bytes; *got is 0 only at the end and, with `at_gap` set, before a gap.  STATUS_IO: the
 * file cannot be read, or was truncated since it was opened; STATUS_DATA: a gzip file that is damaged, or a
 * file that unpacks to 100 times its size, over 64 MiB. */
struct status byte_stream_read(struct byte_stream *s, void *to, size_t n, size_t *got);

/* Continues after a gap. */
void byte_stream_pass_gap(struct byte_stream *s);

/* The place of a byte that was read, at most BYTE_STREAM_PLACES blocks ago, or else one from which unpacking
 * takes longer; and a seek to such a place of the same file.  STATUS_DATA if the file has no such place. */
enum { BYTE_STREAM_PLACES = 256 };
struct byte_place byte_stream_place(const struct byte_stream *s, uint64_t offset);
struct status byte_stream_seek(struct byte_stream *s, struct byte_place place);

/* Unpacks a piece ahead of the reading thread; any other thread may call it.  False if there was nothing to
 * do. */
bool byte_stream_help(struct byte_stream *s);

/* Whether the stream is compressed: then its places are not bytes of the file. */
bool byte_stream_is_packed(const struct byte_stream *s);

/* ---- for kinds ---- */

/* Reads exactly n bytes of the file at `at`.  STATUS_IO, also if the file has become shorter. */
struct status byte_stream_read_file(const struct byte_stream *s, void *to, size_t n, uint64_t at);

/* STATUS_IO if the file is now shorter than when it was opened. */
struct status byte_stream_check_size(const struct byte_stream *s);

/* Logs what is wrong with the file, unless the stream is quiet. */
void byte_stream_warn(const struct byte_stream *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reads and drops bytes until the offset, or the end. */
struct status byte_stream_skip(struct byte_stream *s, uint64_t offset);

#endif
