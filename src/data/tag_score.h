/* tag_score: precision, recall and F1 of the entities that the labels of words mark, and the fraction of
 * labels that are correct.
 *
 * The rule: every entity and every count is that of seqeval's default (1.2.2, no mode, no scheme), over
 * labels like "B-PER" in any order.  An entity begins at B or S, at I or E after O, E or S, and where the
 * type changes.  Source: get_entities, start_of_chunk and end_of_chunk of seqeval. */
#ifndef KILN_DATA_TAG_SCORE_H
#define KILN_DATA_TAG_SCORE_H

#include "core/buf.h"
#include "core/json.h"
#include "data/score_list.h"

#include <stdint.h>

/* The state of the walk over one sequence of labels. */
struct tag_walk {
    char tag;         /* tag of the label before: 'B' */
    const char *type; /* type of that label */
    int64_t begin;    /* label at which the open entity begins */
    int64_t at;       /* labels so far, with one 'O' after each sentence */
};

/* The entities of one type. */
struct tag_type {
    const char *type;
    int64_t n_truth, n_said, n_hit;
};

struct tag_counts {
    struct tag_walk truth, said;
    int64_t n_truth, n_said, n_hit; /* entities */
    int64_t n_tokens, n_right;
    struct buf types; /* struct tag_type, in the order of their first entity */
};

/* Adds a sentence to the counts, which are zeroed before the first one: its n labels by name, none of them
 * "".  The names must stay valid as long as the counts. */
void tag_score_add(struct tag_counts *c, const char *const *truth, const char *const *said, int64_t n);

/* Words [begin, end) of a sentence, by the type of what they name. */
struct tag_entity {
    const char *type; /* "PER"; part of a label, or "_" where labels have no types */
    int64_t begin, end;
};

/* Finds the entities that the n labels of a sentence mark, at most n, and returns how many they are. */
int64_t tag_score_entities(struct tag_entity *out, const char *const *labels, int64_t n);

/* Precision, recall and F1 of all entities, and the accuracy of the labels, each 0 to 1. */
struct score_list tag_score(const struct tag_counts *c);

/* Appends a table of the scores of each type to the array `tables`, as report/report_chart draws it.
 * STATUS_MEMORY. */
struct status tag_score_tables(json_t *tables, const struct tag_counts *c);

/* Frees the counts of types.  Safe on a zeroed struct. */
void tag_counts_fini(struct tag_counts *c);

#endif
