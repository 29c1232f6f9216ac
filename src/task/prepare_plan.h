/* prepare_plan: the log lines of `kiln prepare` before it begins: what it will read, and what memory, disk
 * and time that takes.
 *
 * The rule: figures come from a sample of the user's own text where there is one, and are called
 * estimates. */
#ifndef KILN_TASK_PREPARE_PLAN_H
#define KILN_TASK_PREPARE_PLAN_H

#include "task/prepare_run.h"

struct prepare_plan {
    uint64_t memory_bytes;
    uint64_t disk_bytes; /* bytes of all output, and of what is in .prepare meanwhile */
    double seconds;      /* seconds of reading; below 0: unknown */
    bool has_sample;
    struct pass_state sample; /* counts of the sample */
    bool sample_is_whole;     /* the sample was all of the text */
};

/* Looks at the files, and reads text for up to `sample_seconds` (0: no sample).  STATUS_DATA: a file is not
 * text. */
struct status prepare_plan_make(struct prepare_plan *p, const struct prepare_config *c,
                                const struct corpus *corpus, double sample_seconds);

/* Logs the plan: memory, disk and time, and how much of the text the estimates come from. */
void prepare_plan_tell(const struct prepare_plan *p, const struct prepare_config *c,
                       const struct corpus *corpus);

/* STATUS_IO if the disk clearly cannot hold the output: it has not half of what is estimated. */
struct status prepare_plan_check_disk(const struct prepare_plan *p, const struct prepare_config *c);

/* ---- what is said of the text that was read, and of what was written (prepare_report.c) ---- */

/* Logs what was read so far, of total_bytes in the files, in state->seconds. */
void prepare_report_text(const struct pass_state *state, uint64_t total_bytes);

/* Logs the counts of each file (corpus_file_counts_json), if there are a few. */
void prepare_report_sources(const json_t *sources);

/* Appends the same as a line of JSON, with the stores. */
struct status prepare_report_json(struct buf *out, const struct pass_report *report);

/* Logs what each token store has, and warns if nothing is held out. */
void prepare_report_stores(const struct prepare_config *c, const struct token_store_info infos[STORE_COUNT]);

/* Logs the files of a set, and warns if there are none for testing. */
void prepare_report_set(const struct prepare_config *c, const struct prepare_set *set,
                        const struct shard_writer_report reports[STORE_COUNT]);

#endif
