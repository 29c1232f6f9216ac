/* prepare_report: what `kiln prepare` says of the text that it has read, and of what it wrote. */
#ifndef KILN_TASK_PREPARE_REPORT_H
#define KILN_TASK_PREPARE_REPORT_H

#include "task/prepare_run.h"

/* Of total_bytes in the files, what was read so far, in state->seconds. */
void prepare_report_text(const struct prepare_config *c, const struct pass_state *state,
                         uint64_t total_bytes);

void prepare_report_stores(const struct prepare_config *c, const struct token_store_info infos[STORE_COUNT]);

void prepare_report_set(const struct prepare_config *c, const struct prepare_set *set,
                        const struct shard_writer_report reports[STORE_COUNT]);

#endif
