/* prepare: the flags of `kiln prepare` (task/prepare_run.h). */
#include "cmd/commands.h"
#include "cmd/input_paths.h"
#include "cmd/prepare_documents.h"
#include "cmd/recipe.h"
#include "cmd/settings.h"
#include "core/option_value.h"
#include "corpus/source_formats.h"
#include "task/prepare_plan.h"
#include "task/prepare_run.h"
#include "text/script.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct prepare_args {
    const char *input, *input_files;
    struct option_given given;
    struct vocab_flags vocabulary;
    const char *input_format, *text_field, *encoding;
    const char *format;                /* a list of "store", "hdf5", "packed", "text" */
    const char *lengths, *predictions; /* lists */
    const char *keep_script, *keep_fields, *dataset;
    struct prepare_documents_args documents;
    bool one_sentence_per_line;
    bool replace_invalid_utf8, allow_truncated_input, keep_gutenberg, keep_layout, skip_other_files;
    bool overwrite, resume;
    bool check, json;
    struct command_flags common;
    bool packed, reference_names, whole_word_masks;
    bool drop_duplicates, drop_near_duplicates;
    const char *quality;
    struct quality_limits limits;
    struct option_words decontaminate;
    struct evaluation_words evaluation; /* word sequences of these files */
    int64_t decontaminate_words;
    double holdout_fraction, masked_lm_prob, short_seq_prob, save_seconds;
    int64_t drop_repeated_lines, min_document_chars;
    int64_t seed, dupe_factor, n_shards, n_test_shards;
};

#define AT(field) offsetof(struct prepare_args, field)

static const struct recipe qualities[] = {
    {"gopher",
     "Rae et al. 2021 (arXiv:2112.11446, appendix A.1)",
     {{"min_words", "50", NULL},
      {"max_words", "100000", NULL},
      {"min_word_length", "3", NULL},
      {"max_word_length", "10", NULL},
      {"max_symbols", "0.1", NULL},
      {"max_repeated_lines", "0.3", NULL},
      {"max_repeated_words", "0.15", NULL}}},
};

