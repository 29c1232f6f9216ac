/* param_rates: which parameters a run leaves as they are, and at which part of the learning rate it trains
 * the others.
 *
 * Rates that fall with the depth of a layer: Howard and Ruder 2018 (arXiv:1801.06146, section 3.2), in the
 * form of the fine-tuning of ELECTRA (Clark et al. 2020, arXiv:2003.10555, appendix B).
 * docs/decisions/0048_finetuning.md. */
#ifndef KILN_OPTIM_PARAM_RATES_H
#define KILN_OPTIM_PARAM_RATES_H

#include "core/param.h"

struct param_rates {
    /* NULL: nothing; else words with commas between them: "embeddings", a layer "3", layers "0-5", the name
     * of a parameter or what it begins with before a dot, or a pattern with * and ? */
    const char *freeze;
    /* d: layer l of L learns at rate d^(L - l), the embeddings as layer -1; heads at 1. 0: all at 1 */
    double layer_decay;
};

/* Sets the rates of a table of a model of so many layers.  STATUS_USAGE for a word of --freeze that matches
 * nothing, or where nothing is left to train. */
struct status param_rates_apply(struct param_table *t, int64_t n_layers, const struct param_rates *r);

/* Elements of all frozen parameters. */
int64_t param_rates_count_frozen(const struct param_table *t);

/* The lowest layer with a parameter that is not frozen (nn/model.h): no backward runs below it. */
int64_t param_rates_lowest(const struct param_table *t);

#endif
