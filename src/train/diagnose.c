#include "train/diagnose.h"

#include <stdio.h>
#include <string.h>

/* Index of the first element that is not finite, or -1. */
static int64_t first_nonfinite(struct trainer *t, tensor in)
{
    tensor index = t->norm; /* free to use: the norm was read already */
    index.dtype = DTYPE_I64;
    int64_t i = -1;
    t->x.ops->find_nonfinite(&t->x, index, in);
    exec_copy_out(&t->x, &i, index.data, sizeof i);
    return failed(t->x.status) ? -1 : i;
}

struct culprit {
    struct trainer *trainer;
    char name[PARAM_NAME_BYTES + 32];
    int64_t index; /* -1: none found yet */
};

/* What a task lacks is a null tensor. */
static void look_at(struct culprit *c, tensor in, const char *kind, const char *name)
{
    if (c->index < 0 && !tensor_is_null(in)) {
        c->index = first_nonfinite(c->trainer, in);
        snprintf(c->name, sizeof c->name, "%s %s", kind, name);
    }
}

static void look_at_params(struct culprit *c, const struct param_table *params, tensor flat, const char *kind)
{
    for (int i = 0; i < params->n && c->index < 0 && !tensor_is_null(flat); i++) {
        look_at(c, param_view(&params->params[i], flat), kind, params->params[i].name);
    }
}

/* Where in the model an activation is. */
struct looking {
    struct culprit *culprit;
    int64_t layer, n_layers;
};

static void look_at_activation(void *context, const char *name, tensor value)
{
    struct looking *l = context;
    char place[80] = "";
    if (l->layer >= 0 && l->layer < l->n_layers) {
        snprintf(place, sizeof place, "layer %lld ", (long long)l->layer);
    }
    look_at(l->culprit, value, "activation", strncat(place, name, sizeof place - strlen(place) - 1));
}

/* Layers may share the memory of their activations, so each is looked at before the next is computed. */
static void look_at_layer(void *context, int64_t layer)
{
    struct culprit *c = context;
    const struct stage *s = &c->trainer->stage;
    struct looking l = {c, layer, s->model->n_layers};
    s->model->type->visit(s->model, s->slot->acts, layer, look_at_activation, &l);
}

static void look_at_activations(struct culprit *c, bool training)
{
    struct stage *s = &c->trainer->stage;
    s->layer_done = look_at_layer;
    s->layer_done_context = c;
    stage_round_changed(s);
    stage_forward(s, training);
    s->layer_done = NULL;
}

static struct culprit find(struct trainer *t)
{
    const struct param_table *params = t->owner == NULL ? &t->params : &t->owner->params;
    struct culprit c = {.trainer = t, .index = -1};
    look_at_params(&c, params, t->master, "weight");
    look_at_params(&c, params, t->working, "rounded weight");
    look_at_activations(&c, t->config.training);
    return c;
}

struct status diagnose_nonfinite(struct trainer *t, int64_t step, const struct trainer_result *r)
{
    struct culprit c = find(t);
    char losses[200] = "";
    size_t used = 0;
    look_at_params(&c, &t->params, t->grad, "gradient of");
    for (int i = 0; i < r->n_sums && used < sizeof losses; i++) {
        if (r->sums[i].of->is_loss) {
            used += (size_t)snprintf(losses + used, sizeof losses - used, "%s %g, ", r->sums[i].of->text,
                                     trainer_sum_mean(&r->sums[i]));
        }
    }
    return status_error(
        STATUS_NUMERIC,
        "step %lld: %sgradient norm %g; the first tensor that is not "
        "finite is the %s (element %lld); the last checkpoint is intact: lower the learning rate or lengthen "
        "the warm-up",
        (long long)step, losses, r->grad_norm, c.index < 0 ? "loss alone" : c.name, (long long)c.index);
}

struct status diagnose_result(struct trainer *t, tensor result, const char *what)
{
    if (tensor_find_nonfinite(result) < 0) {
        return status_ok();
    }
    struct culprit c = find(t);
    TRY(t->x.status);
    return status_error(
        STATUS_NUMERIC,
        "%s are not finite; the first tensor that is not is the %s (element %lld): the model is "
        "damaged, or too large for %s",
        what, c.index < 0 ? "result alone" : c.name, (long long)c.index, precision_name(t->config.precision));
}
