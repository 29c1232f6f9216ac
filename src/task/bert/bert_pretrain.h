/* bert_pretrain: the pre-training of BERT: masked language modelling and next-sentence prediction, or the
 * first alone. */
#ifndef KILN_TASK_BERT_PRETRAIN_H
#define KILN_TASK_BERT_PRETRAIN_H

#include "task/pretrain_kind.h"

/* Flags of BERT in `kiln pretrain`, by the names of the script that it replaces: pretrain_options.own. */
struct bert_pretrain_options {
    bool enable_packed_data_mode;
    int64_t max_predictions_per_seq;
    double mask_rate[2]; /* rates at the beginning of the run, and at its end and for held-out samples */
    double mask_keep_rate, short_seq_prob;
    bool no_nsp, whole_word_masks, even_masks; /* fields of bert_loader_config */
    bool shifted_positions;                    /* bert_loader_config.n_positions is the model's */
    bool sinusoidal_positions;                 /* field of bert_config */
    const char *mask_flag; /* the given flag that says how samples of a store are drawn; NULL: none */
};

extern const struct pretrain_kind bert_pretrain;

/* ModernBERT learns masked words from the same sources, always with no_nsp. */
extern const struct pretrain_kind modernbert_pretrain;

/* Sources of BERT, for pretrain_kind.sources: token stores, and HDF5 files of the replaced scripts. */
extern const struct pretrain_source *const bert_sources[];

#endif
