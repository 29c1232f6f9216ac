/* prepare_plan: what `kiln prepare` says before it begins: what it will read, and what memory, disk and time
 * that takes.
 *
 * The rule: figures come from a sample of the user's own text where there is one, and are called
 * estimates. */
#ifndef KILN_TASK_PREPARE_PLAN_H
#define KILN_TASK_PREPARE_PLAN_H

#include "task/prepare_run.h"

struct prepare_plan {
    uint64_t memory_bytes;
    uint64_t disk_bytes; /* of all output, and of what is in .prepare meanwhile */
    double seconds;      /* of reading; below 0: unknown */
    bool has_sample;
    struct pass_state sample; /* what was found in it */
    bool sample_is_whole;     /* it was all of the text */
};

/* Looks at the files, and reads text for up to `sample_seconds` (0: no sample).  STATUS_DATA: a file is not
 * text. */
struct status prepare_plan_make(struct prepare_plan *p, const struct prepare_config *c,
                                const struct corpus *corpus, double sample_seconds);

void prepare_plan_tell(const struct prepare_plan *p, const struct prepare_config *c,
                       const struct corpus *corpus);

/* STATUS_IO if the disk clearly cannot hold the output: it has not half of what is estimated. */
struct status prepare_plan_check_disk(const struct prepare_plan *p, const struct prepare_config *c);

#endif
