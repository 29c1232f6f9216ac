/* bert_sources: the directories that BERT is pre-trained on: token stores, and HDF5 files of the replaced
 * scripts. */
#ifndef KILN_TASK_BERT_SOURCES_H
#define KILN_TASK_BERT_SOURCES_H

#include "task/pretrain_inputs.h"

/* Rows of pretrain_kind.sources. */
extern const struct pretrain_source *const bert_sources[];

#endif
