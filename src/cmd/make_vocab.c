/* make_vocab: `kiln vocab` builds a vocabulary of WordPiece or of byte-level BPE from text. */
#include "cmd/commands.h"
#include "cmd/input_paths.h"
#include "cmd/settings.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/parallel.h"
#include "corpus/corpus_pass.h"
#include "corpus/dump_index.h"
#include "corpus/input_files.h"
#include "corpus/source_formats.h"
#include "io/dir_lock.h"
#include "text/tokenizer_open.h"
#include "text/bpe_train.h"
#include "text/vocab.h"
#include "text/word_counter.h"
#include "text/wordpiece_train.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct vocab_args {
    const char *input;
    const char *kind, *pattern;
    struct vocab_flags vocabulary;
    const char *format, *encoding, *text_field;
    struct option_given given;
    int64_t vocab_size;
    int64_t min_frequency;
    int64_t limit_alphabet;
    double alphabet_coverage;
    bool replace_invalid_utf8, allow_truncated_input, keep_layout, skip_other_files;
    bool overwrite;
    struct command_flags common;
};

static const struct option options[] = {
    OPTION_INPUT_ROW("input", offsetof(struct vocab_args, input), "PATH...",
                     "read these text files, or directories of them; more paths may follow", true),
    OPTION_REQUIRED_ROW("vocab_file", offsetof(struct vocab_args, vocabulary.vocab_file), "FILE",
                        "write the vocabulary to this file"),
    OPTION_CHOICE_ROW("kind", offsetof(struct vocab_args, kind), "wordpiece", "wordpiece|bpe",
                      "choose the kind. wordpiece: vocab.txt; bpe: byte-level BPE as vocab.json, with "
                      "merges.txt and tokenizer.json beside it"),
    OPTION_STRING_ROW("merge_file", offsetof(struct vocab_args, vocabulary.merge_file), NULL, "FILE",
                      "bpe: write the merges to this file; default: merges.txt beside --vocab_file"),
    OPTION_CHOICE_ROW("pattern", offsetof(struct vocab_args, pattern), BPE_PATTERN_DEFAULT, BPE_PATTERN_NAMES,
                      "bpe: split text in this way before bytes are merged; also decides the special tokens"),
    OPTION_INT_ROW("vocab_size", offsetof(struct vocab_args, vocab_size), "30522", 6, 1000000,
                   "number of pieces, the special ones included"),
    OPTION_FLAG_ROW("do_lower_case", offsetof(struct vocab_args, vocabulary.do_lower_case),
                    "lower-case the text and strip accents, for an uncased model"),
    OPTION_INT_ROW("min_frequency", offsetof(struct vocab_args, min_frequency), "2", 1, 1e15,
                   "minimum number of times that a piece occurs in the text"),
    OPTION_REAL_ROW(
        "alphabet_coverage", offsetof(struct vocab_args, alphabet_coverage), "0.9995", 0, 1,
        "keep the most frequent characters until they make up this fraction of the text, but at least 1,000"),
    OPTION_INT_ROW("limit_alphabet", offsetof(struct vocab_args, limit_alphabet), "0", 0, 1114112,
                   "number of characters to keep, instead of --alphabet_coverage; 0: off"),
    OPTION_CHOICE_ROW("input_format", offsetof(struct vocab_args, format), "auto", SOURCE_FORMATS_NAMES,
                      "choose how files hold documents, as for kiln prepare"),
    OPTION_STRING_ROW("text_field", offsetof(struct vocab_args, text_field), "text", "NAME",
                      "json: name of the field that has the text"),
    SKIP_OTHER_FILES_ROW(offsetof(struct vocab_args, skip_other_files)),
    OPTION_FLAG_ROW("keep_layout", offsetof(struct vocab_args, keep_layout),
                    "bpe: count white space, indentation and blank lines, which stores of whole documents "
                    "keep, and leave out files of directories that are not text"),
    ENCODING_ROW(offsetof(struct vocab_args, encoding), "the text"),
    REPLACE_INVALID_ROW(offsetof(struct vocab_args, replace_invalid_utf8)),
    ALLOW_TRUNCATED_ROW(offsetof(struct vocab_args, allow_truncated_input)),
    OPTION_FLAG_ROW("overwrite", offsetof(struct vocab_args, overwrite),
                    "bpe: replace a merges.txt and a tokenizer.json that no flag names"),
    DRY_RUN_ROW(offsetof(struct vocab_args, common.dry_run),
                "check the flags and list the input, but read and write nothing"),
    {0},
};

