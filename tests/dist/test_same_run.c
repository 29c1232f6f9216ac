/* Named values are equal on all ranks, or the first that is not is named with both values, by the lowest rank
 * that differs. */
#include "dist/same_run.h"
#include "ranks.h"

struct values {
    const char *of_rank[4]; /* of "b"; "a" and "c" are the same on all */
    const char *told;       /* NULL: they are equal */
};

static void compare(const struct comm *c, void *context)
{
    const struct values *v = context;
    struct same_run same = {0};
    same_run_add(&same, "a", "1");
    same_run_add(&same, "b", v->of_rank[c->rank]);
    same_run_add_hash(&same, "c", 7);
    struct status s = same_run_check(&same, c, STATUS_USAGE);
    if (v->told == NULL) {
        EXPECT_OK(s);
    } else {
        EXPECT(s.code == STATUS_USAGE && strstr(s.message, v->told) != NULL, "rank %d: %s", c->rank,
               s.message);
    }
}

static void other_names(const struct comm *c, void *context)
{
    struct same_run same = {0};
    (void)context;
    same_run_add(&same, c->rank == 2 ? "x" : "y", "1");
    EXPECT_ERROR(same_run_check(&same, c, STATUS_DATA), STATUS_UNAVAILABLE,
                 "compares \"x\", but rank 0 compares \"y\"");
}

/* One rank has an item more. */
static void other_numbers(const struct comm *c, void *context)
{
    struct same_run same = {0};
    (void)context;
    for (int i = 0; i < 100 + (c->rank == 1); i++) {
        same_run_add(&same, "y", "1");
    }
    EXPECT_ERROR(same_run_check(&same, c, STATUS_DATA), STATUS_UNAVAILABLE, "rank 1");
}

int main(void)
{
    static const struct values cases[] = {
        {{"2", "2", "2", "2"}, NULL},
        {{"", "", "", ""}, NULL},
        {{"2", "2", "two", "three"}, "rank 2 of 4: b is two here, but 2 on rank 0"},
        {{"one", "2", "2", "2"}, "rank 1 of 4: b is 2 here, but one on rank 0"},
        {{"a long value", "", "a long value", "a long value"}, "rank 1 of 4: b is  here, but a long value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct values v = cases[i];
        run_ranks(4, 20, compare, &v);
    }
    struct values alone = {{"2"}, NULL};
    run_ranks(1, 20, compare, &alone);
    run_ranks(3, 20, other_names, NULL);
    run_ranks(2, 20, other_numbers, NULL);
    printf("test_same_run: ranks that differ name what differs\n");
    return 0;
}