static const struct option options[] = {
    OPTION_INPUT_ROW("input", AT(input), "PATH...",
                     "text files, or directories of them; more paths may follow", false),
    OPTION_STRING_ROW("vocab_file", AT(vocabulary.vocab_file), NULL, "FILE",
                      "vocab.txt, with one piece per line; not needed for --format text alone"),
    OPTION_STRING_ROW(
        "output_dir", AT(common.output_dir), NULL, "DIR",
        "write all output, files of the vocabulary included, into this directory; it is made if missing"),
    OPTION_BOOL_ROW("do_lower_case", AT(vocabulary.do_lower_case), NULL,
                    "lower-case text and strip accents, for the vocabulary of an uncased model"),
    OPTION_CHOICE_ROW(
        "input_format", AT(input_format), "auto", SOURCE_FORMATS_NAMES,
        "choose how files hold documents. text: each file is a document, blank lines end "
        "paragraphs; lines: blank lines end documents, each line is a paragraph; wiki: the "
        "output of WikiExtractor; json: each line is an object; dump: a MediaWiki export; auto "
        "looks at each file. All may be compressed with gzip, bzip2, zstd or xz. If the inputs contain "
        "the index of a multistream dump, kiln checks with it that the dump is whole"),
    OPTION_STRING_ROW("text_field", AT(text_field), "text", "NAME",
                      "json: name of the field that has the text"),
    OPTION_FLAG_ROW("one_sentence_per_line", AT(one_sentence_per_line), "take each line as one sentence"),
    OPTION_REAL_ROW("holdout_fraction", AT(holdout_fraction), "0.02", 0, 0.9,
                    "fraction of the text held out from training, for evaluation; 0: off"),
    OPTION_INT_ROW("seed", AT(seed), "12345", 0, 0,
                   "seed of the choice of held-out text, and of samples for --format hdf5"),
    ENCODING_ROW(AT(encoding), "--input"),
    ALLOW_TRUNCATED_ROW(AT(allow_truncated_input)),
    REPLACE_INVALID_ROW(AT(replace_invalid_utf8)),
    SKIP_OTHER_FILES_ROW(AT(skip_other_files)),
    OPTION_FLAG_ROW("keep_gutenberg", AT(keep_gutenberg),
                    "text: keep what Project Gutenberg puts before and after a book"),
    OPTION_FLAG_ROW("overwrite", AT(overwrite),
                    "replace the output of an earlier run in the output directory"),
    OPTION_FLAG_ROW(
        "resume", AT(resume),
        "continue a run that was stopped, killed or could not write, with the same flags and inputs"),
    OPTION_REAL_ROW("save_seconds", AT(save_seconds), "60", 0.001, 1e6,
                    "number of seconds between saved states, from which --resume continues"),
    DRY_RUN_ROW(
        AT(common.dry_run),
        "print what would be read and written, with time and space estimated from a sample; write nothing"),
    OPTION_FLAG_ROW("check", AT(check),
                    "read and check all of the text, count what would be left out, and write nothing"),
    OPTION_FLAG_ROW("json", AT(json),
                    "print a JSON object of what was read, what was left out by reason, and the stores"),
    OPTION_GROUP_ROW("output"),
    OPTION_STRING_ROW(
        "format", AT(format), "store", "LIST",
        "choose outputs, separated by commas. store: tokens, from which `kiln pretrain` draws samples and "
        "masks anew in each epoch; hdf5: samples with masks drawn now, in the layout of "
        "create_pretraining_data; packed: the same, up to three sequences per row, in the layout of "
        "pack_pretraining_data_pytorch; text: the cleaned documents as lines of JSON; " DOCUMENT_STORE_FORMAT
        ", alone: whole documents, with white space, indentation and blank lines as they are, in the .bin "
        "and "
        ".idx of preprocess_data.py"),
    OPTION_FLAG_ROW("keep_layout", AT(keep_layout),
                    "text, alone: keep white space, indentation and blank lines of plain text and JSON"),
    OPTION_STRING_ROW(
        "keep_fields", AT(keep_fields), NULL, "LIST",
        "text: keep these fields of a line of JSON, such as source,meta, beside id, url and title"),
    OPTION_STRING_ROW("max_seq_length", AT(lengths), "128", "LIST",
                      "hdf5: maximum number of tokens per sequence, [CLS] and [SEP] included; a list, such "
                      "as 128,512, makes one directory each"),
    OPTION_STRING_ROW("max_predictions_per_seq", AT(predictions), "20", "LIST",
                      "hdf5: maximum number of masked positions per sequence; a list has one number for each "
                      "--max_seq_length"),
    OPTION_REAL_ROW("masked_lm_prob", AT(masked_lm_prob), "0.15", 0, 1, "hdf5: fraction of tokens to mask"),
    OPTION_FLAG_ROW("whole_word_masks", AT(whole_word_masks), "hdf5: mask all pieces of a word, or none"),
    OPTION_REAL_ROW("short_seq_prob", AT(short_seq_prob), "0.1", 0, 1,
                    "hdf5: fraction of sequences to cut to a random length"),
    OPTION_INT_ROW("dupe_factor", AT(dupe_factor), "5", 1, 1000,
                   "hdf5: number of copies of each sample, each with masks of its own"),
    OPTION_INT_ROW(
        "n_shards", AT(n_shards), "0", 0, 100000,
        "hdf5: number of training files, and of test files; 0: files of about 64 MiB uncompressed"),
    OPTION_INT_ROW("n_test_shards", AT(n_test_shards), "0", 0, 100000,
                   "hdf5: number of test files; 0: --n_shards"),
    OPTION_FLAG_ROW("packed", AT(packed), "hdf5: write packed rows instead of padded ones"),
    OPTION_FLAG_ROW("reference_names", AT(reference_names),
                    "hdf5: name directories and files as create_datasets_from_start.sh does"),
    OPTION_STRING_ROW("dataset", AT(dataset), "corpus", "NAME",
                      "name of the corpus in --reference_names, such as wikicorpus_en"),
    OPTION_GROUP_ROW("flags of preprocess_data.py, for --format " DOCUMENT_STORE_FORMAT),
    OPTION_STRING_ROW("output_prefix", AT(documents.output_prefix), NULL, "PATH",
                      "begin the names of files with this path, instead of --output_dir: "
                      "PATH_KEY_document.bin, .idx and .json"),
    MERGE_FILE_ROW(AT(vocabulary.merge_file)),
    OPTION_STRING_ROW("json_keys", AT(documents.json_keys), "text", "LIST",
                      "write the texts of these keys of a line of JSON, each key to its own files"),
    OPTION_FLAG_ROW("append_eod", AT(documents.append_eod),
                    "end each document with the tokenizer's end-of-text token"),
    OPTION_TEXT_ROW("eod_token", AT(documents.eod_token),
                    "the token that ends a document, where the files of the tokenizer do not say"),
    NO_PARSE_SPECIAL_ROW(AT(documents.no_parse_special_tokens)),
    OPTION_INT_ROW("max_bad_lines", AT(documents.max_bad_lines), "0", 0, 1e15,
                   "number of lines that may be skipped, each with a warning, because they are not JSON, "
                   "lack the key or are not UTF-8"),
    OPTION_FLAG_ROW("merge", AT(documents.merge),
                    "join stores of this format and of one tokenizer into one: --input gives the paths "
                    "without .bin, and --output_prefix the path of the result"),
    OPTION_INPUT_ROW("datasets", AT(input), "PATH...", "--input, as merge_preprocessed_data.py names it",
                     false),
    OPTION_INT_ROW(
        "shuffle_documents", AT(documents.shuffle_documents), "-1", -1, 2147483647,
        "write all documents in an order that this seed draws, also with --merge; -1: in the order "
        "of the input"),
    OPTION_INT_ROW("shuffle_memory_mb", AT(documents.shuffle_memory_mb), "1024", 1, 1 << 30,
                   "number of MiB of memory for --shuffle_documents; what is larger goes through files "
                   "beside the output, as large as it; the order does not depend on it"),
    OPTION_CHOICE_ROW(
        "tokenizer_type", AT(documents.tokenizer_type), DOCUMENT_STORE_TOKENIZER,
        DOCUMENT_STORE_TOKENIZER "|" DOCUMENT_STORE_PLAIN_ONE,
        "name of preprocess_data.py's tokenizer: the second reads special tokens in a text as text, as "
        "--no_parse_special_tokens does; the vocabulary decides all else"),
    OPTION_CHOICE_ROW("dataset_impl", AT(documents.dataset_impl), "mmap", "mmap", "format of the files"),
    OPTION_REFUSED_ROW("split_sentences", "a document is one sequence; sentences are for --format store"),
    OPTION_REFUSED_ROW("keep_newlines", "it belongs to --split_sentences; line ends are always kept"),
    OPTION_IGNORED_VALUE_ROW("workers", "N", "all cores are used, or as many as OMP_NUM_THREADS says"),
    OPTION_IGNORED_VALUE_ROW("log_interval", "N", "progress is shown by time"),
    OPTION_GROUP_ROW("cleaning"),
    OPTION_FLAG_ROW("drop_duplicates", AT(drop_duplicates),
                    "drop documents whose text repeats an earlier one; 16,777,216 documents are remembered"),
    OPTION_FLAG_ROW(
        "drop_near_duplicates", AT(drop_near_duplicates),
        "drop documents that share about 0.75 or more of their sequences of five words with an "
        "earlier one (MinHash, 14 bands of 8 rows); 4,194,304 documents are remembered, in up to 1 GiB"),
    OPTION_INT_ROW("drop_repeated_lines", AT(drop_repeated_lines), "0", 0, 1000000000,
                   "drop further occurrences of a line that has occurred N times; 0: off"),
    OPTION_INT_ROW("min_document_chars", AT(min_document_chars), "0", 0, 1000000000,
                   "drop documents of fewer characters; 0: off"),
    OPTION_STRING_ROW(
        "keep_script", AT(keep_script), "", "LIST",
        "drop documents with less than half of their letters in these scripts: latin, cyrillic, han ..."),
    OPTION_WORDS_ROW("decontaminate", AT(decontaminate), "FILE...",
                     "drop documents that share --decontaminate_words words in a row with these files of an "
                     "evaluation: text, or lines of JSON, of which every string counts"),
    OPTION_INT_ROW("decontaminate_words", AT(decontaminate_words), "13", 2, TEXT_WORDS_MOST,
                   "number of words in a row that may not be shared (Brown et al. 2020)"),
    OPTION_CHOICE_ROW(
        "quality", AT(quality), NULL, "gopher",
        "drop documents by the limits of Gopher's authors, of the flags below that are not given: 50 to "
        "100,000 words, 3 to 10 characters long, 0.1 symbols a word, 0.3 repeated lines, 0.15 repeated "
        "words; "
        "for languages that put blanks between words"),
    OPTION_INT_ROW("min_words", AT(limits.min_words), "0", 0, 1000000000,
                   "drop documents of fewer words; 0: off"),
    OPTION_INT_ROW("max_words", AT(limits.max_words), "0", 0, 1000000000,
                   "drop documents of more words; 0: off"),
    OPTION_REAL_ROW("min_word_length", AT(limits.min_word_length), "0", 0, 1000,
                    "drop documents whose words have fewer characters in the mean; 0: off"),
    OPTION_REAL_ROW("max_word_length", AT(limits.max_word_length), "0", 0, 1000,
                    "drop documents whose words have more characters in the mean; 0: off"),
    OPTION_REAL_ROW("max_symbols", AT(limits.max_symbols), "0", 0, 1000,
                    "drop documents with more # and ellipses for each word; 0: off"),
    OPTION_REAL_ROW("max_repeated_lines", AT(limits.max_repeated_lines), "0", 0, 1,
                    "drop documents of whose lines more than this fraction repeat an earlier one; 0: off"),
    OPTION_REAL_ROW("max_repeated_words", AT(limits.max_repeated_words), "0", 0, 1,
                    "drop documents of whose words more than this fraction are in a sequence of five that "
                    "repeats an earlier one; 0: off"),
    OPTION_GROUP_ROW("flags of bertPrep.py and create_pretraining_data.py"),
    OPTION_STRING_ROW("input_file", AT(input), NULL, "PATH", "--input"),
    OPTION_STRING_ROW("input_files", AT(input_files), NULL, "LIST",
                      "the same as --input, with commas between the paths"),
    OPTION_INT_ROW("random_seed", AT(seed), NULL, 0, 0, "--seed"),
    OPTION_REAL_ROW("fraction_test_set", AT(holdout_fraction), NULL, 0, 0.9, "--holdout_fraction"),
    OPTION_INT_ROW("n_training_shards", AT(n_shards), NULL, 1, 100000, "--n_shards"),
    OPTION_REFUSED_ROW("output_file", "a directory of files is written: --output_dir DIR --format hdf5"),
    OPTION_IGNORED_VALUE_ROW("action", "NAME", "all stages are one pass; --format says what is written"),
    OPTION_IGNORED_VALUE_ROW("n_processes", "N", "all cores are used, or as many as OMP_NUM_THREADS says"),
    OPTION_IGNORED_VALUE_ROW("segmentation_method", "NAME",
                             "sentences are found by kiln's own rules, not NLTK's"),
    OPTION_IGNORED_VALUE_ROW("skip_wikiextractor", "N", "a dump and WikiExtractor's output are told apart"),
    OPTION_IGNORED_VALUE_ROW("bert_model", "NAME", "the vocabulary is --vocab_file"),
    OPTION_IGNORED_ROW("interactive_json_config_generator", "it had no effect there either"),
    {0},
};