static bool is_bpe(const struct vocab_args *a)
{
    return strcmp(a->kind, "bpe") == 0;
}

/* The pass over documents.  Each thread counts words in tables of its own; sums do not depend on who counted
 * what, so the tally is the same for any number of threads. */
struct word_pass {
    struct word_tally *tally;
    bool lower_case;
    bool cuts_pieces; /* the text is cut by `pattern` */
    enum bpe_pattern pattern;
    struct progress *progress;
    uint64_t total_bytes;
    int64_t start_ns;
    pthread_mutex_t mutex;
    struct status ended; /* status of the threads' last counts, which they hand over when they end */
};

struct word_worker {
    struct word_counter counter;
    struct word_pass *pass;
};

static struct status worker_create(void **worker, const void *context)
{
    struct word_pass *const *pass = context;
    struct word_worker *w = malloc(sizeof *w);
    FAIL_IF(w == NULL, STATUS_MEMORY, "out of memory for the words of the text");
    w->pass = *pass;
    const struct word_pass *p = w->pass;
    struct status s = p->cuts_pieces
                          ? word_counter_init_pieces(&w->counter, p->tally, p->pattern, parallel_n_parts())
                          : word_counter_init(&w->counter, p->tally, p->lower_case, parallel_n_parts());
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
                          .lower_case = a->vocabulary.do_lower_case,
                          .cuts_pieces = is_bpe(a),
                          .pattern = bpe_pattern_find(a->pattern),
                          .progress = progress,
                          .total_bytes = c->files.total_bytes,
                          .start_ns = clock_ns(),
                          .mutex = PTHREAD_MUTEX_INITIALIZER,
                          .ended = status_ok()};
    struct word_pass *context = &p;
    struct corpus_transform transform = {.context = &context,
                                         .worker_create = worker_create,
                                         .worker_destroy = worker_destroy,
                                         .result_bytes = 1, /* the smallest size: there is no result */
                                         .run = count_document};
    struct corpus_sink sink = {.context = &p, .take = take};
    struct status s = corpus_pass_run(c, &transform, &sink);
    pthread_mutex_destroy(&p.mutex);
    return failed(s) ? s : p.ended;
}

/* Finds the place for counted words that do not fit into memory: next to the vocabulary, where files of the
 * size of the text fit more likely than in /tmp, unless it goes to a pipe or a device. */
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
    struct status s = file_write_atomic(a->vocabulary.vocab_file, text->data, text->n);
    if (!failed(s)) {
        log_info("wrote %s: %d pieces, hash %016llx", a->vocabulary.vocab_file, v.n,
                 (unsigned long long)v.hash);
    }
    vocab_fini(&v);
    return s;
}

/* Logs the characters that are lost.  The loss is larger than these: a complete word with one of them is
 * [UNK]. */
static void tell_alphabet(const struct wordpiece_train_result *made)
{
    const double MUCH = 0.002;
    log_info("%lld characters are kept; the others are %.3g %% of the text, and words with them become [UNK]",
             (long long)made->n_alphabet, 100 * made->lost);
    if (made->lost > MUCH) {
        log_warning("that is much: raise --limit_alphabet or --alphabet_coverage, or lower --min_frequency");
    }
}

static void tell_size(const struct vocab_args *a, int64_t n_pieces)
{
    if (n_pieces < a->vocab_size) {
        log_info("no more pairs are as frequent as --min_frequency %lld, so there are fewer pieces than %lld",
                 (long long)a->min_frequency, (long long)a->vocab_size);
    }
}

static struct status train_wordpiece(const struct vocab_args *a, struct word_tally *tally, int64_t *n_words,
                                     struct progress *progress)
{
    struct buf text = {0};
    struct wordpiece_train_result made = {0};
    struct wordpiece_train_options o = {a->vocab_size, a->min_frequency, a->limit_alphabet,
                                        a->alphabet_coverage};
    struct status s = wordpiece_train(&text, &made, tally, &o, progress);
    progress_end(progress);
    if (!failed(s)) {
        *n_words = made.n_words;
        tell_alphabet(&made);
        tell_size(a, made.n_pieces);
        s = write_vocab(a, &text);
    }
    buf_fini(&text);
    return s;
}

/* ---- byte-level BPE ---- */

struct bpe_paths {
    char merges[FILE_PATH_BYTES], tokenizer[FILE_PATH_BYTES];
};

