#include "task/optimizer_names.h"

#include "core/log.h"

#include <stddef.h>
#include <strings.h>

static const struct row {
    const char *name, *ours; /* ours NULL: not there yet */
    const char *why;
} rows[] = {
    {"lamb", "lamb", NULL},
    {"adamw", "adamw", NULL},
    {"nvlamb", "lamb", "kiln's LAMB is NVLAMB"},
    {"fused_lamb", "lamb", "kiln's LAMB is fused"},
    {"fused_adam", "adamw", "kiln's AdamW is fused"},
    {"fused_adamw", "adamw", "kiln's AdamW is fused"},
    {"lans", NULL, "nvlamb, lamb and adamw are there"},
    {"nvlamb_exp", NULL, "it bounds LAMB's ratio; nvlamb does not"},
    {"ds_fused_lamb", NULL, "it bounds LAMB's ratio; nvlamb does not"},
    {"adam", NULL, "it adds the decay to the gradient; adamw, which does not, is there"},
    {"onebitadam", NULL, "it compresses gradients between ranks"},
    {"zerooneadam", NULL, "it compresses gradients between ranks"},
    {"onebitlamb", NULL, "it compresses gradients between ranks"},
};

struct status optimizer_names_find(const char **name, const char *given, const char *where)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        if (strcasecmp(r->name, given) != 0) {
            continue;
        }
        if (r->ours == NULL) {
            return status_error(STATUS_UNAVAILABLE, "%s %s is not there yet: %s", where, given, r->why);
        }
        if (r->why != NULL) {
            log_info("%s %s is %s here: %s", where, given, r->ours, r->why);
        }
        *name = r->ours;
        return status_ok();
    }
    return status_error(STATUS_USAGE, "%s %s is no optimizer; there are lamb and adamw", where, given);
}