static struct status missing(const char *name, const char *value, const char *what)
{
    return status_error(STATUS_USAGE, "kiln prepare needs --%s %s: %s", name, value, what);
}

static struct status choose_format(const struct prepare_args *a, const struct source_format **format)
{
    CHECK(source_formats_find(format, a->input_format), "--input_format %s", a->input_format);
    FAIL_IF(a->one_sentence_per_line && *format == &text_source, STATUS_USAGE,
            "--input_format text joins lines, so it cannot be combined with --one_sentence_per_line");
    if (a->one_sentence_per_line && *format == NULL) {
        *format = &lines_source;
    }
    return status_ok();
}

static struct status choose_scripts(const struct prepare_args *a, uint64_t *scripts)
{
    struct prepare_word word;
    *scripts = 0;
    for (const char *rest = a->keep_script; prepare_word_next(&word, &rest);) {
        int script = script_find(word.text, word.n);
        FAIL_IF(script == SCRIPT_NONE, STATUS_USAGE,
                "--keep_script has '%.*s', which is none of the scripts that kiln knows: latin, greek, "
                "cyrillic, arabic, hebrew, devanagari, han, hiragana, katakana, hangul, thai and others of "
                "src/text/script_table.c",
                (int)word.n, word.text);
        *scripts |= UINT64_C(1) << script;
    }
    return status_ok();
}

