/* prepare: `kiln prepare` turns text into token stores, or into HDF5 files for trainers that read those. */
#include "cmd/commands.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/progress.h"
#include "corpus/input_guard.h"
#include "corpus/source_formats.h"
#include "corpus/store_pass.h"
#include "data/shard_set.h"
#include "io/dir_lock.h"
#include "text/tokenizer_files.h"
#include "text/tokenizer_open.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct prepare_args {
    const char *input;
    const char *vocab_file;
    const char *output_dir;
    const char *input_format;
    const char *format; /* "store" or "hdf5" */
    bool do_lower_case;
    bool one_sentence_per_line;
    bool replace_invalid_utf8;
    bool overwrite;
    bool dry_run;
    bool packed, whole_word_masks;
    double holdout_fraction, masked_lm_prob, short_seq_prob;
    int64_t seed, max_seq_length, max_predictions_per_seq, dupe_factor, n_shards;
};

static const struct option options[] = {
    OPTION_REQUIRED_ROW("input", offsetof(struct prepare_args, input), "PATH...",
                        "text files, or directories of them; more paths may follow"),
    OPTION_REQUIRED_ROW("vocab_file", offsetof(struct prepare_args, vocab_file), "FILE",
                        "vocab.txt, one piece per line"),
    OPTION_REQUIRED_ROW("output_dir", offsetof(struct prepare_args, output_dir), "DIR",
                        "directory for all output, vocab.txt included; made if missing"),
    OPTION_FLAG_ROW("do_lower_case", offsetof(struct prepare_args, do_lower_case),
                    "lower case and strip accents: for the vocabulary of an uncased model"),
    OPTION_CHOICE_ROW(
        "input_format", offsetof(struct prepare_args, input_format), "auto", SOURCE_FORMATS_NAMES,
        "text: each file is a document, blank lines end paragraphs; lines: blank lines end documents, each "
        "line is a "
        "paragraph; wiki: the output of WikiExtractor; auto looks at each file, and refuses JSON, XML and "
        "HTML"),
    OPTION_FLAG_ROW("one_sentence_per_line", offsetof(struct prepare_args, one_sentence_per_line),
                    "each line is a sentence: do not split lines"),
    OPTION_REAL_ROW("holdout_fraction", offsetof(struct prepare_args, holdout_fraction), "0.02", 0, 0.9,
                    "fraction of the text held out from training, for evaluation; 0: none"),
    OPTION_INT_ROW("seed", offsetof(struct prepare_args, seed), "12345", 0, 0,
                   "seed of the choice of held-out text, and of samples for --format hdf5"),
    OPTION_FLAG_ROW("replace_invalid_utf8", offsetof(struct prepare_args, replace_invalid_utf8),
                    "read invalid UTF-8 as U+FFFD instead of ending with an error"),
    OPTION_FLAG_ROW("overwrite", offsetof(struct prepare_args, overwrite),
                    "replace the output of an earlier run in the output directory"),
    OPTION_FLAG_ROW("dry-run", offsetof(struct prepare_args, dry_run),
                    "read and check everything, say what would be written, and write nothing"),
    OPTION_GROUP_ROW("output"),
    OPTION_CHOICE_ROW("format", offsetof(struct prepare_args, format), "store", "store|hdf5",
                      "store: tokens, from which `kiln pretrain` draws samples and masks anew in each epoch; "
                      "hdf5: samples with masks drawn now, in the layout of create_pretraining_data"),
    OPTION_INT_ROW("max_seq_length", offsetof(struct prepare_args, max_seq_length), "128", 5, 65536,
                   "hdf5: longest sequence in tokens, [CLS] and [SEP] included"),
    OPTION_INT_ROW("max_predictions_per_seq", offsetof(struct prepare_args, max_predictions_per_seq), "20", 1,
                   65536, "hdf5: most masked positions of a sequence"),
    OPTION_REAL_ROW("masked_lm_prob", offsetof(struct prepare_args, masked_lm_prob), "0.15", 0, 1,
                    "hdf5: fraction of the tokens that is masked"),
    OPTION_FLAG_ROW("whole_word_masks", offsetof(struct prepare_args, whole_word_masks),
                    "hdf5: mask all pieces of a word, or none"),
    OPTION_REAL_ROW("short_seq_prob", offsetof(struct prepare_args, short_seq_prob), "0.1", 0, 1,
                    "hdf5: fraction of the sequences that is cut to a random length"),
    OPTION_INT_ROW("dupe_factor", offsetof(struct prepare_args, dupe_factor), "5", 1, 1000,
                   "hdf5: times that each sample is written, each time with other masks"),
    OPTION_INT_ROW(
        "n_shards", offsetof(struct prepare_args, n_shards), "0", 0, 100000,
        "hdf5: number of files for training, and for testing; 0: files of about 64 MiB uncompressed"),
    OPTION_FLAG_ROW("packed", offsetof(struct prepare_args, packed),
                    "hdf5: up to three sequences per row, in the layout of pack_pretraining_data_pytorch"),
    {0},
};

