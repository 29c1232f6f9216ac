/* bert_kind: BERT's equations under other names: what a kind of BERT calls its weights, its classes and the
 * keys of its config.json, and where its heads differ. */
#ifndef KILN_NN_BERT_KIND_H
#define KILN_NN_BERT_KIND_H

#include "nn/config_field.h"
#include "nn/model_heads.h"
#include "nn/weights.h"

struct bert_config;

/* Modules of a layer, as paths behind the layer's own. */
enum bert_module {
    BERT_MODULE_QUERY,
    BERT_MODULE_KEY,
    BERT_MODULE_VALUE,
    BERT_MODULE_ATTENTION,        /* without the product behind it */
    BERT_MODULE_ATTENTION_OUTPUT, /* the norm's output */
    BERT_MODULE_INTERMEDIATE,
    BERT_MODULE_INTERMEDIATE_PRODUCT, /* without its activation */
    BERT_MODULE_OUTPUT,
    BERT_N_MODULES
};

struct bert_kind {
    const char *model_type; /* "model_type" of config.json */
    /* Hugging Face's class of each task: "BertForMaskedLM"; NULL: there is none */
    const char *classes[MODEL_TASK_TOKEN_CLASSIFICATION + 1];

    /* Names of weights.  Before them: "bert.embeddings."; `pooler` NULL: the encoder has none. */
    const char *embeddings, *layers, *pooler, *mlm;
    const char *word; /* the name of the word embeddings */
    /* before those of a classifier of texts that has a dense layer of its own in place of the pooler, and of
     * its scores behind that; NULL: it reads the pooler, and its scores are "classifier." */
    const char *dense, *scores;
    const struct weight_row *embed_rows, *layer_rows, *mlm_rows; /* mlm_rows: BERT_MLM_N_ROWS */
    int n_embed_rows;
    const char *const *modules; /* [BERT_N_MODULES] */

    /* Keys of config.json. */
    const struct config_field *fields;
    int n_fields;
    const struct bert_config *defaults; /* what absent keys mean */
    const char *activation;             /* the key that must be "gelu" */
    const char *positions;              /* "position_embedding_type", or NULL: there is no such key */

    bool has_no_types;          /* words and positions alone are added */
    bool drops_before_dense;    /* the classifier's dropout is in front of its dense layer too */
    bool rectifies;             /* the dense layer's activation is a rectifier, not tanh */
    bool counts_behind_padding; /* positions are numbered from pad_token_id + 1, so the first rows of their
                                 * table are no token's */
    /* dropouts in front of scores of texts and of answers are fields; a token's scores have the layers' */
    bool names_dropouts;
};

/* Devlin et al. 2018; RoBERTa (Liu et al. 2019, arXiv:1907.11692), and two that differ from it in their
 * texts: XLM-R (Conneau et al. 2019, arXiv:1911.02116) and CamemBERT (Martin et al. 2019,
 * arXiv:1911.03894); DistilBERT (Sanh et al. 2019, arXiv:1910.01108). */
extern const struct bert_kind bert_kind, roberta_kind, xlm_roberta_kind, camembert_kind, distilbert_kind;

#endif
