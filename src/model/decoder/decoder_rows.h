/* decoder_rows: the rows that the tables of all families of decoders share (model/model_family.h). */
#ifndef KILN_MODEL_DECODER_ROWS_H
#define KILN_MODEL_DECODER_ROWS_H

#include "io/gguf_writer.h"
#include "model/model_family.h"
#include "nn/decoder/decoder_config.h"

struct model_family_sizes decoder_sizes(const void *config);
void decoder_set_words(void *config, int64_t vocab_size, int64_t n_words);
struct model_labels *decoder_labels(void *config);
struct status decoder_same(const void *a, const void *b);

/* A decoder predicts the next token, whatever heads its files have. */
enum model_task decoder_task_of(const bool has[NAMES_N_PARTS], const json_t *config);

/* Put numbers of an architecture: its sizes, and others by name. */
void decoder_put_sizes(struct gguf_writer *w, const char *architecture, const struct decoder_config *c);
void decoder_put_size(struct gguf_writer *w, const char *architecture, const char *name, int64_t value);
void decoder_put_real(struct gguf_writer *w, const char *architecture, const char *name, double value);

/* A part of a name, in a file and in kiln. */
#define NAMED(theirs, ours)                                                                                  \
    {                                                                                                        \
        theirs, ours, false, false, false                                                                    \
    }

#define END_OF_RENAMES                                                                                       \
    {                                                                                                        \
        NULL, NULL, false, false, false                                                                      \
    }
#define DECODER_FAMILY                                                                                       \
    .config_bytes = sizeof(struct decoder_config), .sizes = decoder_sizes, .set_words = decoder_set_words,   \
    .labels = decoder_labels, .same_architecture = decoder_same, .task_of = decoder_task_of,                 \
    .bare_task = MODEL_TASK_ENCODER, .tied_pattern = "lm_head.weight", .tied_part = NAMES_EMBEDDINGS,        \
    .patterns = {[NAMES_EMBEDDINGS] = "the embeddings",                                                      \
                 [NAMES_ENCODER] = "the layers",                                                             \
                 [NAMES_MLM] = "lm_head",                                                                    \
                 [NAMES_BUFFER] = "buffers",                                                                 \
                 [NAMES_STATE] = "masks",                                                                    \
                 [NAMES_OTHER] = "others"}

#endif
