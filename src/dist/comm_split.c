/* comm_split: what all tables have in common of parts (comm.h). */
#include "dist/comm.h"
#include "dist/comm_self.h"

#include <stdlib.h>
#include <string.h>

static bool is_in(const struct comm_group *g, int rank)
{
    int past = rank - g->first;
    return past >= 0 && past % g->stride == 0 && past / g->stride < g->n;
}

struct status comm_split(const struct comm *c, struct comm *part, int first, int stride, int n)
{
    struct comm_group g = {first, stride, n};
    CHECK(n > 0 && stride > 0 && first >= 0 && first + (n - 1) * (int64_t)stride < c->size,
          "a group of %d ranks from %d on, each %d after the last, of %d", n, first, stride, c->size);
    CHECK(is_in(&g, c->rank), "rank %d is not in the group that it splits off", c->rank);
    *part = (struct comm){0};
    return c->type->split(c, &g, part);
}

void comm_part_close(struct comm *part)
{
    if (part->type != NULL && part->type->close_part != NULL) {
        part->type->close_part(part);
    }
    *part = (struct comm){0};
}

struct comm_numbers comm_numbers_of(const struct comm *whole, const struct comm_group *g)
{
    const struct comm_numbers *of = &whole->numbers;
    return (struct comm_numbers){comm_number(of, g->first), of->stride * g->stride, of->world};
}

struct comm comm_alone(const struct comm *whole)
{
    struct comm c = comm_self();
    c.numbers = (struct comm_numbers){comm_number(&whole->numbers, whole->rank), 1, whole->numbers.world};
    c.local_rank = whole->local_rank;
    c.n_local = whole->n_local;
    return c;
}

/* Each rank's group is a row of bytes. */
static struct status compare(const struct comm *whole, const struct comm_group *all,
                             const struct comm_group *g)
{
    for (int r = 0; r < whole->size; r++) {
        if (is_in(g, r) && memcmp(&all[r], g, sizeof *g) != 0) {
            return status_error(STATUS_INTERNAL,
                                "rank %d splits off %d ranks from %d on, but rank %d %d ranks from %d on",
                                comm_number(&whole->numbers, whole->rank), g->n, g->first,
                                comm_number(&whole->numbers, r), all[r].n, all[r].first);
        }
    }
    return status_ok();
}

struct status comm_split_check(const struct comm *whole, const struct comm_group *g)
{
    struct comm_group *all = calloc((size_t)whole->size, sizeof *all);
    struct status s = comm_agree(
        whole,
        all != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for %d ranks", whole->size));
    if (!failed(s) && all != NULL) {
        all[whole->rank] = *g;
        s = comm_share_rows(whole, all, sizeof *all);
        s = failed(s) ? s : comm_agree(whole, compare(whole, all, g));
    }
    free(all);
    return s;
}
