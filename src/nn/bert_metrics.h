/* bert_metrics: what the heads count, and how their losses are scaled. */
#ifndef KILN_NN_BERT_METRICS_H
#define KILN_NN_BERT_METRICS_H

/* Sums over a batch, in a tensor f64 [BERT_N_METRICS] on the device; a head adds to its own. */
enum bert_metric {
    BERT_MLM_LOSS,
    BERT_MLM_CORRECT,
    BERT_NSP_LOSS,
    BERT_NSP_CORRECT,
    BERT_SPAN_LOSS, /* of starts and ends of answers, added up */
    BERT_SPAN_CORRECT,
    BERT_N_METRICS,
};

/* What each label's loss is multiplied by, in a tensor f64 [BERT_N_LOSSES] on the device: the reciprocals of
 * the counts over the global batch, times the scale of the loss (train/loss_scale.h). */
enum bert_loss {
    BERT_LOSS_MLM,
    BERT_LOSS_NSP,
    BERT_LOSS_SPAN,
    BERT_N_LOSSES,
};

#endif