static double megabytes(uint64_t n)
{
    return (double)n / 1e6;
}

/* "3 as text, 0 as lines" */
static void name_formats(char *text, size_t n, const struct source_counts *counts)
{
    size_t at = 0;
    for (int i = 0; i < SOURCE_N_FORMATS && at < n; i++) {
        at += (size_t)snprintf(text + at, n - at, "%s%" PRId64 " as %s", i == 0 ? "" : ", ",
                               counts->n_by_format[i], source_formats[i]->name);
    }
}

/* Pages and lines that became no text: "206 documents: 105 kept, 100 redirects, 1 cut ..." */
static void tell_about_fates(const struct corpus *c)
{
    char text[512];
    size_t at = 0;
    int64_t n = 0;
    for (int i = 0; i < DOCUMENT_N_FATES && at < sizeof text; i++) {
        n += c->fates[i];
        if (c->fates[i] > 0) {
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%" PRId64 " %s", at == 0 ? "" : ", ",
                                   c->fates[i], document_fate_names[i]);
        }
    }
    if (n > 0) {
        log_info("pages, or lines of JSON: %" PRId64 ": %s", n, text);
    }
}

static void tell_about_text(const struct corpus *c, double seconds)
{
    const struct source_counts *counts = &c->counts;
    double size = megabytes(c->files.total_bytes);
    char formats[256];
    name_formats(formats, sizeof formats, counts);
    log_info("read %" PRId64 " files (%s), %.1f MB, %" PRId64 " documents, in %s (%.1f MB/s)",
             counts->n_files, formats, size, corpus_n_documents(c), progress_time(seconds).text,
             size / (seconds > 0 ? seconds : 1));
    tell_about_fates(c);
    if (counts->n_damaged_parts + counts->n_cut_files > 0) {
        log_warning("%" PRId64 " damaged parts were left out, and %" PRId64 " compressed files are cut",
                    counts->n_damaged_parts, counts->n_cut_files);
    }
    if (counts->n_empty_documents > 0) {
        log_warning("%" PRId64 " documents have no text and were left out", counts->n_empty_documents);
    }
    if (counts->n_replaced > 0) {
        log_warning("%" PRId64 " ill-formed UTF-8 sequences were read as U+FFFD", counts->n_replaced);
    }
    if (counts->n_cut > 0) {
        log_warning("paragraphs longer than %d MiB were cut, %" PRId64
                    " times; do the files have ends of lines?",
                    DOCUMENT_PARAGRAPH_BYTES >> 20, counts->n_cut);
    }
}

/* Reads all text into the builder; for a dry run there is neither builder nor tokenizer. */
static struct status read_text(const struct prepare_args *a, const struct tokenizer *t, struct corpus *c,
                               struct store_builder *b)
{
    struct document_ids_config ids = {.tokenizer = t, .one_sentence_per_line = a->one_sentence_per_line};
    return store_pass_run(c, b, &ids);
}

static void tell_about_stores(const struct store_builder *b)
{
    for (int k = 0; k < STORE_COUNT; k++) {
        const struct token_store_info *i = &b->infos[k];
        if (i->n_documents > 0) {
            log_info("%s.{bin,idx,json}: %" PRId64 " parts of documents, %" PRId64 " sentences, %" PRId64
                     " tokens",
                     b->prefixes[k], i->n_documents, i->n_sentences, i->n_tokens);
        }
    }
    if (b->infos[STORE_HELDOUT].n_documents == 0 && b->config.holdout_fraction > 0) {
        log_warning("nothing is held out: there are fewer than %d sentences in one document",
                    STORE_BUILDER_PART_SENTENCES + 1);
    }
}

static struct status check_output(const struct prepare_args *a, const struct tokenizer *t,
                                  enum tokenizer_copy *copy)
{
    const char *vocabulary = NULL, *existing = store_builder_find_existing(a->output_dir);
    TRY(tokenizer_files_compare(copy, &vocabulary, t, a->output_dir));
    existing = existing == NULL ? vocabulary : existing;
    if (existing != NULL && !a->overwrite) {
        return status_error(STATUS_USAGE, "%s already has %s; --overwrite replaces what is there",
                            a->output_dir, existing);
    }
    return status_ok();
}

