/* model_progress: the state, apart from the weights, from which a run of kiln resumes, for writing it in the
 * form of other programs. */
#ifndef KILN_MODEL_MODEL_PROGRESS_H
#define KILN_MODEL_MODEL_PROGRESS_H

#include "core/param.h"
#include "core/tensor.h"

struct model_progress {
    tensor exp_avg, exp_avg_sq; /* [params->n_elements] fp32, owned */
    int64_t global_step;        /* steps over both phases */
    int64_t step, n_skipped;    /* steps of the phase; those of them without an update */
    double rate;                /* peak of the learning rate */
    int n_ranks;                /* ranks with which the run continues, for DeepSpeed's folder */
    const char *const *files;   /* [n_files] the data of the run that continues; borrowed */
    int64_t n_files;
};

/* Reads a checkpoint of kiln; n_ranks becomes 1, and there are no files.  STATUS_DATA: the directory is none;
 * STATUS_UNAVAILABLE: its optimizer is none of the scripts'. */
struct status model_progress_open(struct model_progress *p, const char *directory,
                                  const struct param_table *params);

/* Safe on a zeroed struct and after a failed open. */
void model_progress_close(struct model_progress *p);

#endif
