/* The equation: out = dropout(LN(E[id] + P[position] + S[segment])).  The MLM head reads E too, so the
 * gradient of E is a sum of two parts: the heads' part comes first in a backward, this one last.
 *
 * Where all of E is here, one op does all of it.  Where peers have a slice of E each, the equation is a
 * column of ops: the exchange of words is inside it.  So it is without S, as DistilBERT is. */
#include "nn/bert/bert_embed.h"

#include "dev/peers.h"
#include "nn/text_batch_layout.h"
#include "nn/word_table.h"

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

const struct weight_row distilbert_embed_rows[] = {
    WEIGHT_MATRIX(word, VOCAB, HIDDEN, NORMAL, BY_WORD, "word_embeddings.weight"),
    WEIGHT_MATRIX(position, POSITIONS, HIDDEN, NORMAL, WHOLE, "position_embeddings.weight"),
    WEIGHT_VECTOR(gamma, HIDDEN, ONE, WHOLE, "LayerNorm.weight"),
    WEIGHT_VECTOR(beta, HIDDEN, ZERO, WHOLE, "LayerNorm.bias"),
};
_Static_assert(sizeof distilbert_embed_rows / sizeof distilbert_embed_rows[0] == DISTILBERT_EMBED_N_ROWS,
               "the declared number");

/* Dropout site far above those of any layer. */
static const uint32_t SITE_EMBEDDINGS = 0xFFFF0000U;

static struct dropout embedding_dropout(const struct layer_call *call)
{
    return (struct dropout){.p = call->training ? call->form->dropout : 0.0, .site = SITE_EMBEDDINGS};
}

void bert_embed_carve_acts(struct bert_embed_acts *a, struct arena *arena, const struct layer_form *form,
                           struct layer_memory m, bool in_steps)
{
    *a = (struct bert_embed_acts){0};
    /* the last step may be a dropout, which notes no maxima */
    a->out = fp8_source_carve(arena, in_steps ? FP8_NONE : m.fp8, m.dtype, m.n_tokens, form->hidden);
    if (m.kept || in_steps) {
        norm_carve(&a->norm, arena, form, m);
    }
}

/* E[id] + P[position] + S[segment], whose last two terms are gathered in the memory of `out`. */
static void add_tables(struct exec *x, const struct bert_embed_acts *a, const struct bert_embed_weights *w,
                       const struct stream *b, int64_t n_words)
{
    tensor sum = a->norm.sum;
    word_table_look_up(x, b, sum, w->word, n_words);
    x->ops->gather_rows(x, a->out, w->position, b->positions);
    x->ops->residual_add(x, sum, sum, a->out);
    if (!tensor_is_null(w->type)) {
        x->ops->gather_rows(x, a->out, w->type, b->fields[TEXT_TYPES]);
        x->ops->residual_add(x, sum, sum, a->out);
    }
}

/* Whether the equation is a column of ops. */
static bool is_in_steps(const struct exec *x, const struct bert_embed_weights *w)
{
    return peers_size(x) > 1 || tensor_is_null(w->type);
}

static void forward_in_steps(struct exec *x, const struct bert_embed_acts *a,
                             const struct bert_embed_weights *w, const struct layer_call *call,
                             int64_t n_words)
{
    struct dropout drop = embedding_dropout(call);
    add_tables(x, a, w, call->stream, n_words);
    x->ops->layernorm(x, a->out, a->norm.mean, a->norm.rstd, a->norm.sum, w->gamma, w->beta,
                      call->form->norm_eps);
    if (drop.p > 0) {
        x->ops->dropout(x, a->out, a->out, call->stream->row_keys, drop);
    }
}

void bert_embed_forward(struct exec *x, const struct bert_embed_acts *a, const struct bert_embed_weights *w,
                        const struct layer_call *call, int64_t n_words)
{
    const struct stream *b = call->stream;
    exec_enter(x, "embeddings", -1);
    if (is_in_steps(x, w)) {
        forward_in_steps(x, a, w, call, n_words);
        return;
    }
    x->ops->embed(x, a->out, a->norm.sum, a->norm.mean, a->norm.rstd, b->ids, b->fields[TEXT_TYPES],
                  b->positions, w->word, w->position, w->type, w->gamma, w->beta, call->form->norm_eps,
                  b->row_keys, embedding_dropout(call));
}

static void backward_in_steps(struct exec *x, tensor dx, const struct bert_embed_weights *g,
                              const struct bert_embed_acts *a, const struct bert_embed_weights *w,
                              const struct layer_call *call, int64_t n_words)
{
    const struct stream *b = call->stream;
    struct dropout drop = embedding_dropout(call);
    if (drop.p > 0) {
        x->ops->dropout(x, dx, dx, b->row_keys, drop);
    }
    x->ops->layernorm_backward(x, dx, g->gamma, g->beta, dx, a->norm.sum, a->norm.mean, a->norm.rstd,
                               w->gamma);
    if (!tensor_is_null(g->type)) {
        x->ops->scatter_add_rows(x, g->type, dx, b->fields[TEXT_TYPES]);
    }
    x->ops->scatter_add_rows(x, g->position, dx, b->positions);
    word_table_add_gradients(x, g->word, dx, b->ids, n_words);
}

void bert_embed_backward(struct exec *x, tensor dx, const struct bert_embed_weights *g,
                         const struct bert_embed_acts *a, const struct bert_embed_weights *w,
                         const struct layer_call *call, int64_t n_words)
{
    const struct stream *b = call->stream;
    exec_enter(x, "embeddings", -1);
    if (is_in_steps(x, w)) {
        backward_in_steps(x, dx, g, a, w, call, n_words);
        return;
    }
    x->ops->embed_backward(x, dx, g->word, g->position, g->type, g->gamma, g->beta, dx, a->norm.sum,
                           a->norm.mean, a->norm.rstd, b->ids, b->fields[TEXT_TYPES], b->positions, w->gamma,
                           b->row_keys, embedding_dropout(call));
}
