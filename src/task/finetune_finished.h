/* finetune_finished: what an earlier run of fine-tuning finished in --output_dir, which training would
 * replace.
 *
 * The rule: it is replaced only where the flags say so; predictions alone are made again without a word. */
#ifndef KILN_TASK_FINETUNE_FINISHED_H
#define KILN_TASK_FINETUNE_FINISHED_H

#include "task/finetune.h"

/* STATUS_USAGE names a fine-tuned model, or the file of predictions, that this run would replace without
 * being told to, or a model of another class, which no flag lets it replace. */
struct status finetune_finished_check(const struct finetune_options *o, const struct finetune_task *task);

/* With --overwrite_output_dir: removes them, and the checkpoints of runs of this command; nothing where the
 * run goes on, as `kiln launch` makes it do after a failure.  STATUS_USAGE, and nothing is removed, if
 * `from`, the directory that the run starts from, would go. */
struct status finetune_finished_remove(const struct finetune_options *o, const struct finetune_task *task,
                                       const char *from);

#endif
