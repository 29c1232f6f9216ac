#include "cmd/rank_lines.h"

#include "core/launcher.h"

struct status rank_lines_open(struct rank_lines *l, const struct comm *world, const char *path)
{
    double deadline_s = 0;
    *l = (struct rank_lines){.world = world};
    struct status s = launcher_timeout(&deadline_s);
    l->wait_s = deadline_s / 4;
    if (!failed(s) && world->rank == 0) {
        s = line_input_open(&l->input, path);
    }
    return comm_agree(world, s);
}

void rank_lines_close(struct rank_lines *l)
{
    line_input_close(&l->input);
    buf_fini(&l->heard);
    *l = (struct rank_lines){0};
}

static struct status look_through(struct rank_lines *l,
                                  struct status (*look)(void *self, const char *line, size_t n), void *self)
{
    const char *line;
    size_t n;
    for (;;) {
        TRY(line_input_next(&l->input, true, &line, &n));
        if (line == NULL) {
            break;
        }
        l->number = l->input.number;
        TRY(look(self, line, n));
    }
    return line_input_rewind(&l->input)
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

/* What the first rank tells the others before a line. */
struct head {
    struct status status; /* of its reading */
    int64_t number, n;
    int32_t has_line, asks_again; /* neither: there is none left, or none yet */
};

static struct status hear_first(const struct comm *world, void *bytes, size_t n)
{
    struct exec host = {.device = &device_cpu, .layer_index = -1};
    comm_broadcast(world, &host, tensor_1d(bytes, DTYPE_U8, (int64_t)n), 0);
    return host.status;
}

/* The others are told that there is nothing yet, so that none of them waits past its deadline. */
static void read_line(struct rank_lines *l, bool may_wait, struct head *h, const char **line)
{
    size_t n = 0;
    if (may_wait) {
        line_input_wait(&l->input, l->wait_s);
    }
    h->status = line_input_next(&l->input, false, line, &n);
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
