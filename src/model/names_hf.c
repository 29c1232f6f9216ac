#include "model/names_hf.h"

#include <stdio.h>
#include <string.h>

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static const char *without_wrappers(const char *name)
{
    static const char *const wrappers[] = {"module.", "_orig_mod."};
    for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0];) {
        bool wrapped = begins_with(name, wrappers[i]);
        name += wrapped ? strlen(wrappers[i]) : 0;
        i = wrapped ? 0 : i + 1;
    }
    return name;
}

/* Names are separated by "." in PyTorch and by "/" in TensorFlow. */
static bool is_bare(const struct model_family *f, const char *name)
{
    for (const char *const *b = f->bare; b != NULL && *b != NULL; b++) {
        size_t n = strlen(*b) - 1; /* a "." ends it */
        if (strncmp(name, *b, n) == 0 && (name[n] == '.' || name[n] == '/')) {
            return true;
        }
    }
    return false;
}

/* The text in the name that is to be replaced; NULL: there is none. */
static char *place_of(char *name, const struct model_family_rename *r)
{
    size_t n = strlen(name), n_old = strlen(r->old);
    if (!r->at_end) {
        return strstr(name, r->old);
    }
    return n >= n_old && strcmp(name + n - n_old, r->old) == 0 ? name + n - n_old : NULL;
}

/* True if the name was changed.  One that would become too long is left as it is. */
static bool rename_one(char name[PARAM_NAME_BYTES], const struct model_family_rename *r)
{
    char *at = place_of(name, r);
    size_t n_old = strlen(r->old), n_new = strlen(r->new);
    if (at == NULL || strlen(name) - n_old + n_new >= PARAM_NAME_BYTES) {
        return false;
    }
    const char *rest = at + n_old;
    memmove(at + n_new, rest, strlen(rest) + 1);
    memcpy(at, r->new, n_new);
    return true;
}

static void add_order(struct names_order *to, const struct model_family_rename *r)
{
    to->transposed |= r->transposes;
    to->pairs_halves |= r->pairs_halves;
}

struct names_order names_hf_rename(char name[PARAM_NAME_BYTES], const struct model_family_rename *renames)
{
    struct names_order order = {false, false};
    for (; renames != NULL && renames->old != NULL; renames++) {
        if (rename_one(name, renames)) {
            add_order(&order, renames);
        }
    }
    return order;
}

struct names_order names_hf_rename_back(char name[PARAM_NAME_BYTES],
                                        const struct model_family_rename *renames)
{
    struct names_order order = {false, false};
    for (; renames != NULL && renames->old != NULL; renames++) {
        struct model_family_rename back = {
            .old = renames->new, .new = renames->old, .at_end = renames->at_end};
        if (rename_one(name, &back)) {
            add_order(&order, renames);
        }
    }
    return order;
}

static bool take_tied(const struct model_family *f, char *name)
{
    for (size_t i = 0; f->tied != NULL && f->tied[i][0] != NULL; i++) {
        if (strcmp(name, f->tied[i][0]) == 0) {
            memcpy(name, f->tied[i][1], strlen(f->tied[i][1]) + 1);
            return true;
        }
    }
    return false;
}

static bool is_state(const struct model_family *f, const char *name)
{
    const char *dot = strrchr(name, '.');
    for (const char *const *s = f->states; s != NULL && *s != NULL; s++) {
        if (begins_with(dot == NULL ? name : dot + 1, *s)) {
            return true;
        }
    }
    return false;
}

enum names_part names_hf_part(const struct model_family *f, const char *name)
{
    for (const char *const *b = f->buffers; b != NULL && *b != NULL; b++) {
        if (strcmp(name, *b) == 0) {
            return NAMES_BUFFER;
        }
    }
    if (is_state(f, name)) {
        return NAMES_STATE;
    }
    for (int p = 0; p < NAMES_N_PARTS; p++) {
        if (f->parts[p] != NULL && begins_with(name, f->parts[p])) {
            return (enum names_part)p;
        }
    }
    return NAMES_OTHER;
}

struct names_hf names_hf_canonical(const struct model_family *f, const char *name)
{
    struct names_hf r = {.part = NAMES_OTHER};
    name = without_wrappers(name);
    int n = snprintf(r.name, sizeof r.name, "%s%s", is_bare(f, name) ? f->root : "", name);
    if (n < 0 || n >= (int)sizeof r.name) {
        return r;
    }
    for (char *slash = r.name; (slash = strchr(slash, '/')) != NULL;) {
        *slash = '.';
    }
    r.order = names_hf_rename(r.name, f->renames);
    struct names_order of_form = names_hf_rename(r.name, f->forms);
    r.order.transposed |= of_form.transposed;
    r.order.pairs_halves |= of_form.pairs_halves;
    r.tied = take_tied(f, r.name);
    r.part = names_hf_part(f, r.name);
    return r;
}
