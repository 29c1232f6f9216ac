/* The equation: out = dropout(LN(E[id] + P[position] + S[segment])). The MLM head reads E too, so the
 * gradient of E is a sum of two parts: the heads' part comes first in a backward, this one last. */
#include "nn/bert/bert_embed.h"

#include "nn/text_batch_layout.h"

#define WEIGHTS struct bert_embed_weights

const struct weight_row bert_embed_rows[] = {
    WEIGHT_MATRIX(word, VOCAB, HIDDEN, NORMAL, BY_WORD, "word_embeddings.weight"),
    WEIGHT_MATRIX(position, POSITIONS, HIDDEN, NORMAL, WHOLE, "position_embeddings.weight"),
    WEIGHT_MATRIX(type, TYPES, HIDDEN, NORMAL, WHOLE, "token_type_embeddings.weight"),
    WEIGHT_VECTOR(gamma, HIDDEN, ONE, WHOLE, "LayerNorm.weight"),
    WEIGHT_VECTOR(beta, HIDDEN, ZERO, WHOLE, "LayerNorm.bias"),
};
_Static_assert(sizeof bert_embed_rows / sizeof bert_embed_rows[0] == BERT_EMBED_N_ROWS,
               "a row for every field");

/* Far above the sites of any layer. */
static const uint32_t SITE_EMBEDDINGS = 0xFFFF0000U;

static struct dropout embedding_dropout(const struct layer_call *call)
{
    return (struct dropout){.p = call->training ? call->form->dropout : 0.0, .site = SITE_EMBEDDINGS};
}

void bert_embed_carve_acts(struct bert_embed_acts *a, struct arena *arena, const struct layer_form *form,
                           struct layer_memory m)
{
    *a = (struct bert_embed_acts){0};
    a->out = fp8_source_carve(arena, m.fp8, m.dtype, m.n_tokens, form->hidden);
    if (m.kept) {
        norm_carve(&a->norm, arena, form, m);
    }
}

void bert_embed_forward(struct exec *x, const struct bert_embed_acts *a, const struct bert_embed_weights *w,
                        const struct layer_call *call)
{
    const struct stream *b = call->stream;
    exec_enter(x, "embeddings", -1);
    x->ops->embed(x, a->out, a->norm.sum, a->norm.mean, a->norm.rstd, b->ids, b->fields[TEXT_TYPES],
                  b->positions, w->word, w->position, w->type, w->gamma, w->beta, call->form->norm_eps,
                  b->row_keys, embedding_dropout(call));
}

void bert_embed_backward(struct exec *x, tensor dx, const struct bert_embed_weights *g,
                         const struct bert_embed_acts *a, const struct bert_embed_weights *w,
                         const struct layer_call *call)
{
    const struct stream *b = call->stream;
    exec_enter(x, "embeddings", -1);
    x->ops->embed_backward(x, dx, g->word, g->position, g->type, g->gamma, g->beta, dx, a->norm.sum,
                           a->norm.mean, a->norm.rstd, b->ids, b->fields[TEXT_TYPES], b->positions, w->gamma,
                           b->row_keys, embedding_dropout(call));
}
