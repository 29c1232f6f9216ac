/* score_list: metrics by name. */
#ifndef KILN_DATA_SCORE_LIST_H
#define KILN_DATA_SCORE_LIST_H

#include "core/status.h"

enum { SCORE_LIST_MOST = 16 };

struct score_list {
    int n;
    struct score {
        const char *name;
        double value;
    } scores[SCORE_LIST_MOST];
};

static inline void score_list_add(struct score_list *l, const char *name, double value)
{
    CHECK(l->n < SCORE_LIST_MOST, "%s is one metric too many", name);
    l->scores[l->n++] = (struct score){name, value};
}

#endif
