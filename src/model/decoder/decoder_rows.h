/* decoder_rows: the rows that the tables of all families of decoders share (model/model_family.h). */
#ifndef KILN_MODEL_DECODER_ROWS_H
#define KILN_MODEL_DECODER_ROWS_H

#include "model/model_family.h"
#include "nn/decoder/decoder_config.h"

/* Functions of struct model_family. */
struct model_family_sizes decoder_sizes(const void *config);
void decoder_set_words(void *config, int64_t vocab_size, int64_t n_words);
struct model_labels *decoder_labels(void *config);
struct status decoder_same(const void *a, const void *b);

/* A decoder predicts the next token, whatever heads its files have. */
enum model_task decoder_task_of(const bool has[NAMES_N_PARTS], const json_t *config);

/* Rows of a table of GGUF's keys: a size and a real number that files need, and ones that they may have; a
 * size that is `n` times another. */
#define KEY_ROW(name, key, kind, times, use)                                                                 \
    {                                                                                                        \
        name, key, GGUF_VALUE_##kind, times, GGUF_KEY_##use                                                  \
    }
#define KEY_SIZE(name, key)       KEY_ROW(name, key, U32, 0, NEEDED)
#define KEY_REAL(name, key)       KEY_ROW(name, key, F32, 0, NEEDED)
#define KEY_MAY_SIZE(name, key)   KEY_ROW(name, key, U32, 0, BOTH)
#define KEY_MAY_REAL(name, key)   KEY_ROW(name, key, F32, 0, BOTH)
#define KEY_MAY_TEXT(name, key)   KEY_ROW(name, key, TEXT, 0, BOTH)
#define KEY_FOLLOWS(name, key, n) KEY_ROW(name, key, U32, n, BOTH)
#define KEY_IGNORED(name)         KEY_ROW(name, NULL, U32, 0, READ)

/* Rows of converters of which no network depends, the rows of the vocabulary, and the end of a table. */
#define KEYS_OF_CONVERTERS                                                                                   \
    KEY_ROW("vocab_size", "vocab_size", U32, 0, READ), KEY_IGNORED("tensor_data_layout"),                    \
        KEY_IGNORED("rope.scaling.finetuned")
#define END_OF_KEYS KEY_ROW(NULL, NULL, U32, 0, READ)

/* A part of a name, in a file and in kiln. */
#define NAMED(theirs, ours)                                                                                  \
    {                                                                                                        \
        theirs, ours, false, false, false                                                                    \
    }

#define END_OF_RENAMES                                                                                       \
    {                                                                                                        \
        NULL, NULL, false, false, false                                                                      \
    }

/* Query, key and value below a module: the `kind` of each. */
#define QKV(module, kind)                                                                                    \
    {                                                                                                        \
        module ".query." kind, module ".key." kind, module ".value." kind                                    \
    }

/* A tensor that is all three, and its bias. */
#define JOINED(whole, end_w, end_b, module, by_head, transposed)                                             \
    {whole end_w, QKV(module, "weight"), by_head, transposed},                                               \
    {                                                                                                        \
        whole end_b, QKV(module, "bias"), by_head, false                                                     \
    }

#define END_OF_JOINS                                                                                         \
    {                                                                                                        \
        NULL, {NULL, NULL, NULL}, false, false                                                               \
    }

/* What all families of decoders have; copies of the word embeddings have the name `copy_`. */
#define DECODER_FAMILY_OF(copy_)                                                                             \
    .config_bytes = sizeof(struct decoder_config), .sizes = decoder_sizes, .set_words = decoder_set_words,   \
    .labels = decoder_labels, .same_architecture = decoder_same, .task_of = decoder_task_of,                 \
    .bare_task = MODEL_TASK_ENCODER, .tied_pattern = copy_, .tied_part = NAMES_EMBEDDINGS

#define DECODER_FAMILY DECODER_FAMILY_OF("lm_head.weight")

#endif
