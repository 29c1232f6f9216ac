/* squad_score: scores predictions: exact match and token F1, in percent.
 *
 * The rule: every digit is that of the official scripts, evaluate-v1.1.py and, for files whose questions may
 * have no answer, evaluate-v2.0.py; a question without a prediction counts 0 in both. Source: Rajpurkar et
 * al. 2016 (arXiv:1606.05250) section 6.1; 2018 (arXiv:1806.03822) section 5.2. */
#ifndef KILN_DATA_SQUAD_SCORE_H
#define KILN_DATA_SQUAD_SCORE_H

#include "core/json.h"
#include "data/squad_examples.h"

/* The scores of some questions, 0 to 100. */
struct squad_part {
    double exact_match, f1;
    int64_t n; /* questions */
};

struct squad_scores {
    double exact_match, f1; /* 0 to 100 */
    int64_t n;              /* questions */
    int64_t n_missing;      /* questions without a prediction: each is a warning */
    bool version_2;         /* questions may have no answer */
    struct squad_part answerable, unanswerable;
};

/* Scores {id: text} against examples that were not read for training (reading for training leaves some out);
 * `source` names the predictions in messages.  STATUS_DATA if they are not an object of strings. */
struct status squad_score(struct squad_scores *s, const struct squad_examples *e, const json_t *predictions,
                          const char *source);

/* Scores a file of predictions against a dataset file of this encoding (corpus/text_file.h; NULL: UTF-8). */
struct status squad_score_files(struct squad_scores *s, const char *dataset_path, const char *encoding,
                                const char *predictions_path);

/* Appends `{"exact_match": 86.2, "f1": 92.1}`, as the official script prints it. */
void squad_score_to_text(struct buf *out, const struct squad_scores *s);

/* Appends a table to the array `tables`, as report/report_chart draws it: the scores of all questions and, in
 * v2, of those with and without an answer. */
void squad_score_tables(json_t *tables, const struct squad_scores *s);

#endif
