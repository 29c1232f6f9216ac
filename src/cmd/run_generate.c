/* kiln generate: a decoder continues prompts. */
#include "cmd/commands.h"
#include "cmd/rank_lines.h"
#include "cmd/session_flags.h"
#include "cmd/settings.h"
#include "cmd/standard_streams.h"
#include "cmd/tensor_ranks.h"
#include "core/hash.h"
#include "core/log.h"
#include "serve/answer_json.h"
#include "serve/generate.h"
#include "text/utf8.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct generate_args {
    struct session_flags session;
    const char *prompt, *prompt_file;
    struct option_words stops;
    int64_t max_new_tokens, batch_size, top_k, seed, tensor_parallel;
    double temperature, top_p, min_p, repetition_penalty, cache_gib;
    bool ignore_eos, context_shift, ids, json, no_parse_special_tokens;
};

#define AT(field) offsetof(struct generate_args, field)

static const struct option options[] = {
    SESSION_FLAG_ROWS(AT(session), "a checkpoint or model directory of a decoder"),
    OPTION_MEANS_ROW("autocast", AT(session.dtype), "bf16", "the same as --dtype bf16"),
    OPTION_TEXT_ROW("prompt", AT(prompt),
                    "text to continue; without it, each line of --prompt_file or of standard input"),
    OPTION_STRING_ROW("prompt_file", AT(prompt_file), NULL, "FILE", "file of prompts, one a line"),
    OPTION_INT_ROW("batch_size", AT(batch_size), "8", 1, 4096,
                   "number of prompts that are continued at once, at most; each takes memory for its tokens"),
    OPTION_REAL_ROW(
        "cache_gib", AT(cache_gib), "0", 0, 1e6,
        "GiB for keys and values; with less than all texts need the youngest wait, and are computed again; "
        "0: for texts of the model's length, half of the free memory at most"),
    OPTION_INT_ROW("max_new_tokens", AT(max_new_tokens), "64", 1, 1 << 20,
                   "number of tokens after a prompt, at most"),
    OPTION_WORDS_ROW("stop", AT(stops), "TEXT", "texts that end a text before them"),
    OPTION_REAL_ROW("temperature", AT(temperature), "1.0", 0, 100,
                    "divide the logits by this; 0: off, the largest wins"),
    OPTION_INT_ROW("top_k", AT(top_k), "50", 0, 1 << 24, "choose from the k most probable tokens; 0: off"),
    OPTION_REAL_ROW("top_p", AT(top_p), "1.0", 0, 1,
                    "choose from the most probable tokens that sum to this probability; 1: off"),
    OPTION_REAL_ROW(
        "min_p", AT(min_p), "0", 0, 1,
        "of those left, choose from tokens at least so probable as this times the most probable; 0: off"),
    OPTION_REAL_ROW("repetition_penalty", AT(repetition_penalty), "1.0", 0.01, 100,
                    "make tokens that were there less probable; 1: off"),
    OPTION_INT_ROW("seed", AT(seed), "42", 0, INT64_MAX,
                   "seed of the choices; each prompt has its own stream of it"),
    OPTION_FLAG_ROW("ignore_eos", AT(ignore_eos), "continue past the end of a text"),
    OPTION_FLAG_ROW(
        "context_shift", AT(context_shift),
        "where a text is longer than the model reads, go on without the older half of it, but for its "
        "first 4 tokens; by default it is refused"),
    NO_PARSE_SPECIAL_ROW(AT(no_parse_special_tokens)),
    OPTION_FLAG_ROW("ids", AT(ids), "print the new ids instead of text"),
    OPTION_FLAG_ROW("json", AT(json), "print a JSON object for each prompt: prompt, text, ids, end"),
    TENSOR_RANKS_ROW(AT(tensor_parallel)),
    {0},
};

/* A prompt, from its line until it is printed. */
struct prompt {
    struct generation g; /* first */
    struct buf text;
    bool is_begun;    /* the text of the prompt is printed */
    size_t n_printed; /* bytes of the new text, or ids */
    struct prompt *next;
};

/* Prompts in the order of their lines.  The first is printed as its tokens come, others when it is their
 * turn. */
struct answers {
    const struct generate_args *args;
    const struct generate_options *options;
    struct session *session;
    const struct tensor_ranks *ranks;
    struct rank_lines input;
    bool is_given;         /* --prompt was taken */
    struct prompt *first;  /* the first that is not printed to its end */
    struct prompt *ended;  /* printed, and still known to generate until it asks for the next */
    struct status failure; /* failure of the first text that failed; the others continue */
};

/* ---- printing ---- */

