/* kiln ngram: how well counts of n-grams predict texts, the baseline of `kiln eval`. */
#include "cmd/commands.h"
#include "cmd/input_paths.h"
#include "cmd/perplexity_report.h"
#include "cmd/settings.h"
#include "core/clock.h"
#include "core/log.h"
#include "data/text_ids.h"
#include "ngram/kneser_ney.h"
#include "text/tokenizer_open.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

struct ngram_args {
    struct vocab_flags vocabulary;
    const char *train, *input;
    int64_t order;
    bool json, no_parse_special_tokens;
    struct command_flags common;
};

#define AT(field) offsetof(struct ngram_args, field)

static const struct option options[] = {
    OPTION_REQUIRED_ROW(
        "train", AT(train), "PATH",
        "count the n-grams of this text: the prefix of a .bin and .idx, lines of JSON (.jsonl) "
        "with a \"text\" each, or a file of text"),
    OPTION_INPUT_ROW("input", AT(input), "PATH...",
                     "predict these texts, in any of the same forms; more paths may follow", true),
    OPTION_REQUIRED_ROW("vocab_file", AT(vocabulary.vocab_file), "FILE",
                        "tokenizer.json of the store and for texts, or vocab.json with --merge_file"),
    MERGE_FILE_ROW(AT(vocabulary.merge_file)),
    OPTION_INT_ROW("order", AT(order), "6", 1, NGRAM_MOST_ORDER,
                   "number of tokens of the longest n-gram: each token is predicted from one token fewer"),
    NO_PARSE_SPECIAL_ROW(AT(no_parse_special_tokens)),
    JSON_OF_PATHS_ROW(AT(json)),
    DRY_RUN_ROW(AT(common.dry_run), "read what is counted, say what memory it takes, and count nothing"),
    {0},
};

enum { MIB = 1 << 20 };

/* The tokens of all documents, NGRAM_BEGIN before each. */
static struct status append_document(void *self, const int32_t *ids, int64_t n, int64_t n_bytes)
{
    struct buf *stream = self;
    const int32_t begin = NGRAM_BEGIN;
    (void)n_bytes;
    buf_append(stream, &begin, sizeof begin);
    buf_append(stream, ids, (size_t)n * sizeof *ids);
    return buf_status(stream);
}

/* The documents of one path. */
struct measuring {
    struct perplexity p;
    const struct kneser_ney *model;
    struct buf stream; /* tokens of one document */
};

static struct status measure_document(void *self, const int32_t *ids, int64_t n, int64_t n_bytes)
{
    struct measuring *m = self;
    buf_clear(&m->stream);
    TRY(append_document(&m->stream, ids, n, n_bytes));
    const int32_t *stream = (const int32_t *)(const void *)m->stream.data;
    for (int64_t i = 2; i <= n; i++) { /* the first token does not count, as in kiln eval */
        m->p.nats -= log(kneser_ney_p(m->model, stream, i, stream[i]));
    }
    m->p.n_tokens += n > 1 ? n - 1 : 0;
    m->p.n_bytes += n > 1 ? n_bytes : 0;
    return status_ok();
}

static struct status measure_paths(const struct kneser_ney *k, struct tokenizer_scratch *t,
                                   const struct input_paths *paths, const struct ngram_args *a)
{
    const struct perplexity none = {.context = a->order - 1, .stride = 1};
    struct perplexity all = none;
    struct measuring m = {.model = k};
    struct status s = status_ok();
    for (int i = 0; i < paths->n && !failed(s); i++) {
        m.p = none;
        s = text_ids_read(t, paths->paths[i], NULL, measure_document, &m);
        if (!failed(s) && m.p.n_tokens == 0) {
            s = status_error(STATUS_DATA, "%s has no text of two tokens", paths->paths[i]);
        }
        s = failed(s) ? s : perplexity_report(&m.p, paths->paths[i], a->json);
        perplexity_join(&all, &m.p);
    }
    buf_fini(&m.stream);
    return failed(s) || paths->n == 1 ? s : perplexity_report(&all, "all texts", a->json);
}

static void tell(const struct kneser_ney *k, int64_t start)
{
    for (int m = 1; m <= k->order; m++) {
        const struct ngram_level *l = &k->levels[m];
        log_info("order %d: %lld n-grams, discounts %.3f, %.3f, %.3f%s", m, (long long)l->n, l->discounts[1],
                 l->discounts[2], l->discounts[3], l->assumed ? ", which so few cannot tell" : "");
    }
    log_info("counted in %.1f s; the counts hold %zu MiB", clock_since_s(start),
             kneser_ney_bytes(k) / MIB + 1);
}

static struct status count_and_measure(struct tokenizer_scratch *t, const struct input_paths *paths,
                                       const struct ngram_args *a)
{
    struct buf stream = {0};
    struct kneser_ney k = {0};
    TRY(a->common.dry_run ? status_ok() : text_ids_check(paths->paths, paths->n));
    struct status s = text_ids_read(t, a->train, NULL, append_document, &stream);
    const int32_t *ids = (const int32_t *)(const void *)stream.data;
    int64_t n = (int64_t)(stream.n / sizeof *ids), start = clock_ns();
    if (!failed(s)) {
        log_info("%s: %lld tokens, documents' beginnings included; counting them takes at most %zu MiB",
                 a->train, (long long)n, (stream.n + kneser_ney_most_bytes(n, (int)a->order)) / MIB + 1);
    }
    if (!failed(s) && !a->common.dry_run) {
        s = status_context(kneser_ney_init(&k, ids, n, (int)a->order, t->tokenizer->n), "--train %s",
                           a->train);
    }
    if (!failed(s) && !a->common.dry_run) {
        tell(&k, start);
        s = measure_paths(&k, t, paths, a);
    }
    kneser_ney_fini(&k);
    buf_fini(&stream);
    return s;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct ngram_args *a = args;
    struct input_paths paths;
    struct tokenizer t;
    struct tokenizer_scratch scratch;
    TRY(tokenizer_open_flags(&t, &a->vocabulary));
    t.parses_special &= !a->no_parse_special_tokens;
    struct status s = tokenizer_scratch_init(&scratch, &t);
    if (!failed(s)) {
        s = input_paths_init(&paths, a->input, NULL, n_positional, positional);
    }
    if (!failed(s)) {
        s = count_and_measure(&scratch, &paths, a);
        input_paths_fini(&paths);
    }
    tokenizer_scratch_fini(&scratch);
    tokenizer_fini(&t);
    return s;
}

const struct command command_ngram = {
    .name = "ngram",
    .summary = "measure how well counts of n-grams predict texts: the baseline of eval",
    .details =
        "Counts the n-grams of a text and prints how well they predict other texts, in the form of "
        "`kiln eval`: interpolated, modified Kneser-Ney smoothing with three discounts for each order "
        "(Chen & Goodman 1998). Memory is at most 20 bytes per token and order, and 24 more per token.",
    .max_positional = 1000,
    .options = options,
    .args_bytes = sizeof(struct ngram_args),
    .run = run,
};
