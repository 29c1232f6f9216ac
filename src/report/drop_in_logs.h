/* drop_in_logs: writes a run's events to the log files of the replaced scripts, under the scripts' keys:
 * dllogger's and TensorBoard's.  Two tables map the fields of events to keys; no other file knows the keys.
 *
 * The rule: a log never ends training.  A file that cannot be written is named in one warning and not written
 * any more. */
#ifndef KILN_REPORT_DROP_IN_LOGS_H
#define KILN_REPORT_DROP_IN_LOGS_H

#include "io/dllog.h"
#include "io/tfevents.h"
#include "nn/model.h"
#include "report/deepspeed_log.h"
#include "report/megatron_log.h"

/* The script that was replaced. */
enum drop_in_task { DROP_IN_PRETRAINING, DROP_IN_FINETUNING };

enum drop_in_stream { STREAM_TRAIN, STREAM_EVAL, N_STREAMS };

struct drop_in_logs {
    const struct dllog_name *dllog_names; /* rows of names, which end in a row of NULL */
    const struct tfevents_name *tfevents_names;
    const struct model *model; /* the model whose sums are logged */
    struct dllog dllog;
    char directory[1024]; /* directory of the event files; "": none */
    struct tfevents streams[N_STREAMS];
    int64_t first_step; /* first step of the run, over both phases */
    bool stream_open[N_STREAMS];
    struct deepspeed_log deepspeed;
    struct megatron_log megatron;
};

struct drop_in_options {
    enum drop_in_task task;
    const char *dllogger_file;                     /* NULL: none, and nothing on standard output */
    const char *tensorboard_in;                    /* event files go to DIRECTORY/worker_0; NULL: none */
    bool append;                                   /* the run is resumed: append to the dllogger file */
    const struct model *model;                     /* borrowed */
    const struct deepspeed_log_options *deepspeed; /* NULL: the run is not one of the DeepSpeed script */
    const struct megatron_log_options *megatron;   /* NULL: it is not one of Megatron-DeepSpeed's */
    int64_t step, global_step;                     /* steps before this run: in-phase, over both phases */
};

/* With a dllogger file its lines also go to standard output. */
void drop_in_logs_open(struct drop_in_logs *l, const struct drop_in_options *o);
void drop_in_logs_close(struct drop_in_logs *l);

/* Logs one event: its name and its fields, including "time".  `step` counts in the phase, `global_step` over
 * both. */
void drop_in_logs_event(struct drop_in_logs *l, const char *event, const json_t *fields, int64_t epoch,
                        int64_t step, int64_t global_step);

/* Logs one step in the lines of DeepSpeed's and Megatron-DeepSpeed's scripts. */
void drop_in_logs_step(struct drop_in_logs *l, const struct logged_step *s);

#endif
