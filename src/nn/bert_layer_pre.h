/* bert_layer_pre: the pre-LN wiring of BERT's layers, as the DeepSpeed scripts build their large models
 * ("layer_norm_large_model": BERT-1.5B and 5B): the sublayers read normalised sums, while the residual stream
 * itself is never normalised.  Xiong et al. 2020 (arXiv:2002.04745) figure 1 b, with the LayerNorms of a
 * layer moved to the ends of its sublayers, so that the parameters are those of a post-LN layer. */
#ifndef KILN_NN_BERT_LAYER_PRE_H
#define KILN_NN_BERT_LAYER_PRE_H

#include "nn/bert_layer.h"

/* The residual stream is sum_2 of each layer; its gradient stays in the scratch, as dh, from the last layer
 * to the first.  So a backward must run over all layers, from the last down. */
extern const struct bert_layer_wiring bert_layer_pre;

#endif