static struct shard_set_config shard_config(const struct prepare_args *a, const struct tokenizer *t,
                                            const struct prepare_phase *phase, bool packed)
{
    int64_t n_test = a->n_test_shards > 0 ? a->n_test_shards : a->n_shards;
    return (struct shard_set_config){.dataset = a->reference_names ? a->dataset : NULL,
                                     .tokenizer = t,
                                     .packed = packed,
                                     .dupe_factor = a->dupe_factor,
                                     .n_shards = {[STORE_TRAIN] = a->n_shards, [STORE_HELDOUT] = n_test},
                                     .samples = {.seed = (uint64_t)a->seed,
                                                 .batch = {phase->length, 1, 1, false},
                                                 .max_predictions_per_seq = phase->n_predictions,
                                                 .masked_lm_prob = a->masked_lm_prob,
                                                 .short_seq_prob = a->short_seq_prob,
                                                 .whole_words = a->whole_word_masks ? t : NULL}};
}

/* Names the directory of a set, as create_datasets_from_start.sh does if asked to. */
static struct status name_set(struct prepare_set *set, const struct prepare_args *a, bool is_only)
{
    const struct shard_set_config *s = &set->shards;
    int n;
    if (a->reference_names) {
        n = snprintf(set->name, sizeof set->name,
                     "hdf5_lower_case_%d_seq_len_%" PRId64 "_max_pred_%" PRId64
                     "_masked_lm_prob_%g_random_seed_%" PRId64 "_dupe_factor_%" PRId64 "%s/%s",
                     a->vocabulary.do_lower_case, s->samples.batch.max_seq_length,
                     s->samples.max_predictions_per_seq, s->samples.masked_lm_prob, a->seed, s->dupe_factor,
                     s->packed ? "_packed" : "", a->dataset);
    } else if (is_only) {
        n = 0;
        set->name[0] = '\0';
    } else {
        n = snprintf(set->name, sizeof set->name, "%s_seq_len_%" PRId64 "_max_pred_%" PRId64,
                     s->packed ? "packed" : "hdf5", s->samples.batch.max_seq_length,
                     s->samples.max_predictions_per_seq);
    }
    return n < (int)sizeof set->name && strchr(a->dataset, '/') == NULL
               ? status_ok()
               : status_error(STATUS_USAGE, "--dataset %.40s is not a short file name", a->dataset);
}

