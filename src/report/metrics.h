/* metrics: all output of a run: the live line on a terminal and plain lines elsewhere; each event as a JSON
 * line of log.jsonl, which a resumed run appends to; the same events in the replaced scripts' logs
 * (report/drop_in_logs); and report.html, drawn from log.jsonl (report/report_page).
 *
 * The rule: a run starts only if log.jsonl can be opened; no later failure to write ends training. */
#ifndef KILN_REPORT_METRICS_H
#define KILN_REPORT_METRICS_H

#include "core/json.h"
#include "core/progress.h"
#include "report/drop_in_logs.h"
#include "report/line_pace.h"
#include "report/memory_use.h"
#include "train/evaluate.h"

#include <stdio.h>

struct metrics_options {
    const char *directory;     /* directory of log.jsonl, report.html and worker_0 */
    bool silent;               /* nothing is written, since another rank does */
    const char *dllogger_file; /* --json-summary; NULL: none */
    bool tensorboard;          /* --enable-tensorboard-logging */
    bool progress;             /* a live line on a terminal */
    struct memory_use memory;  /* --log_memory_usage: asked at each of these lines, too; device NULL: not */
    int64_t log_every;         /* steps between JSON lines */
    int64_t lines_every;       /* steps between lines where no terminal shows a live one; 0: by the clock */
    int64_t process_start_ns;  /* time at which the command began */
};

/* The point at which a run begins, and the contents of its first event. */
struct metrics_start {
    int phase;
    int64_t step, global_step;                     /* steps before this run: in-phase, over both phases */
    int64_t last_step;                             /* in-phase step after which this run ends */
    double total_s, elapsed_s;                     /* seconds of a run that ends by the clock, else 0 */
    double steps_per_epoch;                        /* 0: no epochs */
    const char *task;                              /* "pre-training" */
    enum drop_in_task drop_in;                     /* the replaced script whose logs to write */
    const struct deepspeed_log_options *deepspeed; /* logs of its DeepSpeed variant; NULL: it is not that */
    const struct megatron_log_options *megatron;   /* logs of Megatron-DeepSpeed's script; NULL: not that */
    const struct trainer *trainer;
    int n_ranks;            /* ranks that train together */
    const json_t *flags;    /* flags as given, for the logs; may be NULL */
    const char *command;    /* the command line; may be NULL */
    double data_tokens;     /* tokens of the training data; 0: unknown */
    double bytes_per_token; /* bytes of held-out text for each predicted token; 0: unknown */
};

/* Steps since a line; those that were skipped are not in it. */
struct metrics_window {
    int64_t start_ns, steps;
    double sequences, tokens;
    double means[MODEL_MOST_SUMS]; /* means of the model's sums, added up over the steps */
    double grad_norm;
};

struct metrics {
    struct metrics_options options;
    char directory[1024];
    const struct model *model; /* the model whose sums are logged */
    struct record_log log;     /* the JSON lines; closed: none */
    struct drop_in_logs drop_in;
    struct progress progress;
    struct line_pace lines;
    int phase;
    int64_t first_step, last_step; /* in-phase steps of this run */
    int64_t step, phase_offset;    /* latest in-phase step; global step of the phase's step 0 */
    double steps_per_epoch;
    double total_s, left_s; /* seconds of a run by the clock; left_s: at its start */
    bool started;
    int64_t start_ns;
    int64_t evaluation_ns;        /* time of all evaluations: rates are of training alone */
    int64_t given_up_ns;          /* time in a step that was not taken */
    int64_t next_report_ns;       /* report.html is not drawn before this */
    double n_sequences, n_tokens; /* sequences and tokens of training in this run */
    double final_loss;            /* mean of the last line's steps */
    struct metrics_window logged; /* steps since the last JSON line */
    struct metrics_window told;   /* steps since the last line for people */
    double bytes_per_token;       /* bytes of text a token, from metrics_start; 0: unknown */
    bool evaluated;
    double heldout_means[MODEL_MOST_SUMS]; /* means of the latest evaluation */
    struct ngram_score ngram;              /* logged with each evaluation; n_samples 0: there is none */
};

/* Opens log.jsonl for appending.  Strings are borrowed until metrics_close. */
struct status metrics_open(struct metrics *m, const struct metrics_options *o);

/* The first event, "start"; the clock of the run begins. */
void metrics_start(struct metrics *m, const struct metrics_start *start);

/* Draws report.html for the last time. */
void metrics_close(struct metrics *m);

/* Logs one event with its fields, which are consumed: {"event": ..., "time": ..., "phase": ..., ...}. */
void metrics_event(struct metrics *m, const char *event, json_t *fields);

/* Whether a line for people is due after a step: on a terminal the live one, elsewhere by line_pace; and
 * that line. */
bool metrics_line_is_due(struct metrics *m, int64_t step);
void metrics_line(struct metrics *m, const char *text);

/* Within a step that began at begin_ns: n_done of n micro-batches are computed, of n_tokens tokens in all.
 * A line if one is due. */
void metrics_in_step(struct metrics *m, int64_t step, int64_t n_done, int64_t n, double n_tokens,
                     int64_t begin_ns);

/* After each optimizer step: updates the live line, and logs every log_every steps. */
void metrics_step(struct metrics *m, int64_t step, const struct batch_step *batch, double lr,
                  const struct trainer_result *r);

/* Instead of metrics_step, for a step whose gradients overflowed in fp16.  Its losses may be NaN and count in
 * no mean. */
void metrics_skipped(struct metrics *m, int64_t step, const struct trainer_result *r);

/* Logs the loss of counts of n-grams on held-out text, before the first evaluation: one line, and the event
 * "ngram". */
void metrics_ngram(struct metrics *m, const struct ngram_score *score);

/* Logs an evaluation: one line, and the event "evaluation". */
void metrics_evaluation(struct metrics *m, int64_t step, const struct trainer_result *r,
                        const struct unigram *u, int64_t evaluation_ns);

/* Logs what the model makes of a prompt, text[0..n) in UTF-8: one line, and the event "sample". */
void metrics_sample(struct metrics *m, int64_t step, const char *prompt, const char *text, size_t n);

/* Logs an evaluation of held-out samples that no other evaluation has: one line, which begins with `of`, the
 * place of the run; and the event "evaluation" with `plots`, else "test". */
void metrics_validation(struct metrics *m, int64_t step, const struct trainer_result *r, const char *of,
                        int64_t n_samples, bool plots, int64_t evaluation_ns);

/* At the end of a run: totals and rates. */
void metrics_summary(struct metrics *m, int64_t step);

#endif
