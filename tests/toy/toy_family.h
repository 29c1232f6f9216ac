/* toy_family: what files say of a toy model, and its pre-training: steps 5 to 8 of docs/howto/add_a_model.md.
 * */
#ifndef KILN_TESTS_TOY_FAMILY_H
#define KILN_TESTS_TOY_FAMILY_H

#include "model/model_family.h"
#include "task/pretrain_kind.h"

extern const struct model_family toy_family;

/* Predicts each token of a sequence of a token store from the one before it. */
extern const struct pretrain_kind toy_pretrain;

#endif
