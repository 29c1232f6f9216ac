#include "nn/block.h"

void block_post_carve(struct block_acts *a, struct arena *arena, const struct layer_form *form,
                      struct layer_memory m)
{
    a->norm_1 = a->norm_2 = (struct norm_acts){0};
    self_attention_carve(&a->attention, arena, form, m);
    a->h_2 = fp8_source_carve(arena, m.fp8, m.dtype, m.n_tokens, form->hidden);
    feed_forward_carve(&a->ff, arena, form, m);
    block_post_carve_output(a, arena, form, m);
}

void block_post_carve_output(struct block_acts *a, struct arena *arena, const struct layer_form *form,
                             struct layer_memory m)
{
    a->out = fp8_source_carve(arena, m.fp8, m.dtype, m.n_tokens, form->hidden);
}

void block_carve_output(struct block_acts *a, struct arena *arena, const struct layer_form *form,
                        struct layer_memory m)
{
    a->out = arena_carve_2d(arena, m.stream, layer_own_rows(m), form->hidden);
}

void block_share(struct block_acts *a, const struct block_acts *of)
{
    struct block_acts own = *a;
    *a = *of;
    a->attention = own.attention;
    a->ff = own.ff;
    self_attention_share(&a->attention, &of->attention);
    feed_forward_share(&a->ff, &of->ff);
}

struct block_acts block_picked(const struct block_acts *a, const struct row_picks *picks)
{
    struct block_acts rows = *a;
    if (picks != NULL) {
        rows.norm_1 = norm_picked(&a->norm_1, picks);
        rows.h_2 = row_picks_view(picks, a->h_2);
        rows.ff = feed_forward_picked(&a->ff, picks);
        rows.norm_2 = norm_picked(&a->norm_2, picks);
        rows.out = row_picks_view(picks, a->out);
    }
    return rows;
}

tensor block_output(const struct block_acts *a, const struct layer_call *call)
{
    return call->next == NULL ? a->out : fp8_rounded_by_maker(a->out, call->next);
}

struct block_sublayers block_sublayers(const struct block *b, const struct block_acts *a)
{
    struct block_sublayers s = {.attention = {.w = &b->w->attention, .acts = &a->attention},
                                .ff = {.w = &b->w->ff, .acts = &a->ff},
                                .norm_1 = {&b->w->norm_1, NULL, &a->norm_1, LAYER_ATTENTION_OUT},
                                .norm_2 = {&b->w->norm_2, NULL, &a->norm_2, LAYER_FEED_FORWARD_OUT}};
    if (b->g != NULL) {
        s.attention.g = &b->g->attention;
        s.ff.g = &b->g->ff;
        s.norm_1.g = &b->g->norm_1;
        s.norm_2.g = &b->g->norm_2;
    }
    return s;
}
