#include "cmd/recipe.h"

#include "core/buf.h"
#include "core/log.h"

#include <string.h>

static const struct recipe *find(const struct recipe *recipes, size_t n, const char *name)
{
    const struct recipe *r = recipes;
    while (strcmp(r->name, name) != 0) {
        r++;
        CHECK(r < recipes + n, "recipe %s", name);
    }
    return r;
}

struct status recipe_apply(const struct command *c, void *args, const struct recipe *recipes, size_t n,
                           const char *name)
{
    struct buf sets = {0}, kept = {0};
    if (name == NULL) {
        return status_ok();
    }
    const struct recipe *r = find(recipes, n, name);
    for (int i = 0; i < RECIPE_MOST_FLAGS && r->flags[i].flag != NULL; i++) {
        const char *flag = r->flags[i].flag, *text = r->flags[i].text;
        const char *list = r->flags[i].unless,
                   *unless = option_first_given(c, args, list == NULL ? "" : list);
        if (unless == NULL && option_give(c, args, flag, text)) {
            bool bare = strcmp(text, "true") == 0;
            buf_printf(&sets, " --%s%s%s", flag, bare ? "" : " ", bare ? "" : text);
        } else {
            buf_printf(&kept, "%s--%s", kept.n == 0 ? "" : ", ", unless != NULL ? unless : flag);
        }
    }
    struct status s =
        sets.failed || kept.failed ? status_error(STATUS_MEMORY, "out of memory for a recipe") : status_ok();
    if (!failed(s)) {
        log_info("recipe %s:%s", r->name, buf_text(&sets));
        log_info("its sources: %s", r->source);
    }
    if (!failed(s) && kept.n > 0) {
        log_info("the command line has its own %s", buf_text(&kept));
    }
    buf_fini(&sets);
    buf_fini(&kept);
    return s;
}
