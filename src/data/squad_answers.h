/* squad_answers: from the logits of features to answers, their probabilities and their places.
 *
 * The rule: the n best answers of a question are those of run_squad.py for the same logits, with three
 * differences. Padding has no logits here, so it cannot be one of the best starts and ends.  The
 * empty answer of a v2 question has that question's null logits; the reference gives all of them those of the
 * last question.  A question without any candidate gets the answer "" (v2) or "empty" (v1); the reference
 * fails or leaves it out. Source: Devlin et al. 2018 (arXiv:1810.04805) sections 4.2 and 4.3;
 * get_answers of run_squad.py. */
#ifndef KILN_DATA_SQUAD_ANSWERS_H
#define KILN_DATA_SQUAD_ANSWERS_H

#include "data/squad_align.h"
#include "data/squad_features.h"

enum { SQUAD_MAX_N_BEST = 1000 };

struct squad_answer_options {
    int64_t n_best;                   /* 1 to SQUAD_MAX_N_BEST; 20 */
    int64_t max_answer_length;        /* tokens, at least 1; 30 */
    bool version_2;                   /* questions may have no answer */
    double null_score_diff_threshold; /* "" if the null score is higher than the best answer's by more */
};

/* Special values of a place. */
enum { SQUAD_PLACE_NULL = -1, SQUAD_PLACE_EMPTY = -2 };

struct squad_candidate {
    int32_t start, end; /* bytes [start, end) of the context; both SQUAD_PLACE_NULL: ""; _EMPTY: "empty" */
    float start_logit, end_logit;
    double probability; /* probability among the n best; set by squad_answers_finish */
};

struct squad_result {
    int64_t first;    /* in squad_answers.best; the best come first */
    int32_t n;        /* at least 1 */
    int32_t answer;   /* index of the answer among them; -1: "", the question has no answer */
    double null_diff; /* null score minus the best answer's; 0 if not v2 or there is no answer */
};

struct squad_answers {
    const struct squad_examples *examples;
    const struct squad_features *features;
    struct squad_answer_options options;
    struct squad_align align;
    struct squad_candidate *found;    /* [features, n_best] */
    int32_t *n_found;                 /* [features]; -1 until the feature is added */
    float *null_logits;               /* [features, 2] start and end of [CLS] */
    struct squad_span *spans;         /* [n_best, n_best] scratch */
    int32_t *best_starts, *best_ends; /* [n_best] scratch */
    struct buf texts;                 /* scratch */
    struct buf best;                  /* struct squad_candidate of all results */
    struct squad_result *results;     /* [examples] */
    int64_t *order;                   /* [features] in which a request packs them: the longest first */
};

/* Borrows all but the options.  STATUS_USAGE: options outside their limits. */
struct status squad_answers_init(struct squad_answers *a, const struct squad_examples *e,
                                 const struct squad_features *f, const struct tokenizer *tokenizer,
                                 struct squad_answer_options o);
void squad_answers_fini(struct squad_answers *a);

/* Takes the logits of a feature, [its length, 2]: of a start and of an end at each position.  Features may
 * come in any order.  STATUS_NUMERIC if one is not finite. */
struct status squad_answers_add(struct squad_answers *a, int64_t feature, const float *logits);

/* Merges the windows of each question, once all features were added. */
struct status squad_answers_finish(struct squad_answers *a);

/* Candidate k of a question, 0 is the best. */
const struct squad_candidate *squad_answers_candidate(const struct squad_answers *a, int64_t example,
                                                      int64_t k);

/* Appends the text of a candidate, with one space between words. */
void squad_answers_text(struct buf *out, const struct squad_answers *a, int64_t example,
                        const struct squad_candidate *c);

/* Writes {id: text} and {id: [{text, probability, start_logit, end_logit}]} as Python's json.dumps does with
 * indent 4, each file complete or not at all.  A NULL path is not written. */
struct status squad_answers_write(const struct squad_answers *a, const char *predictions_path,
                                  const char *nbest_path);

#endif
