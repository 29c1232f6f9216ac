/* drop_in_logs: a run's events in the files that the replaced scripts write, under their keys: dllogger's and
 * TensorBoard's.  Two tables say which field of which event becomes what; this is the only place that knows them.
 *
 * The rule: no log ever ends a training.  A file that cannot be written is named in one warning and left alone. */
#ifndef KILN_REPORT_DROP_IN_LOGS_H
#define KILN_REPORT_DROP_IN_LOGS_H

#include "io/dllog.h"
#include "io/tfevents.h"

/* Which script was replaced. */
enum drop_in_task { DROP_IN_PRETRAINING, DROP_IN_FINETUNING };

enum drop_in_stream { STREAM_TRAIN, STREAM_EVAL, N_STREAMS };

struct drop_in_logs {
    const struct dllog_name *dllog_names; /* end in a row of NULL */
    const struct tfevents_name *tfevents_names;
    struct dllog dllog;
    char directory[1024]; /* of the event files; "": none */
    struct tfevents streams[N_STREAMS];
    bool stream_open[N_STREAMS];
};

struct drop_in_options {
    enum drop_in_task task;
    const char *dllogger_file;  /* NULL: none, and nothing on standard output */
    const char *tensorboard_in; /* event files go to DIRECTORY/worker_0; NULL: none */
    bool append;                /* the run goes on: so does the dllogger file */
};

/* With a dllogger file its lines also go to standard output. */
void drop_in_logs_open(struct drop_in_logs *l, const struct drop_in_options *o);
void drop_in_logs_close(struct drop_in_logs *l);

/* One event: its name and its fields, "time" among them.  `step` counts in the phase, `global_step` over both. */
void drop_in_logs_event(struct drop_in_logs *l, const char *event, const json_t *fields, int64_t epoch,
                        int64_t step, int64_t global_step);

#endif
