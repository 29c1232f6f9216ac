#include "cmd/rank_lines.h"

#include "core/launcher.h"
#include "text/encoding.h"
#include "text/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* ---- the input of the first rank ---- */

enum { PIECE = 1 << 16 };

/* Opens the file of this path, or standard input for NULL.  STATUS_DATA. */
static struct status open_input(struct line_input *l, const char *path)
{
    *l = (struct line_input){.fd = STDIN_FILENO, .name = "standard input"};
    if (path != NULL) {
        l->name = path;
        l->fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    return l->fd >= 0 ? status_ok()
                      : status_error(STATUS_DATA, "%s: cannot be opened: %s", path, strerror(errno));
}

/* Safe on a zeroed struct. */
static void close_input(struct line_input *l)
{
    if (l->name != NULL && l->fd > STDERR_FILENO) {
        close(l->fd);
    }
    buf_fini(&l->bytes);
    *l = (struct line_input){0};
}

/* Begins again, if the input can. */
static bool rewind_input(struct line_input *l)
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

/* Reads a piece after what is there; lines that were given out are dropped. */
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

/* Waits until next_line has something to say or the time is over. */
static void wait_for_line(const struct line_input *l, double seconds)
{
    const char *begin;
    if (!l->at_end && end_of_line(l, &begin) == NULL) {
        (void)can_read(l, (int)(seconds * 1e3));
    }
}

/* The next line without its end, valid until the next call; *line is NULL if there is none left or, unless
 * it may wait, none yet.  STATUS_DATA: it is not UTF-8; STATUS_IO, STATUS_MEMORY. */
static struct status next_line(struct line_input *l, bool may_wait, const char **line, size_t *n)
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

/* ---- all ranks ---- */

struct status rank_lines_open(struct rank_lines *l, const struct comm *world, const char *path)
{
    double deadline_s = 0;
    *l = (struct rank_lines){.world = world};
    struct status s = launcher_timeout(&deadline_s);
    l->wait_s = deadline_s / 4;
    if (!failed(s) && world->rank == 0) {
        s = open_input(&l->input, path);
    }
    return comm_agree(world, s);
}

void rank_lines_close(struct rank_lines *l)
{
    close_input(&l->input);
    buf_fini(&l->heard);
    *l = (struct rank_lines){0};
}

static struct status look_through(struct rank_lines *l,
                                  struct status (*look)(void *self, const char *line, size_t n), void *self)
{
    const char *line;
    size_t n;
    for (;;) {
        TRY(next_line(&l->input, true, &line, &n));
        if (line == NULL) {
            break;
        }
        l->number = l->input.number;
        TRY(look(self, line, n));
    }
    return rewind_input(&l->input)
               ? status_ok()
               : status_error(STATUS_USAGE, "%s cannot be read twice: give it to standard input",
                              l->input.name);
}

struct status rank_lines_look_through(struct rank_lines *l,
                                      struct status (*look)(void *self, const char *line, size_t n),
                                      void *self)
{
    struct status s = l->world->rank == 0 ? look_through(l, look, self) : status_ok();
    l->number = 0;
    return comm_agree(l->world, s);
}

/* Message of the first rank to the others before a line. */
struct head {
    struct status status; /* status of its reading */
    int64_t number, n;
    int32_t has_line, asks_again; /* neither: there is none left, or none yet */
};

static struct status hear_first(const struct comm *world, void *bytes, size_t n)
{
    struct exec host = {.device = &device_cpu, .layer_index = -1};
    comm_broadcast(world, &host, tensor_1d(bytes, DTYPE_U8, (int64_t)n), 0);
    return host.status;
}

/* The first rank reports to the others that there is nothing yet, so that none of them waits past its
 * deadline. */
static void read_line(struct rank_lines *l, bool may_wait, struct head *h, const char **line)
{
    size_t n = 0;
    if (may_wait) {
        wait_for_line(&l->input, l->wait_s);
    }
    h->status = next_line(&l->input, false, line, &n);
    h->has_line = *line != NULL && !failed(h->status);
    h->asks_again = may_wait && !h->has_line && !failed(h->status) && !l->input.at_end;
    h->number = l->input.number;
    h->n = (int64_t)n;
}

static struct status hear_line(struct rank_lines *l, struct head *h, const char **line)
{
    TRY(hear_first(l->world, h, sizeof *h));
    if (!h->has_line) {
        return status_ok();
    }
    buf_clear(&l->heard);
    if (l->world->rank == 0) {
        buf_append(&l->heard, *line, (size_t)h->n);
    } else {
        (void)buf_extend(&l->heard, (size_t)h->n);
    }
    TRY(comm_agree(l->world, buf_status(&l->heard)));
    *line = buf_text(&l->heard);
    return h->n > 0 ? hear_first(l->world, l->heard.data, (size_t)h->n) : status_ok();
}

struct status rank_lines_next(struct rank_lines *l, bool may_wait, const char **line, size_t *n)
{
    struct head h;
    do {
        h = (struct head){0};
        *line = NULL;
        if (l->world->rank == 0) {
            read_line(l, may_wait, &h, line);
        }
        if (l->world->size > 1) {
            TRY(hear_line(l, &h, line));
        }
    } while (h.asks_again);
    l->number = h.number;
    *n = (size_t)h.n;
    return h.status;
}
