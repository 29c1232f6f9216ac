/* model_outputs: what a model directory computes for a batch of padded sequences, each position and head of
 * it. */
#ifndef KILN_TESTS_MODEL_OUTPUTS_H
#define KILN_TESTS_MODEL_OUTPUTS_H

#include "test.h"

#include "data/bert_batch.h"
#include "nn/bert_model.h"
#include "train/trainer_state.h"

/* The batch [B, S] and the real length of each sequence. */
struct outputs_input {
    int64_t n_sequences, length;
    int32_t *ids, *types, *lengths; /* [B, S], [B, S], [B] */
};

/* A model that has read the batch; close it with trainer_fini, and do not move `bert` before. */
static inline void outputs_run(struct trainer *t, struct bert_model *bert, const struct model_dir *m,
                               enum bert_task task, unsigned may_be_new, const struct outputs_input *in)
{
    struct load_report report;
    struct batch b;
    *bert = bert_model(&m->config, task);
    struct trainer_config config = {
        .model = &bert->model,
        .device = &device_cpu,
        .ops = ops_cpu(),
        .precision = {.dtype = DTYPE_F32},
        .optimizer = optimizer_defaults(OPTIMIZER_ADAMW),
        .limits = bert_batch_limits(in->n_sequences, in->length, in->length),
    };
    EXPECT_OK(trainer_init(t, &config));
    EXPECT_OK(trainer_state_load(t, m, task, may_be_new, &report));
    EXPECT_OK(bert_batch_init(&b, config.limits));
    batch_clear(&b);
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
    batch_finish(&b, m->tokenizer.special[SPECIAL_PAD]);
    stage_infer(&t->stage, &b);
    EXPECT_OK(t->x.status);
    batch_fini(&b);
}

enum { OUTPUTS_N = 5 };
static const char *const outputs_names[OUTPUTS_N] = {"mlm", "nsp", "qa", "hidden", "pooled"};

/* One of the outputs as a view, null if the task has none: "mlm" [T, V], "nsp" [B, 2], "qa" [T, 2], "hidden"
 * [T, H], "pooled" [B, H]; T counts the rounding of the stream. */
static inline tensor outputs_view(const struct trainer *t, const char *name)
{
    const struct bert_model *bert = (const struct bert_model *)t->config.model;
    enum bert_task task = bert->task;
    bool mlm = task == BERT_TASK_PRETRAINING || task == BERT_TASK_MASKED_LM;
    switch (name[0]) {
    case 'm':
        return mlm ? tensor_columns(stage_head_output(&t->stage, BERT_MLM_LOGITS), 0, bert->config.vocab_size)
                   : NULL_TENSOR;
    case 'n': return stage_head_output(&t->stage, BERT_NSP_LOGITS);
    case 'q': return stage_head_output(&t->stage, BERT_SPAN_LOGITS);
    case 'h': return stage_output(&t->stage);
    default: return stage_head_output(&t->stage, BERT_POOLED);
    }
}

#endif
