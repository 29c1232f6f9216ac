/* megatron_log: what the replaced script of Megatron-DeepSpeed leaves: lines on standard output, and
 * the scalars of its event files.
 *
 * The rule: each line has the original's words, fields and widths, which programs look for, and each
 * scalar its tag. A log never ends training.  docs/formats.md lists them.  Sources: megatron/training.py,
 * arguments.py and checkpointing.py of Megatron-DeepSpeed. */
#ifndef KILN_REPORT_MEGATRON_LOG_H
#define KILN_REPORT_MEGATRON_LOG_H

#include "core/json.h"
#include "io/tfevents.h"
#include "report/deepspeed_log.h"
#include "optim/schedule.h"

/* Settings of logs in the flags. */
struct megatron_log_settings {
    bool on;                 /* the run is one of this script */
    const char *tensorboard; /* directory of the event files; NULL: none */
    int64_t events_every;    /* steps between their scalars */
    bool learning_rate, batch_size, loss_scale, perplexity, timers; /* whether event files have them */
};

/* A run; pointers are borrowed until megatron_log_close. */
struct megatron_log_options {
    struct megatron_log_settings settings;
    const char *checkpoints;  /* directory that lines of saves name */
    const json_t *flags;      /* all flags by name, for the list of arguments */
    struct schedule schedule; /* the schedule; schedule.growth has the samples of each step */
    int64_t n_steps, log_every;
    int64_t seq_length, n_layers, hidden_size, vocab_rows, n_params;
    int n_ranks;
    bool recomputes;     /* activations are computed again in the backward */
    bool has_loss_scale; /* fp16; else the scale is logged as 0 */
    bool has_weight_norm;
};

/* Steps since a line, and the time that they have waited for their batches. */
struct megatron_window {
    int64_t start_ns, batch_ns, n_steps, n_skipped;
    double loss; /* sum over the steps that were not skipped */
};

struct megatron_log {
    struct megatron_log_options options;
    struct tfevents events;
    struct megatron_window window;
    double seconds_per_step; /* seconds a step in the last line; 0: there was none */
};

/* Without `on` all calls do nothing.  Prints the arguments.  `step`: in-phase steps done before this run. */
void megatron_log_open(struct megatron_log *l, const struct megatron_log_options *o, int64_t step);
void megatron_log_close(struct megatron_log *l);

/* The line shows the learning rate of the step that follows, as the original's does, since it moves its
 * schedule after a step (docs/quirks.md). */
void megatron_log_step(struct megatron_log *l, const struct logged_step *s);

/* Losses of held-out samples after step `step`; `of` says where the run is: "iteration 100".  Without
 * `plots` they are in no event file.  The time of it counts in no rate. */
void megatron_log_validation(struct megatron_log *l, int64_t step, double wall_s, const char *of, double loss,
                             bool plots, int64_t ns);

/* Log that a checkpoint is begun, and that it is complete, after so many seconds. */
void megatron_log_saving(struct megatron_log *l, int64_t step);
void megatron_log_saved(struct megatron_log *l, int64_t step, double seconds);

/* 1e12 operations in a second and on a rank of a step of `batch` samples in `seconds`, as the original
 * counts them. */
double megatron_log_tflops(const struct megatron_log_options *o, int64_t batch, double seconds);

#endif
