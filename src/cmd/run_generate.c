/* kiln generate: a decoder continues prompts. */
#include "cmd/chat_prompts.h"
#include "cmd/commands.h"
#include "cmd/rank_lines.h"
#include "cmd/session_flags.h"
#include "cmd/settings.h"
#include "cmd/standard_streams.h"
#include "cmd/tensor_ranks.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/rng.h"
#include "corpus/source_formats.h"
#include "serve/answer_json.h"
#include "serve/generate.h"
#include "service/openai_generation.h"
#include "text/utf8.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct generate_args {
    struct session_flags session;
    const char *prompt, *prompt_file, *separator, *chat_template;
    struct option_words stops;
    int64_t max_new_tokens, batch_size, top_k, seed, tensor_parallel, n_samples, n_alternatives;
    double temperature, top_p, min_p, repetition_penalty, cache_gib;
    bool ignore_eos, context_shift, ids, json, chat, no_parse_special_tokens;
};

#define AT(field) offsetof(struct generate_args, field)

static const struct option options[] = {
    SESSION_FLAG_ROWS(AT(session), "a checkpoint, model directory or GGUF file of a decoder"),
    OPTION_MEANS_ROW("autocast", AT(session.dtype), "bf16", "the same as --dtype bf16"),
    OPTION_TEXT_ROW("prompt", AT(prompt), "text to continue, as TEXT is"),
    OPTION_STRING_ROW(
        "prompt_file", AT(prompt_file), NULL, "FILE",
        "file of prompts, one a line; of a .jsonl each line is an object with a \"prompt\", which "
        "may have line ends, or with \"messages\" as OpenAI has them, to be answered"),
    OPTION_FLAG_ROW(
        "chat", AT(chat),
        "each prompt is what a user says: the model's chat template makes the prompt of it, and the "
        "answer alone is printed"),
    OPTION_STRING_ROW("chat_template", AT(chat_template), NULL, "FILE",
                      "template (Jinja) that makes a prompt of messages; default: the model's own"),
    OPTION_INT_ROW("num_return_sequences", AT(n_samples), "1", 1, 1 << 20,
                   "number of texts after each prompt, each by other choices"),
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
    OPTION_TEXT_ROW("separator", AT(separator), "print this line between two texts"),
    OPTION_FLAG_ROW("json", AT(json), "print a JSON object for each text: prompt, text, ids, end"),
    OPTION_INT_ROW(
        "logprobs", AT(n_alternatives), "-1", -1, GENERATE_ALTERNATIVES,
        "add to --json how probable the model finds each new token, and the N most probable ones, as "
        "OpenAI's chat has them; -1: off"),
    TENSOR_RANKS_ROW(AT(tensor_parallel)),
    {0},
};

