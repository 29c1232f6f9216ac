/* Packing against the strategies of the replaced tool, which are chosen by least squares
 * (tests/golden/make_pack_nnls.py): it needs at
 * most seven rows in a thousand more, and where many are short far fewer. */
#include "test.h"

#include "core/json.h"
#include "data/pack.h"

static void check_case(const json_t *c)
{
    const json_t *histogram = json_object_get(c, "histogram");
    int64_t size = (int64_t)json_array_size(histogram), n = 0, tokens = 0, n_rows, wanted = 0;
    struct pack_row *rows;
    for (int64_t l = 1; l <= size; l++) {
        n += json_integer_value(json_array_get(histogram, (size_t)(l - 1)));
    }
    int32_t *lengths = malloc((size_t)n * sizeof *lengths), *masked = calloc((size_t)n, sizeof *masked);
    EXPECT(lengths != NULL && masked != NULL, "memory");
    for (int64_t l = 1, i = 0; l <= size; l++) {
        for (int64_t k = json_integer_value(json_array_get(histogram, (size_t)(l - 1))); k > 0; k--) {
            masked[i] = (int32_t)lround(0.15 * (double)l);
            lengths[i++] = (int32_t)l;
            tokens += l;
        }
    }
    int64_t most = lround(0.15 * (double)size);
    EXPECT_OK(json_get_int(c, "case", "rows", true, &wanted));
    EXPECT_OK(pack_sequences(&rows, &n_rows,
                             &(struct pack_problem){.n = n,
                                                    .lengths = lengths,
                                                    .masked = masked,
                                                    .row_length = size,
                                                    .row_masked = most + PACK_MOST - 1}));
    printf("%3lld tokens a row: %lld rows, %.4f text; least squares %lld, %.4f\n", (long long)size,
           (long long)n_rows, (double)tokens / (double)(n_rows * size), (long long)wanted,
           (double)tokens / (double)(wanted * size));
    EXPECT((double)n_rows <= 1.007 * (double)wanted, "%lld rows, but least squares has %lld",
           (long long)n_rows, (long long)wanted);
    free(rows);
    free(masked);
    free(lengths);
}

int main(void)
{
    json_t *root;
    size_t i;
    const json_t *c;
    EXPECT_OK(json_read_object(&root, KILN_SOURCE_DIR "/tests/golden/pack_nnls.json"));
    const json_t *cases = json_object_get(root, "cases");
    EXPECT(json_array_size(cases) == 5, "cases");
    json_array_foreach((json_t *)cases, i, c)
    {
        check_case(c);
    }
    json_decref(root);
    return 0;
}
