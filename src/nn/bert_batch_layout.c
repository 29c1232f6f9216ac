#include "nn/bert_batch_layout.h"

const struct batch_layout bert_batch_layout = {
    .n_fields = BERT_N_FIELDS,
    .fields = {[BERT_TYPES] = {"token_type_ids", BATCH_OF_TOKENS, 1, DTYPE_I32, false, 0},
               [BERT_MASKED_ROWS] = {"masked_lm_rows", BATCH_OF_LABELS, 1, DTYPE_I32, false, 0},
               [BERT_MASKED_LABELS] = {"masked_lm_labels", BATCH_OF_LABELS, 1, DTYPE_I32, true, -1},
               [BERT_CLS_ROWS] = {"cls_rows", BATCH_OF_SEQUENCES, 1, DTYPE_I32, false, 0},
               [BERT_CLS_KEYS] = {"cls_keys", BATCH_OF_SEQUENCES, 2, DTYPE_I32, false, 0},
               [BERT_NSP_LABELS] = {"next_sentence_labels", BATCH_OF_SEQUENCES, 1, DTYPE_I32, true, -1},
               [BERT_SPAN_LABELS] = {"span_labels", BATCH_OF_SEQUENCES, 2, DTYPE_I32, true, -1},
               [BERT_CLASS_LABELS] = {"labels", BATCH_OF_SEQUENCES, 0, DTYPE_I32, true, -1}},
};