/* The sets of HDF5 files that --format and the lists of lengths ask for. */
static struct status make_sets(struct prepare_config *c, const struct prepare_args *a,
                               const struct prepare_formats *f)
{
    struct prepare_phase phases[PREPARE_MOST_PHASES];
    int n_phases = 0, n_kinds = f->hdf5 + f->packed;
    if (n_kinds == 0) {
        return status_ok();
    }
    TRY(prepare_phases_parse(phases, &n_phases, a->lengths, a->predictions));
    for (int i = 0; i < n_phases; i++) {
        for (int packed = 0; packed < 2; packed++) {
            if (packed == 1 ? f->packed : f->hdf5) {
                struct prepare_set *set = &c->sets[c->n_sets++];
                set->shards = shard_config(a, c->pass.tokenizer, &phases[i], packed == 1);
                TRY(name_set(set, a, n_phases * n_kinds == 1));
            }
        }
    }
    return status_ok();
}

/* Settings that decide the bytes of the output: all flags but those that say how to get there, and but
 * `unused`, those that the format does not have. */
static json_t *make_settings(const struct prepare_args *a, const char *unused)
{
    static const char others[] =
        "input|input_file|input_files|datasets|output_dir|output_prefix|overwrite|resume|save_seconds|"
        "dry_run|check|json|vocab_file|merge_file|max_bad_lines|shuffle_memory_mb";
    char hash[17];
    json_t *settings = option_values(&command_prepare, a);
    for (struct option_walk w = {0}; option_next(&w, &command_prepare);) {
        const struct option_key key = option_key(&w.row);
        if (option_is_choice(others, key.text) || option_is_choice(unused, key.text)) {
            json_object_del(settings, key.text);
        }
    }
    if (a->decontaminate.n > 0) {
        snprintf(hash, sizeof hash, "%016" PRIx64, a->evaluation.hash);
        json_object_set_new(settings, "decontaminate", json_string(hash));
    }
    json_object_set_new(settings, "kiln_version", json_string(KILN_VERSION));
    return settings;
}

