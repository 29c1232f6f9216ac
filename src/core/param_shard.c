#include "core/param_shard.h"

#include "core/integers.h"

int64_t param_chunks(int64_t elements)
{
    return (elements + PARAM_ALIGNMENT - 1) / PARAM_ALIGNMENT;
}

static int64_t rounded_up(int64_t element)
{
    return param_chunks(element) * PARAM_ALIGNMENT;
}

/* The parameter that a cut here would cut where it must not: in a chunk, or at all.  NULL: there is none. */
static const struct param *cut_by(const struct param_table *t, int64_t element)
{
    for (int i = 0; i < t->n; i++) {
        const struct param *p = &t->params[i];
        int64_t within = element - p->offset;
        if (within > 0 && within < param_count(p) && (p->whole || within % PARAM_ALIGNMENT != 0)) {
            return p;
        }
    }
    return NULL;
}

/* The first place from `element` on where a shard may begin.  Slabs begin at such places. */
static int64_t next_cut(const struct param_table *t, int64_t element)
{
    int64_t at = rounded_up(element);
    for (const struct param *p; (p = cut_by(t, at)) != NULL;) {
        at = rounded_up(p->offset + param_count(p));
    }
    return int_smaller(at, t->n_elements);
}

struct param_shard param_shard_of(const struct param_table *t, int rank, int n_ranks)
{
    CHECK(rank >= 0 && rank < n_ranks, "rank %d of %d", rank, n_ranks);
    return (struct param_shard){next_cut(t, t->n_elements * rank / n_ranks),
                                next_cut(t, t->n_elements * (rank + 1) / n_ranks)};
}

bool param_is_cut_at(const struct param_table *t, int64_t element)
{
    for (int i = 0; i < t->n; i++) {
        int64_t within = element - t->params[i].offset;
        if (within > 0 && within < param_count(&t->params[i])) {
            return true;
        }
    }
    return false;
}

struct param_shard param_shard_cut(const struct param *p, struct param_shard shard)
{
    int64_t begin = int_larger(p->offset, shard.begin),
            end = int_smaller(p->offset + param_count(p), shard.end);
    return (struct param_shard){begin, int_larger(begin, end)};
}

int64_t param_chunks_before(const struct param_table *t, int64_t element)
{
    int64_t chunks = 0;
    for (int i = 0; i < t->n; i++) {
        if (t->params[i].rate == 0) {
            continue;
        }
        struct param_shard before = param_shard_cut(&t->params[i], (struct param_shard){0, element});
        chunks += param_chunks(before.end - before.begin);
    }
    return chunks;
}
