#include "pass/culprit.h"

#include <stdio.h>
#include <string.h>

/* Index of the first element that is not finite, or -1. */
static int64_t first_nonfinite(struct network *n, tensor in)
{
    int64_t i = -1;
    n->x.ops->find_nonfinite(&n->x, n->index, in);
    exec_copy_out(&n->x, &i, n->index.data, sizeof i);
    return failed(n->x.status) ? -1 : i;
}

/* Searches a tensor, if none is found yet; tensors that a task does not have are null. */
static void look_at(struct culprit *c, tensor in, const char *kind, const char *name)
{
    if (c->index < 0 && !tensor_is_null(in)) {
        c->index = first_nonfinite(c->network, in);
        snprintf(c->name, sizeof c->name, "%s %s", kind, name);
    }
}

void culprit_look_at_params(struct culprit *c, const struct param_table *params, tensor flat,
                            const char *kind)
{
    for (int i = 0; i < params->n && c->index < 0 && !tensor_is_null(flat); i++) {
        look_at(c, param_view(&params->params[i], flat), kind, params->params[i].name);
    }
}

/* The place of an activation in the model. */
struct looking {
    struct culprit *culprit;
    int64_t layer, n_layers;
};

static void look_at_activation(void *context, const char *name, const char *module, enum batch_rows rows,
                               tensor value)
{
    struct looking *l = context;
    char place[80] = "";
    (void)module, (void)rows;
    if (name == NULL) { /* it was searched as a part of the one before */
        return;
    }
    if (l->layer >= 0 && l->layer < l->n_layers) {
        snprintf(place, sizeof place, "layer %lld ", (long long)l->layer);
    }
    look_at(l->culprit, value, "activation", strncat(place, name, sizeof place - strlen(place) - 1));
}

struct culprit_tap {
    struct stage_tap tap; /* first */
    struct culprit *culprit;
};

/* Layers may share the memory of their activations, so each is looked at before the next is computed. */
static void look_at_layer(struct stage_tap *tap, int64_t layer)
{
    struct culprit *c = ((struct culprit_tap *)tap)->culprit;
    const struct stage *s = &c->network->stage;
    struct looking l = {c, layer, s->config->model->n_layers};
    stage_visit(s, layer, look_at_activation, &l);
}

static void look_at_activations(struct culprit *c, bool training)
{
    struct stage *s = &c->network->stage;
    struct culprit_tap looks = {{.activations = look_at_layer, .finds_scales = true}, c};
    struct stage_tap *others = s->tap;
    s->tap = &looks.tap;
    stage_round_changed(s);
    stage_forward(s, training);
    stage_heads(s, training);
    s->tap = others;
}

/* Searches the vectors, which all ranks have in fp32 where no rank has all weights, so that all name the same
 * tensor. */
static void look_at_vectors(struct culprit *c, const struct network *of)
{
    const struct vector_places *v = &of->places;
    for (int i = 0; i < v->table.n && c->index < 0; i++) {
        const struct param *p = &v->table.params[i];
        if (vector_places_has(v, p)) {
            look_at(c, param_view(p, of->vectors), "weight", p->name);
        }
    }
}

struct culprit culprit_find(struct network *n, bool training)
{
    const struct network *of = n->owner == NULL ? n : n->owner;
    const struct param_table *params = &of->params;
    struct culprit c = {.network = n, .index = -1};
    if (network_has_master(n)) {
        culprit_look_at_params(&c, params, n->master, "weight");
    } else {
        look_at_vectors(&c, of);
    }
    if (n->working.dtype != DTYPE_I8) { /* integers are finite, and so are their scales if the weights are */
        culprit_look_at_params(&c, params, n->working, "rounded weight");
    }
    look_at_activations(&c, training);
    return c;
}

struct status culprit_explain(struct network *n, struct status s)
{
    if (s.code != STATUS_NUMERIC || failed(n->x.status)) {
        return s;
    }
    struct culprit c = culprit_find(n, false);
    return failed(n->x.status) ? n->x.status
           : c.index < 0       ? s
                         : status_error(STATUS_NUMERIC, "%s; the first such tensor is the %s (element %lld)",
                                        s.message, c.name, (long long)c.index);
}