static struct source_options source_options(const struct prepare_args *a)
{
    return (struct source_options){.replace_invalid_utf8 = a->replace_invalid_utf8,
                                   .allow_truncated = a->allow_truncated_input,
                                   .encoding = a->encoding,
                                   .text_field = a->text_field,
                                   .keep_gutenberg = a->keep_gutenberg};
}

static struct cleaning_config cleaning_config(const struct prepare_args *a)
{
    return (struct cleaning_config){.drop_duplicates = a->drop_duplicates,
                                    .drop_near_duplicates = a->drop_near_duplicates,
                                    .drop_repeated_lines = a->drop_repeated_lines,
                                    .min_document_chars = a->min_document_chars,
                                    .quality = a->limits,
                                    .evaluation = a->decontaminate.n > 0 ? &a->evaluation : NULL};
}

/* What the lines of --format text have more than its paragraphs. */
static struct status choose_fields(const struct prepare_args *a, struct prepare_keys *keys,
                                   struct source_options *o, const struct prepare_formats *f)
{
    bool is_other = f->store || f->hdf5 || f->packed;
    FAIL_IF(a->keep_fields != NULL && !f->text, STATUS_USAGE, "--keep_fields needs --format text");
    FAIL_IF(a->keep_layout && (is_other || a->drop_repeated_lines > 0), STATUS_USAGE,
            "--keep_layout is for --format text alone, and cannot be combined with --drop_repeated_lines");
    TRY(prepare_keys_parse(keys, "keep_fields", a->keep_fields));
    for (int i = 0; i < 4 * keys->n; i++) {
        static const char *const always[4] = {"id", "url", "title", "text"};
        FAIL_IF(strcmp(keys->list[i / 4], always[i % 4]) == 0, STATUS_USAGE,
                "--keep_fields: %s is kept anyway", always[i % 4]);
    }
    o->kept_fields = keys->list;
    o->n_kept_fields = keys->n;
    o->keeps_layout = a->keep_layout;
    o->leaves_out_others = a->keep_layout || a->skip_other_files;
    return status_ok();
}

