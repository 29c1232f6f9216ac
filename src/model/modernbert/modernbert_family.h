/* modernbert_family: ModernBERT in Hugging Face's files. */
#ifndef KILN_MODEL_MODERNBERT_FAMILY_H
#define KILN_MODEL_MODERNBERT_FAMILY_H

#include "model/model_family.h"

extern const struct model_family modernbert_family;

#endif
