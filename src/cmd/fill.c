/* kiln fill: a model's predictions for each [MASK] of a text. */
#define _GNU_SOURCE
#include "cmd/commands.h"
#include "cmd/session_flags.h"
#include "cmd/standard_streams.h"
#include "core/log.h"
#include "serve/answer_json.h"
#include "text/utf8.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fill_args {
    struct session_flags session;
    int64_t top_k;
    bool json;
};

static const struct option options[] = {
    SESSION_FLAG_ROWS(offsetof(struct fill_args, session), "a checkpoint or model directory"),
    OPTION_INT_ROW("top_k", offsetof(struct fill_args, top_k), "5", 1, 1000,
                   "number of candidates for each [MASK]"),
    OPTION_FLAG_ROW("json", offsetof(struct fill_args, json), "print a JSON object for each text"),
    {0},
};

static void print_candidates(const struct session *s, const struct fill_result *r, int64_t mask)
{
    for (int64_t k = 0; k < r->top_k; k++) {
        const struct fill_candidate *c = &r->candidates[mask * r->top_k + k];
        size_t n;
        const char *piece = tokenizer_piece(s->tokenizer, c->id, &n);
        printf("  %6.4f  %.*s\n", c->probability, (int)n, piece);
    }
}

static void print_text(const struct session *s, const char *text, size_t n, const struct fill_result *r)
{
    printf("%.*s\n", (int)n, text);
    for (int64_t m = 0; m < r->n_masks; m++) {
        if (r->n_masks > 1) {
            printf(" [MASK] %lld of %lld\n", (long long)(m + 1), (long long)r->n_masks);
        }
        print_candidates(s, r, m);
    }
}

static struct status fill_text(struct session *s, const char *text, size_t n, const struct fill_args *a)
{
    struct fill_result r;
    struct status status = status_ok();
    TRY(fill_mask(s, text, n, a->top_k, &r));
    if (a->json) {
        status = standard_streams_put_json(answer_json_fill(text, n, &r, s->tokenizer));
    } else {
        print_text(s, text, n, &r);
    }
    fill_result_fini(&r);
    return status;
}

/* A line that cannot be filled is reported, and the next one is read. */
static struct status fill_lines(struct session *s, const struct fill_args *a)
{
    char *line = NULL;
    size_t capacity = 0;
    int64_t n_lines = 0;
    struct status last = status_ok();
    for (ssize_t n; (n = getline(&line, &capacity, stdin)) >= 0;) {
        n = (ssize_t)utf8_without_end(line, (size_t)n);
        struct status status = standard_streams_check_line(line, (size_t)n, ++n_lines);
        status = failed(status) ? status : fill_text(s, line, (size_t)n, a);
        if (failed(status)) {
            log_warning("%s", status.message);
            last = status;
        }
        status = standard_streams_flush();
        if (failed(status)) {
            free(line);
            return status;
        }
    }
    last = failed(last) ? last : standard_streams_check_input();
    free(line);
    return last;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct fill_args *a = args;
    if (a->session.common.dry_run) {
        return session_flags_plan(&a->session, ANSWER_FILL);
    }
    struct session s;
    TRY(session_flags_open(&s, &a->session, ANSWER_FILL));
    struct status status = n_positional == 0 ? fill_lines(&s, a) : status_ok();
    for (int i = 0; i < n_positional && !failed(status); i++) {
        status = standard_streams_check_argument(positional[i], i + 1);
        status = failed(status) ? status : fill_text(&s, positional[i], strlen(positional[i]), a);
        status = failed(status) ? status : standard_streams_flush();
    }
    session_close(&s);
    return status;
}

const struct command command_fill = {
    .name = "fill",
    .summary = "predict the words at each [MASK] of a text",
    .details = "Texts are arguments, or lines of standard input.",
    .positional_usage = "[TEXT...]",
    .max_positional = 1000,
    .options = options,
    .args_bytes = sizeof(struct fill_args),
    .run = run,
};
