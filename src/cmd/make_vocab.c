/* make_vocab: `kiln vocab` builds a WordPiece vocabulary from text. */
#include "cmd/commands.h"
#include "cmd/encoding_flag.h"
#include "cmd/input_paths.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/parallel.h"
#include "corpus/corpus_pass.h"
#include "corpus/dump_index.h"
#include "corpus/input_guard.h"
#include "corpus/source_formats.h"
#include "io/file.h"
#include "text/vocab.h"
#include "text/word_counter.h"
#include "text/wordpiece_train.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct vocab_args {
    const char *input;
    const char *vocab_file;
    const char *format, *encoding;
    int64_t vocab_size;
    int64_t min_frequency;
    int64_t limit_alphabet;
    double alphabet_coverage;
    bool do_lower_case;
    bool replace_invalid_utf8;
    bool dry_run;
};

static const struct option options[] = {
    OPTION_INPUT_ROW("input", offsetof(struct vocab_args, input), "PATH...",
                     "text files or directories; further ones may follow", true),
    OPTION_REQUIRED_ROW("vocab_file", offsetof(struct vocab_args, vocab_file), "FILE", "file to write"),
    OPTION_INT_ROW("vocab_size", offsetof(struct vocab_args, vocab_size), "30522", 6, 1000000,
                   "number of pieces, the five special ones included"),
    OPTION_FLAG_ROW("do_lower_case", offsetof(struct vocab_args, do_lower_case),
                    "lower-case the text and strip accents, for an uncased model"),
    OPTION_INT_ROW("min_frequency", offsetof(struct vocab_args, min_frequency), "2", 1, 1e15,
                   "minimum number of times that a piece occurs in the text"),
    OPTION_REAL_ROW(
        "alphabet_coverage", offsetof(struct vocab_args, alphabet_coverage), "0.9995", 0, 1,
        "keep the most frequent characters until they make up this fraction of the text, but at least 1,000"),
    OPTION_INT_ROW("limit_alphabet", offsetof(struct vocab_args, limit_alphabet), "0", 0, 1114112,
                   "number of characters to keep, in place of --alphabet_coverage; 0: off"),
    OPTION_CHOICE_ROW("input_format", offsetof(struct vocab_args, format), "auto", SOURCE_FORMATS_NAMES,
                      "how the files hold documents, as for kiln prepare"),
    ENCODING_ROW(offsetof(struct vocab_args, encoding), "the text"),
    OPTION_FLAG_ROW("replace_invalid_utf8", offsetof(struct vocab_args, replace_invalid_utf8),
                    "read invalid UTF-8 as U+FFFD instead of ending with an error"),
    OPTION_FLAG_ROW("dry-run", offsetof(struct vocab_args, dry_run),
                    "check the flags and list the input, but read and write nothing"),
    {0},
};

/* The pass over documents.  Each thread counts words in tables of its own; sums do not depend on who counted
 * what, so the tally is the same for any number of threads. */
struct word_pass {
    struct word_tally *tally;
    bool lower_case;
    struct progress *progress;
    uint64_t total_bytes;
    int64_t start_ns;
    pthread_mutex_t mutex;
    struct status ended; /* of the threads' last counts, which they hand over when they end */
};

struct word_worker {
    struct word_counter counter;
    struct word_pass *pass;
};

static struct status worker_create(void **worker, const void *context)
{
    struct word_pass *const *pass = context;
    struct word_worker *w = malloc(sizeof *w);
    if (w == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the words of the text");
    }
    w->pass = *pass;
    struct status s = word_counter_init(&w->counter, w->pass->tally, w->pass->lower_case, parallel_n_parts());
    if (failed(s)) {
        free(w);
        return s;
    }
    *worker = w;
    return s;
}

static void worker_destroy(void *worker)
{
    struct word_worker *w = worker;
    struct word_pass *p = w->pass;
    struct status s = word_counter_end(&w->counter);
    pthread_mutex_lock(&p->mutex);
    p->ended = failed(p->ended) ? p->ended : s;
    pthread_mutex_unlock(&p->mutex);
    word_counter_fini(&w->counter);
    free(w);
}

static struct status count_document(void *worker, void *result, const struct document *d)
{
    struct word_worker *w = worker;
    (void)result;
    for (int64_t i = 0; i < d->n_paragraphs; i++) {
        struct paragraph p = document_paragraph(d, i);
        TRY(word_counter_add(&w->counter, p.text, p.n));
    }
    return status_ok();
}

static struct status take(void *context, const struct corpus_item *item)
{
    struct word_pass *p = context;
    if (progress_due(p->progress)) {
        double done = (double)item->done_bytes;
        double speed = done / (clock_since_s(p->start_ns) + 1e-9);
        progress_show(p->progress, "counting words: %.0f of %.0f MB, %.0f MB/s", done / 1e6,
                      (double)p->total_bytes / 1e6, speed / 1e6);
    }
    return status_ok();
}

