/* Losses and gradients of a word head are those of all rows at once, however many rows a chunk has; words
 * past n_words have no part in them; and a chunk of a large vocabulary stays within 64 MiB. */
#include "nn/word_head.h"
#include "ops/ops.h"
#include "test.h"

#include "core/rng.h"

enum { ROWS = 37, HIDDEN = 8, VOCAB = 48, WORDS = 45 };

/* Everything that word_head_learn leaves. */
struct learnt {
    double loss[ROWS], rows[ROWS * HIDDEN], word[VOCAB * HIDDEN], bias[VOCAB], sums[2];
};

static void fill(double *out, int n, uint64_t key)
{
    for (int i = 0; i < n; i++) {
        out[i] = rng_normal(key, (uint64_t)i);
    }
}

static tensor matrix(double *data, int64_t rows, int64_t cols)
{
    return tensor_2d(data, DTYPE_F64, rows, cols);
}

static void learn(struct learnt *l, int64_t chunk)
{
    static _Alignas(64) unsigned char memory[1 << 20];
    double z[ROWS * HIDDEN], e[VOCAB * HIDDEN], b[VOCAB], scale = 0.25;
    int32_t labels[ROWS];
    fill(z, ROWS * HIDDEN, 1);
    fill(e, VOCAB * HIDDEN, 2);
    fill(b, VOCAB, 3);
    for (int i = 0; i < ROWS; i++) {
        labels[i] = i % 7 == 3 ? -1 : i * 11 % WORDS;
    }
    struct arena arena = arena_over(memory, sizeof memory);
    struct exec x = {.device = &device_cpu, .ops = &ops_ref, .layer = "head", .layer_index = -1};
    struct word_head_acts a;
    word_head_carve(
        &a, &arena,
        (struct word_head_room){
            .dtype = DTYPE_F64, .n_rows = ROWS, .chunk = chunk, .vocab_rows = VOCAB, .n_slices = 1});
    EXPECT(a.logits.dims[0] == (chunk < ROWS ? chunk : ROWS), "%lld rows", (long long)a.logits.dims[0]);
    struct word_head h = {matrix(z, ROWS, HIDDEN),         matrix(e, VOCAB, HIDDEN),
                          tensor_1d(b, DTYPE_F64, VOCAB),  tensor_1d(labels, DTYPE_I32, ROWS),
                          tensor_1d(&scale, DTYPE_F64, 1), WORDS};
    *l = (struct learnt){0};
    struct word_head_gradients g = {matrix(l->rows, ROWS, HIDDEN), matrix(l->word, VOCAB, HIDDEN),
                                    tensor_1d(l->bias, DTYPE_F64, VOCAB)};
    tensor sums = tensor_1d(l->sums, DTYPE_F64, 2);
    word_head_learn(&x, sums, &g, &a, &h);
    EXPECT_OK(x.status);
    memcpy(l->loss, a.loss.data, sizeof l->loss);

    double measured[2] = {0};
    word_head_measure(&x, tensor_1d(measured, DTYPE_F64, 2), &a, &h);
    EXPECT_OK(x.status);
    EXPECT(measured[0] == l->sums[0] && measured[1] == l->sums[1], "measured %g, learnt at %g", measured[0],
           l->sums[0]);
}

static void expect_near(const double *a, const double *b, int n, const char *what)
{
    for (int i = 0; i < n; i++) {
        EXPECT(fabs(a[i] - b[i]) <= 1e-12 * (1 + fabs(b[i])), "%s %d: %g, not %g", what, i, a[i], b[i]);
    }
}

static void test_chunks(void)
{
    static const int64_t chunks[] = {1, 7, 16, 36, 64};
    struct learnt whole, l;
    learn(&whole, ROWS);
    EXPECT(whole.loss[3] == 0 && whole.loss[0] > 0, "a row without a label has a loss");
    for (int i = WORDS * HIDDEN; i < VOCAB * HIDDEN; i++) {
        EXPECT(whole.word[i] == 0, "a row that fills up the table has a gradient");
    }
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        learn(&l, chunks[i]);
        EXPECT(memcmp(l.loss, whole.loss, sizeof l.loss) == 0, "other losses");
        EXPECT(memcmp(l.rows, whole.rows, sizeof l.rows) == 0, "other gradients of rows");
        expect_near(l.word, whole.word, VOCAB * HIDDEN, "the gradient of the table at");
        expect_near(l.bias, whole.bias, VOCAB, "the gradient of the bias at");
    }
}

static void test_sizes(void)
{
    EXPECT(word_head_chunk(640, 128) == 640, "a small vocabulary is cut");
    EXPECT(word_head_chunk(2048, 250880) == 64, "%lld rows", (long long)word_head_chunk(2048, 250880));
    EXPECT(word_head_chunk(640, 30528) == 544, "%lld rows", (long long)word_head_chunk(640, 30528));
    for (int64_t n = 1; n < 6000; n++) { /* a smaller batch fits the room of a larger one */
        EXPECT(word_head_chunk(n, 30528) <= word_head_chunk(n + 1, 30528), "%lld rows need more than %lld",
               (long long)n, (long long)n + 1);
    }
    EXPECT(word_head_chunk(5, 1 << 25) == 1, "a row that is larger than a chunk");
    EXPECT(word_head_chunk(0, 100) >= 0, "no rows");
}

int main(void)
{
    test_chunks();
    test_sizes();
    return 0;
}
