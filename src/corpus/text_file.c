#include "corpus/text_file.h"

#include "corpus/not_text.h"
#include "text/encoding.h"
#include "text/utf8.h"

#include <string.h>

#define ADVICE "give its --encoding, such as latin-1, cp1252 or utf-16"

static int64_t count_lines(const char *text, size_t n)
{
    int64_t n_lines = 1;
    for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + n - at))) != NULL; at++) {
        n_lines++;
    }
    return n_lines;
}

static struct status convert(struct text_file *f, const char *name)
{
    struct encoding e;
    size_t n_taken = 0;
    TRY(encoding_open(&e, name));
    if (e.converter == NULL) {
        return encoding_check_utf8(f->text, f->n, f->path, 1, ADVICE);
    }
    struct status s = encoding_convert(&e, &f->converted, f->text, f->n, true, &n_taken);
    if (s.code == STATUS_DATA) {
        s = status_error(STATUS_DATA,
                         "%s line %lld is not %s: byte %zu of the file is 0x%02x; give its --encoding",
                         f->path, (long long)count_lines(buf_text(&f->converted), f->converted.n), name,
                         n_taken + 1, (unsigned char)f->text[n_taken]);
    }
    encoding_close(&e);
    f->text = buf_text(&f->converted);
    f->n = f->converted.n;
    return s;
}

/* Refuses a file that is not text.  Without an encoding, UTF-16 is recognised by its byte order mark. */
static struct status refuse_other_files(const struct text_file *f, const char *encoding)
{
    const struct not_text *found = encoding == NULL ? not_text_find(f->text, f->n) : NULL;
    return found != NULL && !found->is_readable ? not_text_refuse(found, f->path, "") : status_ok();
}

static struct status decode(struct text_file *f, const char *encoding)
{
    TRY(refuse_other_files(f, encoding));
    TRY(convert(f, encoding));
    size_t mark = utf8_mark_bytes(f->text, f->n);
    f->text += mark;
    f->n -= mark;
    bool old = memchr(f->text, '\n', f->n) == NULL && memchr(f->text, '\r', f->n) != NULL;
    f->line_end = old ? '\r' : '\n';
    return status_ok();
}

static struct status begin(struct text_file *f, const char *encoding)
{
    struct status s = decode(f, encoding);
    if (failed(s)) {
        text_file_close(f);
    }
    return s;
}

struct status text_file_open(struct text_file *f, const char *path, const char *encoding)
{
    *f = (struct text_file){.path = path, .text = "", .line_end = '\n', .line = 1};
    TRY(file_map_open(&f->map, path));
    f->text = f->map.n > 0 ? (const char *)f->map.data : "";
    f->n = f->map.n;
    return begin(f, encoding);
}

struct status text_file_view(struct text_file *f, const char *name, const char *bytes, size_t n,
                             const char *encoding)
{
    *f = (struct text_file){.path = name, .text = bytes, .n = n, .line_end = '\n', .line = 1};
    return begin(f, encoding);
}

void text_file_close(struct text_file *f)
{
    file_map_close(&f->map);
    buf_fini(&f->converted);
    *f = (struct text_file){.text = ""};
}

struct status text_file_refuse_nul(const struct text_file *f)
{
    return memchr(f->text, '\0', f->n) == NULL
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s holds NUL bytes: it is not text, or it is UTF-16: convert it first (iconv "
                              "-f UTF-16 -t "
                              "UTF-8), or give --encoding utf-16 to a command that has it",
                              f->path);
}

struct status text_file_check(const struct text_file *f)
{
    return file_map_check(&f->map, f->path);
}

bool text_file_next(struct text_file *f, const char **line, size_t *n)
{
    const char *end = memchr(f->text + f->at, f->line_end, f->n - f->at);
    bool more = f->at < f->n;
    *line = f->text + f->at;
    *n = end == NULL ? f->n - f->at : (size_t)(end - *line);
    f->at += *n + (end != NULL);
    f->line += more;
    *n -= *n > 0 && (*line)[*n - 1] == '\r';
    return more;
}