/* Prints new text; what a model generates need not be UTF-8. */
static struct status print_text(struct prompt *p)
{
    const struct generation *g = &p->g;
    struct buf said = {0};
    if (!p->is_begun) {
        fwrite(buf_text(&p->text), 1, p->text.n, stdout);
    }
    utf8_repair(&said, buf_text(&g->text) + p->n_printed, g->n_settled - p->n_printed);
    fwrite(buf_text(&said), 1, said.n, stdout);
    p->n_printed = g->n_settled;
    struct status s = buf_status(&said);
    buf_fini(&said);
    return s;
}

static void print_ids(struct prompt *p)
{
    const struct generation *g = &p->g;
    for (; p->n_printed < g->ids.n - g->n_prompt; p->n_printed++) {
        printf("%s%d", p->n_printed > 0 ? " " : "", g->ids.ids[g->n_prompt + p->n_printed]);
    }
}

/* Prints what is new of a prompt. */
static struct status print_new(struct prompt *p, const struct generate_args *args)
{
    bool has_ended = p->g.end != GENERATION_GOES_ON;
    if (args->json) {
        return has_ended
                   ? standard_streams_put_json(answer_json_generation(buf_text(&p->text), p->text.n, &p->g))
                   : status_ok();
    }
    if (args->ids) {
        print_ids(p);
    } else {
        TRY(print_text(p));
    }
    p->is_begun = true;
    if (has_ended) {
        putchar('\n');
    }
    return status_ok();
}

/* All ranks choose from the same logits; where one of them rounded otherwise, all end. */
static struct status compare_choices(const struct answers *a, const struct generation *g)
{
    uint64_t hash = hash_fnv1a(g->ids.ids, g->ids.n * sizeof *g->ids.ids);
    return g->end == GENERATION_GOES_ON ? status_ok()
                                        : tensor_ranks_compare(a->ranks, "the hash of a text's tokens", hash);
}

static void take_failure(struct answers *a, const struct generation *g)
{
    if (failed(a->failure)) {
        log_warning("prompt %lld: %s", (long long)g->number, g->status.message);
    } else {
        a->failure = g->status;
    }
}

/* Prints what is new of the first prompt, and continues with the next where it has ended. */
static struct status told(void *self, struct generation *g)
{
    struct answers *a = self;
    bool prints = tensor_ranks_prints(a->ranks), ended = true;
    if (g->end == GENERATION_FAILED) {
        take_failure(a, g);
    }
    TRY(compare_choices(a, g));
    for (struct prompt *p; ended && (p = a->first) != NULL;) {
        if (prints) {
            TRY(print_new(p, a->args));
        }
        ended = p->g.end != GENERATION_GOES_ON;
        if (ended) {
            a->first = p->next;
            p->next = a->ended;
            a->ended = p;
        }
    }
    return prints ? standard_streams_flush() : status_ok();
}

/* ---- prompts ---- */

static void free_prompts(struct prompt **list)
{
    for (struct prompt *p; (p = *list) != NULL;) {
        *list = p->next;
        generation_fini(&p->g);
        buf_fini(&p->text);
        free(p);
    }
}

static struct status next_line(struct answers *a, bool may_wait, const char **line, size_t *n)
{
    if (a->args->prompt == NULL) {
        return rank_lines_next(&a->input, may_wait, line, n);
    }
    *line = a->is_given ? NULL : a->args->prompt;
    *n = strlen(a->args->prompt);
    a->input.number = 1;
    a->is_given = true;
    return status_ok();
}

static void append(struct answers *a, struct prompt *p)
{
    struct prompt **end = &a->first;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = p;
}

static struct status next(void *self, bool may_wait, struct generation **next)
{
    struct answers *a = self;
    const char *line;
    size_t n;
    *next = NULL;
    free_prompts(&a->ended);
    TRY(next_line(a, may_wait, &line, &n));
    if (line == NULL) {
        return status_ok();
    }
    struct prompt *p = calloc(1, sizeof *p);
    FAIL_IF(p == NULL, STATUS_MEMORY, "out of memory for a prompt");
    buf_append(&p->text, line, n);
    struct status s =
        generation_init(&p->g, a->session, &a->session->scratch, line, n, a->options, a->input.number);
    s = failed(s) ? s : buf_status(&p->text);
    if (failed(s)) {
        free_prompts(&p);
        return s;
    }
    append(a, p);
    *next = &p->g;
    return status_ok();
}

/* Every prompt of a file is looked at before the first is answered. */
static struct status look_at(void *self, const char *line, size_t n)
{
    const struct answers *a = self;
    struct generation g;
    struct status s =
        generation_init(&g, a->session, &a->session->scratch, line, n, a->options, a->input.number);
    generation_fini(&g);
    return s;
}

