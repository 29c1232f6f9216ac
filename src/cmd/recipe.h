/* recipe: --recipe, flags that go together, given as if they were on the command line
 * (docs/decisions/0057_recipe.md). */
#ifndef KILN_CMD_RECIPE_H
#define KILN_CMD_RECIPE_H

#include "core/option.h"

enum { RECIPE_MOST_FLAGS = 16 };

struct recipe {
    const char *name, *source;
    struct {
        const char *flag, *text;
        /* not if one of these flags was given, separated by |, which say the same in another way; or NULL */
        const char *unless;
    } flags[RECIPE_MOST_FLAGS];
};

/* Gives the flags of the recipe of this name, one of recipes[n], unless they were given themselves, and logs
 * them.  NULL: there is none, and nothing is done.  STATUS_MEMORY. */
struct status recipe_apply(const struct command *c, void *args, const struct recipe *recipes, size_t n,
                           const char *name);

#endif
