/* blimp_report: how often a model finds the right sentence of a pair more likely: the results of `kiln
 * blimp`, for people and as JSON.  A tie is wrong. */
#ifndef KILN_CMD_BLIMP_REPORT_H
#define KILN_CMD_BLIMP_REPORT_H

#include "core/json.h"
#include "data/sentence_pairs.h"
#include "serve/likelihood.h"

struct blimp_tally {
    int64_t n, n_right, n_ties;
};

struct blimp_report {
    const struct sentence_pairs *pairs;
    const struct likelihood *texts; /* 2 i is the right sentence of pair i, 2 i + 1 the wrong one */
    struct blimp_tally all, *levels[PAIR_N_LEVELS]; /* of each group of a level */
    int64_t n_same; /* pairs whose sentences have the same tokens, so that they tie */
};

/* Counts the pairs, borrowed; the texts have been computed. */
struct status blimp_report_init(struct blimp_report *r, const struct sentence_pairs *pairs,
                                const struct likelihood *texts);
void blimp_report_fini(struct blimp_report *r);

/* The table by paradigm, class, field and in all. */
void blimp_report_append(struct buf *b, const struct blimp_report *r);

/* The same numbers; the caller json_decref's it; NULL without memory. */
json_t *blimp_report_json(const struct blimp_report *r);

/* Appends a line for each pair: its file, its line, and both logarithms with all digits. */
struct status blimp_report_scores(struct buf *b, const struct blimp_report *r);

#endif
