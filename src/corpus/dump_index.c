#define _GNU_SOURCE /* strcasestr */
#include "corpus/dump_index.h"

#include "core/log.h"
#include "core/progress.h"
#include "core/stop.h"
#include "corpus/text_reader.h"

#include <stdio.h>
#include <string.h>

enum {
    LEAST_OFFSET =
        60,        /* the <siteinfo> before the first page is longer; and a time of day has no such number */
    N_CHECKS = 16, /* places in the dump that are checked, evenly: each may cost a seek of the disk */
    STREAM_HEAD = 4, /* "BZh" and a digit */
    NAME_BYTES = 256,
    LINES_BETWEEN = 1 << 14, /* two looks at the clock */
};

static const char *const leave_out = "or leave the index out of the inputs: the text is the same";

/* ---- lines ---- */

/* Parses a number without leading zeros and the colon after it, at *at, which is moved past both. */
static bool parse_number(uint64_t *number, const char **at, const char *end)
{
    enum { MOST_DIGITS = 18 };
    const char *p = *at;
    for (*number = 0; p < end && *p >= '0' && *p <= '9' && p - *at < MOST_DIGITS; p++) {
        *number = 10 * *number + (uint64_t)(*p - '0');
    }
    bool is_good = p > *at && **at != '0' && p < end && *p == ':';
    *at = p + is_good;
    return is_good;
}

static bool parse_line(uint64_t *offset, const char *text, size_t n)
{
    uint64_t page;
    const char *end = text + n;
    return parse_number(offset, &text, end) && *offset >= LEAST_OFFSET && parse_number(&page, &text, end) &&
           text < end;
}

bool dump_index_recognises(const char *text, size_t n)
{
    size_t n_lines = 0, n_good = 0;
    while (n > 0) {
        uint64_t offset;
        const char *end = memchr(text, '\n', n);
        if (end == NULL) {
            break;
        }
        size_t length = (size_t)(end - text);
        n_lines++;
        n_good += parse_line(&offset, text, length);
        text += length + 1;
        n -= length + 1;
    }
    return n_good > 0 && 10 * n_good >= 9 * n_lines;
}

/* ---- which files ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* Bytes of a name without the end that says how it is packed: either file may have been unpacked. */
static size_t plain_bytes(const char *name)
{
    const char *end = strrchr(name, '.');
    bool is_packed = end != NULL && (strcmp(end, ".bz2") == 0 || strcmp(end, ".gz") == 0);
    return is_packed ? (size_t)(end - name) : strlen(name);
}

/* x-multistream-index.txt.bz2 is the index of x-multistream.xml.bz2, x-multistream-index1.txt-p1p41242.bz2
 * that of x-multistream1.xml-p1p41242.bz2; "" if the index has no such name. */
static void name_dump(char name[NAME_BYTES], const char *index)
{
    static const char mark[] = "-index", kind[] = ".txt";
    const char *begin = base_name(index), *at = strstr(begin, mark),
               *dot = at == NULL ? NULL : strstr(at, kind);
    name[0] = '\0';
    if (dot != NULL) {
        const char *behind = at + sizeof mark - 1;
        snprintf(name, NAME_BYTES, "%.*s%.*s.xml%s", (int)(at - begin), begin, (int)(dot - behind), behind,
                 dot + sizeof kind - 1);
    }
}

/* Whether a file is an index, by its text.  A damaged or cut index of one block is recognised by its name
 * alone. */
static bool is_index(struct text_reader *r, const struct input_file *f)
{
    size_t n;
    char name[NAME_BYTES];
    r->stream.quiet = true; /* dump_index_read warns */
    if (failed(text_reader_open(r, f->path, f->n_bytes, NULL, true))) {
        return false;
    }
    const char *head = text_reader_head(r, &n);
    bool is_lost = n == 0 && (r->stream.ends_early || r->stream.n_damaged > 0);
    name_dump(name, f->path);
    return is_lost ? name[0] != '\0' : dump_index_recognises(head, n);
}

void dump_index_find(struct input_files *f)
{
    struct text_reader reader;
    text_reader_init(&reader);
    for (int64_t i = 0; i < f->n; i++) {
        struct input_file *file = &f->files[i];
        if (f->n <= DUMP_INDEX_LOOK_FILES || strcasestr(base_name(file->path), "index") != NULL) {
            file->is_index = is_index(&reader, file);
            f->n_indexes += file->is_index;
            f->total_bytes -= file->is_index ? file->n_bytes : 0;
        }
    }
    text_reader_fini(&reader);
}

static bool is_named(const char *path, const char *name)
{
    const char *base = base_name(path);
    size_t n = plain_bytes(name);
    return n > 0 && plain_bytes(base) == n && memcmp(base, name, n) == 0;
}

static bool share_directory(const char *a, const char *b)
{
    size_t n = (size_t)(base_name(a) - a);
    return (size_t)(base_name(b) - b) == n && memcmp(a, b, n) == 0;
}

/* The dump that the index is of by its name, in the same directory rather than in another; or else the only
 * file; NULL. */
static struct input_file *find_dump(const struct input_files *f, const struct input_file *index)
{
    char name[NAME_BYTES];
    int64_t n_texts = 0;
    struct input_file *named = NULL, *only = NULL;
    name_dump(name, index->path);
    for (int64_t i = 0; i < f->n; i++) {
        struct input_file *file = &f->files[i];
        if (file->is_index) {
            continue;
        }
        if (is_named(file->path, name) && (named == NULL || share_directory(file->path, index->path))) {
            named = file;
        }
        only = file;
        n_texts++;
    }
    return named != NULL ? named : n_texts == 1 ? only : NULL;
}

