/* pretrain_recipe: --recipe, a table of flags of `kiln pretrain` that go together. */
#ifndef KILN_CMD_PRETRAIN_RECIPE_H
#define KILN_CMD_PRETRAIN_RECIPE_H

#include "cmd/pretrain_variant.h"

#define PRETRAIN_RECIPES "modern|reference|deepspeed"

/* Gives the flags of a->recipe, unless they were given themselves, as if they had been, and logs them.
 * Without a recipe it does nothing.  STATUS_USAGE: --deepspeed is another recipe. */
struct status pretrain_recipe_apply(const struct command *c, struct pretrain_args *a);

#endif
