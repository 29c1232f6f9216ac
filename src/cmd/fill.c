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
    const char *targets;
    bool json;
};

static const struct option options[] = {
    SESSION_FLAG_ROWS(offsetof(struct fill_args, session), "a checkpoint or model directory"),
    OPTION_INT_ROW("top_k", offsetof(struct fill_args, top_k), "5", 1, 1000,
                   "number of candidates for each [MASK]"),
    OPTION_STRING_ROW("targets", offsetof(struct fill_args, targets), NULL, "LIST",
                      "print how probable these words are, separated by commas, instead of the most probable "
                      "ones; of a word in several pieces the first is taken"),
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

/* Prepares the words of --targets. */
static struct status find_targets(struct id_list *words, struct session *s, const char *list)
{
    for (const char *at = list; at != NULL && *at != '\0';) {
        size_t n = strcspn(at, ","), n_before = words->n;
        TRY(fill_mask_find_word(words, &s->scratch, at, n));
        if (tokenizer_find(s->tokenizer, at, n) < 0 && words->n > n_before) {
            size_t n_piece;
            const char *piece = tokenizer_piece(s->tokenizer, words->ids[n_before], &n_piece);
            log_warning("--targets: %.*s is no piece of the vocabulary; %.*s stands for it", (int)n, at,
                        (int)n_piece, piece);
        }
        at += n + (at[n] == ',');
    }
    FAIL_IF(list != NULL && words->n == 0, STATUS_DATA, "--targets has no word that the model knows");
    return status_ok();
}

static struct status fill_text(struct session *s, const char *text, size_t n, const struct fill_args *a,
                               const struct id_list *words)
{
    struct fill_result r;
    struct status status = status_ok();
    int64_t top_k = words->n > 0 ? (int64_t)words->n : a->top_k;
    TRY(fill_mask_with(s, text, n, top_k, words, &r));
    if (a->json) {
        status = standard_streams_put_json(answer_json_fill(text, n, &r, s->tokenizer));
    } else {
        print_text(s, text, n, &r);
    }
    fill_result_fini(&r);
    return status;
}

/* A line that cannot be filled is reported, and the next one is read. */
static struct status fill_lines(struct session *s, const struct fill_args *a, const struct id_list *words)
{
    char *line = NULL;
    size_t capacity = 0;
    int64_t n_lines = 0;
    struct status last = status_ok();
    for (ssize_t n; (n = getline(&line, &capacity, stdin)) >= 0;) {
        n = (ssize_t)utf8_without_end(line, (size_t)n);
        struct status status = standard_streams_check_line(line, (size_t)n, ++n_lines);
        status = failed(status) ? status : fill_text(s, line, (size_t)n, a, words);
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
    struct id_list words = {0};
    struct status status = find_targets(&words, &s, a->targets);
    status = n_positional == 0 && !failed(status) ? fill_lines(&s, a, &words) : status;
    for (int i = 0; i < n_positional && !failed(status); i++) {
        status = standard_streams_check_argument(positional[i], i + 1);
        status = failed(status) ? status : fill_text(&s, positional[i], strlen(positional[i]), a, &words);
        status = failed(status) ? status : standard_streams_flush();
    }
    id_list_fini(&words);
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
