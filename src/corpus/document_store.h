/* document_store: converts the user's text to the stores of complete documents that Megatron-LM's
 * preprocess_data.py writes, of lines of JSON byte for byte: PREFIX_KEY_document.bin and .idx for each key,
 * in which a document is one sequence (io/indexed.h), and .json with them, which names the tokenizer
 * (io/token_store.h).  With a directory instead of a prefix they are DIR/train and, of what is held out,
 * DIR/heldout.
 *
 * The rule: plain text and JSON are encoded as they are; the same text, tokenizer and flags give the same
 * bytes on any number of threads and however often a run was interrupted; a text without tokens writes
 * nothing; files have their names only when they are complete. */
#ifndef KILN_CORPUS_DOCUMENT_STORE_H
#define KILN_CORPUS_DOCUMENT_STORE_H

#include "core/option.h"
#include "corpus/document_shuffle.h"
#include "corpus/pass_state.h"

#include <stdbool.h>

/* The name of this format, and the tokenizers of preprocess_data.py, for flags: the second knows no special
 * tokens. */
#define DOCUMENT_STORE_FORMAT    "gpt"
#define DOCUMENT_STORE_TOKENIZER "PretrainedFromHF"
#define DOCUMENT_STORE_PLAIN_ONE "GPT2BPETokenizer"

/* Tokens of a longer document are several sequences of it, so that memory is bounded. */
enum { DOCUMENT_STORE_SEQUENCE_TOKENS = 1 << 24 };

struct document_store_config {
    const char *const *inputs; /* [n_inputs] files of text, or directories of them */
    int n_inputs;
    struct source_options source;      /* with json_keys; keeps_layout is set here */
    const struct tokenizer *tokenizer; /* borrowed; NULL: `check` without tokens */
    const char *output_prefix;         /* NULL: output_dir */
    struct command_flags common;
    bool append_end; /* the tokenizer's end token, to each text that has tokens */
    /* part of the documents, or of their parts where they are few; with output_dir */
    double holdout_fraction;
    uint64_t seed; /* seed of what is held out */
    struct cleaning_config cleaning;
    int64_t max_bad_lines; /* most bad lines of JSON that are skipped, with a warning each */
    /* Shuffle of the documents of each store.  The stores share its memory; its expected_bytes are not
     * read. */
    struct document_shuffle_config shuffle;
    bool overwrite, resume;
    double save_seconds; /* time between two saved states */
    json_t *settings;    /* settings that decide the bytes of the output, for `resume`; borrowed */
    bool check;          /* nothing is written, but all of the input is read; dry_run lists it */
};

/* Fills in the report, also as far as a failed run came.  STATUS_USAGE: the output is there already, or is an
 * input, or the tokenizer has no end token.  STATUS_DATA, naming file and line: one bad line too many, or no
 * document at all: then nothing is left.  After STATUS_PREEMPTED, a signal, and whenever writing fails, the
 * last saved state is beside the outputs, in PREFIX.unfinished. */
struct status document_store_write(struct pass_report *report, const struct document_store_config *config);

/* Writes PREFIX.bin, .idx and .json of the stores of `prefixes`: one after the other, as
 * merge_preprocessed_data.py does, or shuffled.  Memory does not grow with them.  STATUS_DATA: one is
 * damaged, or of another tokenizer than the first; STATUS_USAGE: the output is there already, or is one of
 * them. */
struct status document_merge(const char *output_prefix, const char *const *prefixes, int n_prefixes,
                             struct document_shuffle_config shuffle, bool overwrite, bool dry_run);

#endif
