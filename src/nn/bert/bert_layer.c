#include "nn/bert/bert_layer.h"

#define WEIGHTS struct bert_layer_weights

/* The feed-forward input keeps the uniform initialisation of the replaced scripts (docs/quirks.md,
 * "LinearActivation"). */
const struct weight_row bert_layer_rows[] = {
    WEIGHT_MATRIX(attention.w_qkv, HIDDEN, HIDDEN, NORMAL, BY_HEAD, "attention.self.query.weight",
                  "attention.self.key.weight", "attention.self.value.weight"),
    WEIGHT_BIAS(attention.b_qkv, HIDDEN, ZERO, BY_HEAD, "attention.self.query.bias",
                "attention.self.key.bias", "attention.self.value.bias"),
    WEIGHT_MATRIX(attention.w_o, HIDDEN, HIDDEN, NORMAL, BY_COL, "attention.output.dense.weight"),
    WEIGHT_VECTOR(attention.b_o, HIDDEN, ZERO, WHOLE, "attention.output.dense.bias"),
    WEIGHT_VECTOR(norm_1.gamma, HIDDEN, ONE, WHOLE, "attention.output.LayerNorm.weight"),
    WEIGHT_VECTOR(norm_1.beta, HIDDEN, ZERO, WHOLE, "attention.output.LayerNorm.bias"),
    WEIGHT_MATRIX(ff.w_1, FEED_FORWARD, HIDDEN, UNIFORM, BY_ROW, "intermediate.dense.weight"),
    WEIGHT_BIAS(ff.b_1, FEED_FORWARD, UNIFORM, BY_ROW, "intermediate.dense.bias"),
    WEIGHT_MATRIX(ff.w_2, HIDDEN, FEED_FORWARD, NORMAL, BY_COL, "output.dense.weight"),
    WEIGHT_VECTOR(ff.b_2, HIDDEN, ZERO, WHOLE, "output.dense.bias"),
    WEIGHT_VECTOR(norm_2.gamma, HIDDEN, ONE, WHOLE, "output.LayerNorm.weight"),
    WEIGHT_VECTOR(norm_2.beta, HIDDEN, ZERO, WHOLE, "output.LayerNorm.bias"),
};
_Static_assert(sizeof bert_layer_rows / sizeof bert_layer_rows[0] == BERT_LAYER_N_ROWS,
               "a row for every field");

void bert_layer_carve(struct bert_layer_acts *a, struct arena *arena, const struct layer_form *form,
                      struct layer_memory m)
{
    a->norm_1 = a->norm_2 = (struct norm_acts){0};
    self_attention_carve(&a->attention, arena, form, m);
    a->h = fp8_source_carve(arena, m.fp8, m.dtype, m.n_tokens, form->hidden);
    feed_forward_carve(&a->ff, arena, form, m);
    bert_layer_carve_output(a, arena, form, m);
}

void bert_layer_carve_norms(struct bert_layer_acts *a, struct arena *arena, const struct layer_form *form,
                            struct layer_memory memory)
{
    norm_carve(&a->norm_1, arena, form, memory);
    norm_carve(&a->norm_2, arena, form, memory);
}

void bert_layer_carve_output(struct bert_layer_acts *a, struct arena *arena, const struct layer_form *form,
                             struct layer_memory m)
{
    a->out = fp8_source_carve(arena, m.fp8, m.dtype, m.n_tokens, form->hidden);
}

void bert_layer_share_acts(struct bert_layer_acts *a, const struct bert_layer_acts *of)
{
    struct bert_layer_acts own = *a;
    *a = *of;
    a->attention = own.attention;
    a->ff = own.ff;
    self_attention_share(&a->attention, &of->attention);
    feed_forward_share(&a->ff, &of->ff);
}

struct bert_layer_acts bert_layer_picked(const struct bert_layer_acts *a, const struct row_picks *picks)
{
    struct bert_layer_acts rows = *a;
    if (picks != NULL) {
        rows.norm_1 = norm_picked(&a->norm_1, picks);
        rows.h = row_picks_view(picks, a->h);
        rows.ff = feed_forward_picked(&a->ff, picks);
        rows.norm_2 = norm_picked(&a->norm_2, picks);
        rows.out = row_picks_view(picks, a->out);
    }
    return rows;
}

tensor bert_layer_output(const struct bert_layer_acts *a, const struct layer_call *call)
{
    return call->next == NULL ? a->out : fp8_rounded_by_maker(a->out, call->next);
}

struct bert_sublayers bert_layer_sublayers(const struct bert_layer_weights *w,
                                           const struct bert_layer_weights *g,
                                           const struct bert_layer_acts *a)
{
    struct bert_sublayers s = {.attention = {.w = &w->attention, .acts = &a->attention},
                               .ff = {.w = &w->ff, .acts = &a->ff},
                               .norm_1 = {&w->norm_1, NULL, &a->norm_1, LAYER_ATTENTION_OUT},
                               .norm_2 = {&w->norm_2, NULL, &a->norm_2, LAYER_FEED_FORWARD_OUT}};
    if (g != NULL) {
        s.attention.g = &g->attention;
        s.ff.g = &g->ff;
        s.norm_1.g = &g->norm_1;
        s.norm_2.g = &g->norm_2;
    }
    return s;
}