static struct status count_words(struct word_tally *tally, const struct vocab_args *a, struct corpus *c,
                                 struct progress *progress)
{
    struct word_pass p = {.tally = tally,
                          .lower_case = a->do_lower_case,
                          .progress = progress,
                          .total_bytes = c->files.total_bytes,
                          .start_ns = clock_ns(),
                          .mutex = PTHREAD_MUTEX_INITIALIZER,
                          .ended = status_ok()};
    struct word_pass *context = &p;
    struct corpus_transform transform = {.context = &context,
                                         .worker_create = worker_create,
                                         .worker_destroy = worker_destroy,
                                         .result_bytes = 1, /* it has none */
                                         .run = count_document};
    struct corpus_sink sink = {&p, take};
    struct status s = corpus_pass_run(c, &transform, &sink);
    pthread_mutex_destroy(&p.mutex);
    return failed(s) ? s : p.ended;
}

/* Where counted words go that memory has no room for: beside the vocabulary, which has room for files of the
 * size of the text more likely than /tmp, unless it goes to a pipe or a device. */
static struct status find_place(char path[FILE_PATH_BYTES], const char *vocab_file)
{
    bool in_place;
    TRY(file_find_target(path, vocab_file, &in_place));
    if (in_place) {
        snprintf(path, FILE_PATH_BYTES, "/tmp/kiln-vocab");
    }
    return status_ok();
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

/* What is lost is more than its characters: a word with one of them is [UNK] as a whole. */
static void tell_alphabet(const struct wordpiece_train_result *made)
{
    const double MUCH = 0.002;
    log_info("%lld characters are kept; the others are %.3g %% of the text, and words with them become [UNK]",
             (long long)made->n_alphabet, 100 * made->lost);
    if (made->lost > MUCH) {
        log_warning("that is much: raise --limit_alphabet or --alphabet_coverage, or lower --min_frequency");
    }
}

static struct status make_vocab(const struct vocab_args *a, struct corpus *c)
{
    int64_t start = clock_ns();
    char place[FILE_PATH_BYTES];
    struct word_tally tally;
    TRY(dump_index_read(&c->files));
    TRY(find_place(place, a->vocab_file));
    TRY(word_tally_init(&tally, place, WORD_TALLY_MEMORY_WORDS));
    struct progress progress = progress_begin(true);
    struct buf text = {0};
    struct wordpiece_train_result made = {0};
    struct wordpiece_train_options o = {a->vocab_size, a->min_frequency, a->limit_alphabet,
                                        a->alphabet_coverage};
    struct status s = count_words(&tally, a, c, &progress);
    double counted_s = clock_since_s(start);
    if (!failed(s)) {
        s = wordpiece_train(&text, &made, &tally, &o, &progress);
    }
    progress_end(&progress);
    if (!failed(s)) {
        log_info("%lld documents, %.1f MB, %lld distinct words, %.1f s, %.1f of them counting",
                 (long long)corpus_n_documents(c), (double)c->files.total_bytes / 1e6,
                 (long long)made.n_words, clock_since_s(start), counted_s);
        tell_alphabet(&made);
        if (made.n_pieces < a->vocab_size) {
            log_info(
                "no more pairs are as frequent as --min_frequency %lld, so there are fewer pieces than %lld",
                (long long)a->min_frequency, (long long)a->vocab_size);
        }
        s = write_vocab(a, &text);
    }
    buf_fini(&text);
    word_tally_fini(&tally);
    return s;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct vocab_args *a = args;
    struct input_paths inputs;
    TRY(input_paths_init(&inputs, a->input, NULL, n_positional, positional));
    struct source_options o = {.replace_invalid_utf8 = a->replace_invalid_utf8, .encoding = a->encoding};
    CHECK(source_formats_find(&o.format, a->format), "no format %s", a->format);
    struct corpus c;
    struct status s = corpus_open(&c, inputs.paths, inputs.n, o);
    input_paths_fini(&inputs);
    if (failed(s)) {
        return s;
    }
    s = input_guard_check_file(&c.files, "--vocab_file", a->vocab_file);
    if (!failed(s) && !a->dry_run) {
        s = file_check_output(a->vocab_file, 0);
    }
    if (a->dry_run && !failed(s)) {
        log_info("would make a vocabulary of at most %lld pieces from %lld files, %.1f MB, and write %s",
                 (long long)a->vocab_size, (long long)(c.files.n - c.files.n_indexes),
                 (double)c.files.total_bytes / 1e6, a->vocab_file);
    } else if (!failed(s)) {
        s = make_vocab(a, &c);
    }
    corpus_close(&c);
    return s;
}

const struct command command_vocab = {
    .name = "vocab",
    .summary = "build a WordPiece vocabulary from text",
    .details =
        "Counts the words of the text as WordPiece's tokenizer sees them and merges the most frequent "
        "neighbouring pieces until the vocabulary is full. The same text always gives the same vocabulary.",
    .positional_usage = "[PATH...]",
    .max_positional = 100000,
    .options = options,
    .args_bytes = sizeof(struct vocab_args),
    .run = run,
};
