#include "fetch/http_answer.h"

#include <string.h>
#include <strings.h>

/* The value of a header line, without the spaces around it; NULL if it is another header. */
static const char *header_value(const char *line, size_t n, const char *name, size_t *value_bytes)
{
    size_t name_bytes = strlen(name);
    if (n <= name_bytes || strncasecmp(line, name, name_bytes) != 0 || line[name_bytes] != ':') {
        return NULL;
    }
    const char *value = line + name_bytes + 1, *end = line + n;
    while (value < end && (*value == ' ' || *value == '\t')) {
        value++;
    }
    while (end > value && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    *value_bytes = (size_t)(end - value);
    return value;
}

/* A number of at most 18 digits and the text after it; -1 if there is none. */
static int64_t read_number(const char **p, const char *end)
{
    int64_t value = 0;
    int digits = 0;
    for (; *p < end && **p >= '0' && **p <= '9' && digits < 19; digits++, (*p)++) {
        value = digits < 18 ? value * 10 + (**p - '0') : -1;
    }
    return digits == 0 || digits > 18 ? -1 : value;
}

/* "bytes 100-199/200" (RFC 9110 section 14.4); the total may be "*". */
static void read_content_range(struct http_answer *answer, const char *value, size_t n)
{
    const char *p = value, *end = value + n;
    if (n < 6 || strncasecmp(p, "bytes ", 6) != 0) {
        return;
    }
    p += 6;
    int64_t begin = read_number(&p, end);
    const char *slash = memchr(p, '/', (size_t)(end - p));
    if (begin < 0 || slash == NULL) {
        return;
    }
    p = slash + 1;
    answer->begin = begin;
    answer->total = read_number(&p, end);
}

static bool is_text(const char *value, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)value[i] < ' ' || value[i] == 0x7F) {
            return false;
        }
    }
    return true;
}

/* Last-Modified counts only without a strong ETag.  The value is sent back to the server, so it must be one
 * line of text. */
static void take_validator(struct http_answer *answer, const char *value, size_t n, bool is_etag)
{
    bool is_weak = is_etag && n >= 2 && value[0] == 'W' && value[1] == '/';
    if (is_weak || n >= sizeof answer->validator || !is_text(value, n) ||
        (!is_etag && answer->validator[0] != '\0')) {
        return;
    }
    memcpy(answer->validator, value, n);
    answer->validator[n] = '\0';
}

void http_answer_init(struct http_answer *answer)
{
    *answer = (struct http_answer){.total = -1, .retry_after_s = -1};
}

static void take_status(struct http_answer *answer, const char *line, size_t n)
{
    const char *p = memchr(line, ' ', n), *end = line + n;
    http_answer_init(answer);
    answer->marks_end = line[5] >= '2'; /* HTTP/2 and later */
    if (p != NULL) {
        p++;
        answer->code = (long)read_number(&p, end);
    }
}

static void take_header(struct http_answer *answer, const char *line, size_t n)
{
    const char *value;
    size_t m;
    if ((value = header_value(line, n, "Content-Length", &m)) != NULL) {
        const char *p = value;
        int64_t length = read_number(&p, value + m);
        answer->marks_end = answer->marks_end || length >= 0;
        if (answer->code == 200) {
            answer->total = length;
        }
    } else if ((value = header_value(line, n, "Transfer-Encoding", &m)) != NULL) {
        answer->marks_end = answer->marks_end || (m >= 7 && strncasecmp(value + m - 7, "chunked", 7) == 0);
    } else if ((value = header_value(line, n, "Content-Range", &m)) != NULL) {
        read_content_range(answer, value, m);
    } else if ((value = header_value(line, n, "Retry-After", &m)) != NULL) {
        const char *p = value;
        answer->retry_after_s = read_number(&p, value + m);
    } else if ((value = header_value(line, n, "ETag", &m)) != NULL) {
        take_validator(answer, value, m, true);
    } else if ((value = header_value(line, n, "Last-Modified", &m)) != NULL) {
        take_validator(answer, value, m, false);
    }
}

void http_answer_take(struct http_answer *answer, const char *line, size_t n)
{
    if (n > 5 && strncasecmp(line, "HTTP/", 5) == 0) {
        take_status(answer, line, n);
    } else {
        take_header(answer, line, n);
    }
}
