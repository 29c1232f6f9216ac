#include "cmd/line_input.h"

#include "text/encoding.h"
#include "text/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 16 };

struct status line_input_open(struct line_input *l, const char *path)
{
    *l = (struct line_input){.fd = STDIN_FILENO, .name = "standard input"};
    if (path != NULL) {
        l->name = path;
        l->fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    return l->fd >= 0 ? status_ok()
                      : status_error(STATUS_DATA, "%s: cannot be opened: %s", path, strerror(errno));
}

void line_input_close(struct line_input *l)
{
    if (l->name != NULL && l->fd > STDERR_FILENO) {
        close(l->fd);
    }
    buf_fini(&l->bytes);
    *l = (struct line_input){0};
}

bool line_input_rewind(struct line_input *l)
{
    if (lseek(l->fd, 0, SEEK_SET) != 0) {
        return false;
    }
    buf_clear(&l->bytes);
    l->at = 0;
    l->number = 0;
    l->at_end = false;
    return true;
}

static bool can_read(const struct line_input *l, int within_ms)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN};
    return poll(&p, 1, within_ms) > 0;
}

/* Reads a piece behind what is there; lines that were given out are dropped. */
static struct status read_piece(struct line_input *l)
{
    if (l->at > 0) {
        memmove(l->bytes.data, (char *)l->bytes.data + l->at, l->bytes.n - l->at);
        l->bytes.n -= l->at;
        l->at = 0;
    }
    char *to = buf_extend(&l->bytes, PIECE);
    TRY(buf_status(&l->bytes));
    ssize_t n = read(l->fd, to, PIECE);
    l->bytes.n -= (size_t)(PIECE - (n > 0 ? n : 0));
    FAIL_IF(n < 0 && errno != EINTR, STATUS_IO, "reading %s failed: %s", l->name, strerror(errno));
    l->at_end = n == 0;
    return status_ok();
}

/* The end of the next line in what was read; NULL: it is not there. */
static const char *end_of_line(const struct line_input *l, const char **begin)
{
    *begin = buf_text(&l->bytes) + l->at;
    const char *end = memchr(*begin, '\n', l->bytes.n - l->at);
    return end == NULL && l->at_end && l->at < l->bytes.n ? buf_text(&l->bytes) + l->bytes.n : end;
}

void line_input_wait(const struct line_input *l, double seconds)
{
    const char *begin;
    if (!l->at_end && end_of_line(l, &begin) == NULL) {
        (void)can_read(l, (int)(seconds * 1e3));
    }
}

struct status line_input_next(struct line_input *l, bool may_wait, const char **line, size_t *n)
{
    const char *begin, *end;
    *line = NULL;
    while ((end = end_of_line(l, &begin)) == NULL) {
        if (l->at_end || (!may_wait && !can_read(l, 0))) {
            return status_ok();
        }
        TRY(read_piece(l));
    }
    size_t length = (size_t)(end - begin), mark = l->number == 0 ? utf8_mark_bytes(begin, length) : 0;
    l->at += length + 1 < l->bytes.n - l->at ? length + 1 : l->bytes.n - l->at;
    *line = begin += mark;
    *n = utf8_without_end(begin, length - mark);
    return encoding_check_utf8(begin, *n, l->name, ++l->number, "convert it first (iconv -t UTF-8)");
}
