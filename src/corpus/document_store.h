/* document_store: converts JSON lines to the stores of complete documents that Megatron-LM's
 * preprocess_data.py writes, byte for byte: PREFIX_KEY_document.bin and .idx for each key, in which a
 * document is one sequence (io/indexed.h), and .json with them, which names the tokenizer (io/token_store.h).
 *
 * The rule: the same lines, tokenizer and seed give the same bytes on any number of threads; a text without
 * tokens writes nothing; files have their names only when they are complete. */
#ifndef KILN_CORPUS_DOCUMENT_STORE_H
#define KILN_CORPUS_DOCUMENT_STORE_H

#include "corpus/document_lines.h"
#include "corpus/document_shuffle.h"

#include <stdbool.h>

/* The name of this format, and the tokenizers of preprocess_data.py, for flags: the second knows no special
 * tokens. */
#define DOCUMENT_STORE_FORMAT    "gpt"
#define DOCUMENT_STORE_TOKENIZER "PretrainedFromHF"
#define DOCUMENT_STORE_PLAIN_ONE "GPT2BPETokenizer"

struct document_store_config {
    const char *const *inputs; /* [n_inputs] files of JSON lines, or directories of them */
    int n_inputs;
    const char *output_prefix;
    struct document_lines_config lines;
    int64_t max_bad_lines; /* most bad lines that are skipped, with a warning each */
    /* Shuffle of the documents of each key.  The keys share its memory; its expected_bytes are not read. */
    struct document_shuffle_config shuffle;
    bool allow_truncated; /* a compressed file without its end: its complete lines are used */
    bool overwrite;
    bool dry_run; /* list the input and check the output, but write nothing */
};

/* STATUS_USAGE: the output is there already, or is an input.  STATUS_DATA, naming file and line: one bad line
 * too many, or no document at all; STATUS_PREEMPTED after a signal.  Then nothing is left. */
struct status document_store_write(const struct document_store_config *config);

/* Writes PREFIX.bin, .idx and .json of the stores of `prefixes`: one after the other, as
 * merge_preprocessed_data.py does, or shuffled.  Memory does not grow with them.  STATUS_DATA: one is
 * damaged, or of another tokenizer than the first; STATUS_USAGE: the output is there already, or is one of
 * them. */
struct status document_merge(const char *output_prefix, const char *const *prefixes, int n_prefixes,
                             struct document_shuffle_config shuffle, bool overwrite, bool dry_run);

#endif
