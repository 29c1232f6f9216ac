/* tag_score: precision, recall and F1 of the entities that labels of tokens mark, and the share of tokens that are right.
 *
 * The rule: every count is that of seqeval's default (1.2.2, no mode, no scheme), over labels like "B-PER", whatever order
 * they stand in: an entity begins at B or S, at I or E behind O, E or S, and where the type changes.  Source:
 * get_entities, start_of_chunk and end_of_chunk of seqeval. */
#ifndef KILN_DATA_TAG_SCORE_H
#define KILN_DATA_TAG_SCORE_H

#include "data/score_list.h"

#include <stdint.h>

/* Where the walk over the labels of one side stands. */
struct tag_walk {
    char tag;         /* of the label before: 'B' */
    const char *type; /* of it */
    int64_t begin;    /* of the entity that is open */
    int64_t at;       /* labels so far, with one 'O' behind each sentence */
};

struct tag_counts {
    struct tag_walk truth, said;
    int64_t n_truth, n_said, n_hit; /* entities */
    int64_t n_tokens, n_right;
};

/* Adds a sentence to counts that were zeroed before the first: its n labels by name, none of them "", which must stay
 * until the next sentence was added. */
void tag_score_add(struct tag_counts *c, const char *const *truth, const char *const *said, int64_t n);

struct score_list tag_score(const struct tag_counts *c);

#endif
