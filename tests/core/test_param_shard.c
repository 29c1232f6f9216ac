/* Shards of a flat buffer: side by side, over all of it, at places that cut no chunk of a parameter, and
 * about as large. */
#include "core/param_shard.h"
#include "test.h"

enum { MOST_RANKS = 9 };

static void declare(struct param_table *t, int64_t slab, int64_t first, int64_t n)
{
    param_table_add(t, (struct param){.name = "x", .n_dims = 1, .dims = {n}, .offset = slab + first});
}

/* A large matrix, a slab of three whose bounds are no chunks, one of three that are, small vectors,
 * padding. */
static struct param_table make_table(void)
{
    struct param_table t = {0};
    declare(&t, param_table_slab(&t, 100 * 1024), 0, 99 * 1024 + 7);
    int64_t odd = param_table_slab(&t, 3 * 6000), even = param_table_slab(&t, 3 * 4096);
    for (int64_t i = 0; i < 3; i++) {
        declare(&t, odd, 6000 * i, 6000);
    }
    for (int64_t i = 0; i < 3; i++) {
        declare(&t, even, 4096 * i, 4096);
    }
    for (int i = 0; i < 20; i++) {
        declare(&t, param_table_slab(&t, 16), 0, 16);
    }
    EXPECT_OK(param_table_status(&t));
    return t;
}

static void cuts_no_chunk(const struct param_table *t, int64_t at)
{
    EXPECT(at % PARAM_ALIGNMENT == 0, "a shard begins at %lld", (long long)at);
    for (int i = 0; i < t->n; i++) {
        int64_t within = at - t->params[i].offset;
        EXPECT(within <= 0 || within >= param_count(&t->params[i]) ||
                   (within % PARAM_ALIGNMENT == 0 && !t->params[i].whole),
               "%lld cuts parameter %d", (long long)at, i);
    }
}

static void shards_cover_the_buffer(const struct param_table *t, int n_ranks)
{
    int64_t at = 0, chunks = 0, elements = 0;
    for (int r = 0; r < n_ranks; r++) {
        struct param_shard s = param_shard_of(t, r, n_ranks);
        EXPECT(s.begin == at && s.end >= s.begin, "rank %d of %d: [%lld, %lld) behind %lld", r, n_ranks,
               (long long)s.begin, (long long)s.end, (long long)at);
        EXPECT(param_chunks_before(t, s.begin) == chunks, "%lld chunks before, not %lld",
               (long long)param_chunks_before(t, s.begin), (long long)chunks);
        cuts_no_chunk(t, s.begin);
        for (int i = 0; i < t->n; i++) {
            struct param_shard part = param_shard_cut(&t->params[i], s);
            elements += part.end - part.begin;
            chunks += param_chunks(part.end - part.begin);
        }
        at = s.end;
    }
    EXPECT(at == t->n_elements && elements == param_table_count(t), "%lld of %lld elements", (long long)at,
           (long long)t->n_elements);
    EXPECT(chunks == param_chunks_before(t, t->n_elements) && chunks == 100 + 3 * 6 + 3 * 4 + 20,
           "%lld chunks", (long long)chunks);
}

int main(void)
{
    struct param_table t = make_table();
    for (int n = 1; n <= MOST_RANKS; n++) {
        shards_cover_the_buffer(&t, n);
    }
    struct param_shard half = param_shard_of(&t, 0, 2); /* in the matrix, which is most of the buffer */
    EXPECT(half.end == (t.n_elements / 2 + 1023) / 1024 * 1024, "%lld", (long long)half.end);
    struct param_shard last = param_shard_of(&t, 99, 100), first = param_shard_of(&t, 0, 1000);
    EXPECT(last.end == t.n_elements && first.begin == 0 && first.end == 1024, "[%lld, %lld)",
           (long long)first.begin, (long long)first.end);
    shards_cover_the_buffer(&t, 1000);
    t.params[0].whole = true;
    for (int n = 1; n <= MOST_RANKS; n++) {
        shards_cover_the_buffer(&t, n);
    }
    half = param_shard_of(&t, 0, 2);
    EXPECT(half.end == 100 * 1024, "the matrix is cut at %lld", (long long)half.end);
    param_table_fini(&t);
    return 0;
}
