#include "model/script_params.h"

#include "model/foreign_moments.h"

#include <stdlib.h>
#include <string.h>

int64_t script_params_rows(const struct model_dir_contents *c)
{
    int64_t rows = c->family->sizes(c->config).vocab_size, multiple = c->family->script->word_multiple;
    return (rows + multiple - 1) / multiple * multiple;
}

/* Whether the model has the head that a copy belongs to. */
static bool has_part_of(const struct model_dir_contents *c, const char *name)
{
    for (int i = 0; i < c->params->n; i++) {
        if (names_hf_part(c->family, c->params->params[i].name) == names_hf_part(c->family, name)) {
            return true;
        }
    }
    return false;
}

static void append(struct script_params *s, const char *name, const struct param *p, bool copy)
{
    struct script_param *added = &s->list[s->n++];
    *added = (struct script_param){.param = p, .copy = copy};
    snprintf(added->name, sizeof added->name, "%s", name);
    names_hf_rename(added->name, s->c->family->script->renames);
    added->decayed = foreign_moments_is_decayed(added->name);
}

/* The first parameter of the table whose name begins like this. */
static int first_like(const struct param_table *t, const char *name, size_t n)
{
    int i = 0;
    while (strncmp(t->params[i].name, name, n) != 0) {
        i++;
    }
    return i;
}

/* A parameter to be sorted. */
struct place {
    const struct param_table *table;
    const struct param *param;
};

/* Below the module that both are in, a parameter of its own comes first, then its modules as they come first
 * in the table. */
static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    const char *p = x->param->name, *q = y->param->name;
    size_t same = 0, module = 0;
    for (; p[same] == q[same] && p[same] != '\0'; same++) {
        module = p[same] == '.' ? same + 1 : module;
    }
    const char *p_dot = strchr(p + module, '.'), *q_dot = strchr(q + module, '.');
    if (p_dot == NULL || q_dot == NULL) {
        return p_dot == NULL && q_dot == NULL ? (x->param > y->param) - (x->param < y->param)
                                              : (p_dot != NULL) - (q_dot != NULL);
    }
    return first_like(x->table, p, (size_t)(p_dot - p) + 1) -
           first_like(x->table, q, (size_t)(q_dot - q) + 1);
}

static void fill(struct script_params *s, struct place *places, bool by_module)
{
    const struct model_dir_contents *c = s->c;
    for (int i = 0; i < c->params->n; i++) {
        places[i] = (struct place){c->params, &c->params->params[i]};
    }
    if (by_module) {
        qsort(places, (size_t)c->params->n, sizeof *places, compare_places);
    }
    for (int i = 0; i < c->params->n; i++) {
        append(s, places[i].param->name, places[i].param, false);
    }
    for (const char *const(*copy)[2] = c->family->script->copies; (*copy)[0] != NULL; copy++) {
        if (has_part_of(c, (*copy)[0])) {
            append(s, (*copy)[0], param_table_find(c->params, (*copy)[1]), true);
        }
    }
}

struct status script_params_init(struct script_params *s, const struct model_dir_contents *c, bool by_module)
{
    *s = (struct script_params){.c = c};
    FAIL_IF(c->family->script == NULL || c->family->old_config == NULL, STATUS_UNAVAILABLE,
            "kiln does not write models of the kind %s for PyTorch's scripts", c->family->name);
    size_t most = (size_t)c->params->n;
    for (const char *const(*copy)[2] = c->family->script->copies; (*copy)[0] != NULL; copy++) {
        most++;
    }
    s->list = calloc(most, sizeof *s->list);
    struct place *places = calloc((size_t)c->params->n, sizeof *places);
    if (s->list != NULL && places != NULL) {
        fill(s, places, by_module);
    }
    bool complete = s->n > 0;
    free(places);
    return complete ? status_ok() : status_error(STATUS_MEMORY, "out of memory for the list of tensors");
}

void script_params_fini(struct script_params *s)
{
    free(s->list);
    *s = (struct script_params){0};
}

tensor script_params_view(const struct script_params *s, int i, tensor flat)
{
    struct param rounded = *s->list[i].param;
    if (rounded.split == PARAM_BY_WORD) {
        rounded.dims[0] = script_params_rows(s->c);
    }
    return param_view(&rounded, flat);
}
