/* plan_losses: the plan of the losses, and of what else is read off logits (ops/plan.c). */
#include "ops/plan_slots.h"

#include "ops/plan_wants.h"

void plan_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                        tensor labels, int64_t n_classes, tensor scale)
{
    int64_t rows = tensor_rows(logits), cols = tensor_cols(logits);
    if (n_classes < 1 || n_classes > cols) {
        exec_fail(x, STATUS_INTERNAL, "cross_entropy", "%lld classes of %lld columns", (long long)n_classes,
                  (long long)cols);
    }
    PLAN(x, "cross_entropy", 0, 0, {"loss", loss, ANY, 1, rows}, {"correct", correct, DTYPE_I32, 1, rows},
         {"logits", logits, (int)dtype_of_vectors(logits.dtype), rows, cols},
         {"labels", labels, DTYPE_I32, 1, rows}, {"scale", scale, DTYPE_F64, 1, 1});
    if (!tensor_is_null(dlogits)) {
        PLAN(x, "cross_entropy", 0, 0, {"dlogits", dlogits, ANY, rows, cols});
    }
}

void plan_slice_maxima(struct exec *x, tensor maxima, tensor logits, int64_t first, int64_t n_classes)
{
    int64_t rows = tensor_rows(logits);
    (void)first, (void)n_classes;
    PLAN(x, "slice_maxima", 0, 0, {"maxima", maxima, (int)logits.dtype, 1, rows},
         {"logits", logits, (int)dtype_of_vectors(logits.dtype), rows, tensor_cols(logits)});
}

void plan_slice_sums(struct exec *x, tensor sums, tensor logits, tensor maxima, tensor labels, int64_t first,
                     int64_t n_classes)
{
    int64_t rows = tensor_rows(logits);
    (void)first, (void)n_classes;
    PLAN(x, "slice_sums", 0, 0, {"sums", sums, DTYPE_F64, rows, 3},
         {"logits", logits, (int)dtype_of_vectors(logits.dtype), rows, tensor_cols(logits)},
         {"maxima", maxima, (int)logits.dtype, 1, rows}, {"labels", labels, DTYPE_I32, 1, rows});
}

void plan_slice_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                              tensor maxima, tensor sums, tensor labels, int64_t first, int64_t n_classes,
                              tensor scale)
{
    int64_t rows = tensor_rows(logits), cols = tensor_cols(logits);
    (void)first, (void)n_classes;
    PLAN(x, "slice_cross_entropy", 0, 0, {"loss", loss, ANY, 1, rows},
         {"correct", correct, DTYPE_I32, 1, rows}, {"maxima", maxima, (int)logits.dtype, 1, rows},
         {"sums", sums, DTYPE_F64, rows, 3}, {"labels", labels, DTYPE_I32, 1, rows},
         {"scale", scale, DTYPE_F64, 1, 1});
    if (!tensor_is_null(dlogits)) {
        PLAN(x, "slice_cross_entropy", 0, 0, {"dlogits", dlogits, ANY, rows, cols},
             {"logits", logits, (int)dtype_of_vectors(logits.dtype), rows, cols});
    }
}

void plan_span_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                             tensor cu_seqlens, tensor labels, tensor scale)
{
    int64_t rows = tensor_rows(logits), n_sequences = tensor_rows(labels);
    if (tensor_count(cu_seqlens) <= n_sequences) {
        exec_fail(x, STATUS_INTERNAL, "span_cross_entropy", "labels of %lld sequences, but bounds of %lld",
                  (long long)n_sequences, (long long)tensor_count(cu_seqlens) - 1);
    }
    PLAN(x, "span_cross_entropy", 0, 0, {"loss", loss, (int)logits.dtype, n_sequences, 2},
         {"correct", correct, DTYPE_I32, n_sequences, 2},
         {"logits", logits, (int)dtype_of_vectors(logits.dtype), rows, 2},
         {"labels", labels, DTYPE_I32, n_sequences, 2},
         {"cu_seqlens", cu_seqlens, DTYPE_I32, 1, tensor_count(cu_seqlens)},
         {"scale", scale, DTYPE_F64, 1, 1});
    if (!tensor_is_null(dlogits)) {
        PLAN(x, "span_cross_entropy", 0, 0, {"dlogits", dlogits, ANY, rows, 2});
    }
}

void plan_pointwise(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                    tensor targets, enum pointwise_loss kind, tensor scale)
{
    int64_t rows = tensor_rows(logits), cols = tensor_cols(logits);
    (void)kind;
    PLAN(x, "pointwise", 0, 0, {"loss", loss, (int)logits.dtype, rows, cols},
         {"correct", correct, DTYPE_I32, rows, cols},
         {"logits", logits, (int)dtype_of_vectors(logits.dtype), rows, cols},
         {"targets", targets, DTYPE_F32, rows, cols}, {"scale", scale, DTYPE_F64, 1, 1});
    if (!tensor_is_null(dlogits)) {
        PLAN(x, "pointwise", 0, 0, {"dlogits", dlogits, ANY, rows, cols});
    }
}

void plan_choose_tokens(struct exec *x, tensor tokens, tensor log_ps, tensor changes, tensor logits,
                        tensor options, tensor starts, int64_t n_tokens, int64_t n_words)
{
    int64_t rows = tensor_rows(logits), cols = tensor_cols(logits);
    if (n_tokens < 1 || n_tokens > n_words || n_words > cols) {
        exec_fail(x, STATUS_INTERNAL, "choose_tokens", "%lld tokens of %lld words of %lld columns",
                  (long long)n_tokens, (long long)n_words, (long long)cols);
    }
    PLAN(x, "choose_tokens", 0, 0, {"tokens", tokens, DTYPE_I32, rows, tensor_cols(tokens)},
         {"log_ps", log_ps, (int)dtype_of_vectors(logits.dtype), rows, tensor_cols(tokens)},
         {"changes", changes, DTYPE_F32, tensor_rows(changes), CHANGE_N_COLUMNS},
         {"logits", logits, (int)dtype_of_vectors(logits.dtype), rows, cols},
         {"options", options, DTYPE_F64, rows, CHOICE_N_OPTIONS}, {"starts", starts, DTYPE_I32, 1, rows + 1});
}
