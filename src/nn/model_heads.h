/* model_heads: the list of what models compute: a row for each task, with the outputs of its heads, and a row
 * for each output.  Enums and tables are made of the rows, so a name that has no row does not compile, nor an
 * output without a task.
 *
 * A new head is a row of each list, a tensor of model_type.head_output (nn/model.h) and, where a command
 * answers by it, a row of serve/answer_kind.h. */
#ifndef KILN_NN_MODEL_HEADS_H
#define KILN_NN_MODEL_HEADS_H

#include "core/batch.h"

/* clang-format off */

/* X(TASK, outputs of its heads): what a model is for.  Hugging Face has a class for each. */
#define MODEL_TASKS(X) \
    /* tasks of the family's pre-training: for BERT masked words, and pairs of texts */ \
    X(PRETRAINING, MODEL_HAS_WORDS | MODEL_HAS(PAIR_LOGITS) | MODEL_HAS(POOLED)) \
    X(MASKED_LM, MODEL_HAS_WORDS)                                          /* masked words */ \
    X(CAUSAL_LM, MODEL_HAS_WORDS)                                          /* the next word at each place */ \
    X(QUESTION_ANSWERING, MODEL_HAS(SPAN_LOGITS))                          /* the place of an answer */ \
    X(ENCODER, MODEL_HAS(POOLED))                                          /* a vector of each sequence */ \
    X(SEQUENCE_CLASSIFICATION, MODEL_HAS(POOLED) | MODEL_HAS(TEXT_LOGITS)) /* labels of a sequence */ \
    X(TOKEN_CLASSIFICATION, MODEL_HAS(TOKEN_LOGITS))                       /* a label of each token */

/* X(OUTPUT, name in files, rows, what messages call it): what can be asked of a model, for T tokens, B
 * sequences, M tokens that are asked for, V words, C labels.  HIDDEN, which each model has, and POOLED are in
 * the dtype of activations, the others f32. */
#define MODEL_OUTPUTS(X) \
    X(WORD_LOGITS, "mlm", LABELS, "the scores of the words")       /* [M, V], V rounded up */ \
    X(WORD_LOSSES, "losses", LABELS, "the losses of the words")    /* [M] -log p of each token's label */ \
    X(PAIR_LOGITS, "nsp", SEQUENCES, "the scores of pairs")        /* [B, 2] */ \
    X(SPAN_LOGITS, "qa", TOKENS, "the scores of the answers")      /* [T, 2] */ \
    X(HIDDEN, "hidden", TOKENS, "the vectors")                     /* [T, H] the last layer's output */ \
    X(POOLED, "pooled", SEQUENCES, "the pooled vectors")           /* [B, H] */ \
    X(TEXT_LOGITS, "texts", SEQUENCES, "the scores of the labels") /* [B, C] */ \
    X(TOKEN_LOGITS, "words", TOKENS, "the scores of the labels")   /* [T, C] */ \
    /* outputs of the network, for cached sequences: results of choose_tokens (ops.h), i32 and f32 [M, K] */ \
    X(CHOICES, "choices", LABELS, "the chosen tokens") \
    X(CHOICE_LOG_PS, "choices_log_p", LABELS, "the scores of the words")

/* clang-format on */

#define MODEL_HAS(OUTPUT) (1U << MODEL_##OUTPUT)
#define MODEL_HAS_WORDS                                                                                      \
    (MODEL_HAS(WORD_LOGITS) | MODEL_HAS(WORD_LOSSES) | MODEL_HAS(WORD_CORRECT) | MODEL_HAS(CHOICES) |        \
     MODEL_HAS(CHOICE_LOG_PS))

#define MODEL_TASK_NUMBER(TASK, ...) MODEL_TASK_##TASK,
enum model_task { MODEL_TASKS(MODEL_TASK_NUMBER) };

#define MODEL_OUTPUT_NUMBER(OUTPUT, ...) MODEL_##OUTPUT,
enum model_output {
    MODEL_OUTPUTS(MODEL_OUTPUT_NUMBER) MODEL_N_OUTPUTS,
    /* [M] memory that cross_entropy needs in addition to WORD_LOSSES; nobody asks for it */
    MODEL_WORD_CORRECT,
};

struct model_head {
    const char *name; /* name in files */
    enum batch_rows rows;
    const char *what; /* "the scores of the words" */
};

extern const struct model_head model_heads[MODEL_N_OUTPUTS];

/* Whether models for the task have the output. */
bool model_task_has(enum model_task task, enum model_output output);

/* Whether the task's head has a score for each of C labels. */
static inline bool model_task_has_labels(enum model_task task)
{
    return model_task_has(task, MODEL_TEXT_LOGITS) || model_task_has(task, MODEL_TOKEN_LOGITS);
}

#endif
