/* bert_heads: BERT's two pre-training heads, masked language modelling and next-sentence prediction.  Devlin
 * et al. 2018 (arXiv:1810.04805) section 3.1; the MLM head reads masked positions only.  Those of fine-tuning
 * are nn/answer_head.h and nn/label_head.h. */
#ifndef KILN_NN_BERT_HEADS_H
#define KILN_NN_BERT_HEADS_H

#include "nn/bert/bert_config.h"
#include "nn/bert/bert_embed.h"
#include "nn/model.h"
#include "nn/word_head.h"

struct bert_head_weights {
    tensor w_pool, b_pool;  /* [H, H], [H] the pooler */
    tensor w_t, b_t;        /* [H, H], [H] the transform of the MLM head */
    tensor gamma_t, beta_t; /* [H] */
    tensor b_vocab;         /* [V] */
    tensor w_nsp, b_nsp;    /* [2, H], [2] */
};

extern const struct weight_row bert_pooler_rows[];    /* under "bert.pooler." */
extern const struct weight_row bert_dense_rows[];     /* the pooler's weights as a layer of a classifier */
extern const struct weight_row bert_mlm_rows[];       /* under "cls.predictions." */
extern const struct weight_row roberta_mlm_rows[];    /* under "lm_head." */
extern const struct weight_row distilbert_mlm_rows[]; /* "vocab_transform." and so on, under "vocab_" */
extern const struct weight_row bert_nsp_rows[];       /* under "cls.seq_relationship." */
enum { BERT_POOLER_N_ROWS = 2, BERT_MLM_N_ROWS = 5, BERT_NSP_N_ROWS = 2 };
_Static_assert((BERT_POOLER_N_ROWS + BERT_MLM_N_ROWS + BERT_NSP_N_ROWS) * sizeof(tensor) ==
                   sizeof(struct bert_head_weights),
               "a row for every field");

/* M masked positions, B sequences.  Where the last layer computes selected rows only (nn/row_picks.h),
 * `masked` and `cls` are not used. */
struct bert_head_acts {
    tensor masked;                  /* [M, H] hidden states at the masked positions; later their gradient */
    tensor t_pre, t_act, t_out;     /* [M, H] */
    tensor t_mean, t_rstd;          /* [M] */
    struct word_head_acts words;    /* the word head, which reads t_out */
    tensor dtransform;              /* [M, H] the gradient of t_out, then of t_act and t_pre */
    tensor cls, pooled, dpooled;    /* [B, H] */
    bool rectifies;                 /* the pooler's activation is a rectifier, not tanh */
    tensor nsp_logits, dnsp_logits; /* [B, 2] */
    tensor nsp_loss, nsp_correct;   /* [B] */
};

/* Carves the activations of one batch, of each head. */
void bert_heads_carve_mlm(struct bert_head_acts *a, struct arena *arena, const struct bert_config *c,
                          struct model_memory memory, int64_t n_masked, int n_slices);
void bert_heads_carve_nsp(struct bert_head_acts *a, struct arena *arena, const struct bert_config *c,
                          enum dtype dtype, int64_t n_sequences);

/* Computes a->t_out, whose rows a word head reads, from the masked positions of the last layer's output h,
 * [T, H] or its selected rows [R, H]. */
void bert_heads_transform(struct exec *x, const struct bert_head_acts *a, tensor h,
                          const struct bert_head_weights *w, const struct layer_call *call);

/* Computes a->pooled from the hidden state of each [CLS], from which `drop` drops first, by a rectifier if
 * there is one and else by tanh. */
void bert_heads_pool(struct exec *x, const struct bert_head_acts *a, tensor h,
                     const struct bert_head_weights *w, struct dropout drop, const struct layer_call *call);

/* Adds the pooler's part to dh, the gradient of h, or assigns its selected rows, from a->dpooled, and adds
 * the gradients of the weights to g. */
void bert_heads_pool_backward(struct exec *x, tensor dh, const struct bert_head_weights *g,
                              const struct bert_head_acts *a, tensor h, const struct bert_head_weights *w,
                              struct dropout drop, const struct layer_call *call);

/* Computes a->nsp_logits from a->pooled. */
void bert_heads_nsp_forward(struct exec *x, const struct bert_head_acts *a,
                            const struct bert_head_weights *w);

/* Adds the loss and the number of correct answers to `sums`, f64 [2], and computes the gradients of the
 * logits, times scale, f64 [1]. */
void bert_heads_nsp_loss(struct exec *x, tensor sums, const struct bert_head_acts *a, tensor scale,
                         const struct layer_call *call);

/* The transform, from a->dtransform, adds its part to dh, the gradient of h, or assigns its selected rows;
 * the NSP head assigns a->dpooled.  The gradients of the weights are added to g. */
void bert_heads_transform_backward(struct exec *x, tensor dh, const struct bert_head_weights *g,
                                   const struct bert_head_acts *a, tensor h,
                                   const struct bert_head_weights *w, const struct layer_call *call);
void bert_heads_nsp_backward(struct exec *x, const struct bert_head_weights *g,
                             const struct bert_head_acts *a, const struct bert_head_weights *w,
                             const struct layer_call *call);

#endif
