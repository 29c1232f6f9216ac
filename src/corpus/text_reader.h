/* text_reader: the lines of a file of text, unpacked if it is compressed (io/byte_stream.h), made UTF-8 if it
 * is in another encoding (text/encoding.h) and read in blocks, so that memory does not grow with the file.
 *
 * The rule: a line is returned only after its bytes were checked.  Ill-formed bytes are an error with file
 * and offset or, if asked for, left in the lines for utf8_repair.  A byte order mark at the beginning is
 * dropped.  A file that becomes shorter while it is read is an error (docs/decisions/0037_corpus.md).  Where
 * the stream has a gap, the line that was cut and the rest of the line after it are left out.
 *
 * A line longer than TEXT_READER_LINE_BYTES is returned in parts, cut after white space if there is any. */
#ifndef KILN_CORPUS_TEXT_READER_H
#define KILN_CORPUS_TEXT_READER_H

#include "core/buf.h"
#include "corpus/text_line.h"
#include "io/byte_stream.h"
#include "text/encoding.h"

enum {
    TEXT_READER_HEAD_BYTES = 1 << 16, /* beginning of a file that can be examined */
    TEXT_READER_BLOCK_BYTES =
        1 << 18, /* read at once: enough to hide the cost of a call, and less than a cache */
    TEXT_READER_LINE_BYTES = 1 << 24, /* more than a long book */
};

/* A place between two lines. */
struct text_place {
    uint64_t offset;          /* offset in the unpacked bytes, as UTF-8 */
    struct byte_place before; /* place of the byte before it, which shows whether a line begins here */
    int64_t line;             /* number of the line before it */
};

struct text_reader {
    const char *path; /* borrowed */
    struct byte_stream stream;
    struct encoding encoding;
    struct buf raw;       /* unpacked bytes that wait to be converted; unused for UTF-8 */
    struct buf converted; /* scratch */
    uint64_t raw_at;      /* offset of them in the unpacked bytes */
    bool replace_invalid_utf8;
    bool keeps_blanks;  /* at the ends of lines; false when it is opened */
    uint64_t buffer_at; /* offset of the buffer in the unpacked bytes, as UTF-8 */
    char *buffer;       /* [capacity], the first n are filled */
    size_t capacity, n;
    size_t checked;   /* bytes checked to be UTF-8, or allowed not to be */
    size_t at;        /* next byte */
    size_t last;      /* where the line that was returned last begins */
    int64_t line;     /* number of the line before it */
    bool inside_line; /* a part of this line was returned */
    bool ended;       /* the stream has no more bytes, or has a gap here */
    int64_t n_gaps;   /* gaps that the lines returned so far have passed */
};

/* A reader that is not open; its buffer serves one file after the other. */
void text_reader_init(struct text_reader *r);
void text_reader_fini(struct text_reader *r);

/* Opens a file and reads its head, unchecked.  `wanted_bytes` is its size when it was listed: STATUS_IO if it
 * is now shorter.  STATUS_DATA if it cannot be opened; STATUS_USAGE: there is no such encoding (NULL:
 * UTF-8). */
struct status text_reader_open(struct text_reader *r, const char *path, uint64_t wanted_bytes,
                               const char *encoding, bool replace_invalid_utf8);
void text_reader_close(struct text_reader *r);

/* Checks the file after the last line: STATUS_DATA if it is compressed and lacks its end. */
struct status text_reader_check_end(const struct text_reader *r);

/* The first bytes of the file, at least TEXT_READER_HEAD_BYTES if it has them, the byte order mark included.
 * Valid until the first line is read. */
const char *text_reader_head(const struct text_reader *r, size_t *n);

/* Continues at a place of this file that text_reader_place returned.  STATUS_DATA if the file has no such
 * place. */
struct status text_reader_seek(struct text_reader *r, struct text_place place);
struct text_place text_reader_place(const struct text_reader *r);

/* The unpacked byte that comes next, as UTF-8. */
uint64_t text_reader_offset(const struct text_reader *r);

/* Bytes of the file that were read: of a compressed one, including blocks whose lines are still to come. */
uint64_t text_reader_done_bytes(const struct text_reader *r);

/* The next line, trimmed unless `keeps_blanks`, borrowed until the next call; *end is true after the last.
 * STATUS_DATA: not UTF-8; STATUS_IO: it cannot be read, or was truncated. */
struct status text_reader_next(struct text_reader *r, struct text_line *line, bool *end);

/* Puts back the line that was returned last, a complete one: text_reader_next returns it again. */
void text_reader_put_back(struct text_reader *r);

#endif