static struct status no_dump(const struct input_file *index)
{
    char name[NAME_BYTES];
    name_dump(name, index->path);
    return status_error(
        STATUS_DATA,
        "%s is the index of a multistream dump%s%s, which is not among the inputs: give both, %s",
        index->path, name[0] == '\0' ? "" : ", ", name, leave_out);
}

/* ---- reading one ---- */

struct reading {
    const struct input_file *index, *dump;
    struct text_reader reader;     /* reads the index */
    struct byte_stream stream;     /* reads the dump */
    uint64_t offset, check_behind; /* offset in the last line; offset from which the next place is checked */
    int64_t n_pages, n_streams;
    struct progress progress;
};

static struct status not_its_dump(const struct reading *r)
{
    return status_error(
        STATUS_DATA,
        "%s is not the index of %s: its line %lld says that a bzip2 stream begins at byte %llu of the dump, "
        "but none does; give the index of the same date, and the dump with \"multistream\" in its name, %s",
        r->index->path, r->dump->path, (long long)r->reader.line, (unsigned long long)r->offset, leave_out);
}

/* Looks into the dump where a stream begins, unless it was unpacked. */
static struct status check_offset(struct reading *r)
{
    unsigned char head[STREAM_HEAD];
    if (r->stream.kind != &bzip2_stream) {
        return status_ok();
    }
    FAIL_IF(r->offset + STREAM_HEAD > r->stream.file_bytes, STATUS_DATA,
            "%s is cut short: line %lld of its index %s names a stream of pages at byte "
            "%llu, but the file has only %llu bytes; download the rest, or leave the index "
            "out of the inputs to use what is there",
            r->dump->path, (long long)r->reader.line, r->index->path, (unsigned long long)r->offset,
            (unsigned long long)r->stream.file_bytes);
    if (r->offset >= r->check_behind) {
        r->check_behind = r->offset + r->stream.file_bytes / N_CHECKS;
        TRY(byte_stream_read_file(&r->stream, head, sizeof head, r->offset));
        bool is_stream = memcmp(head, "BZh", 3) == 0 && head[3] >= '1' && head[3] <= '9';
        return is_stream ? status_ok() : not_its_dump(r);
    }
    return status_ok();
}

static struct status not_whole(const struct reading *r, const char *how)
{
    return status_error(STATUS_DATA, "the index %s %s: download it again, %s", r->index->path, how,
                        leave_out);
}

static struct status take_line(struct reading *r, struct text_line line)
{
    enum { SHOWN = 40 };
    uint64_t offset;
    if (!parse_line(&offset, line.text, line.n)) {
        return r->reader.stream.ends_early
                   ? not_whole(r, "ends in the middle of its data")
                   : status_error(STATUS_DATA,
                                  "line %lld of the index %s is not OFFSET:PAGE_ID:TITLE: '%.*s'; download "
                                  "it again, %s",
                                  (long long)r->reader.line, r->index->path,
                                  (int)(line.n < SHOWN ? line.n : SHOWN), line.text, leave_out);
    }
    r->n_pages++;
    if (offset == r->offset) {
        return status_ok();
    }
    r->n_streams++;
    r->offset = offset;
    return check_offset(r);
}

static struct status show(struct reading *r)
{
    if (progress_due(&r->progress)) {
        progress_show(&r->progress, "index: %.1f of %.1f MB",
                      (double)text_reader_done_bytes(&r->reader) / 1e6, (double)r->index->n_bytes / 1e6);
    }
    return stop_before_work();
}

static struct status read_lines(struct reading *r)
{
    bool end = false;
    while (!end) {
        struct text_line line;
        TRY(r->reader.line % LINES_BETWEEN == 0 ? show(r) : status_ok());
        TRY(text_reader_next(&r->reader, &line, &end));
        TRY(end || line.n == 0 ? status_ok() : take_line(r, line));
    }
    if (r->reader.stream.ends_early) {
        return not_whole(r, "ends in the middle of its data");
    }
    return r->reader.stream.n_damaged == 0 ? status_ok() : not_whole(r, "has damaged parts");
}

static struct status open_both(struct reading *r)
{
    char name[NAME_BYTES];
    r->reader.stream.quiet = r->stream.quiet =
        true; /* errors of the index are returned; the dump is read later */
    TRY(byte_stream_open(&r->stream, r->dump->path, r->dump->n_bytes));
    name_dump(name, r->index->path);
    if (r->stream.kind != &bzip2_stream && !is_named(r->dump->path, name)) {
        return no_dump(r->index); /* the only file is another text */
    }
    return text_reader_open(&r->reader, r->index->path, r->index->n_bytes, NULL, true);
}

static struct status read_index(const struct input_file *index, struct input_file *dump)
{
    struct reading r = {.index = index, .dump = dump, .progress = progress_begin(true)};
    text_reader_init(&r.reader);
    byte_stream_init(&r.stream);
    struct status s = open_both(&r);
    s = failed(s) ? s : read_lines(&r);
    progress_end(&r.progress);
    byte_stream_fini(&r.stream);
    text_reader_fini(&r.reader);
    if (!failed(s)) {
        dump->n_listed = r.n_pages;
        log_info("the index %s lists %lld pages in %lld streams of %s", index->path, (long long)r.n_pages,
                 (long long)r.n_streams, dump->path);
    }
    return s;
}

struct status dump_index_read(struct input_files *f)
{
    for (int64_t i = 0; i < f->n; i++) {
        const struct input_file *index = &f->files[i];
        if (index->is_index) {
            struct input_file *dump = find_dump(f, index);
            TRY(dump != NULL ? read_index(index, dump) : no_dump(index));
        }
    }
    return status_ok();
}
