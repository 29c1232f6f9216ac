/* names_hf: from the names of tensors in other programs' files to kiln's, which are those of Hugging Face's
 * classes with a head, as the model's family has them (model_family.h).
 *
 * Understood: wrappers of PyTorch ("module.", "_orig_mod."), files of the model without a head, TensorFlow's "/", and the
 * older names that the family lists. */
#ifndef KILN_MODEL_NAMES_HF_H
#define KILN_MODEL_NAMES_HF_H

#include "core/param.h"
#include "model/model_family.h"

struct names_hf {
    char name[PARAM_NAME_BYTES]; /* as in kiln's parameter table */
    enum names_part part;
    bool transposed; /* the file has the transpose */
    bool tied;       /* another name of a tensor that the file has too, such as the decoder of an MLM head */
};

/* What a tensor of a file stands for.  A name too long to be any parameter's is cut, and NAMES_OTHER. */
struct names_hf names_hf_canonical(const struct model_family *f, const char *name);

/* The part of a name in kiln's parameter table. */
enum names_part names_hf_part(const struct model_family *f, const char *name);

#endif
