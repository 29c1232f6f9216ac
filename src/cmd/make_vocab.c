/* make_vocab: `kiln vocab` builds a WordPiece vocabulary from text. */
#include "cmd/commands.h"
#include "core/clock.h"
#include "core/log.h"
#include "corpus/corpus_pass.h"
#include "corpus/input_guard.h"
#include "corpus/source_formats.h"
#include "io/file.h"
#include "text/vocab.h"
#include "text/wordpiece_train.h"

#include <stdlib.h>

struct vocab_args {
    const char *input;
    const char *vocab_file;
    const char *format;
    int64_t vocab_size;
    int64_t min_frequency;
    int64_t limit_alphabet;
    bool do_lower_case;
    bool replace_invalid_utf8;
    bool dry_run;
};

static const struct option options[] = {
    OPTION_REQUIRED_ROW("input", offsetof(struct vocab_args, input), "PATH...",
                        "text files or directories; further ones may follow"),
    OPTION_REQUIRED_ROW("vocab_file", offsetof(struct vocab_args, vocab_file), "FILE",
                        "where to write vocab.txt"),
    OPTION_INT_ROW("vocab_size", offsetof(struct vocab_args, vocab_size), "30522", 6, 1000000,
                   "number of pieces, the five special ones included"),
    OPTION_FLAG_ROW("do_lower_case", offsetof(struct vocab_args, do_lower_case),
                    "lower case and strip accents: for an uncased model"),
    OPTION_INT_ROW("min_frequency", offsetof(struct vocab_args, min_frequency), "2", 1, 1e15,
                   "how often a piece must occur in the text"),
    OPTION_INT_ROW("limit_alphabet", offsetof(struct vocab_args, limit_alphabet), "1000", 1, 1114112,
                   "number of characters to keep, the most frequent ones"),
    OPTION_CHOICE_ROW("input_format", offsetof(struct vocab_args, format), "auto", SOURCE_FORMATS_NAMES,
                      "how the files hold documents, as for kiln prepare"),
    OPTION_FLAG_ROW("replace_invalid_utf8", offsetof(struct vocab_args, replace_invalid_utf8),
                    "read invalid UTF-8 as U+FFFD instead of ending with an error"),
    OPTION_FLAG_ROW("dry-run", offsetof(struct vocab_args, dry_run),
                    "check the flags and list the input, but read and write nothing"),
    {0},
};

/* The sink of documents: it counts their words. */
struct word_sink {
    struct wordpiece_train *train;
    struct progress *progress;
    uint64_t total_bytes;
    int64_t start_ns;
};

static struct status take(void *context, const struct corpus_item *item)
{
    struct word_sink *k = context;
    for (int64_t i = 0; i < item->document.n_paragraphs; i++) {
        struct paragraph p = document_paragraph(&item->document, i);
        TRY(wordpiece_train_add(k->train, p.text, p.n));
    }
    if (progress_due(k->progress)) {
        double done = (double)item->done_bytes;
        double speed = done / (clock_since_s(k->start_ns) + 1e-9);
        progress_show(k->progress, "counting words: %.0f of %.0f MB, %.0f MB/s", done / 1e6,
                      (double)k->total_bytes / 1e6, speed / 1e6);
    }
    return status_ok();
}

static struct status count_words(struct wordpiece_train *t, struct corpus *c, struct progress *progress)
{
    struct word_sink k = {t, progress, c->files.total_bytes, clock_ns()};
    struct corpus_sink sink = {&k, take};
    return corpus_pass_run(c, NULL, &sink);
}

/* Reads the vocabulary back, so that none is written that kiln itself would refuse. */
static struct status write_vocab(const struct vocab_args *a, const struct buf *text)
{
    struct vocab v;
    TRY(vocab_init(&v, text->data, text->n, "the new vocabulary"));
    struct status s = file_write_atomic(a->vocab_file, text->data, text->n);
    if (!failed(s)) {
        log_info("wrote %s: %d pieces, hash %016llx", a->vocab_file, v.n, (unsigned long long)v.hash);
    }
    vocab_fini(&v);
    return s;
}

static struct status make_vocab(const struct vocab_args *a, struct corpus *c)
{
    int64_t start = clock_ns();
    struct wordpiece_train t;
    TRY(wordpiece_train_init(&t, a->do_lower_case));
    struct progress progress = progress_begin(true);
    struct buf text = {0};
    int64_t n_pieces = 0;
    struct wordpiece_train_options o = {a->vocab_size, a->min_frequency, a->limit_alphabet};
    struct status s = count_words(&t, c, &progress);
    if (!failed(s)) {
        s = wordpiece_train_finish(&t, &text, &n_pieces, &o, &progress);
    }
    progress_end(&progress);
    if (!failed(s)) {
        log_info("%lld documents, %.1f MB, %zu distinct words, %.1f s", (long long)corpus_n_documents(c),
                 (double)c->files.total_bytes / 1e6, t.words.n, clock_since_s(start));
        if (n_pieces < a->vocab_size) {
            log_info(
                "no more pairs are as frequent as --min_frequency %lld, so there are fewer pieces than %lld",
                (long long)a->min_frequency, (long long)a->vocab_size);
        }
        s = write_vocab(a, &text);
    }
    buf_fini(&text);
    wordpiece_train_fini(&t);
    return s;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct vocab_args *a = args;
    const char **inputs = malloc(((size_t)n_positional + 1) * sizeof *inputs);
    if (inputs == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for %d paths", n_positional + 1);
    }
    inputs[0] = a->input;
    for (int i = 0; i < n_positional; i++) {
        inputs[i + 1] = positional[i];
    }
    struct source_options o = {.replace_invalid_utf8 = a->replace_invalid_utf8};
    CHECK(source_formats_find(&o.format, a->format), "no format %s", a->format);
    struct corpus c;
    struct status s = corpus_open(&c, inputs, n_positional + 1, o);
    free(inputs);
    if (failed(s)) {
        return s;
    }
    s = input_guard_check_file(&c.files, "--vocab_file", a->vocab_file);
    if (!failed(s) && !a->dry_run) {
        s = file_check_output(a->vocab_file, 0);
    }
    if (a->dry_run && !failed(s)) {
        log_info("would make a vocabulary of at most %lld pieces from %lld files, %.1f MB, and write %s",
                 (long long)a->vocab_size, (long long)c.files.n, (double)c.files.total_bytes / 1e6,
                 a->vocab_file);
    } else if (!failed(s)) {
        s = make_vocab(a, &c);
    }
    corpus_close(&c);
    return s;
}

const struct command command_vocab = {
    .name = "vocab",
    .summary = "build a WordPiece vocabulary from text",
    .details = "Counts the words of the text as BERT's tokenizer sees them and merges the most frequent "
               "neighbouring "
               "pieces until the vocabulary is full. The same text always gives the same vocabulary.",
    .positional_usage = "[PATH...]",
    .max_positional = 100000,
    .options = options,
    .args_bytes = sizeof(struct vocab_args),
    .run = run,
};
