/* kiln eval: the perplexity of texts under a decoder, and how often it guesses their last words. */
#include "cmd/commands.h"
#include "cmd/input_paths.h"
#include "cmd/perplexity_report.h"
#include "cmd/session_flags.h"
#include "cmd/standard_streams.h"
#include "data/text_ids.h"
#include "serve/answer_json.h"
#include "serve/last_words.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

struct eval_args {
    struct session_flags session;
    const char *input;
    int64_t context, stride;
    bool last_word, json;
};

#define AT(field) offsetof(struct eval_args, field)

static const struct option options[] = {
    SESSION_FLAG_ROWS(AT(session), "a checkpoint or model directory of a decoder"),
    OPTION_INPUT_ROW(
        "input", AT(input), "PATH...",
        "read these texts: files, each as one text; lines of JSON (.jsonl) with a \"text\" each; or "
        "prefixes of .bin and .idx; more paths may follow",
        true),
    OPTION_INT_ROW("context", AT(context), "0", 0, 1 << 20,
                   "number of tokens that the model reads at a time; 0: off, as many as it has positions"),
    OPTION_INT_ROW("stride", AT(stride), "0", 0, 1 << 20,
                   "number of tokens from one window to the next; fewer than --context give each token more "
                   "tokens before it, for as many times the work; 0: off, --context"),
    OPTION_FLAG_ROW(
        "last_word", AT(last_word),
        "measure the last word of each text in lines of JSON, as LAMBADA asks: how often it is the most "
        "probable one, token by token, and its perplexity"),
    OPTION_FLAG_ROW("json", AT(json), "print a JSON object for each path, and one for all"),
    {0},
};

/* ---- perplexity ---- */

/* The documents of one path. */
struct measuring {
    struct perplexity p;
    struct session *s;
    int64_t too_short; /* tokens of a document that has none to predict */
};

static struct status add_document(void *self, const int32_t *ids, int64_t n, int64_t n_bytes)
{
    struct measuring *m = self;
    if (n < 2) {
        m->too_short = n;
        return status_ok();
    }
    return perplexity_add_ids(&m->p, m->s, ids, n, n_bytes);
}

static struct status add_path(struct perplexity *all, struct session *s, const char *path,
                              const struct eval_args *a)
{
    struct measuring m = {.s = s};
    TRY(perplexity_init(&m.p, s, a->context, a->stride));
    TRY(text_ids_read(&s->scratch, path, add_document, &m));
    if (m.p.n_tokens == 0) {
        return status_error(STATUS_DATA, "%s: a text of %lld tokens has none that another stands before",
                            path, (long long)m.too_short);
    }
    perplexity_join(all, &m.p);
    return perplexity_report(&m.p, path, a->json);
}

static struct status measure_texts(struct session *s, const struct input_paths *paths,
                                   const struct eval_args *a)
{
    struct perplexity all;
    TRY(perplexity_init(&all, s, a->context, a->stride));
    for (int i = 0; i < paths->n; i++) {
        TRY(add_path(&all, s, paths->paths[i], a));
    }
    return paths->n > 1 ? perplexity_report(&all, "all texts", a->json) : status_ok();
}

/* ---- last words ---- */

static struct status print_last_words(const struct last_words *l, bool json)
{
    double accuracy = last_words_accuracy(l), nats = last_words_nats(l);
    struct buf line = {0};
    struct status s = status_ok();
    if (json) {
        s = answer_json_append(&line, json_pack("{s:I, s:f, s:f, s:f}", "texts", (json_int_t)l->n, "accuracy",
                                                accuracy, "nats_per_word", nats, "perplexity", exp(nats)));
    } else {
        buf_printf(&line, "%lld last words: %.2f %% guessed, %.4f nats a word, perplexity %.2f\n",
                   (long long)l->n, 100 * accuracy, nats, exp(nats));
        s = buf_status(&line);
    }
    if (!failed(s)) {
        fputs(buf_text(&line), stdout);
    }
    buf_fini(&line);
    return failed(s) ? s : standard_streams_flush();
}

static struct status add_last_word(void *self, const char *text, size_t n)
{
    return last_words_add(self, text, n);
}

static struct status measure_last_words(struct session *s, const struct input_paths *paths,
                                        const struct eval_args *a)
{
    struct last_words l = {.session = s};
    struct status status = status_ok();
    for (int i = 0; i < paths->n && !failed(status); i++) {
        status = text_ids_lines(paths->paths[i], add_last_word, &l);
    }
    status = failed(status) ? status : last_words_run(&l);
    status = failed(status) ? status : print_last_words(&l, a->json);
    last_words_fini(&l);
    return status;
}

/* A last word needs the scores of all words; other texts only the losses. */
static enum answer answer_of(const struct eval_args *a)
{
    return a->last_word ? ANSWER_LAST_WORDS : ANSWER_EVAL;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct eval_args *a = args;
    struct input_paths paths;
    struct session s;
    if (a->last_word && (a->context > 0 || a->stride > 0)) {
        return status_error(STATUS_USAGE,
                            "--last_word reads all of a text: leave out --context and --stride");
    }
    if (a->session.dry_run) {
        return session_flags_plan(&a->session, answer_of(a));
    }
    TRY(input_paths_init(&paths, a->input, NULL, n_positional, positional));
    struct status status = session_flags_open(&s, &a->session, answer_of(a));
    if (!failed(status)) {
        status = a->last_word ? measure_last_words(&s, &paths, a) : measure_texts(&s, &paths, a);
        session_close(&s);
    }
    input_paths_fini(&paths);
    return status;
}

const struct command command_eval = {
    .name = "eval",
    .summary = "measure how well a decoder predicts texts: perplexity, bits per byte, last words",
    .details = "Predicts each token of a text from the tokens before it, and prints the mean of -log p in "
               "nats per token, as perplexity, and in bits per byte. Bits per byte compare models of "
               "different vocabularies. The first token of a text does not count. `kiln ngram` measures a "
               "model of counts in the same way.",
    .positional_usage = "",
    .max_positional = 1000,
    .options = options,
    .args_bytes = sizeof(struct eval_args),
    .run = run,
};
