/* prepare_documents: the flags of `kiln prepare` that are lists, and those for stores of whole documents
 * (corpus/document_store.h), which have the names that Megatron-LM's preprocess_data.py gives them. */
#ifndef KILN_CMD_PREPARE_DOCUMENTS_H
#define KILN_CMD_PREPARE_DOCUMENTS_H

#include "corpus/document_store.h"
#include "text/tokenizer_open.h"

struct prepare_word {
    const char *text; /* [n] borrowed */
    size_t n;
};

/* The next word of a list with commas, from *rest on, which may be NULL; false at the end. */
bool prepare_word_next(struct prepare_word *word, const char **rest);

struct prepare_formats {
    bool store, hdf5, packed, text;
};

/* Parses --format; `packed` makes hdf5 packed.  STATUS_USAGE. */
struct status prepare_formats_parse(struct prepare_formats *f, const char *list, bool packed);

enum { PREPARE_MOST_PHASES = 8 };

struct prepare_phase {
    int64_t length, n_predictions;
};

/* Parses --max_seq_length and --max_predictions_per_seq, which have the same number of values.
 * STATUS_USAGE. */
struct status prepare_phases_parse(struct prepare_phase phases[PREPARE_MOST_PHASES], int *n,
                                   const char *lengths, const char *predictions);

/* Names of fields of a line of JSON. */
enum { PREPARE_KEY_BYTES = 64 };

struct prepare_keys {
    char texts[SOURCE_MOST_KEYS][PREPARE_KEY_BYTES];
    const char *list[SOURCE_MOST_KEYS]; /* [n] */
    int n;
};

/* Parses the list of a flag; NULL: no names.  STATUS_USAGE. */
struct status prepare_keys_parse(struct prepare_keys *k, const char *flag, const char *list);

struct prepare_documents_args {
    const char *tokenizer_type, *json_keys, *output_prefix, *dataset_impl, *eod_token;
    bool append_eod, merge, no_parse_special_tokens;
    int64_t max_bad_lines, shuffle_documents, shuffle_memory_mb;
};

/* Names of the flags, "a|b|c", which only this format has. */
extern const char prepare_documents_flags[];

/* Adds the vocabulary to settings that decide the bytes of the output. */
void prepare_put_vocabulary(json_t *settings, const struct tokenizer *t);

/* Fills in what is left of `c`: tokenizer, the keys of the list, prefix; and runs.  STATUS_USAGE. */
struct status prepare_documents(const struct prepare_documents_args *a, const struct vocab_flags *vocabulary,
                                const char *keys_list, struct document_store_config *c,
                                struct pass_report *report);

#endif