/* A prompt, from its line until it is printed. */
struct prompt {
    struct generation g; /* first */
    struct buf text;
    bool is_answer;   /* the text of the prompt is not printed */
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
    struct chat_prompts chat;
    bool is_chat; /* `text` was made of messages */
    int n_arguments;
    const char *const *arguments; /* prompts of the command line; none: lines of `input` */
    struct buf text;              /* prompt of which `n_left` more texts are asked */
    int64_t n_left;
    bool has_printed;      /* a text is complete on standard output */
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
    if (!p->is_begun && !p->is_answer) {
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

static struct status print_json(const struct prompt *p, const struct answers *a)
{
    json_t *line = answer_json_generation(buf_text(&p->text), p->text.n, &p->g);
    if (line != NULL && p->g.options->rates && p->g.end != GENERATION_FAILED) {
        json_object_set_new(line, "logprobs", openai_generation_report(a->session->tokenizer, &p->g, 0));
    }
    return standard_streams_put_json(line);
}

/* Prints what is new of a prompt. */
static struct status print_new(struct prompt *p, struct answers *a)
{
    const struct generate_args *args = a->args;
    bool has_ended = p->g.end != GENERATION_GOES_ON;
    if (args->json) {
        return has_ended ? print_json(p, a) : status_ok();
    }
    if (!p->is_begun && a->has_printed && args->separator != NULL) {
        puts(args->separator);
    }
    if (args->ids) {
        print_ids(p);
    } else {
        TRY(print_text(p));
    }
    p->is_begun = true;
    if (has_ended) {
        putchar('\n');
        a->has_printed = true;
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
            TRY(print_new(p, a));
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

/* Sets a->text to a prompt, or to what the template makes of it. */
static struct status take_text(struct answers *a, const char *text, size_t n)
{
    a->is_chat = a->args->chat;
    buf_clear(&a->text);
    if (a->is_chat) {
        return chat_prompts_of_user(&a->text, &a->chat, text, n);
    }
    buf_append(&a->text, text, n);
    return buf_status(&a->text);
}

static struct status take_messages(struct answers *a, const json_t *messages)
{
    a->is_chat = true;
    buf_clear(&a->text);
    return chat_prompts_of(&a->text, &a->chat, messages);
}

/* Sets the prompt of a line: the line, or in a file of JSON lines its "prompt" or "messages". */
static struct status read_prompt(struct answers *a, const char *line, size_t n)
{
    const char *path = a->args->prompt_file;
    if (path == NULL || !source_formats_names_json(path)) {
        return take_text(a, line, n);
    }
    json_t *object;
    TRY(json_parse_text(&object, line, n, path));
    const json_t *prompt = json_object_get(object, "prompt"), *messages = json_object_get(object, "messages");
    struct status s = messages != NULL ? take_messages(a, messages)
                      : json_is_string(prompt)
                          ? take_text(a, json_string_value(prompt), json_string_length(prompt))
                          : status_error(STATUS_DATA, "\"prompt\" is missing, or no text");
    json_decref(object);
    return status_context(s, "%s line %lld", path, (long long)a->input.number);
}

/* Begins to continue a->text; what a template makes has its special tokens already. */
static struct status begin(struct generation *g, struct answers *a)
{
    struct tokenizer_scratch *scratch = &a->session->scratch;
    if (!a->is_chat) {
        return generation_init(g, a->session, scratch, buf_text(&a->text), a->text.n, a->options,
                               a->input.number);
    }
    struct id_list ids = {0};
    struct status s = tokenizer_encode_ids(scratch, &ids, buf_text(&a->text), a->text.n);
    s = failed(s) ? s : generation_init_ids(g, a->session, ids.ids, ids.n, a->options, a->input.number);
    id_list_fini(&ids);
    return s;
}

/* Sets a->text and a->n_left, unless texts are left; both 0 where there is no prompt, or none yet. */
static struct status next_prompt(struct answers *a, bool may_wait)
{
    const char *line = NULL;
    size_t n = 0;
    if (a->n_left > 0) {
        return status_ok();
    }
    if (a->n_arguments == 0) {
        TRY(rank_lines_next(&a->input, may_wait, &line, &n));
    } else if (a->input.number < a->n_arguments) {
        line = a->arguments[a->input.number++];
        n = strlen(line);
    }
    if (line == NULL) {
        return status_ok();
    }
    TRY(read_prompt(a, line, n));
    a->n_left = a->args->n_samples;
    return status_ok();
}

/* The choices of the first text after a prompt are those of the only one. */
static void set_sample(struct prompt *p, int64_t sample)
{
    p->g.seed = sample == 0 ? p->g.seed : rng_key(p->g.seed, (uint64_t)sample);
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
    *next = NULL;
    free_prompts(&a->ended);
    TRY(next_prompt(a, may_wait));
    if (a->n_left == 0) {
        return status_ok();
    }
    struct prompt *p = calloc(1, sizeof *p);
    FAIL_IF(p == NULL, STATUS_MEMORY, "out of memory for a prompt");
    buf_append(&p->text, buf_text(&a->text), a->text.n);
    p->is_answer = a->is_chat;
    struct status s = begin(&p->g, a);
    s = failed(s) ? s : buf_status(&p->text);
    if (failed(s)) {
        free_prompts(&p);
        return s;
    }
    set_sample(p, a->args->n_samples - a->n_left--);
    append(a, p);
    *next = &p->g;
    return status_ok();
}

/* Every prompt of a file is looked at before the first is answered. */
static struct status look_at(void *self, const char *line, size_t n)
{
    struct answers *a = self;
    struct generation g;
    TRY(read_prompt(a, line, n));
    struct status s = begin(&g, a);
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
    if (a->input.number == 0) {
        log_warning("%s had no prompt: give a text, or lines by --prompt_file or standard input",
                    g->prompt_file != NULL ? g->prompt_file : "standard input");
    }
}

static struct status answer(struct session *s, const struct tensor_ranks *ranks,
                            const struct generate_args *args, int n_arguments, const char *const *arguments)
{
    const struct generate_options o = {
        .max_new_tokens = args->max_new_tokens,
        .choice = {args->temperature, args->top_k, args->top_p, args->repetition_penalty, args->min_p},
        .ignore_eos = args->ignore_eos,
        .context_shift = args->context_shift,
        .seed = (uint64_t)args->seed,
        .rates = args->n_alternatives >= 0,
        .n_alternatives = args->n_alternatives > 0 ? (int)args->n_alternatives : 0,
        .stops = args->stops.of,
        .n_stops = args->stops.n};
    s->dir.tokenizer.parses_special &= !args->no_parse_special_tokens;
    struct answers a = {.args = args,
                        .options = &o,
                        .session = s,
                        .ranks = ranks,
                        .n_arguments = n_arguments,
                        .arguments = arguments};
    const struct generation_source source = {.next = next, .told = told, .self = &a};
    struct status status = chat_prompts_open(&a.chat, &s->dir.tokenizer, args->chat_template);
    status = failed(status) ? status : rank_lines_open(&a.input, &ranks->world, args->prompt_file);
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
    buf_fini(&a.text);
    rank_lines_close(&a.input);
    chat_prompts_fini(&a.chat);
    return status;
}

static struct status check(const struct generate_args *a, int n_arguments, const char *const *arguments)
{
    FAIL_IF(a->prompt != NULL && a->prompt_file != NULL, STATUS_USAGE,
            "--prompt and --prompt_file: only one of them can be continued");
    FAIL_IF(n_arguments > 0 && arguments != &a->prompt && (a->prompt != NULL || a->prompt_file != NULL),
            STATUS_USAGE, "TEXT..., --prompt and --prompt_file: only one of them can be continued");
    FAIL_IF(a->n_alternatives >= 0 && !a->json, STATUS_USAGE, "--logprobs is printed with --json alone");
    for (int i = 0; i < a->stops.n; i++) {
        FAIL_IF(a->stops.of[i][0] == '\0', STATUS_USAGE, "--stop is empty: it would end every text");
    }
    for (int i = 0; i < n_arguments; i++) {
        TRY(standard_streams_check_argument(arguments[i], i + 1));
    }
    return status_ok();
}

static struct status run_on(struct tensor_ranks *ranks, const struct generate_args *a, int n_arguments,
                            const char *const *arguments)
{
    if (a->prompt != NULL && n_arguments == 0) {
        n_arguments = 1;
        arguments = &a->prompt;
    }
    struct session_options o;
    struct session s;
    TRY(check(a, n_arguments, arguments));
    TRY(session_flags_options(&o, &a->session, ANSWER_GENERATE));
    int64_t n_texts = n_arguments * a->n_samples;
    o.n_prompts = n_arguments > 0 && n_texts < a->batch_size ? n_texts : a->batch_size;
    o.cache_bytes = (size_t)(a->cache_gib * 0x1p30);
    if (a->session.common.dry_run) {
        return tensor_ranks_plan(ranks, &a->session, ANSWER_GENERATE, &o);
    }
    TRY(tensor_ranks_open(ranks, &s, a->session.model, ANSWER_GENERATE, &o));
    struct status status = answer(&s, ranks, a, n_arguments, arguments);
    tensor_ranks_close(ranks, &s);
    return status;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct generate_args *a = args;
    struct tensor_ranks ranks;
    TRY(tensor_ranks_begin(&ranks, &command_generate, args, a->tensor_parallel, a->session.common.dry_run));
    return tensor_ranks_end(&ranks, run_on(&ranks, a, n_positional, positional));
}

const struct command command_generate = {
    .name = "generate",
    .summary = "let a decoder continue a text",
    .details =
        "Prompts are arguments, --prompt, or lines of --prompt_file or of standard input; with --chat they "
        "are "
        "what a user says, and are answered. Prints each prompt "
        "and "
        "what follows it, in the order of the prompts. The flags have the names and "
        "meanings of transformers. The same seed gives the same text, whatever other prompts there are. "
        "With --tensor-model-parallel-size N the model is cut over N ranks, of which the first one reads and "
        "prints.",
    .positional_usage = "[TEXT...]",
    .max_positional = 1000,
    .options = options,
    .args_bytes = sizeof(struct generate_args),
    .run = run,
    .of_ranks = true,
};