/* Moves the vocabulary and the stores into place: all of them, or none. */
static struct status commit(struct store_builder *b, const char *output_dir, enum tokenizer_copy copy)
{
    const struct tokenizer *t = b->config.tokenizer;
    struct status s = copy == TOKENIZER_COPY_SAME ? status_ok() : tokenizer_files_write(t, output_dir);
    if (!failed(s)) {
        s = store_builder_commit(b);
    }
    if (failed(s) && copy == TOKENIZER_COPY_ABSENT) {
        tokenizer_files_remove(t, output_dir);
    }
    return s;
}

static struct store_builder_config builder_config(const struct prepare_args *a, const struct tokenizer *t,
                                                  const char *directory)
{
    return (struct store_builder_config){.tokenizer = t,
                                         .holdout_fraction = a->holdout_fraction,
                                         .seed = (uint64_t)a->seed,
                                         .directory = directory};
}

static struct status build_stores(const struct prepare_args *a, const struct tokenizer *t, struct corpus *c)
{
    enum tokenizer_copy copy;
    TRY(check_output(a, t, &copy));
    struct store_builder b;
    TRY(store_builder_open(&b, builder_config(a, t, a->output_dir)));
    int64_t start_ns = clock_ns();
    struct status s = read_text(a, t, c, &b);
    if (!failed(s)) {
        s = commit(&b, a->output_dir, copy);
    }
    if (!failed(s)) {
        tell_about_text(c, clock_since_s(start_ns));
        tell_about_stores(&b);
    }
    store_builder_abandon(&b);
    return s;
}

static struct shard_set_config shard_config(const struct prepare_args *a, const struct tokenizer *t,
                                            struct temporary *work)
{
    return (struct shard_set_config){.output_dir = a->output_dir,
                                     .tokenizer = t,
                                     .overwrite = a->overwrite,
                                     .packed = a->packed,
                                     .max_seq_length = a->max_seq_length,
                                     .max_predictions_per_seq = a->max_predictions_per_seq,
                                     .dupe_factor = a->dupe_factor,
                                     .n_shards = a->n_shards,
                                     .masked_lm_prob = a->masked_lm_prob,
                                     .short_seq_prob = a->short_seq_prob,
                                     .whole_word_masks = a->whole_word_masks,
                                     .seed = (uint64_t)a->seed,
                                     .work = work};
}

static void tell_about_shards(const struct prepare_args *a, const struct shard_writer_report *r,
                              const char *name)
{
    const struct shard_packing *p = &r->packing;
    if (r->n_shards == 0) {
        log_warning("nothing is held out, so there are no files for testing");
        return;
    }
    log_info("%s/*.hdf5: %" PRId64 " files, %" PRId64 " sequences in %" PRId64 " %s of %" PRId64
             " tokens, %.1f %% of them text",
             name, r->n_shards, p->n_sequences, p->n_packs, a->packed ? "packs" : "rows", p->seq_length,
             100 * (double)p->n_tokens / ((double)p->n_packs * (double)p->seq_length));
}

/* Writes samples, from stores that are made for that and removed. */
static struct status build_shards(const struct prepare_args *a, const struct tokenizer *t, struct corpus *c)
{
    struct temporary work;
    struct shard_set_config shards = shard_config(a, t, &work);
    char directory[STORE_BUILDER_PATH_BYTES];
    struct store_builder b;
    struct shard_writer_report reports[STORE_COUNT];
    int64_t start_ns = clock_ns();
    TRY(shard_set_check(&shards));
    TRY(shard_set_begin(&shards, directory));
    struct status s = store_builder_open(&b, builder_config(a, t, directory));
    if (!failed(s)) {
        s = read_text(a, t, c, &b);
        s = failed(s) ? s : store_builder_commit(&b);
        store_builder_abandon(&b);
    }
    if (!failed(s)) {
        tell_about_text(c, clock_since_s(start_ns));
        s = shard_set_write(&shards, reports);
    }
    if (!failed(s)) {
        tell_about_shards(a, &reports[STORE_TRAIN], "training");
        tell_about_shards(a, &reports[STORE_HELDOUT], "test");
    }
    shard_set_abandon(&shards);
    return s;
}

static bool wants_shards(const struct prepare_args *a)
{
    return strcmp(a->format, "hdf5") == 0;
}

static struct status build_locked(const struct prepare_args *a, const struct tokenizer *t, struct corpus *c)
{
    struct dir_lock lock;
    TRY(file_make_directories(a->output_dir));
    TRY(dir_lock_acquire(&lock, a->output_dir));
    struct status s = wants_shards(a) ? build_shards(a, t, c) : build_stores(a, t, c);
    dir_lock_release(&lock);
    return s;
}

