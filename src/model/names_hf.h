/* names_hf: kiln's names for the tensors of other programs' files.  kiln's are those of Hugging Face's
 * classes with a head, as the model's family has them (model_family.h).
 *
 * A name may have wrappers of PyTorch ("module.", "_orig_mod."), lack the prefix of classes with a head, be
 * separated by TensorFlow's "/", or be an older one that the family lists. */
#ifndef KILN_MODEL_NAMES_HF_H
#define KILN_MODEL_NAMES_HF_H

#include "core/param.h"
#include "model/model_family.h"

/* The order of a matrix in a file (model_family_rename). */
struct names_order {
    bool transposed, pairs_halves;
};

struct names_hf {
    char name[PARAM_NAME_BYTES]; /* name in kiln's parameter table */
    enum names_part part;
    struct names_order order; /* how the file's matrix lies */
    bool tied; /* a copy of the tensor of this name, such as the decoder's weight in an MLM head */
};

/* The parameter that a tensor of a file stands for.  A name that is too long for any is cut off,
 * and its part is NAMES_OTHER. */
struct names_hf names_hf_canonical(const struct model_family *f, const char *name);

/* Applies renames in order, of which the last has no `old`, or none; returns the order of the old name's
 * matrix.  A name that would grow past the limit stays as it is. */
struct names_order names_hf_rename(char name[PARAM_NAME_BYTES], const struct model_family_rename *renames);

/* Applies renames from `new` to `old`, with the result of names_hf_rename. */
struct names_order names_hf_rename_back(char name[PARAM_NAME_BYTES],
                                        const struct model_family_rename *renames);

/* The part of a name in kiln's parameter table. */
enum names_part names_hf_part(const struct model_family *f, const char *name);

#endif
