#include "task/optimizer_names.h"

#include "core/log.h"
#include "optim/optimizer.h"

#include <ctype.h>
#include <string.h>

/* Names that optim/optimizer.h does not have. */
static const struct row {
    const char *name, *ours; /* ours NULL: not there yet */
    const char *why;
} rows[] = {
    {"nvlamb", "lamb", "kiln's LAMB is NVLAMB"},
    {"fused_lamb", "lamb", "kiln's LAMB is fused"},
    {"fused_adam", "adamw", "kiln's AdamW is fused"},
    {"fused_adamw", "adamw", "kiln's AdamW is fused"},
    {"onebitadam", NULL, "it compresses gradients between ranks"},
    {"zerooneadam", NULL, "it compresses gradients between ranks"},
    {"onebitlamb", NULL, "it compresses gradients between ranks"},
};

struct status optimizer_names_find(const char **name, const char *given, const char *where)
{
    char lower[32] = "";
    for (size_t i = 0; given[i] != '\0' && i + 1 < sizeof lower; i++) {
        lower[i] = (char)tolower((unsigned char)given[i]);
    }
    const struct optimizer_kind *kind = optimizer_find(lower);
    if (kind != NULL) {
        *name = kind->name;
        return status_ok();
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        if (strcmp(r->name, lower) != 0) {
            continue;
        }
        FAIL_IF(r->ours == NULL, STATUS_UNAVAILABLE, "%s %s is not supported yet: %s", where, given, r->why);
        log_info("%s %s is %s here: %s", where, given, r->ours, r->why);
        *name = r->ours;
        return status_ok();
    }
    return status_error(STATUS_USAGE, "%s %s is not an optimizer; kiln has " OPTIMIZER_NAMES, where, given);
}
