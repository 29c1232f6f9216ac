#include "nn/bert_embed.h"

#include "nn/bert_batch_layout.h"

#define FIELD(name) offsetof(struct bert_embed_weights, name)

const struct weight_row bert_embed_rows[] = {
    {FIELD(word), DIM_VOCAB, DIM_HIDDEN, PARAM_INIT_NORMAL, true, PARAM_BY_WORD, {"word_embeddings.weight"}},
    {FIELD(position),
     DIM_POSITIONS,
     DIM_HIDDEN,
     PARAM_INIT_NORMAL,
     true,
     PARAM_WHOLE,
     {"position_embeddings.weight"}},
    {FIELD(type),
     DIM_TYPES,
     DIM_HIDDEN,
     PARAM_INIT_NORMAL,
     true,
     PARAM_WHOLE,
     {"token_type_embeddings.weight"}},
    {FIELD(gamma), DIM_HIDDEN, DIM_ONE, PARAM_INIT_ONE, false, PARAM_WHOLE, {"LayerNorm.weight"}},
    {FIELD(beta), DIM_HIDDEN, DIM_ONE, PARAM_INIT_ZERO, false, PARAM_WHOLE, {"LayerNorm.bias"}},
};
_Static_assert(sizeof bert_embed_rows / sizeof bert_embed_rows[0] == BERT_EMBED_N_ROWS,
               "a row for every field");

/* Far above the sites of any layer. */
static const uint32_t SITE_EMBEDDINGS = 0xFFFF0000U;

static struct dropout embedding_dropout(const struct bert_layer_call *call)
{
    return (struct dropout){.p = call->training ? call->config->hidden_dropout_prob : 0.0,
                            .site = SITE_EMBEDDINGS};
}

void bert_embed_carve_acts(struct bert_embed_acts *a, struct arena *arena, const struct bert_config *c,
                           enum dtype dtype, enum fp8_factors fp8, int64_t n_tokens, bool kept)
{
    *a = (struct bert_embed_acts){0};
    a->out = fp8_source_carve(arena, fp8, dtype, n_tokens, c->hidden_size);
    if (kept) {
        a->sum = arena_carve_2d(arena, dtype, n_tokens, c->hidden_size);
        a->mean = arena_carve_1d(arena, dtype_of_vectors(dtype), n_tokens);
        a->rstd = arena_carve_1d(arena, dtype_of_vectors(dtype), n_tokens);
    }
}

void bert_embed_forward(struct exec *x, const struct bert_embed_acts *a, const struct bert_embed_weights *w,
                        const struct bert_layer_call *call)
{
    const struct stream *b = call->stream;
    exec_enter(x, "embeddings", -1);
    x->ops->embed(x, a->out, a->sum, a->mean, a->rstd, b->ids, b->fields[BERT_TYPES], b->positions, w->word,
                  w->position, w->type, w->gamma, w->beta, call->config->layer_norm_eps, b->row_keys,
                  embedding_dropout(call));
}

void bert_embed_backward(struct exec *x, tensor dx, const struct bert_embed_weights *g,
                         const struct bert_embed_acts *a, const struct bert_embed_weights *w,
                         const struct bert_layer_call *call)
{
    const struct stream *b = call->stream;
    exec_enter(x, "embeddings", -1);
    x->ops->embed_backward(x, dx, g->word, g->position, g->type, g->gamma, g->beta, dx, a->sum, a->mean,
                           a->rstd, b->ids, b->fields[BERT_TYPES], b->positions, w->gamma, b->row_keys,
                           embedding_dropout(call));
}