/* A file next to --vocab_file that no flag names may be another vocabulary's. */
static struct status check_beside(const struct vocab_args *a, const char *path)
{
    return a->overwrite || !file_exists(path)
               ? status_ok()
               : status_error(STATUS_USAGE, "%s already exists; --overwrite replaces it", path);
}

/* Finds the paths of the files next to --vocab_file. */
static struct status find_bpe_paths(struct bpe_paths *p, const struct vocab_args *a)
{
    const char *slash = strrchr(a->vocabulary.vocab_file, '/');
    int n = slash == NULL ? 0 : (int)(slash + 1 - a->vocabulary.vocab_file);
    FAIL_IF(n > FILE_PATH_BYTES - 20 ||
                (a->vocabulary.merge_file != NULL && strlen(a->vocabulary.merge_file) >= FILE_PATH_BYTES),
            STATUS_USAGE, "--vocab_file or --merge_file is longer than %d bytes", FILE_PATH_BYTES - 20);
    snprintf(p->tokenizer, sizeof p->tokenizer, "%.*stokenizer.json", n, a->vocabulary.vocab_file);
    if (a->vocabulary.merge_file != NULL) {
        snprintf(p->merges, sizeof p->merges, "%s", a->vocabulary.merge_file);
    } else {
        snprintf(p->merges, sizeof p->merges, "%.*smerges.txt", n, a->vocabulary.vocab_file);
    }
    return status_ok();
}

static struct status check_bpe_paths(const struct bpe_paths *p, const struct vocab_args *a,
                                     const struct corpus *c)
{
    TRY(input_files_check_output(&c->files, "--merge_file", p->merges));
    TRY(input_files_check_output(&c->files, "--vocab_file", p->tokenizer));
    bool same = file_is_same_name(p->merges, a->vocabulary.vocab_file) ||
                file_is_same_name(p->tokenizer, a->vocabulary.vocab_file) ||
                file_is_same_name(p->merges, p->tokenizer);
    FAIL_IF(same, STATUS_USAGE,
            "--vocab_file %s would be overwritten: --kind bpe writes three files, this one, %s and %s",
            a->vocabulary.vocab_file, p->merges, p->tokenizer);
    TRY(a->vocabulary.merge_file != NULL ? status_ok() : check_beside(a, p->merges));
    TRY(check_beside(a, p->tokenizer));
    TRY(a->common.dry_run ? status_ok() : file_check_output(p->merges, 0));
    return a->common.dry_run ? status_ok() : file_check_output(p->tokenizer, 0);
}

static struct status write_bpe(const struct vocab_args *a, const struct bpe_train_result *made)
{
    struct bpe_paths p;
    TRY(find_bpe_paths(&p, a));
    TRY(file_write_atomic(p.merges, made->merges.data, made->merges.n));
    TRY(file_write_atomic(p.tokenizer, made->tokenizer.data, made->tokenizer.n));
    TRY(file_write_atomic(a->vocabulary.vocab_file, made->vocab.data, made->vocab.n));
    log_info("wrote %s, %s and %s: %lld pieces", a->vocabulary.vocab_file, p.merges, p.tokenizer,
             (long long)made->n_pieces);
    return status_ok();
}

static struct status train_bpe(const struct vocab_args *a, struct word_tally *tally, int64_t *n_words,
                               struct progress *progress)
{
    struct bpe_train_result made;
    struct bpe_train_options o = {a->vocab_size, a->min_frequency, bpe_pattern_find(a->pattern)};
    struct status s = bpe_train(&made, tally, &o, progress);
    progress_end(progress);
    if (!failed(s)) {
        *n_words = made.n_words;
        tell_size(a, made.n_pieces);
        s = write_bpe(a, &made);
    }
    bpe_train_fini(&made);
    return s;
}

static struct status make_vocab(const struct vocab_args *a, struct corpus *c)
{
    int64_t start = clock_ns();
    char place[FILE_PATH_BYTES];
    struct word_tally tally;
    TRY(dump_index_read(&c->files));
    TRY(find_place(place, a->vocabulary.vocab_file));
    TRY(word_tally_init(&tally, place, WORD_TALLY_MEMORY_WORDS));
    struct progress progress = progress_begin(true);
    int64_t n_words = 0;
    struct status s = count_words(&tally, a, c, &progress);
    double counted_s = clock_since_s(start);
    if (!failed(s)) {
        s = (is_bpe(a) ? train_bpe : train_wordpiece)(a, &tally, &n_words, &progress);
    }
    progress_end(&progress);
    if (!failed(s)) {
        log_info("%lld documents, %.1f MB, %lld distinct words, %.1f s, %.1f of them counting",
                 (long long)corpus_n_documents(c), (double)c->files.total_bytes / 1e6, (long long)n_words,
                 clock_since_s(start), counted_s);
    }
    word_tally_fini(&tally);
    return s;
}

