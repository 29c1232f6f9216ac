/* bert_onnx: BERT as a graph of ONNX operators. */
#ifndef KILN_MODEL_BERT_ONNX_H
#define KILN_MODEL_BERT_ONNX_H

#include "io/onnx_graph.h"
#include "nn/bert/bert.h"

/* model_family.to_onnx: `config` is a struct bert_config, the task an enum model_task.
 *
 * Inputs, i64 [batch, sequence]: input_ids; attention_mask, 1 for tokens and 0 for padding; token_type_ids.
 * Outputs, fp32, under the names of Hugging Face's classes:
 *
 *     BertForPreTraining            prediction_logits [batch, sequence, V],
 *                                   seq_relationship_logits [batch, 2]
 *     BertForMaskedLM               logits [batch, sequence, V]
 *     BertForQuestionAnswering      start_logits, end_logits [batch, sequence]
 *     BertForSequenceClassification logits [batch, C]
 *     BertForTokenClassification    logits [batch, sequence, C]
 *     BertModel                     last_hidden_state [batch, sequence, H], pooler_output [batch, H] */
void bert_onnx_build(struct onnx_graph *g, const void *config, enum model_task task);

#endif
