/* network_config: what a network is made of, said once: the network, its layer loop (pass/stage.h) and a
 * trainer read this struct and copy none of it. */
#ifndef KILN_PASS_NETWORK_CONFIG_H
#define KILN_PASS_NETWORK_CONFIG_H

#include "core/batch.h"
#include "dev/peers.h"
#include "dev/precision.h"
#include "nn/model.h"

struct network_config {
    const struct model *model; /* borrowed */
    const struct device *device;
    const struct ops *ops;
    struct precision precision;
    struct batch_limits limits; /* of every batch */

    /* For training; all zero otherwise. */
    bool learns; /* there is a backward; else inference only */

    /* Layers of a chunk: only its input is kept, and the backward computes its activations again (Chen et al.
     * 2016, arXiv:1604.06174).  0: the activations of all layers are kept. */
    int64_t recompute;

    /* What of the model is here (core/param.h); other ranks have the rest.  Each range of layers is run by
     * itself (pass/stage.h, chunks).  All zero: the whole model. */
    struct param_part part;

    /* The ranks with the other slices, as many as part.n_slices; until somebody sets their functions they
     * count and exchange nothing (dev/peers.h).  It stays where it is; NULL: there are none. */
    const struct peers *peers;

    /* Ranks with slices of the layers divide the rows of the residual stream, too (nn/stream.h), of which
     * there must be a multiple of their number in every batch. */
    bool sequence_parallel;

    int64_t n_slots; /* micro-batches in flight, in each range of layers; 0: one */

    /* The heads keep the logits of all words at once, for someone who reads them; else there is room for a
     * chunk of them (nn/word_head.h). */
    bool whole_logits;
    bool losses_only; /* inference: the heads leave the losses of labels, and no other output */

    /* Pages of BATCH_PAGE tokens of a cache of keys and values, for sequences that come in several batches
     * (limits.n_pages); 0: there is none. */
    int64_t cache_pages;
};

#endif
