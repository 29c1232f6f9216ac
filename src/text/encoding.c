#include "text/encoding.h"

#include "text/utf8.h"

#include <errno.h>
#include <iconv.h>
#include <string.h>
#include <strings.h>

/* Names that people know from Python. */
static const char *name_for_iconv(const char *name)
{
    static const char *const names[][2] = {
        {"latin-1", "LATIN1"}, {"latin_1", "LATIN1"}, {"utf-8-sig", "UTF-8"},     {"utf_8", "UTF-8"},
        {"utf_16", "UTF-16"},  {"ansi", "CP1252"},    {"mac-roman", "MACINTOSH"}, {"mac_roman", "MACINTOSH"}};
    const char *found = name;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        found = strcasecmp(name, names[i][0]) == 0 ? names[i][1] : found;
    }
    return found;
}

struct status encoding_open(struct encoding *e, const char *name)
{
    *e = (struct encoding){.name = name};
    if (name == NULL || strcasecmp(name_for_iconv(name), "UTF-8") == 0 || strcasecmp(name, "UTF8") == 0) {
        return status_ok();
    }
    bool is_name = *name != '\0' && strchr(name, '/') == NULL; /* a suffix would drop letters */
    iconv_t converter = iconv_open("UTF-8", is_name ? name_for_iconv(name) : "none");
    if (converter == (iconv_t)-1) { /* NOLINT(performance-no-int-to-ptr): so iconv says it */
        return status_error(
            STATUS_USAGE,
            "--encoding is \"%.60s\", which this machine does not know; `iconv -l` lists those it knows",
            name);
    }
    e->converter = converter;
    return status_ok();
}

void encoding_close(struct encoding *e)
{
    if (e->converter != NULL) {
        iconv_close(e->converter);
    }
    *e = (struct encoding){0};
}

void encoding_restart(struct encoding *e)
{
    if (e->converter != NULL) {
        iconv(e->converter, NULL, NULL, NULL, NULL);
    }
}

struct status encoding_convert(struct encoding *e, struct buf *out, const char *text, size_t n, bool is_end,
                               size_t *n_taken)
{
    enum { ROOM = 1 << 16 };
    char *in = (char *)text; /* NOLINT(cast-qual): iconv does not write to it */
    size_t left = n;
    *n_taken = 0;
    for (size_t failure = 1; failure != 0;) {
        char *to = buf_extend(out, ROOM);
        size_t room = ROOM;
        TRY(buf_status(out));
        errno = 0;
        failure = iconv(e->converter, &in, &left, &to, &room) == (size_t)-1 ? (size_t)errno : 0;
        out->n -= room;
        out->data[out->n] = '\0';
        *n_taken = n - left;
        FAIL_IF(failure == EILSEQ || (failure == EINVAL && is_end), STATUS_DATA, "is not %s", e->name);
        failure = failure == E2BIG ? failure : 0;
    }
    return status_ok();
}

struct status encoding_check_utf8(const char *text, size_t n, const char *source, int64_t line,
                                  const char *advice)
{
    size_t bad = utf8_find_invalid(text, n), line_begin = 0;
    if (bad == n) {
        return status_ok();
    }
    for (size_t i = 0; i < bad; i++) {
        line += text[i] == '\n';
        line_begin = text[i] == '\n' ? i + 1 : line_begin;
    }
    return status_error(STATUS_DATA, "%s line %lld is not UTF-8: byte %zu of the line is 0x%02x; %s", source,
                        (long long)line, bad - line_begin + 1, (unsigned char)text[bad], advice);
}
