/* cross_encoder: what a classifier of one label makes of its logit for a pair of texts, by the words that
 * sentence-transformers and transformers leave in config.json. */
#ifndef KILN_SERVE_CROSS_ENCODER_H
#define KILN_SERVE_CROSS_ENCODER_H

#include "serve/sentence_model.h"

struct cross_encoder {
    /* of sentence_transformers.activation_fn, or of sbert_ce_default_activation_function; else a sigmoid, as
     * in sentence-transformers */
    enum sentence_activation activation;
    bool is_regression; /* "problem_type" says that the logit is the answer */
};

/* Reads the config.json of a model's directory, which may have none. An activation that kiln does not know
 * is a warning, and a sigmoid. */
struct status cross_encoder_read(struct cross_encoder *c, const char *directory);

#endif
