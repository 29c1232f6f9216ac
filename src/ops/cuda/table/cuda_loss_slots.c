/* cuda_loss_slots: losses on a CUDA device, with their gradients, and the choice of tokens. */
#include "ops/cuda/table/cuda_slots.h"

#include "ops/cuda/table/cuda_slot.h"

void cuda_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                        tensor labels, int64_t n_classes, tensor scale)
{
    if (cuda_slot_accepts(x, "cross_entropy", dlogits)) {
        struct launch l = cuda_slot_launch(x, 0);
        cuda_launch_cross_entropy(&l, loss.data, correct.data,
                                  tensor_is_null(dlogits) ? (struct launch_rows){0} : cuda_slot_rows(dlogits),
                                  cuda_slot_type(dlogits), cuda_slot_rows(logits), labels.data,
                                  tensor_rows(logits), tensor_cols(logits), n_classes, scale.data);
        cuda_slot_finish(x, "cross_entropy");
    }
}

/* Logits from class `first` on; labels may be null. */
static struct launch_classes classes_of(tensor logits, tensor labels, int64_t first, int64_t n_classes)
{
    int64_t cols = tensor_cols(logits), n = n_classes - first;
    return (struct launch_classes){.logits = cuda_slot_rows(logits),
                                   .labels = labels.data,
                                   .rows = tensor_rows(logits),
                                   .cols = cols,
                                   .here = n < 0      ? 0
                                           : n < cols ? n
                                                      : cols,
                                   .first = first,
                                   .n_classes = n_classes};
}

void cuda_slice_maxima(struct exec *x, tensor maxima, tensor logits, int64_t first, int64_t n_classes)
{
    if (!failed(x->status)) {
        struct launch l = cuda_slot_launch(x, 0);
        struct launch_classes c = classes_of(logits, NULL_TENSOR, first, n_classes);
        cuda_launch_slice_maxima(&l, maxima.data, &c);
        cuda_slot_finish(x, "slice_maxima");
    }
}

void cuda_slice_sums(struct exec *x, tensor sums, tensor logits, tensor maxima, tensor labels, int64_t first,
                     int64_t n_classes)
{
    if (!failed(x->status)) {
        struct launch l = cuda_slot_launch(x, 0);
        struct launch_classes c = classes_of(logits, labels, first, n_classes);
        cuda_launch_slice_sums(&l, sums.data, maxima.data, &c);
        cuda_slot_finish(x, "slice_sums");
    }
}

void cuda_slice_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                              tensor maxima, tensor sums, tensor labels, int64_t first, int64_t n_classes,
                              tensor scale)
{
    if (cuda_slot_accepts(x, "slice_cross_entropy", dlogits)) {
        struct launch l = cuda_slot_launch(x, 0);
        struct launch_classes c = classes_of(logits, labels, first, n_classes);
        cuda_launch_slice_cross_entropy(&l, loss.data, correct.data,
                                        tensor_is_null(dlogits) ? (struct launch_rows){0}
                                                                : cuda_slot_rows(dlogits),
                                        cuda_slot_type(dlogits), maxima.data, sums.data, &c, scale.data);
        cuda_slot_finish(x, "slice_cross_entropy");
    }
}

void cuda_span_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                             tensor cu_seqlens, tensor labels, tensor scale)
{
    if (!failed(x->status)) {
        struct launch l = cuda_slot_launch(x, 0);
        cuda_launch_span_cross_entropy(&l, loss.data, correct.data, dlogits.data, cuda_slot_type(dlogits),
                                       logits.data, cu_seqlens.data, labels.data, tensor_rows(labels),
                                       tensor_rows(logits), scale.data);
        cuda_slot_finish(x, "span_cross_entropy");
    }
}

void cuda_pointwise(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                    tensor targets, enum pointwise_loss kind, tensor scale)
{
    if (cuda_slot_accepts(x, "pointwise", dlogits)) {
        struct launch l = cuda_slot_launch(x, 0);
        cuda_launch_pointwise(&l, loss.data, correct.data, dlogits.data, cuda_slot_type(dlogits), logits.data,
                              targets.data, tensor_count(logits), kind == POINTWISE_SIGMOID, scale.data);
        cuda_slot_finish(x, "pointwise");
    }
}

_Static_assert((int)LAUNCH_N_OPTIONS == CHOICE_N_OPTIONS && (int)LAUNCH_PRESENCE == CHOICE_PRESENCE &&
                   (int)LAUNCH_TOP_K == CHOICE_TOP_K && (int)LAUNCH_N_CHANGE_COLUMNS == CHANGE_N_COLUMNS &&
                   (int)LAUNCH_N_NEW == CHANGE_N_NEW,
               "the columns of launch.h are those of ops.h");

void cuda_choose_tokens(struct exec *x, tensor tokens, tensor log_ps, tensor changes, tensor logits,
                        tensor options, tensor starts, int64_t n_tokens, int64_t n_words)
{
    if (cuda_slot_accepts(x, "choose_tokens", logits)) {
        struct launch l = cuda_slot_launch(x, 0);
        cuda_launch_choose_tokens(&l, &(struct launch_choice){.logits = cuda_slot_rows(logits),
                                                              .options = options.data,
                                                              .starts = starts.data,
                                                              .changes = changes.data,
                                                              .tokens = tokens.data,
                                                              .log_ps = log_ps.data,
                                                              .rows = tensor_rows(logits),
                                                              .most = tensor_cols(tokens),
                                                              .n_changes = tensor_rows(changes),
                                                              .n_tokens = n_tokens,
                                                              .n_words = n_words});
        cuda_slot_finish(x, "choose_tokens");
    }
}
