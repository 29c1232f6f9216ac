/* deepspeed_log: what the replaced DeepSpeed script leaves besides dllogger's records: lines on standard
 * output, and the scalars of DeepSpeed's event files.
 *
 * The rule: each line has the original's words and fields, which programs look for; where the original names
 * its source file in brackets, kiln names itself.  A log never ends training.  docs/formats.md lists the
 * lines. Sources: the replaced run_pretraining.py, DeepSpeed 0.7's runtime/engine.py and utils/timer.py. */
#ifndef KILN_REPORT_DEEPSPEED_LOG_H
#define KILN_REPORT_DEEPSPEED_LOG_H

#include "io/tfevents.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

#include <stdint.h>

/* One optimizer step, in-phase, for the logs of other programs. */
struct logged_step {
    int64_t epoch, step;
    double wall_s, loss, lr, grad_norm, loss_scale, weight_norm;
    int64_t n_zeros; /* zeros in the gradients; 0 if they are not counted */
    bool skipped;    /* gradients overflowed, and the loss says nothing */
};

/* Settings of logs in DeepSpeed's JSON. */
struct deepspeed_log_settings {
    bool on; /* the run is one of this script */
    int64_t zero_stage, steps_per_print;
    char tensorboard[1024]; /* directory of the event files: OUTPUT_PATH/JOB_NAME; "": none */
};

/* A run; pointers are borrowed until deepspeed_log_close. */
struct deepspeed_log_options {
    struct deepspeed_log_settings settings;
    const char *device;      /* "cpu" */
    const char *backend;     /* backend of collectives: "self" */
    const char *checkpoints; /* directory that lines of saves name */
    struct optimizer optimizer;
    struct schedule schedule;
    int64_t batch_size; /* sequences of a step over all ranks */
    int64_t n_micro;    /* micro-batches of a step on the first rank */
    int64_t n_skipped;  /* skipped steps of the phase before the run resumes */
    int n_ranks;
    bool emulates; /* a single rank stands for all */
    bool has_loss_scale;
};

struct deepspeed_log {
    struct deepspeed_log_options options;
    bool prints;
    struct tfevents events;
    int64_t n_skipped;
    int64_t start_ns, window_ns;      /* begin of this run, and of the steps since the last line */
    int64_t first_step, window_first; /* steps done before each of the two */
};

/* Without `on` all calls do nothing.  With `prints` lines go to standard output; the first ones now.  `step`
 * is the in-phase step that the run begins at. */
void deepspeed_log_open(struct deepspeed_log *l, const struct deepspeed_log_options *o, bool prints,
                        int64_t step);
void deepspeed_log_close(struct deepspeed_log *l);

/* Logs that a checkpoint is complete. */
void deepspeed_log_saved(struct deepspeed_log *l, int64_t global_step);

/* The time of an evaluation counts in no rate. */
void deepspeed_log_leave_out(struct deepspeed_log *l, int64_t evaluation_ns);

/* The lines of a step, if any is due. */
void deepspeed_log_step(struct deepspeed_log *l, const struct logged_step *s);

#endif
