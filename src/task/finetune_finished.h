/* finetune_finished: what an earlier run of fine-tuning finished in --output_dir, which training would
 * replace.
 *
 * The rule: it is replaced only where the flags say so; predictions alone are made again without a word. */
#ifndef KILN_TASK_FINETUNE_FINISHED_H
#define KILN_TASK_FINETUNE_FINISHED_H

#include "core/status.h"
#include "task/finetune_options.h"

/* STATUS_USAGE names a fine-tuned model, or the file of predictions, that this run would replace without
 * being told to. */
struct status finetune_finished_check(const struct finetune_options *o, const char *predictions);

/* With --overwrite_output_dir: removes them, and the checkpoints of that run; nothing where the run goes on,
 * as `kiln launch` makes it do after a failure. */
struct status finetune_finished_remove(const struct finetune_options *o, const char *predictions);

#endif
