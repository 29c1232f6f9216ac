/* kiln eval: the perplexity of texts under a decoder. */
#include "cmd/commands.h"
#include "cmd/input_paths.h"
#include "cmd/session_flags.h"
#include "cmd/standard_streams.h"
#include "io/file.h"
#include "serve/answer_json.h"
#include "serve/perplexity.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

struct eval_args {
    struct session_flags session;
    const char *input;
    int64_t context, stride;
    bool json;
};

#define AT(field) offsetof(struct eval_args, field)

static const struct option options[] = {
    SESSION_FLAG_ROWS(AT(session), "a checkpoint or model directory of a decoder"),
    OPTION_INPUT_ROW("input", AT(input), "PATH...",
                     "read these files, each as one text; more paths may follow", true),
    OPTION_INT_ROW("context", AT(context), "0", 0, 1 << 20,
                   "number of tokens that the model reads at a time; 0: off, as many as it has positions"),
    OPTION_INT_ROW("stride", AT(stride), "0", 0, 1 << 20,
                   "number of tokens from one window to the next; fewer than --context give each token more "
                   "tokens before it, for as many times the work; 0: off, --context"),
    OPTION_FLAG_ROW("json", AT(json), "print a JSON object for each text, and one for all"),
    {0},
};

static struct status print_json(const struct perplexity *p, const char *name)
{
    struct buf line = {0};
    struct status s = answer_json_append(
        &line,
        json_pack("{s:o, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "text", json_text(name), "tokens",
                  (json_int_t)p->n_tokens, "bytes", (json_int_t)p->n_bytes, "context", (json_int_t)p->context,
                  "stride", (json_int_t)p->stride, "nats_per_token", perplexity_nats(p), "perplexity",
                  exp(perplexity_nats(p)), "bits_per_byte", perplexity_bits(p)));
    if (!failed(s)) {
        fputs(buf_text(&line), stdout);
    }
    buf_fini(&line);
    return s;
}

static struct status print(const struct perplexity *p, const char *name, bool json)
{
    if (json) {
        return print_json(p, name);
    }
    printf("%s: %lld tokens of %lld bytes, context %lld, stride %lld: %.4f nats a token, perplexity %.2f, "
           "%.4f bits a byte\n",
           name, (long long)p->n_tokens, (long long)p->n_bytes, (long long)p->context, (long long)p->stride,
           perplexity_nats(p), exp(perplexity_nats(p)), perplexity_bits(p));
    return status_ok();
}

static struct status add_file(struct perplexity *all, struct session *s, const char *path,
                              const struct eval_args *a)
{
    struct perplexity one;
    struct file_map map;
    TRY(perplexity_init(&one, s, a->context, a->stride));
    TRY(file_map_open(&map, path));
    struct status status = status_context(perplexity_add(&one, s, (const char *)map.data, map.n), "%s", path);
    file_map_close(&map);
    TRY(status);
    TRY(print(&one, path, a->json));
    all->n_tokens += one.n_tokens;
    all->n_bytes += one.n_bytes;
    all->nats += one.nats;
    return standard_streams_flush();
}

static struct status eval_paths(struct session *s, const struct input_paths *paths, const struct eval_args *a)
{
    struct perplexity all;
    TRY(perplexity_init(&all, s, a->context, a->stride));
    for (int i = 0; i < paths->n; i++) {
        TRY(add_file(&all, s, paths->paths[i], a));
    }
    if (paths->n > 1) {
        TRY(print(&all, "all texts", a->json));
    }
    return standard_streams_flush();
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct eval_args *a = args;
    struct input_paths paths;
    struct session s;
    if (a->session.dry_run) {
        return session_flags_plan(&a->session, ANSWER_EVAL);
    }
    TRY(input_paths_init(&paths, a->input, NULL, n_positional, positional));
    struct status status = session_flags_open(&s, &a->session, ANSWER_EVAL);
    if (!failed(status)) {
        status = eval_paths(&s, &paths, a);
        session_close(&s);
    }
    input_paths_fini(&paths);
    return status;
}

const struct command command_eval = {
    .name = "eval",
    .summary = "measure how well a decoder predicts texts: perplexity, bits per byte",
    .details = "Predicts each token of a file from the tokens before it, and prints the mean of -log p in "
               "nats per token, as perplexity, and in bits per byte. Bits per byte compare models of "
               "different vocabularies. The first token of a text does not count.",
    .positional_usage = "",
    .max_positional = 1000,
    .options = options,
    .args_bytes = sizeof(struct eval_args),
    .run = run,
};
