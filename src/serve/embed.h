/* embed: texts to vectors whose angles tell how alike the texts are.
 * Reimers & Gurevych 2019 (arXiv:1908.10084) section 3: the last layer's output, pooled. */
#ifndef KILN_SERVE_EMBED_H
#define KILN_SERVE_EMBED_H

#include "serve/session.h"

enum embed_pooling {
    EMBED_MEAN, /* over all tokens, [CLS] and [SEP] included */
    EMBED_CLS,  /* the first token */
};

struct embed_options {
    enum embed_pooling pooling;
    bool normalize; /* to length 1; a vector of zeros stays */
};

struct embed_text {
    const char *bytes; /* [n], any */
    size_t n;
};

/* vectors [n_texts, H] = pooled outputs, of a session opened for BERT_TASK_ENCODER.  Texts are run in the
 * order of their lengths, as many at once as fit a batch; a vector does not depend on its neighbours.  A text
 * of more than session.max_length tokens is cut, and *n_cut counts those. */
struct status embed_texts(struct session *s, float *vectors, int64_t *n_cut, const struct embed_text *texts,
                          size_t n_texts, struct embed_options options);

#endif
