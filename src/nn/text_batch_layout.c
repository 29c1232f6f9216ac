#include "nn/text_batch_layout.h"

const struct batch_layout text_batch_layout = {
    .n_fields = TEXT_N_FIELDS,
    .fields = {[TEXT_TYPES] = {"token_type_ids", BATCH_OF_TOKENS, 1, DTYPE_I32, false, 0},
               [TEXT_MASKED_ROWS] = {"masked_lm_rows", BATCH_OF_LABELS, 1, DTYPE_I32, false, 0},
               [TEXT_MASKED_LABELS] = {"masked_lm_labels", BATCH_OF_LABELS, 1, DTYPE_I32, true, -1},
               [TEXT_CLS_ROWS] = {"cls_rows", BATCH_OF_SEQUENCES, 1, DTYPE_I32, false, 0},
               [TEXT_CLS_KEYS] = {"cls_keys", BATCH_OF_SEQUENCES, 2, DTYPE_I32, false, 0},
               [TEXT_PAIR_LABELS] = {"next_sentence_labels", BATCH_OF_SEQUENCES, 1, DTYPE_I32, true, -1},
               [TEXT_SPAN_LABELS] = {"span_labels", BATCH_OF_SEQUENCES, 2, DTYPE_I32, true, -1},
               [TEXT_CLASS_LABELS] = {"labels", BATCH_OF_SEQUENCES, 0, DTYPE_I32, true, -1}},
};
