/* Tests of data/gpt/sample_order and core/mt19937: shuffles of numpy, and index arrays and splits of
 * Megatron-LM (tests/golden/make_sample_order.py). */
#include "order_fixture.h"
#include "test.h"

#include "core/json.h"
#include "core/mt19937.h"
#include "data/gpt/sample_order.h"

#include <stdlib.h>
#include <string.h>

static int64_t number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* numpy.random.RandomState(seed).shuffle(numpy.arange(10)) */
static void shuffles_are_numpys(void)
{
    static const struct {
        uint32_t seed;
        uint32_t wanted[10];
    } cases[] = {{1234, {7, 2, 9, 1, 0, 8, 4, 5, 6, 3}}, {42, {8, 1, 5, 0, 7, 2, 9, 4, 3, 6}}};
    for (int c = 0; c < 2; c++) {
        struct mt19937 random;
        uint32_t items[10];
        for (int i = 0; i < 10; i++) {
            items[i] = (uint32_t)i;
        }
        mt19937_init(&random, cases[c].seed);
        mt19937_shuffle(&random, items, 4, 10); /* in two parts */
        mt19937_shuffle(&random, items, 0, 4);
        EXPECT(memcmp(items, cases[c].wanted, sizeof items) == 0, "seed %u", cases[c].seed);
    }
    struct mt19937 random; /* the 10,000th of the authors' generator, of the seed 5489 (C++: std::mt19937) */
    uint32_t last = 0;
    mt19937_init(&random, 5489);
    for (int i = 0; i < 10000; i++) {
        last = mt19937_u32(&random);
    }
    EXPECT(last == 4123659995U, "%u", last);
}

static void orders_are_megatrons(const json_t *cases)
{
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *g = json_array_get(cases, i), *sizes = json_object_get(g, "sizes"),
                     *document = json_object_get(g, "document"), *starts = json_object_get(g, "starts"),
                     *shuffled = json_object_get(g, "shuffled");
        int32_t *items = malloc(json_array_size(sizes) * sizeof *items);
        for (size_t k = 0; k < json_array_size(sizes); k++) {
            items[k] = (int32_t)json_integer_value(json_array_get(sizes, k));
        }
        struct sample_order_config c = {.sizes = (const unsigned char *)items,
                                        .first = number(g, "first"),
                                        .end = number(g, "end"),
                                        .n_wanted = number(g, "wanted"),
                                        .seq_length = number(g, "seq_length"),
                                        .seed = (uint32_t)number(g, "seed")};
        struct sample_order o;
        struct order_fixture fixture = order_fixture_build(&o, &c);
        EXPECT(o.n_epochs == number(g, "epochs"), "case %zu: %lld epochs", i, (long long)o.n_epochs);
        EXPECT(o.last_apart == json_is_true(json_object_get(g, "apart")), "case %zu: the last epoch", i);
        EXPECT((size_t)o.n_documents == json_array_size(document), "case %zu: documents", i);
        EXPECT((size_t)o.n_samples == json_array_size(shuffled), "case %zu: %lld samples", i,
               (long long)o.n_samples);
        for (int64_t k = 0; k < o.n_documents; k++) {
            EXPECT(o.document[k] == json_integer_value(json_array_get(document, (size_t)k)),
                   "case %zu: document %lld", i, (long long)k);
        }
        for (int64_t k = 0; k < 2 * (o.n_samples + 1); k++) {
            EXPECT(o.starts[k] == json_integer_value(json_array_get(starts, (size_t)k)),
                   "case %zu: start %lld", i, (long long)k);
        }
        for (int64_t k = 0; k < o.n_samples; k++) {
            EXPECT(o.shuffled[k] == json_integer_value(json_array_get(shuffled, (size_t)k)),
                   "case %zu: sample %lld", i, (long long)k);
        }
        order_fixture_free(&fixture);
        free(items);
    }
}

static void splits_are_megatrons(const json_t *cases)
{
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *g = json_array_get(cases, i), *bounds = json_object_get(g, "bounds");
        int64_t here[4];
        EXPECT_OK(sample_order_split(here, json_string_value(json_object_get(g, "list")), number(g, "n")));
        for (size_t k = 0; k < 4; k++) {
            EXPECT(here[k] == json_integer_value(json_array_get(bounds, k)), "split %zu: bound %zu is %lld",
                   i, k, (long long)here[k]);
        }
    }
    static const char *const wrong[] = {"",    "a",    "1,,2", "1,2,3,4", "0,0",
                                        "1;2", "-1,2", "1,",   "nan",     "inf,1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int64_t here[4];
        EXPECT_ERROR(sample_order_split(here, wrong[i], 10), STATUS_USAGE, "the split");
    }
}

static void what_cannot_be_ordered_is_refused(void)
{
    static const int32_t sizes[] = {0, 0, 5};
    struct sample_order o;
    struct sample_order_config c = {(const unsigned char *)sizes, 0, 2, 10, 4, 1};
    EXPECT_ERROR(sample_order_plan(&o, &c), STATUS_DATA, "the split of 2 documents has no tokens");
    c = (struct sample_order_config){(const unsigned char *)sizes, 0, 3, INT64_C(5000000000), 4, 1};
    EXPECT_ERROR(sample_order_plan(&o, &c), STATUS_USAGE, "more than 32-bit indexes can count");
}

int main(void)
{
    json_error_t error;
    json_t *golden = json_load_file(KILN_SOURCE_DIR "/tests/golden/sample_order.json", 0, &error);
    EXPECT(golden != NULL, "tests/golden/sample_order.json: %s", error.text);
    shuffles_are_numpys();
    orders_are_megatrons(json_object_get(golden, "orders"));
    splits_are_megatrons(json_object_get(golden, "splits"));
    what_cannot_be_ordered_is_refused();
    json_decref(golden);
    return 0;
}
