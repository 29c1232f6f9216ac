/* store_pass: the pass over the user's text that fills token stores and the file of cleaned text, or only
 * reads.
 *
 * The rule: what it writes depends on the inputs and the configuration alone, not on the number of threads,
 * nor on how often it was stopped or killed and continued from its last state (corpus/pass_state.h). */
#ifndef KILN_CORPUS_STORE_PASS_H
#define KILN_CORPUS_STORE_PASS_H

#include "corpus/pass_state.h"

#define STORE_PASS_TEXT_NAME "documents.jsonl"

struct store_pass_config {
    const struct tokenizer *tokenizer; /* borrowed; NULL: no stores */
    bool one_sentence_per_line;
    const struct punkt *punkt; /* borrowed, as in document_ids_config */
    double holdout_fraction;
    uint64_t seed;
    bool writes_text;
    struct cleaning_config cleaning;
    const char *directory; /* output; NULL: the text is only read */
    double save_seconds;   /* time between two saved states */
    double most_seconds;   /* time limit of reading, for a sample; 0: to the end of the text */
    bool quiet;            /* no progress, no warnings */
};

/* Results of a pass that are not in its state. */
struct store_pass_report {
    struct token_store_info infos[STORE_COUNT];  /* n_documents 0: no such store */
    int64_t n_tokens, n_sentences, n_text_bytes; /* added to the stores in this run */
    bool is_whole;                               /* the end of the text was reached */
};

/* Continues from *state, {0} at the beginning, to the end, and leaves it at PASS_READ, saved.
 * STATUS_PREEMPTED after a signal; then, and whenever reading or writing fails, the last state that was saved
 * is in the directory. */
struct status store_pass_run(struct store_pass_report *report, struct corpus *c,
                             const struct store_pass_config *config, struct pass_state *state);

#endif
