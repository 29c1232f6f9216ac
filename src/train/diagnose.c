#include "train/diagnose.h"

#include <stdio.h>

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
    char name[PARAM_NAME_BYTES + 32];
    int64_t index; /* -1: none found yet */
};

static void look_at(struct trainer *t, struct culprit *c, tensor in, const char *kind, const char *name)
{
    if (c->index < 0) {
        c->index = first_nonfinite(t, in);
        snprintf(c->name, sizeof c->name, "%s %s", kind, name);
    }
}

static void look_at_params(struct trainer *t, struct culprit *c, tensor flat, const char *kind)
{
    for (int i = 0; i < t->params.n && c->index < 0; i++) {
        look_at(t, c, param_view(&t->params.params[i], flat), kind, t->params.params[i].name);
    }
}

static void look_at_layer(struct trainer *t, struct culprit *c, int64_t layer)
{
    const struct bert_layer_acts *a = &t->stage.slot.layers[layer];
    const struct {
        const char *name;
        tensor t;
    } acts[] = {{"query, key, value", a->qkv},
                {"attention", a->heads},
                {"attention output", a->h},
                {"intermediate", a->ff_act},
                {"output before LayerNorm", a->sum_2},
                {"output", a->out}};
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++) {
        char name[80];
        snprintf(name, sizeof name, "layer %lld %s", (long long)layer, acts[i].name);
        look_at(t, c, acts[i].t, "activation", name);
    }
}

struct status diagnose_nonfinite(struct trainer *t, int64_t step, const struct trainer_result *r)
{
    struct culprit c = {.index = -1};
    look_at_params(t, &c, t->master, "weight");
    look_at(t, &c, t->stage.slot.embed.out, "activation", "embeddings");
    for (int64_t i = 0; i < t->config.model.num_hidden_layers; i++) {
        look_at_layer(t, &c, i);
    }
    look_at(t, &c, t->stage.slot.heads.logits, "activation", "MLM logits");
    look_at(t, &c, t->stage.slot.heads.nsp_logits, "activation", "NSP logits");
    look_at_params(t, &c, t->grad, "gradient of");
    return status_error(
        STATUS_NUMERIC,
        "step %lld: MLM loss %g, NSP loss %g, gradient norm %g; the first tensor that is not finite is "
        "the %s (element %lld); the last checkpoint is intact: lower the learning rate or lengthen the "
        "warm-up",
        (long long)step, r->mlm_loss, r->nsp_loss, r->grad_norm, c.index < 0 ? "loss alone" : c.name,
        (long long)c.index);
}
