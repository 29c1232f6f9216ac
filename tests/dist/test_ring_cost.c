/* What a ring sends is (world - 1) / world of the bytes, each part over the link that it is on. */
#include "test.h"

#include "dist/ring_cost.h"

static const struct ring_links links = {.per_node = 8, .within = 100, .between = 10};

static void test_by_hand(void)
{
    struct ring_cost c = ring_cost_of(&links, 800, 1);
    EXPECT(c.within_bytes == 0 && c.between_bytes == 0 && c.seconds == 0, "one device sends");
    c = ring_cost_of(&links, 800, 8);
    EXPECT_NEAR(c.within_bytes, 700, 1e-9);
    EXPECT_NEAR(c.between_bytes, 0, 0);
    EXPECT_NEAR(c.seconds, 7, 1e-9);
    c = ring_cost_of(&links, 800, 32); /* an eighth of it, 100, goes round four nodes */
    EXPECT_NEAR(c.within_bytes, 700, 1e-9);
    EXPECT_NEAR(c.between_bytes, 75, 1e-9);
    EXPECT_NEAR(c.seconds, 7 + 7.5, 1e-9);
    struct ring_links apart = {.per_node = 1, .within = 0, .between = 10};
    c = ring_cost_of(&apart, 800, 4);
    EXPECT_NEAR(c.within_bytes, 0, 0);
    EXPECT_NEAR(c.between_bytes, 600, 1e-9);
    EXPECT_NEAR(c.seconds, 60, 1e-9);
}

static void test_least(void)
{
    for (int64_t world = 1; world <= 130; world++) {
        struct ring_cost c = ring_cost_of(&links, 1e6, world);
        EXPECT_NEAR(c.within_bytes + c.between_bytes, 1e6 * (double)(world - 1) / (double)world, 1e-6);
    }
}

static void test_sums(void)
{
    struct ring_cost c = ring_cost_times(ring_cost_of(&links, 800, 32), 2);
    EXPECT_NEAR(c.within_bytes, 1400, 1e-9);
    EXPECT_NEAR(c.between_bytes, 150, 1e-9);
    EXPECT_NEAR(c.seconds, 29, 1e-9);
}

int main(void)
{
    test_by_hand();
    test_least();
    test_sums();
    printf("test_ring_cost: rings send no more than they must\n");
    return 0;
}
