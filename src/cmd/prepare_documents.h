/* prepare_documents: the flags of `kiln prepare` for stores of whole documents (corpus/document_store.h).
 * They have the names that Megatron-LM's preprocess_data.py gives them. */
#ifndef KILN_CMD_PREPARE_DOCUMENTS_H
#define KILN_CMD_PREPARE_DOCUMENTS_H

#include "corpus/document_store.h"

struct prepare_documents_args {
    const char *merge_file, *tokenizer_type, *json_keys, *output_prefix, *dataset_impl, *eod_token;
    bool append_eod, merge, no_parse_special_tokens;
    int64_t max_bad_lines, shuffle_documents, shuffle_memory_mb;
};

/* Names of the flags, which only this format has; ends with NULL. */
extern const char *const prepare_documents_flags[];

/* Fills in what is left of `c`: tokenizer, keys, prefix; and runs.  STATUS_USAGE. */
struct status prepare_documents(const struct prepare_documents_args *a, const char *vocab_file,
                                struct document_store_config *c);

#endif
