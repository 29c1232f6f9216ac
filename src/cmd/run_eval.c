/* kiln eval: the perplexity of texts under a decoder, how often it guesses their last words, and the
 * surprisal of tokens, words and sentences under any model that predicts words. */
#include "cmd/commands.h"
#include "cmd/eval_tokens.h"
#include "cmd/input_paths.h"
#include "cmd/perplexity_report.h"
#include "cmd/session_flags.h"
#include "cmd/settings.h"
#include "cmd/standard_streams.h"
#include "cmd/tensor_ranks.h"
#include "core/hash.h"
#include "corpus/source_formats.h"
#include "data/text_ids.h"
#include "serve/last_words.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct eval_args {
    struct session_flags session;
    const char *input;
    int64_t context, stride, tensor_parallel;
    const char *base, *masking;
    bool last_word, json, no_parse_special_tokens;
    bool tokens, words, sentences, bos;
};

#define AT(field) offsetof(struct eval_args, field)

static const struct option options[] = {
    SESSION_FLAG_ROWS(AT(session),
                      "a checkpoint, model directory or GGUF file of a decoder; with --tokens, --words or "
                      "--sentences of a masked model too"),
    OPTION_INPUT_ROW(
        "input", AT(input), "PATH...",
        "read these texts: files, each as one text; lines of JSON (.jsonl) with a \"text\" each; or "
        "prefixes of .bin and .idx; more paths may follow. With --tokens, --words or --sentences each line "
        "of "
        "a file is a text, and without --input each line of standard input",
        false),
    OPTION_INT_ROW("context", AT(context), "0", 0, 1 << 20,
                   "number of tokens that the model reads at a time; 0: off, as many as it has positions"),
    OPTION_INT_ROW("stride", AT(stride), "0", 0, 1 << 20,
                   "number of tokens from one window to the next; fewer than --context give each token more "
                   "tokens before it, for as many times the work; 0: off, --context"),
    OPTION_FLAG_ROW(
        "last_word", AT(last_word),
        "measure the last word of each text in lines of JSON, as LAMBADA asks: how often it is the most "
        "probable one, token by token, and its perplexity"),
    OPTION_GROUP_ROW("surprisal, as a table of tab-separated values"),
    OPTION_FLAG_ROW("tokens", AT(tokens), "print -log p of each token"),
    OPTION_FLAG_ROW("words", AT(words), "print the sum of each word's tokens; blanks separate words"),
    OPTION_FLAG_ROW("sentences", AT(sentences), "print the sum of each text's tokens"),
    OPTION_FLAG_ROW("bos", AT(bos),
                    "put the token that begins a text before each text of a decoder, so that the first token "
                    "counts; without it that token is NA"),
    OPTION_CHOICE_ROW("base", AT(base), "2", "2|e", "print logarithms of this base: 2 gives bits, e nats"),
    MASKING_ROW(AT(masking)),
    OPTION_GROUP_ROW("other"),
    NO_PARSE_SPECIAL_ROW(AT(no_parse_special_tokens)),
    JSON_OF_PATHS_ROW(AT(json)),
    TENSOR_RANKS_ROW(AT(tensor_parallel)),
    {0},
};

/* Session that measures, and what it measures. */
struct evaluation {
    const struct eval_args *args;
    const struct input_paths *paths;
    struct session *session;
    const struct tensor_ranks *ranks;
};

static bool is_table(const struct eval_args *a)
{
    return a->tokens || a->words || a->sentences;
}

/* ---- texts of several ranks ---- */

struct hashing {
    uint64_t chain[2]; /* hash of all texts before, and of one text */
};

static void hash(struct hashing *h, const void *bytes, size_t n)
{
    h->chain[1] = hash_bytes(bytes, n);
    h->chain[0] = hash_bytes(h->chain, sizeof h->chain);
}

static struct status hash_document(void *self, const int32_t *ids, int64_t n, int64_t n_bytes)
{
    (void)n_bytes;
    hash(self, ids, (size_t)n * sizeof *ids);
    return status_ok();
}

static struct status hash_text(void *self, const char *text, size_t n)
{
    hash(self, text, n);
    return status_ok();
}