static struct status run_with(const struct prepare_args *a, const struct prepare_formats *f,
                              const struct tokenizer *t, int n_inputs, const char *const *inputs,
                              struct pass_report *report)
{
    struct prepare_set sets[2 * PREPARE_MOST_PHASES];
    struct prepare_keys keys;
    struct prepare_config c = {
        .inputs = inputs,
        .n_inputs = n_inputs,
        .source = source_options(a),
        .common = a->common,
        .pass = {.tokenizer = t,
                 .one_sentence_per_line = a->one_sentence_per_line,
                 .holdout_fraction = a->holdout_fraction,
                 .seed = (uint64_t)a->seed,
                 .writes_text = f->text,
                 .cleaning = cleaning_config(a),
                 .save_seconds = a->save_seconds},
        .wants_store = f->store,
        .sets = sets,
        .report = report,
        .overwrite = a->overwrite,
        .resume = a->resume,
        .check = a->check,
    };
    TRY(choose_format(a, &c.source.format));
    TRY(choose_fields(a, &keys, &c.source, f));
    TRY(choose_scripts(a, &c.pass.cleaning.scripts));
    TRY(make_sets(&c, a, f));
    c.settings = make_settings(a, prepare_documents_flags);
    if (t != NULL) {
        prepare_put_vocabulary(c.settings, t);
    }
    struct status s = prepare_run(&c);
    json_decref(c.settings);
    return s;
}

/* Flags that have no use for whole documents. */
static const char other_flags[] = "do_lower_case|one_sentence_per_line|max_seq_length|"
                                  "masked_lm_prob|whole_word_masks|max_predictions_per_seq|short_seq_prob|"
                                  "dupe_factor|n_shards|n_test_shards|packed|reference_names|dataset|"
                                  "drop_repeated_lines|keep_fields|keep_layout";

/* STATUS_USAGE: a flag that the format would pass over in silence. */
static struct status check_other_format(const struct prepare_args *a)
{
    const char *flag = option_first_given(&command_prepare, a, prepare_documents_flags);
    return flag == NULL ? status_ok()
                        : status_error(STATUS_USAGE, "--%s needs --format " DOCUMENT_STORE_FORMAT, flag);
}

static bool is_given(const struct prepare_args *a, const char *flag)
{
    return option_was_given(&command_prepare, a, flag);
}

static struct status check_documents(const struct prepare_args *a)
{
    const char *flag = option_first_given(&command_prepare, a, other_flags);
    FAIL_IF(flag != NULL, STATUS_USAGE, "--%s cannot be combined with --format " DOCUMENT_STORE_FORMAT, flag);
    FAIL_IF(is_given(a, "text_field") && is_given(a, "json_keys"), STATUS_USAGE,
            "--text_field and --json_keys both name the text of a line; give one");
    FAIL_IF(a->common.output_dir == NULL && is_given(a, "holdout_fraction") && a->holdout_fraction > 0,
            STATUS_USAGE,
            "--holdout_fraction needs --output_dir DIR, which gets the stores train and heldout");
    return status_ok();
}

static struct status run_documents(const struct prepare_args *a, int n_inputs, const char *const *inputs,
                                   struct pass_report *report)
{
    struct document_store_config c = {.inputs = inputs,
                                      .n_inputs = n_inputs,
                                      .source = source_options(a),
                                      .common = a->common,
                                      .holdout_fraction =
                                          a->common.output_dir == NULL ? 0 : a->holdout_fraction,
                                      .seed = (uint64_t)a->seed,
                                      .cleaning = cleaning_config(a),
                                      .overwrite = a->overwrite,
                                      .resume = a->resume,
                                      .save_seconds = a->save_seconds,
                                      .check = a->check};
    TRY(check_documents(a));
    TRY(choose_format(a, &c.source.format));
    TRY(choose_scripts(a, &c.cleaning.scripts));
    if (n_inputs == 0) {
        return missing("input", "PATH...", "files of text, or directories of them");
    }
    c.settings = make_settings(a, other_flags);
    struct status s =
        prepare_documents(&a->documents, &a->vocabulary,
                          is_given(a, "text_field") ? a->text_field : a->documents.json_keys, &c, report);
    json_decref(c.settings);
    return s;
}

