/* model_outputs: what a model directory computes for a batch of padded sequences, each position and head of
 * it. */
#ifndef KILN_TESTS_MODEL_OUTPUTS_H
#define KILN_TESTS_MODEL_OUTPUTS_H

#include "test.h"

#include "train/trainer_state.h"

/* The batch [B, S] and the real length of each sequence. */
struct outputs_input {
    int64_t n_sequences, length;
    int32_t *ids, *types, *lengths; /* [B, S], [B, S], [B] */
};

/* A model that has read the batch; close it with trainer_fini. */
static inline void outputs_run(struct trainer *t, const struct model_dir *m, enum bert_task task,
                               unsigned may_be_new, const struct outputs_input *in)
{
    struct load_report report;
    struct bert_batch b;
    struct trainer_config config = {
        .model = m->config,
        .task = task,
        .device = &device_cpu,
        .ops = ops_cpu(),
        .precision = {.dtype = DTYPE_F32},
        .optimizer = optimizer_defaults(OPTIMIZER_ADAMW),
        .limits = bert_batch_limits(in->n_sequences, in->length, in->length),
    };
    EXPECT_OK(trainer_init(t, &config));
    EXPECT_OK(trainer_state_load(t, m, may_be_new, &report));
    EXPECT_OK(bert_batch_init(&b, config.limits));
    bert_batch_clear(&b);
    for (int64_t i = 0; i < in->n_sequences; i++) {
        const int32_t *types = in->types + i * in->length;
        int64_t n = in->lengths[i], n_first = 0;
        while (n_first < n && types[n_first] == 0) {
            n_first++;
        }
        memcpy(bert_batch_add(&b, n, n_first, -1, 0), in->ids + i * in->length, (size_t)n * sizeof *in->ids);
        for (int64_t p = 0; p < n; p++) {
            bert_batch_masked_positions(&b)[p] = (int32_t)p;
            bert_batch_masked_labels(&b)[p] = -1;
        }
        bert_batch_take_masked(&b, n);
    }
    bert_batch_finish(&b, m->vocab.pad);
    stage_infer(&t->stage, &b);
    EXPECT_OK(t->x.status);
    bert_batch_fini(&b);
}

enum { OUTPUTS_N = 5 };
static const char *const outputs_names[OUTPUTS_N] = {"mlm", "nsp", "qa", "hidden", "pooled"};

/* One of the outputs as a view, null if the task has none: "mlm" [T, V], "nsp" [B, 2], "qa" [T, 2], "hidden"
 * [T, H], "pooled" [B, H]; T counts the rounding of the stream. */
static inline tensor outputs_view(const struct trainer *t, const char *name)
{
    const struct stage_slot *slot = &t->stage.slot;
    enum bert_task task = t->config.task;
    bool mlm = task == BERT_TASK_PRETRAINING || task == BERT_TASK_MASKED_LM;
    switch (name[0]) {
    case 'm': return mlm ? tensor_columns(slot->heads.logits, 0, t->config.model.vocab_size) : NULL_TENSOR;
    case 'n': return task == BERT_TASK_PRETRAINING ? slot->heads.nsp_logits : NULL_TENSOR;
    case 'q': return task == BERT_TASK_QUESTION_ANSWERING ? slot->qa.logits : NULL_TENSOR;
    case 'h': return slot->layers[t->config.model.num_hidden_layers - 1].out;
    default:
        return task == BERT_TASK_PRETRAINING || task == BERT_TASK_ENCODER ? slot->heads.pooled : NULL_TENSOR;
    }
}

#endif
