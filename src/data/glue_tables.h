/* glue_tables: the tables of GLUE's small tasks (Wang et al. 2018, arXiv:1804.07461) as their authors publish
 * them, turned into JSON lines that `kiln classify` reads, and what is known of each task.
 *
 * The rule: a task is a row of data.  The tables are tab-separated without quotes; a first line of names is
 * recognised by the name of the column of labels. */
#ifndef KILN_DATA_GLUE_TABLES_H
#define KILN_DATA_GLUE_TABLES_H

#include "core/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum { GLUE_N_TASKS = 5, GLUE_MOST_LAYOUTS = 2, GLUE_MOST_FILES = 2 };
enum glue_part { GLUE_TRAIN, GLUE_DEV, GLUE_N_PARTS };

/* One of the forms in which a task is published. */
struct glue_layout {
    const char
        *files[GLUE_N_PARTS]
              [GLUE_MOST_FILES]; /* in the task's directory; a part is all of them, one after the other */
    int text, pair, label;       /* columns, from 0; pair -1: a single text */
};

struct glue_task {
    const char *name, *directory;
    const char *labels[2];    /* the two of a classification; NULL: numbers from 0 to 5 */
    const char *metric;       /* of data/class_score.h, the one that published tables have */
    const char *metric_title; /* in tables */
    const char *learning_rate, *epochs, *batch;    /* flags of `kiln classify` */
    struct glue_layout layouts[GLUE_MOST_LAYOUTS]; /* the first that is there is read */
};

extern const struct glue_task glue_tasks[GLUE_N_TASKS];

/* Appends a part of a task from data_dir/DIRECTORY as lines {"sentence1": ..., "sentence2": ..., "label":
 * ...}, or {"sentence": ..., "label": ...} for single texts.  STATUS_DATA names the file and the line: too
 * few columns, an empty text, a label that the task does not have, bytes that are not of the encoding
 * (corpus/text_file.h; NULL: UTF-8). */
struct status glue_tables_read(struct buf *lines, const struct glue_task *task, enum glue_part part,
                               const char *data_dir, const char *encoding);

#endif
