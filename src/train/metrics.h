/* metrics: what a run tells - the live line on a terminal, plain lines elsewhere, and one JSON object a line
 * in a file that is appended to when a run goes on. */
#ifndef KILN_TRAIN_METRICS_H
#define KILN_TRAIN_METRICS_H

#include "core/json.h"
#include "core/progress.h"
#include "train/evaluate.h"

#include <stdio.h>

struct metrics {
    FILE *file; /* the JSON lines; NULL: none */
    char path[1024];
    struct progress progress;
    int phase;
    int64_t first_step, last_step; /* in-phase steps of this run */
    int64_t log_every;             /* steps between plain lines and between JSON lines */
    int64_t start_ns;
    double n_sequences, n_tokens; /* trained on in this run */
    /* since the last line */
    int64_t window_start_ns;
    int64_t window_steps;
    double window_sequences, window_tokens;
    struct trainer_result window; /* sums over its steps */
    struct trainer_result latest_evaluation;
    bool evaluated;
    struct unigram unigram;
};

/* Opens PATH for appending (NULL: no file). */
struct status metrics_open(struct metrics *m, const char *path, int phase, int64_t first_step,
                           int64_t last_step, int64_t log_every, bool progress);
void metrics_close(struct metrics *m);

/* One event with its fields, consumed: {"event": ..., "time": ..., "phase": ..., ...}. */
void metrics_event(struct metrics *m, const char *event, json_t *fields);

/* After each optimizer step: updates the live line, and logs every log_every steps. */
void metrics_step(struct metrics *m, int64_t step, const struct bert_step *batch, double lr,
                  const struct trainer_result *r);

/* After an evaluation: one line. */
void metrics_evaluation(struct metrics *m, int64_t step, const struct trainer_result *r,
                        const struct unigram *u);

/* At the end of a run: totals and rates. */
void metrics_summary(struct metrics *m, int64_t step);

#endif