static struct status run_on(const struct prepare_args *a, int n_inputs, const char *const *inputs,
                            struct pass_report *report)
{
    struct prepare_formats formats;
    struct tokenizer t;
    if (strcmp(a->format, DOCUMENT_STORE_FORMAT) == 0) {
        return run_documents(a, n_inputs, inputs, report);
    }
    TRY(check_other_format(a));
    TRY(prepare_formats_parse(&formats, a->format, a->packed));
    if (n_inputs == 0) {
        return missing("input", "PATH...", "text files, or directories of them");
    }
    if (a->common.output_dir == NULL) {
        return missing("output_dir", "DIR", "directory for all output; made if missing");
    }
    if (!formats.store && !formats.hdf5 && !formats.packed) {
        return run_with(a, &formats, NULL, n_inputs, inputs, report);
    }
    if (a->vocabulary.vocab_file == NULL) {
        return missing("vocab_file", "FILE", "vocab.txt, one piece per line; `kiln vocab` makes it");
    }
    TRY(tokenizer_open_flags(&t, &a->vocabulary));
    struct status s = run_with(a, &formats, &t, n_inputs, inputs, report);
    tokenizer_fini(&t);
    return s;
}

static struct status read_and_run(struct prepare_args *a, const struct input_paths *inputs,
                                  struct pass_report *report)
{
    TRY(recipe_apply(&command_prepare, a, qualities, 1, a->quality));
    TRY(a->decontaminate.n == 0 ? status_ok()
                                : evaluation_words_open(&a->evaluation, a->decontaminate.of,
                                                        a->decontaminate.n, (int)a->decontaminate_words));
    struct status s = run_on(a, inputs->n, inputs->paths, report);
    evaluation_words_close(&a->evaluation);
    return s;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    struct prepare_args a = *(const struct prepare_args *)args;
    struct input_paths inputs;
    TRY(input_paths_init(&inputs, a.input, a.input_files, n_positional, positional));
    struct pass_report report = {0};
    struct buf line = {0};
    struct status s = read_and_run(&a, &inputs, &report);
    if (!failed(s) && a.json && !a.common.dry_run) {
        s = prepare_report_json(&line, &report);
        fputs(buf_text(&line), stdout);
    }
    json_decref(report.sources);
    buf_fini(&line);
    input_paths_fini(&inputs);
    return s;
}

const struct command command_prepare = {
    .name = "prepare",
    .summary = "turn text into the token stores or HDF5 files that training reads",
    .details =
        "Splits text into documents and sentences, turns them into token ids once, and writes DIR/train.* "
        "and DIR/heldout.* with vocab.txt beside them. Long documents are cut into parts of 128 sentences; a "
        "fraction of the parts is held out. The same input gives the same bytes, on any number of cores and "
        "however often the run was interrupted. docs/howto/prepare_text.md.",
    .positional_usage = "[PATH...]",
    .max_positional = 1 << 20,
    .options = options,
    .usual = "input|vocab_file|output_dir|do_lower_case|input_format|text_field|holdout_fraction|seed|"
             "encoding|overwrite|resume|dry-run|check|format|max_seq_length|max_predictions_per_seq|"
             "n_shards|drop_duplicates|drop_near_duplicates|drop_repeated_lines|decontaminate|quality|output_"
             "prefix|"
             "merge_file|append_eod",
    .given = AT(given),
    .args_bytes = sizeof(struct prepare_args),
    .run = run,
};