static double rate_of(int64_t n, int64_t ns)
{
    return ns > 0 ? (double)n / ((double)ns / 1e9) : 0;
}

static void log_times(const struct generate_times *t)
{
    log_info(
        "prompts: %lld tokens in %.3f s, %.1f tokens/s; behind them: %lld tokens in %.3f s, %.1f tokens/s",
        (long long)t->prompt_tokens, (double)t->prompt_ns / 1e9, rate_of(t->prompt_tokens, t->prompt_ns),
        (long long)t->new_tokens, (double)t->new_ns / 1e9, rate_of(t->new_tokens, t->new_ns));
    if (t->n_put_back > 0) {
        log_info(
            "the cache was full %lld times, and the youngest text computed again: --cache_gib gives more",
            (long long)t->n_put_back);
    }
}

/* kiln launch gives its ranks no standard input. */
static void tell_nothing(const struct answers *a)
{
    const struct generate_args *g = a->args;
    if (g->prompt == NULL && a->input.number == 0) {
        log_warning("%s had no prompt: give --prompt TEXT, or lines by --prompt_file or standard input",
                    g->prompt_file != NULL ? g->prompt_file : "standard input");
    }
}

static struct status answer(struct session *s, const struct tensor_ranks *ranks,
                            const struct generate_args *args)
{
    const struct generate_options o = {
        .max_new_tokens = args->max_new_tokens,
        .choice = {args->temperature, args->top_k, args->top_p, args->repetition_penalty, args->min_p},
        .ignore_eos = args->ignore_eos,
        .context_shift = args->context_shift,
        .seed = (uint64_t)args->seed,
        .stops = args->stops.of,
        .n_stops = args->stops.n};
    s->dir.tokenizer.parses_special &= !args->no_parse_special_tokens;
    struct answers a = {.args = args, .options = &o, .session = s, .ranks = ranks};
    const struct generation_source source = {.next = next, .told = told, .self = &a};
    struct status status = rank_lines_open(&a.input, &ranks->world, args->prompt_file);
    if (!failed(status) && args->prompt_file != NULL) {
        status = rank_lines_look_through(&a.input, look_at, &a);
    }
    struct generate_times times = {0};
    status = failed(status) ? status : generate(s, &source, &times);
    status = failed(status) ? status : packer_explain(&s->packer, a.failure);
    if (!failed(status)) {
        log_times(&times);
        tell_nothing(&a);
    }
    free_prompts(&a.first);
    free_prompts(&a.ended);
    rank_lines_close(&a.input);
    return status;
}

static struct status check(const struct generate_args *a)
{
    FAIL_IF(a->prompt != NULL && a->prompt_file != NULL, STATUS_USAGE,
            "--prompt and --prompt_file: only one of them can be continued");
    for (int i = 0; i < a->stops.n; i++) {
        FAIL_IF(a->stops.of[i][0] == '\0', STATUS_USAGE, "--stop is empty: it would end every text");
    }
    return a->prompt == NULL ? status_ok() : standard_streams_check_argument(a->prompt, 1);
}

static struct status run_on(struct tensor_ranks *ranks, const struct generate_args *a)
{
    struct session_options o;
    struct session s;
    TRY(check(a));
    TRY(session_flags_options(&o, &a->session, ANSWER_GENERATE));
    o.n_prompts = a->prompt != NULL ? 1 : a->batch_size;
    o.cache_bytes = (size_t)(a->cache_gib * 0x1p30);
    if (a->session.common.dry_run) {
        return tensor_ranks_plan(ranks, &a->session, ANSWER_GENERATE, &o);
    }
    TRY(tensor_ranks_open(ranks, &s, a->session.model, ANSWER_GENERATE, &o));
    struct status status = answer(&s, ranks, a);
    tensor_ranks_close(ranks, &s);
    return status;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct generate_args *a = args;
    struct tensor_ranks ranks;
    (void)n_positional, (void)positional;
    TRY(tensor_ranks_begin(&ranks, &command_generate, args, a->tensor_parallel, a->session.common.dry_run));
    return tensor_ranks_end(&ranks, run_on(&ranks, a));
}

const struct command command_generate = {
    .name = "generate",
    .summary = "let a decoder continue a text",
    .details =
        "Prints each prompt and what follows it, in the order of the prompts. The flags have the names and "
        "meanings of transformers. The same seed gives the same text, whatever other prompts there are. "
        "With --tensor-model-parallel-size N the model is cut over N ranks, of which the first one reads and "
        "prints.",
    .options = options,
    .args_bytes = sizeof(struct generate_args),
    .run = run,
    .of_ranks = true,
};
