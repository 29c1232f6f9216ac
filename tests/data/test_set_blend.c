/* Blends of sets against those of Megatron-LM's rule (tests/golden/make_set_blend.py), and a longer blend
 * begins as a shorter one. */
#include "test.h"

#include "core/json.h"
#include "data/gpt/set_blend.h"

#include <stdlib.h>

static void check_blend(size_t number, const json_t *golden)
{
    const json_t *weights = json_object_get(golden, "weights"), *sets = json_object_get(golden, "sets"),
                 *samples = json_object_get(golden, "samples"), *wanted = json_object_get(golden, "wanted");
    double shares[SET_BLEND_MOST_SETS];
    int n_sets = (int)json_array_size(weights);
    int64_t n = (int64_t)json_array_size(sets), last = json_integer_value(json_object_get(golden, "n")) - n;
    struct set_blend b;
    for (int d = 0; d < n_sets; d++) {
        shares[d] = json_number_value(json_array_get(weights, (size_t)d));
    }
    set_blend_shares(shares, shares, n_sets);
    EXPECT_OK(set_blend_build(&b, n + last, shares, n_sets));
    for (int64_t i = 0; i < n; i++) {
        struct set_blend_sample s = set_blend_at(&b, last + i), again = set_blend_at(&b, n + last + last + i);
        EXPECT(s.set == json_integer_value(json_array_get(sets, (size_t)i)) &&
                   s.number == json_integer_value(json_array_get(samples, (size_t)i)),
               "blend %zu: sample %lld is %lld of set %d", number, (long long)(last + i), (long long)s.number,
               s.set);
        EXPECT(again.set == s.set && again.number == s.number, "blend %zu does not begin again", number);
    }
    for (int d = 0; d < n_sets; d++) {
        int64_t all = set_blend_wanted(n + last, shares[d]);
        EXPECT(all == json_integer_value(json_array_get(wanted, (size_t)d)), "blend %zu: %lld of set %d",
               number, (long long)all, d);
        for (int64_t i = 0; i < n; i++) {
            struct set_blend_sample s = set_blend_at(&b, last + i);
            EXPECT(s.set != d || s.number < all, "blend %zu: set %d has too few samples", number, d);
        }
    }
    set_blend_fini(&b);
}

static void a_longer_blend_begins_as_a_shorter_one(void)
{
    static const double shares[] = {0.3, 0.6, 0.1};
    struct set_blend longer, shorter;
    EXPECT_OK(set_blend_build(&longer, 20000, shares, 3));
    EXPECT_OK(set_blend_build(&shorter, 9000, shares, 3));
    for (int64_t i = 0; i < 9000; i++) {
        struct set_blend_sample a = set_blend_at(&longer, i), b = set_blend_at(&shorter, i);
        EXPECT(a.set == b.set && a.number == b.number, "sample %lld", (long long)i);
    }
    set_blend_fini(&longer);
    set_blend_fini(&shorter);
}

int main(void)
{
    json_error_t error;
    struct set_blend b;
    json_t *golden = json_load_file(KILN_SOURCE_DIR "/tests/golden/set_blend.json", 0, &error);
    EXPECT(golden != NULL, "tests/golden/set_blend.json: %s", error.text);
    for (size_t i = 0; i < json_array_size(golden); i++) {
        check_blend(i, json_array_get(golden, i));
    }
    EXPECT(json_array_size(golden) > 0, "no blend was compared");
    a_longer_blend_begins_as_a_shorter_one();
    EXPECT(set_blend_wanted(1000, 0.3) == 302, "1,000 samples of weight 0.3, and 0.5 %% more");
    EXPECT_ERROR(set_blend_build(&b, 0, NULL, 255), STATUS_USAGE, "the limit is 254");
    json_decref(golden);
    return 0;
}
