#include "io/torch_optimizer.h"

#include <math.h>
#include <stdlib.h>

size_t torch_optimizer_length(const struct pickle_node *list)
{
    return list != NULL && (list->kind == PICKLE_LIST || list->kind == PICKLE_TUPLE) ? list->list.n : 0;
}

static bool whole(int64_t *number, double real)
{
    bool fits = real >= 0 && real < 0x1p62 && floor(real) >= real;
    *number = fits ? (int64_t)real : -1;
    return fits;
}

static bool tensor_number(int64_t *number, const struct stored_tensor *t)
{
    double real = 0;
    tensor one = {.data = &real, .dtype = DTYPE_F64, .n_dims = 1, .dims = {1}, .strides = {1}};
    if (t->n_dims > 1 || (t->n_dims == 1 && t->dims[0] != 1) || t->unreadable != NULL) {
        return false;
    }
    if (stored_tensor_converts(t->dtype, DTYPE_F64)) {
        return !failed(stored_tensor_read(t, one)) && whole(number, real);
    }
    int32_t narrow = -1;
    one = tensor_1d(t->dtype == DTYPE_I64 ? (void *)number : (void *)&narrow, t->dtype, 1);
    if ((t->dtype != DTYPE_I64 && t->dtype != DTYPE_I32) || failed(stored_tensor_read(t, one))) {
        return false;
    }
    *number = t->dtype == DTYPE_I64 ? *number : narrow;
    return *number >= 0;
}

bool torch_optimizer_number(int64_t *number, const struct pickle_node *node)
{
    *number = -1;
    switch (node == NULL ? PICKLE_NONE : node->kind) {
    case PICKLE_INT: *number = node->integer; return node->integer >= 0;
    case PICKLE_FLOAT: return whole(number, node->real);
    case PICKLE_TENSOR: return tensor_number(number, node->tensor);
    default: return false;
    }
}

static struct status take_steps(struct torch_optimizer *o, const struct pickle_node *number,
                                const char *source)
{
    int64_t n;
    if (number == NULL || number->kind == PICKLE_NONE) {
        return status_ok();
    }
    FAIL_IF(!torch_optimizer_number(&n, number), STATUS_DATA,
            "%s: the \"step\" of its optimizer is not a number of steps", source);
    FAIL_IF(o->n_steps >= 0 && o->n_steps != n, STATUS_DATA,
            "%s: its optimizer counted %lld steps of one parameter and %lld of another, so "
            "its moments do not belong together",
            source, (long long)o->n_steps, (long long)n);
    o->n_steps = n;
    return status_ok();
}

static struct status take(struct torch_optimizer *o, const struct pickle_node *state, int group,
                          const char *source)
{
    const struct pickle_node *m = pickle_find(state, "exp_avg"), *v = pickle_find(state, "exp_avg_sq");
    bool has = m != NULL && m->kind == PICKLE_TENSOR && v != NULL && v->kind == PICKLE_TENSOR;
    struct torch_optimizer_item *item = &o->items[o->n++];
    *item = (struct torch_optimizer_item){group, has ? m->tensor : NULL, has ? v->tensor : NULL};
    FAIL_IF(o->n > 1 && has != o->has_moments, STATUS_DATA,
            "%s: its optimizer has the moments \"exp_avg\" and \"exp_avg_sq\" of some parameters only",
            source);
    o->has_moments = has;
    return status_ok();
}

/* The items of a group.  apex counts steps in the group, and what its scripts then leave in the state is
 * stale. */
static struct status take_group(struct torch_optimizer *o, const struct pickle_node *state,
                                const struct pickle_node *group, int g, const char *source)
{
    const struct pickle_node *params = pickle_find(group, "params"), *steps = pickle_find(group, "step");
    TRY(take_steps(o, steps, source));
    for (size_t i = 0; i < torch_optimizer_length(params); i++) {
        int64_t number;
        FAIL_IF(!torch_optimizer_number(&number, params->list.items[i]), STATUS_DATA,
                "%s: \"params\" of its optimizer's group %d must be a list of numbers", source, g);
        const struct pickle_node *kept = pickle_find_integer(state, number);
        TRY(take(o, kept, g, source));
        if (steps == NULL || steps->kind == PICKLE_NONE) {
            TRY(take_steps(o, pickle_find(kept, "step"), source));
        }
    }
    return status_ok();
}

/* Groups may be one node many times, so their sum is checked before anything is allocated. */
static struct status count(size_t *n, const struct pickle_node *state, const struct pickle_node *groups,
                           const char *source)
{
    size_t n_groups = torch_optimizer_length(groups);
    *n = 0;
    FAIL_IF(state == NULL || state->kind != PICKLE_DICT || n_groups == 0 ||
                n_groups > TORCH_OPTIMIZER_MOST_GROUPS,
            STATUS_DATA, "%s: its optimizer has no \"state\" and \"param_groups\" as PyTorch saves them",
            source);
    for (size_t g = 0; g < n_groups; g++) {
        *n += torch_optimizer_length(pickle_find(groups->list.items[g], "params"));
    }
    return *n == 0 || *n > TORCH_OPTIMIZER_MOST_ITEMS || state->list.n / 2 > *n
               ? status_error(STATUS_DATA, "%s: its optimizer has %zu parameters and the state of %zu",
                              source, *n, state->list.n / 2)
               : status_ok();
}

static struct status make_room(struct torch_optimizer *o, size_t n, size_t n_groups, const char *source)
{
    o->n_groups = (int)n_groups;
    o->items = calloc(n, sizeof *o->items);
    return o->items == NULL ? status_error(STATUS_MEMORY, "out of memory for the optimizer of %s", source)
                            : status_ok();
}

/* DeepSpeed's elastic checkpoints: of each group, which is one flat parameter, its state alone. */
static struct status take_list(struct torch_optimizer *o, const struct pickle_node *list, const char *source)
{
    size_t n = torch_optimizer_length(list);
    FAIL_IF(n > TORCH_OPTIMIZER_MOST_GROUPS, STATUS_DATA, "%s: its optimizer has %zu groups", source, n);
    TRY(make_room(o, n, n, source));
    for (int g = 0; g < o->n_groups; g++) {
        TRY(take(o, list->list.items[g], g, source));
        TRY(take_steps(o, pickle_find(list->list.items[g], "step"), source));
    }
    return status_ok();
}

static struct status take_all(struct torch_optimizer *o, const struct pickle_node *root, const char *source)
{
    if (torch_optimizer_length(root) > 0) {
        return take_list(o, root, source);
    }
    const struct pickle_node *state = pickle_find(root, "state"), *groups = pickle_find(root, "param_groups");
    size_t n;
    TRY(count(&n, state, groups, source));
    TRY(make_room(o, n, groups->list.n, source));
    for (int g = 0; g < o->n_groups; g++) {
        TRY(take_group(o, state, groups->list.items[g], g, source));
    }
    return status_ok();
}

struct status torch_optimizer_open(struct torch_optimizer *o, const struct pickle_node *root,
                                   const char *source)
{
    *o = (struct torch_optimizer){.n_steps = -1};
    struct status s = take_all(o, root, source);
    if (failed(s)) {
        torch_optimizer_close(o);
    }
    return s;
}

void torch_optimizer_close(struct torch_optimizer *o)
{
    free(o->items);
    *o = (struct torch_optimizer){.n_steps = -1};
}