static struct status plan_stores(const struct prepare_args *a, const struct tokenizer *t, struct corpus *c)
{
    struct shard_set_config shards = shard_config(a, t, NULL);
    const char *existing = wants_shards(a) ? NULL : store_builder_find_existing(a->output_dir);
    if (existing != NULL && !a->overwrite) {
        return status_error(STATUS_USAGE, "%s already has %s; --overwrite replaces what is there",
                            a->output_dir, existing);
    }
    TRY(wants_shards(a) ? shard_set_check(&shards) : status_ok());
    int64_t start_ns = clock_ns();
    TRY(read_text(a, NULL, c, NULL));
    tell_about_text(c, clock_since_s(start_ns));
    log_info("would write %s with a vocabulary of %d pieces to %s and hold out %g of the text; nothing "
             "was written",
             wants_shards(a) ? "HDF5 files" : "token stores", t->n, a->output_dir, a->holdout_fraction);
    return status_ok();
}

static struct status choose_format(const struct prepare_args *a, const struct source_format **format)
{
    CHECK(source_formats_find(format, a->input_format), "--input_format %s", a->input_format);
    if (a->one_sentence_per_line && *format == &text_source) {
        return status_error(
            STATUS_USAGE, "--input_format text joins lines, so it does not go with --one_sentence_per_line");
    }
    if (a->one_sentence_per_line && *format == NULL) {
        *format = &lines_source;
    }
    return status_ok();
}

static struct status check_written(const struct prepare_args *a, const struct input_files *f,
                                   const char *name)
{
    char path[2 * FILE_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", a->output_dir, name);
    return input_guard_check_file(f, "--output_dir", path);
}

/* Checks that the output does not overwrite the text, and that it can be written. */
static struct status check_place(const struct prepare_args *a, const struct tokenizer *t,
                                 const struct input_files *f, int n_inputs, const char **inputs)
{
    static const char *const names[] = {TOKENIZER_CONFIG_NAME, "train.bin",   "train.idx",   "train.json",
                                        "heldout.bin",         "heldout.idx", "heldout.json"};
    enum { LONGEST_SUFFIX = sizeof "/.prepare.kiln-0123456789abcdef.tmp/training/kiln_training_100000.hdf5" };
    TRY(input_guard_check_directory(f, inputs, n_inputs, "--output_dir", a->output_dir));
    for (int i = 0; i < t->n_files; i++) {
        TRY(check_written(a, f, t->files[i].name));
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        TRY(check_written(a, f, names[i]));
    }
    return a->dry_run ? file_check_directory_path(a->output_dir, LONGEST_SUFFIX)
                      : file_check_output_directory(a->output_dir, LONGEST_SUFFIX, 0);
}

static struct status prepare(const struct prepare_args *a, const struct tokenizer *t, int n_inputs,
                             const char **inputs)
{
    struct source_options o = {.replace_invalid_utf8 = a->replace_invalid_utf8};
    struct corpus c;
    TRY(choose_format(a, &o.format));
    TRY(corpus_open(&c, inputs, n_inputs, o));
    struct status s = check_place(a, t, &c.files, n_inputs, inputs);
    if (!failed(s)) {
        s = a->dry_run ? plan_stores(a, t, &c) : build_locked(a, t, &c);
    }
    corpus_close(&c);
    return s;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct prepare_args *a = args;
    const char **inputs = malloc(((size_t)n_positional + 1) * sizeof *inputs);
    if (inputs == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a list of inputs");
    }
    inputs[0] = a->input;
    for (int i = 0; i < n_positional; i++) {
        inputs[i + 1] = positional[i];
    }
    struct tokenizer t;
    struct status s = tokenizer_open_vocabulary(&t, a->vocab_file, a->do_lower_case);
    if (!failed(s)) {
        s = prepare(a, &t, n_positional + 1, inputs);
        tokenizer_fini(&t);
    }
    free(inputs);
    return s;
}

const struct command command_prepare = {
    .name = "prepare",
    .summary = "turn text into the token stores or HDF5 files that training reads",
    .details = "Splits text into documents and sentences, turns them into token ids once, and writes "
               "DIR/train.* and "
               "DIR/heldout.* with vocab.txt beside them. Long documents are cut into parts of 128 "
               "sentences; a fraction "
               "of the parts is held out. The same input gives the same bytes.",
    .positional_usage = "[PATH...]",
    .max_positional = 1 << 20,
    .options = options,
    .args_bytes = sizeof(struct prepare_args),
    .run = run,
};
