/* kiln generate: a decoder goes on with prompts. */
#define _GNU_SOURCE
#include "cmd/commands.h"
#include "cmd/session_flags.h"
#include "cmd/standard_streams.h"
#include "serve/generate.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct generate_args {
    struct session_flags session;
    const char *prompt;
    int64_t max_new_tokens, top_k, seed;
    double temperature, top_p, repetition_penalty;
    bool ignore_eos, ids;
};

#define AT(field) offsetof(struct generate_args, field)

static const struct option options[] = {
    SESSION_FLAG_ROWS(AT(session), "a checkpoint or model directory of a decoder"),
    OPTION_STRING_ROW("prompt", AT(prompt), NULL, "TEXT",
                      "text to continue; without it, lines of standard input"),
    OPTION_INT_ROW("max_new_tokens", AT(max_new_tokens), "64", 1, 1 << 20,
                   "number of tokens after a prompt, at most"),
    OPTION_REAL_ROW("temperature", AT(temperature), "1.0", 0, 100,
                    "divide the logits by this; 0: off, the largest wins"),
    OPTION_INT_ROW("top_k", AT(top_k), "50", 0, 1 << 24, "choose from the k most probable tokens; 0: off"),
    OPTION_REAL_ROW("top_p", AT(top_p), "1.0", 0, 1,
                    "choose from the most probable tokens that sum to this probability; 1: off"),
    OPTION_REAL_ROW("repetition_penalty", AT(repetition_penalty), "1.0", 0.01, 100,
                    "make tokens that were there less probable; 1: off"),
    OPTION_INT_ROW("seed", AT(seed), "42", 0, INT64_MAX,
                   "seed of the choices; each prompt has its own stream of it"),
    OPTION_FLAG_ROW("ignore_eos", AT(ignore_eos), "continue past the end of a text"),
    OPTION_FLAG_ROW("ids", AT(ids), "print the new ids instead of text"),
    {0},
};

/* What is printed while one prompt is answered: whole characters only. */
struct printing {
    const struct session *session;
    bool ids;
    size_t n_told; /* bytes of the text so far */
};

/* Bytes of text[0..n) that end with a whole character of UTF-8; all of those that are none. */
static size_t whole_characters(const char *text, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = (unsigned char)text[n - back];
        size_t wanted = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        if (c >= 0xc0 || c < 0x80) {
            return wanted > back && c >= 0xc0 ? n - back : n;
        }
    }
    return n;
}

static struct status print_text(struct printing *s, const struct generation *g)
{
    struct buf text = {0};
    size_t n_new = g->ids.n - g->n_prompt;
    bool ends = n_new > 0 && g->ids.ids[g->ids.n - 1] == s->session->tokenizer->special[SPECIAL_END];
    struct status status =
        tokenizer_decode(s->session->tokenizer, &text, g->ids.ids + g->n_prompt, n_new - (g->ended && ends));
    if (!failed(status)) {
        size_t n = g->ended ? text.n : whole_characters(buf_text(&text), text.n);
        fwrite(buf_text(&text) + s->n_told, 1, n - s->n_told, stdout);
        s->n_told = n;
        status = standard_streams_flush();
    }
    buf_fini(&text);
    return status;
}

static struct status tell(void *context, const struct generation *g, int64_t number)
{
    struct printing *s = context;
    (void)number;
    if (!s->ids) {
        return print_text(s, g);
    }
    printf("%s%d", g->ids.n - g->n_prompt > 1 ? " " : "", g->ids.ids[g->ids.n - 1]);
    return standard_streams_flush();
}

static struct status answer(struct session *s, const struct generate_args *a, const char *text, size_t n,
                            int64_t number)
{
    const struct generate_options o = {a->max_new_tokens,     a->temperature, a->top_k,         a->top_p,
                                       a->repetition_penalty, a->ignore_eos,  (uint64_t)a->seed};
    struct generation g;
    struct printing stream = {.session = s, .ids = a->ids};
    struct status status = generation_init(&g, s, text, n, &o, number);
    if (!failed(status) && !a->ids) {
        fwrite(text, 1, n, stdout);
    }
    status = failed(status) ? status : generate(s, &g, 1, &o, tell, &stream);
    if (!failed(status)) {
        putchar('\n');
        status = standard_streams_flush();
    }
    generation_fini(&g);
    return status;
}

static struct status answer_lines(struct session *s, const struct generate_args *a)
{
    char *line = NULL;
    size_t capacity = 0;
    struct status status = status_ok();
    int64_t number = 0;
    for (ssize_t n; !failed(status) && (n = getline(&line, &capacity, stdin)) >= 0;) {
        n -= n > 0 && line[n - 1] == '\n';
        status = standard_streams_check_line(line, (size_t)n, ++number);
        status = failed(status) ? status : answer(s, a, line, (size_t)n, number);
    }
    free(line);
    return failed(status) ? status : standard_streams_check_input();
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct generate_args *a = args;
    struct session s;
    (void)n_positional, (void)positional;
    if (a->session.dry_run) {
        return session_flags_plan(&a->session, ANSWER_GENERATE);
    }
    TRY(a->prompt == NULL ? status_ok() : standard_streams_check_argument(a->prompt, 1));
    TRY(session_flags_open(&s, &a->session, ANSWER_GENERATE));
    struct status status =
        a->prompt == NULL ? answer_lines(&s, a) : answer(&s, a, a->prompt, strlen(a->prompt), 1);
    session_close(&s);
    return status;
}

const struct command command_generate = {
    .name = "generate",
    .summary = "let a decoder continue a text",
    .details =
        "Prints each prompt and what follows it, token by token. The flags have the names and meanings of "
        "transformers. The same seed gives the same text.",
    .positional_usage = "",
    .options = options,
    .args_bytes = sizeof(struct generate_args),
    .run = run,
};
