/* toy_family: a decoder whose layers are blocks, the example of docs/howto/add_a_model.md. */
#ifndef KILN_TESTS_TOY_FAMILY_H
#define KILN_TESTS_TOY_FAMILY_H

#include "model/model_family.h"

extern const struct model_family toy_family;

#endif