/* Every rank reads the texts, which must be the same, so that all make the same calls. */
static struct status compare_texts(const struct evaluation *e)
{
    struct hashing h = {0};
    struct status s = status_ok();
    if (e->ranks->n == 1) {
        return status_ok();
    }
    for (int i = 0; i < e->paths->n && !failed(s); i++) {
        const char *path = e->paths->paths[i];
        s = e->args->last_word  ? text_ids_lines(path, hash_text, &h)
            : is_table(e->args) ? text_ids_each_line(path, hash_text, &h)
                                : text_ids_read(&e->session->scratch, path, NULL, hash_document, &h);
    }
    TRY(comm_agree(&e->ranks->world, s));
    return tensor_ranks_compare(e->ranks, "the hash of the texts of --input", h.chain[0]);
}

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

static struct status print_perplexity(const struct evaluation *e, const struct perplexity *p,
                                      const char *name)
{
    return tensor_ranks_prints(e->ranks) ? perplexity_report(p, name, e->args->json) : status_ok();
}

static struct status add_path(struct perplexity *all, const struct evaluation *e, const char *path)
{
    struct measuring m = {.s = e->session};
    TRY(perplexity_init(&m.p, e->session, e->args->context, e->args->stride));
    TRY(text_ids_read(&e->session->scratch, path, NULL, add_document, &m));
    FAIL_IF(m.p.n_tokens == 0, STATUS_DATA,
            "%s: a text of %lld tokens has none to predict, since the first has no token before it: give 2 "
            "or more",
            path, (long long)m.too_short);
    perplexity_join(all, &m.p);
    return print_perplexity(e, &m.p, path);
}

static struct status measure_texts(const struct evaluation *e)
{
    struct perplexity all;
    TRY(perplexity_init(&all, e->session, e->args->context, e->args->stride));
    for (int i = 0; i < e->paths->n; i++) {
        TRY(add_path(&all, e, e->paths->paths[i]));
    }
    return e->paths->n > 1 ? print_perplexity(e, &all, "all texts") : status_ok();
}

/* ---- last words ---- */

static struct status print_last_words(const struct last_words *l, bool json)
{
    double accuracy = last_words_accuracy(l), nats = last_words_nats(l);
    if (json) {
        return standard_streams_put_json(json_pack("{s:I, s:f, s:o, s:o}", "texts", (json_int_t)l->n,
                                                   "accuracy", accuracy, "nats_per_word", json_finite(nats),
                                                   "perplexity", json_finite(exp(nats))));
    }
    printf("%lld last words: %.2f %% guessed, %.4f nats a word, perplexity %.2f\n", (long long)l->n,
           100 * accuracy, nats, exp(nats));
    return standard_streams_flush();
}

/* Texts to measure, and what encodes them. */
struct last_word_texts {
    struct last_words words;
    struct tokenizer_scratch *scratch;
};

static struct status add_last_word(void *self, const char *text, size_t n)
{
    struct last_word_texts *t = self;
    return last_words_add(&t->words, t->scratch, text, n);
}

static struct status measure_last_words(const struct evaluation *e)
{
    struct last_word_texts t = {{.session = e->session}, &e->session->scratch};
    struct status status = status_ok();
    for (int i = 0; i < e->paths->n && !failed(status); i++) {
        status = text_ids_lines(e->paths->paths[i], add_last_word, &t);
    }
    status = failed(status) ? status : last_words_make(&t.words);
    status = failed(status) ? status : packer_answer(&e->session->packer, &t.words.request);
    if (!failed(status) && tensor_ranks_prints(e->ranks)) {
        status = print_last_words(&t.words, e->args->json);
    }
    last_words_fini(&t.words);
    return status;
}

/* ---- the command ---- */

/* A last word needs the scores of all words; other texts only the losses. */
static struct status find_answer(enum answer *answer, const struct eval_args *a)
{
    bool is_decoder;
    *answer = a->last_word ? ANSWER_LAST_WORDS : ANSWER_EVAL;
    if (is_table(a)) {
        TRY(session_flags_is_decoder(&is_decoder, &a->session));
        *answer = is_decoder ? ANSWER_TOKENS_NEXT : ANSWER_TOKENS;
    }
    return status_ok();
}

static struct status print_table(const struct evaluation *e)
{
    const struct eval_args *a = e->args;
    const struct eval_tokens table = {.session = e->session,
                                      .unit = a->tokens  ? EVAL_TOKENS
                                              : a->words ? EVAL_WORDS
                                                         : EVAL_SENTENCES,
                                      .masking = likelihood_masking_find(a->masking),
                                      .begins = a->bos && e->session->model->task == MODEL_TASK_CAUSAL_LM,
                                      .bits = strcmp(a->base, "2") == 0,
                                      .prints = tensor_ranks_prints(e->ranks)};
    return eval_tokens_run(&table, e->paths);
}

