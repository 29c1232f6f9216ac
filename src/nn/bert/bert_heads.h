/* bert_heads: BERT's two pre-training heads, masked language modelling and next-sentence prediction, and the
 * heads of fine-tuning, for answers and for labels.  Devlin et al. 2018 (arXiv:1810.04805) sections 3.1 and
 * 4; the MLM head reads masked positions only. */
#ifndef KILN_NN_BERT_HEADS_H
#define KILN_NN_BERT_HEADS_H

#include "nn/bert/bert_config.h"
#include "nn/bert/bert_embed.h"
#include "nn/bert/rectifier.h"
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
    tensor masked;                   /* [M, H] hidden states at the masked positions; later their gradient */
    tensor t_pre, t_act, t_out;      /* [M, H] */
    tensor t_mean, t_rstd;           /* [M] */
    struct word_head_acts words;     /* the word head, which reads t_out */
    tensor dtransform;               /* [M, H] the gradient of t_out, then of t_act and t_pre */
    tensor cls, pooled, dpooled;     /* [B, H] */
    struct rectifier_acts rectifier; /* of a pooler with one; else null */
    tensor nsp_logits, dnsp_logits;  /* [B, 2] */
    tensor nsp_loss, nsp_correct;    /* [B] */
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

/* Rows that a head reads, and the dropout in front of it. */
struct bert_head_rows {
    tensor rows, keys; /* [R, H]; i32 [R, 2] addresses of the dropout */
    struct dropout drop;
};

/* ---- the question-answering head: where in the text an answer starts and ends ---- */

struct bert_qa_weights {
    tensor w_qa, b_qa; /* [2, H], [2]: start, end */
};

extern const struct weight_row bert_qa_rows[]; /* under "qa_outputs." */
enum { BERT_QA_N_ROWS = sizeof(struct bert_qa_weights) / sizeof(tensor) };

struct bert_qa_acts {
    tensor dropped;       /* [T, H]; null without a dropout, or a backward */
    tensor logits;        /* [T, 2], in the dtype of vectors */
    tensor dlogits;       /* [T, 2] */
    tensor loss, correct; /* [B, 2] */
};

/* Carves the activations of one batch. */
void bert_qa_carve_acts(struct bert_qa_acts *a, struct arena *arena, const struct bert_config *c,
                        struct model_memory memory, int64_t n_tokens, int64_t n_sequences);

/* Computes a->logits from the last layer's output, `in` [T, H]. */
void bert_qa_forward(struct exec *x, const struct bert_qa_acts *a, const struct bert_head_rows *in,
                     const struct bert_qa_weights *w);

/* Adds the losses of start and end and the number of correct ones to `sums`, f64 [2], and computes
 * a->dlogits, times scale, f64 [1].  A sequence's softmax runs over its own tokens. */
void bert_qa_loss(struct exec *x, tensor sums, const struct bert_qa_acts *a, tensor scale,
                  const struct layer_call *call);

/* Assigns dh, the gradient of the rows.  The gradients of the weights are added to g; without `adds` the
 * matrix's is assigned. */
void bert_qa_backward(struct exec *x, tensor dh, const struct bert_qa_weights *g,
                      const struct bert_qa_acts *a, const struct bert_head_rows *in,
                      const struct bert_qa_weights *w, bool adds);

/* ---- the classifier: a score of each label, for a row ----
 *
 * A row is the pooled [CLS] of a text, or the hidden state of a token. */

struct bert_classifier_weights {
    tensor w_cls, b_cls; /* [C, H], [C] */
};

extern const struct weight_row bert_classifier_rows[]; /* under "classifier." */
enum { BERT_CLASSIFIER_N_ROWS = sizeof(struct bert_classifier_weights) / sizeof(tensor) };

/* R rows, C scores. */
struct bert_classifier_acts {
    tensor dropped;       /* [R, H]; later its gradient */
    tensor logits;        /* [R, C], in the dtype of vectors */
    tensor dlogits;       /* [R, C] */
    tensor loss, correct; /* [R], or [R, C] if each score has a target */
};

/* Carves the activations of one batch. */
void bert_classifier_carve_acts(struct bert_classifier_acts *a, struct arena *arena,
                                const struct bert_config *c, enum dtype dtype, int64_t n_rows);

/* Computes a->logits from rows [R, H]. */
void bert_classifier_forward(struct exec *x, const struct bert_classifier_acts *a,
                             const struct bert_head_rows *in, const struct bert_classifier_weights *w);

/* Adds the loss and the number of correct answers to `sums`, f64 [2], and computes a->dlogits, times scale,
 * f64 [1]. labels are classes [R], or for the config's other problem types targets [R, C]. */
void bert_classifier_loss(struct exec *x, tensor sums, const struct bert_classifier_acts *a, tensor labels,
                          tensor scale, const struct bert_config *c);

/* Assigns drows, the gradient of the rows, and adds the gradients of the weights to g. */
void bert_classifier_backward(struct exec *x, tensor drows, const struct bert_classifier_weights *g,
                              const struct bert_classifier_acts *a, const struct bert_head_rows *in,
                              const struct bert_classifier_weights *w, bool adds);

#endif