/* STATUS_USAGE: a flag that the kind would pass over in silence, or a size that its first pieces exceed. */
static struct status check_kind(const struct vocab_args *a)
{
    const char *others =
        is_bpe(a) ? "do_lower_case|alphabet_coverage|limit_alphabet" : "merge_file|pattern|keep_layout";
    const char *flag = option_first_given(&command_vocab, a, others);
    FAIL_IF(flag != NULL, STATUS_USAGE, "--%s cannot be combined with --kind %s%s", flag, a->kind,
            is_bpe(a) ? ", which keeps all bytes" : ": it is of --kind bpe");
    return is_bpe(a) ? bpe_train_check_size(a->vocab_size, bpe_pattern_find(a->pattern)) : status_ok();
}

/* Locks what names the outputs, since BPE's of one directory share tokenizer.json: not a pipe or a device. */
static struct status lock_output(struct dir_lock *lock, const char *path)
{
    char target[FILE_PATH_BYTES];
    bool in_place;
    TRY(file_find_target(target, path, &in_place));
    return in_place ? status_ok() : dir_lock_acquire_beside(lock, target);
}

static struct status claim_outputs(struct dir_lock *lock, const struct vocab_args *a, const struct corpus *c)
{
    struct bpe_paths paths;
    TRY(input_files_check_output(&c->files, "--vocab_file", a->vocabulary.vocab_file));
    if (is_bpe(a)) {
        TRY(find_bpe_paths(&paths, a));
    }
    TRY(a->common.dry_run ? status_ok() : file_make_parent(a->vocabulary.vocab_file));
    TRY(a->common.dry_run || a->vocabulary.merge_file == NULL ? status_ok()
                                                              : file_make_parent(a->vocabulary.merge_file));
    TRY(a->common.dry_run ? status_ok()
                          : lock_output(lock, is_bpe(a) ? paths.tokenizer : a->vocabulary.vocab_file));
    TRY(is_bpe(a) ? check_bpe_paths(&paths, a, c) : status_ok());
    return a->common.dry_run ? status_ok() : file_check_output(a->vocabulary.vocab_file, 0);
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct vocab_args *a = args;
    struct input_paths inputs;
    TRY(check_kind(a));
    TRY(input_paths_init(&inputs, a->input, NULL, n_positional, positional));
    struct source_options o = {.replace_invalid_utf8 = a->replace_invalid_utf8,
                               .allow_truncated = a->allow_truncated_input,
                               .text_field = a->text_field,
                               .keeps_layout = a->keep_layout,
                               .leaves_out_others = a->keep_layout || a->skip_other_files,
                               .encoding = a->encoding};
    CHECK(source_formats_find(&o.format, a->format), "no format %s", a->format);
    struct corpus c;
    struct status s = corpus_open(&c, inputs.paths, inputs.n, o);
    input_paths_fini(&inputs);
    if (failed(s)) {
        return s;
    }
    struct dir_lock lock = {.fd = -1};
    s = claim_outputs(&lock, a, &c);
    if (a->common.dry_run && !failed(s)) {
        log_info("would make a vocabulary of at most %lld pieces from %lld files, %.1f MB, and write %s",
                 (long long)a->vocab_size, (long long)(c.files.n - c.files.n_indexes),
                 (double)c.files.total_bytes / 1e6, a->vocabulary.vocab_file);
    } else if (!failed(s)) {
        s = make_vocab(a, &c);
    }
    dir_lock_release(&lock);
    corpus_close(&c);
    return s;
}

const struct command command_vocab = {
    .name = "vocab",
    .summary = "build a vocabulary of WordPiece or byte-level BPE from text",
    .details =
        "Counts the words of the text as the tokenizer sees them and merges the most frequent "
        "neighbouring pieces until the vocabulary is full. The same text always gives the same vocabulary.",
    .positional_usage = "[PATH...]",
    .max_positional = 100000,
    .options = options,
    .given = offsetof(struct vocab_args, given),
    .args_bytes = sizeof(struct vocab_args),
    .run = run,
};