static struct status measure(struct tensor_ranks *ranks, const struct eval_args *a,
                             const struct input_paths *paths, enum answer answer, struct session_options *o)
{
    struct session s;
    const struct evaluation e = {a, paths, &s, ranks};
    TRY(tensor_ranks_open(ranks, &s, a->session.model, answer, o));
    s.dir.tokenizer.parses_special &= !a->no_parse_special_tokens;
    struct status status = compare_texts(&e);
    if (!failed(status)) {
        status = a->last_word ? measure_last_words(&e) : is_table(a) ? print_table(&e) : measure_texts(&e);
    }
    tensor_ranks_close(ranks, &s);
    return status;
}

/* Checks all paths before the first of them is measured. */
static struct status check_paths(const struct eval_args *a, const struct input_paths *paths)
{
    for (int i = 0; i < paths->n && a->last_word; i++) {
        FAIL_IF(
            !source_formats_names_json(paths->paths[i]), STATUS_USAGE,
            "--last_word measures lines of JSON, but the name of %s does not end in .jsonl, .ndjson or .json",
            paths->paths[i]);
    }
    return text_ids_check(paths->paths, paths->n);
}

static struct status check(const struct eval_args *a, const struct tensor_ranks *ranks)
{
    FAIL_IF(a->tokens + a->words + a->sentences + a->last_word > 1, STATUS_USAGE,
            "--tokens, --words, --sentences and --last_word are different measures: give one");
    FAIL_IF(is_table(a) && (a->context > 0 || a->stride > 0 || a->json), STATUS_USAGE,
            "--tokens, --words and --sentences print tables of complete texts: leave out --context, --stride "
            "and --json");
    FAIL_IF(!is_table(a) && a->bos, STATUS_USAGE,
            "--bos is for tables of surprisal: give --tokens, --words or --sentences");
    FAIL_IF(a->input == NULL && (!is_table(a) || ranks->n > 1), STATUS_USAGE, "--input is missing: %s",
            is_table(a) ? "ranks do not share standard input" : "texts to measure");
    return status_ok();
}

static struct status run_on(struct tensor_ranks *ranks, const struct eval_args *a, int n_positional,
                            const char *const *positional)
{
    struct input_paths paths;
    struct session_options o;
    enum answer answer;
    TRY(check(a, ranks));
    FAIL_IF(a->last_word && (a->context > 0 || a->stride > 0), STATUS_USAGE,
            "--last_word reads all of a text: leave out --context and --stride");
    TRY(find_answer(&answer, a));
    TRY(session_flags_options(&o, &a->session, answer));
    if (a->session.common.dry_run) {
        return tensor_ranks_plan(ranks, &a->session, answer, &o);
    }
    TRY(input_paths_init(&paths, a->input, NULL, n_positional, positional));
    struct status status = check_paths(a, &paths);
    status = failed(status) ? status : measure(ranks, a, &paths, answer, &o);
    input_paths_fini(&paths);
    return status;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct eval_args *a = args;
    struct tensor_ranks ranks;
    TRY(tensor_ranks_begin(&ranks, &command_eval, args, a->tensor_parallel, a->session.common.dry_run));
    return tensor_ranks_end(&ranks, run_on(&ranks, a, n_positional, positional));
}

const struct command command_eval = {
    .name = "eval",
    .summary = "measure how well a model predicts texts: perplexity, bits per byte, surprisal, last words",
    .details =
        "Predicts each token of a text from the tokens before it, and prints the mean of -log p in "
        "nats per token, as perplexity, and in bits per byte. Bits per byte compare models of "
        "different vocabularies. The first token of a text does not count. `kiln ngram` measures a "
        "model of counts in the same way. With --tokens, --words or --sentences a table has the surprisal "
        "(-log p) of each, under a decoder or a masked model, whose tokens are masked one at a time "
        "(pseudo-log-likelihood). With --tensor-model-parallel-size N the model is cut over N "
        "ranks, which all read the texts.",
    .max_positional = 1000,
    .options = options,
    .args_bytes = sizeof(struct eval_args),
    .run = run,
    .of_ranks = true,
};
