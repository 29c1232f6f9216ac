/* seed_series: the same fine-tuning under several seeds (--seeds K), and the spread of what the runs
 * score.
 *
 * Run k of K has the seed --seed + k and is a complete run of its own in OUTPUT_DIR/seed_S: with logs,
 * checkpoints and a model.  Its result.json is written last; a series resumes (--resume_from_checkpoint) with
 * the runs that lack one.  Devlin et al. 2018 (arXiv:1810.04805) section 4.1 says why: small data sets differ
 * from seed to seed. */
#ifndef KILN_TASK_SEED_SERIES_H
#define KILN_TASK_SEED_SERIES_H

#include "task/finetune.h"

struct seed_series {
    const struct finetune_options *options; /* options of the series; seeds > 0 */

    /* Runs the command with these options instead of the series'. */
    struct status (*run)(const void *self, const struct finetune_options *one);
    const void *self;
};

/* Prints the table to standard output and writes it as OUTPUT_DIR/seeds.json: of each score its values, their
 * mean, and their sample standard deviation (K - 1 in the denominator).  With --dry-run it plans one run.
 * The first run that fails ends it. */
struct status seed_series_run(const struct seed_series *s);

#endif
