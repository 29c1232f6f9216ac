/* bert_family: the files of BERT models, as a row of model_family.h.  Its tasks are enum model_task, its
 * configuration is struct bert_config. */
#ifndef KILN_MODEL_BERT_FAMILY_H
#define KILN_MODEL_BERT_FAMILY_H

#include "nn/bert/bert_model.h"
#include "model/model_dir.h"

extern const struct model_family bert_family, roberta_family, xlm_roberta_family, camembert_family,
    distilbert_family;

#endif
