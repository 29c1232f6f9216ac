#include "cmd/text_groups.h"

#include "cmd/rank_lines.h"
#include "cmd/standard_streams.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>

struct group {
    struct buf bytes; /* bytes of all texts, end to end */
    struct text_bytes texts[TEXT_GROUP_TEXTS];
    size_t n;
    struct status (*answer)(void *self, const struct text_bytes *texts, size_t n);
    void *self;
};

static struct status answer_group(struct group *g)
{
    const char *at = buf_text(&g->bytes);
    TRY(buf_status(&g->bytes));
    for (size_t i = 0; i < g->n; i++) {
        g->texts[i].bytes = at; /* the buffer does not move any more */
        at += g->texts[i].n;
    }
    TRY(g->n == 0 ? status_ok() : g->answer(g->self, g->texts, g->n));
    g->n = 0;
    buf_clear(&g->bytes);
    return standard_streams_flush();
}

static struct status add(struct group *g, const char *text, size_t n)
{
    buf_append(&g->bytes, text, n);
    g->texts[g->n++].n = n;
    return g->n == TEXT_GROUP_TEXTS ? answer_group(g) : status_ok();
}

static struct status answer_lines(struct group *g)
{
    struct comm alone = comm_self();
    struct rank_lines lines;
    const char *line;
    size_t n;
    TRY(rank_lines_open(&lines, &alone, NULL));
    struct status s = status_ok();
    for (bool waits = true; !failed(s);) {
        s = rank_lines_next(&lines, waits, &line, &n);
        if (!failed(s) && line == NULL && waits) {
            break; /* the end */
        }
        s = failed(s) ? s : line == NULL ? answer_group(g) : add(g, line, n);
        waits = g->n == 0;
    }
    rank_lines_close(&lines);
    return s;
}

static struct status answer_arguments(struct group *g, int n, const char *const *arguments)
{
    for (int i = 0; i < n; i++) {
        TRY(standard_streams_check_argument(arguments[i], i + 1));
        TRY(add(g, arguments[i], strlen(arguments[i])));
    }
    return answer_group(g);
}

struct status
text_groups_answer(int n_arguments, const char *const *arguments,
                   struct status (*answer)(void *self, const struct text_bytes *texts, size_t n), void *self)
{
    struct group *g = calloc(1, sizeof *g);
    FAIL_IF(g == NULL, STATUS_MEMORY, "out of memory for texts");
    g->answer = answer;
    g->self = self;
    struct status s = n_arguments == 0 ? answer_lines(g) : answer_arguments(g, n_arguments, arguments);
    buf_fini(&g->bytes);
    free(g);
    return s;
}

void text_groups_warn_cut(int64_t n, int64_t max_length)
{
    if (n > 0) {
        log_warning("%lld texts were longer than the %lld tokens that fit, and were cut", (long long)n,
                    (long long)max_length);
    }
}
