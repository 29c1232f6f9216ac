/* The layout of bits of dropout: every element has a bit of its own in the tensor, wherever sequences begin;
 * words are those of ops/attention_bits.h; and who keeps them. */
#include "ops/attention_bits.h"

#include "test.h"

#include <stdlib.h>

enum { HEADS = 2, SEQUENCES = 6, LONGEST = 130 };

/* Rows in the stream; lengths of keys are others. */
static const int64_t n_queries[SEQUENCES] = {17, 1, 0, 31, 65, 16},
                     n_keys[SEQUENCES] = {130, 64, 3, 1, 65, 16};

static struct attention attention_of(int64_t n_rows)
{
    int64_t rows = attention_bits_rows(HEADS, LONGEST), cols = attention_bits_cols(n_rows, SEQUENCES);
    return (struct attention){
        .max_seqlen_kv = LONGEST,
        .bits = tensor_2d(calloc((size_t)(rows * cols), sizeof(uint32_t)), DTYPE_I32, rows, cols)};
}

/* Sets the bit of each element, which must be clear before: none is that of another. */
static void test_elements(void)
{
    int64_t n_rows = 0, n_bits = 0, first = 0;
    for (int s = 0; s < SEQUENCES; s++) {
        n_rows += n_queries[s];
    }
    struct attention a = attention_of(n_rows);
    EXPECT(a.bits.dims[0] == HEADS * 3 && a.bits.dims[1] == (n_rows / 16 + SEQUENCES + 3) * 32, "dims");
    for (int64_t s = 0; s < SEQUENCES; first += n_queries[s], s++) {
        for (int64_t i = 0; i < HEADS * n_queries[s] * n_keys[s]; i++, n_bits++) {
            struct attention_element e = {s, first, i / n_keys[s] / n_queries[s],
                                          i / n_keys[s] % n_queries[s], i % n_keys[s]};
            EXPECT(!attention_bits_get(&a, e), "sequence %lld: query %lld and key %lld have another's bit",
                   (long long)s, (long long)e.query, (long long)e.key);
            attention_bits_set(&a, e, true);
            EXPECT(attention_bits_get(&a, e), "not set");
        }
    }
    int64_t n_set = 0, past = a.bits.dims[1] - 3 * 32; /* the tiles behind the last are nobody's */
    for (int64_t i = 0; i < tensor_count(a.bits); i++) {
        uint32_t word = ((uint32_t *)a.bits.data)[i];
        EXPECT(i % a.bits.dims[1] < past || word == 0, "a bit behind the last tile");
        for (; word != 0; word &= word - 1) {
            n_set++;
        }
    }
    EXPECT(n_set == n_bits, "%lld bits of %lld elements", (long long)n_set, (long long)n_bits);
    free(a.bits.data);
}

/* Sequence 3 begins in row 18: head 1, query 29, key 107 of it. */
static void test_words(void)
{
    struct attention a = attention_of(130);
    struct attention_element e = {3, 18, 1, 29, 107};
    int64_t row = 1 * 3 + 107 / 64, tile = 18 / 16 + 3 + 29 / 16;
    uint32_t *word = (uint32_t *)a.bits.data + row * a.bits.dims[1] + tile * 32 + 13 % 8 * 4 + 3 / 2;
    attention_bits_set(&a, e, true);
    EXPECT(*word == 1U << (2 * 8 + 4 + 2 + 1), "%08x", (unsigned)*word);
    *word = 0xffffffff;
    attention_bits_set(&a, e, false);
    EXPECT(*word == ~(1U << (2 * 8 + 4 + 2 + 1)) && !attention_bits_get(&a, e), "%08x", (unsigned)*word);
    free(a.bits.data);
}

static void test_rule(void)
{
    struct device keeps = {.keeps_dropout_bits = true}, draws = {0};
    struct dropout some = {.p = 0.1}, none = {.p = 0};
    EXPECT(attention_bits_are_kept(&keeps, some), "a device that keeps them");
    EXPECT(!attention_bits_are_kept(&keeps, none), "nothing is dropped");
    EXPECT(!attention_bits_are_kept(&draws, some) && !attention_bits_are_kept(&device_cpu, some),
           "a device that draws");
}

int main(void)
{
    test_elements();
    test_words();
    test_rule();
    return 0;
}
