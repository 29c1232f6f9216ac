/* Tests of data/ppmi_vectors on stores whose words have classes: what stands in the same places has the same
 * vector. */
#include "fixture_store.h"

#include "data/ppmi_vectors.h"

#include <math.h>

enum {
    N_CLASSES = 4,
    WORDS_OF_CLASS = 5,
    N_WORDS = FIXTURE_N_SPECIAL + N_CLASSES * WORDS_OF_CLASS,
    MOST_COLUMNS = 48
};

/* Sentences of one word of each class, in turn, begun at any of them. */
static void open_classes(struct indexed *x, int64_t n_sentences)
{
    struct indexed_writer w;
    struct rng_stream r = rng_stream(9);
    EXPECT_OK(indexed_writer_open(&w, fixture_path("classes"), N_WORDS));
    for (int64_t i = 0; i < n_sentences; i++) {
        int32_t ids[2 * N_CLASSES];
        uint32_t first = rng_below(&r, N_CLASSES);
        for (uint32_t k = 0; k < 2 * N_CLASSES; k++) {
            uint32_t class = (first + k) % N_CLASSES;
            ids[k] = (int32_t)(FIXTURE_N_SPECIAL + class * WORDS_OF_CLASS + rng_below(&r, WORDS_OF_CLASS));
        }
        indexed_writer_add(&w, ids, 2 * N_CLASSES);
        indexed_writer_end_document(&w);
    }
    EXPECT_OK(indexed_writer_commit(&w, NULL));
    EXPECT_OK(indexed_open(x, fixture_path("classes")));
}

static double cosine(const float *vectors, int64_t n, int64_t a, int64_t b)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)vectors[a * n + i] * vectors[b * n + i];
    }
    return sum;
}

/* `n_columns` may be more than the text has directions. */
static void words_of_a_class_are_alike(const struct indexed *store, int64_t n_columns)
{
    float vectors[N_WORDS * MOST_COLUMNS];
    EXPECT_OK(ppmi_vectors(vectors, store, N_WORDS, n_columns, 3));
    for (int64_t a = 0; a < FIXTURE_N_SPECIAL; a++) {
        EXPECT(cosine(vectors, n_columns, a, a) == 0, "token %lld is not in the text", (long long)a);
    }
    for (int64_t a = FIXTURE_N_SPECIAL; a < N_WORDS; a++) {
        EXPECT_NEAR(cosine(vectors, n_columns, a, a), 1, 1e-6);
        for (int64_t b = FIXTURE_N_SPECIAL; b < a; b++) {
            bool same = (a - FIXTURE_N_SPECIAL) / WORDS_OF_CLASS == (b - FIXTURE_N_SPECIAL) / WORDS_OF_CLASS;
            double c = cosine(vectors, n_columns, a, b);
            EXPECT(same ? c > 0.9 : c < 0.3, "%lld columns, words %lld and %lld: %g", (long long)n_columns,
                   (long long)a, (long long)b, c);
        }
    }
}

static void sentences_of_a_word_have_none(void)
{
    float vectors[N_WORDS * 4];
    struct indexed store;
    fixture_store(&store, "words", 3, 5, 1, N_WORDS);
    EXPECT_OK(ppmi_vectors(vectors, &store, N_WORDS, 4, 3));
    for (int64_t i = 0; i < N_WORDS * 4; i++) {
        EXPECT(vectors[i] == 0, "element %lld is %g", (long long)i, vectors[i]);
    }
    indexed_close(&store);
}

/* Words with the same neighbours have the same vector, in whatever order these came. */
static void order_does_not_matter(void)
{
    enum { A = FIXTURE_N_SPECIAL, B, X, Y, Z };
    static const int32_t pairs[][2] = {{A, X}, {A, Y}, {B, Y}, {B, X}, {Z, Z}, {Z, Z}, {Z, Z}, {Z, Z}};
    float vectors[N_WORDS * MOST_COLUMNS];
    struct indexed store;
    struct indexed_writer w;
    EXPECT_OK(indexed_writer_open(&w, fixture_path("pairs"), N_WORDS));
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        indexed_writer_add(&w, pairs[i], 2);
        indexed_writer_end_document(&w);
    }
    EXPECT_OK(indexed_writer_commit(&w, NULL));
    EXPECT_OK(indexed_open(&store, fixture_path("pairs")));
    EXPECT_OK(ppmi_vectors(vectors, &store, N_WORDS, MOST_COLUMNS, 3));
    EXPECT_NEAR(cosine(vectors, MOST_COLUMNS, A, B), 1, 1e-6);
    EXPECT_NEAR(cosine(vectors, MOST_COLUMNS, X, Y), 1, 1e-6);
    EXPECT_NEAR(cosine(vectors, MOST_COLUMNS, A, Z), 0, 1e-6);
    indexed_close(&store);
}

int main(void)
{
    struct indexed store;
    float vectors[N_WORDS * 4];
    open_classes(&store, 4000);
    words_of_a_class_are_alike(&store, 4);
    words_of_a_class_are_alike(&store, MOST_COLUMNS);
    EXPECT_ERROR(ppmi_vectors(vectors, &store, N_WORDS - 1, 4, 3), STATUS_DATA,
                 "but the vocabulary has 23 words");
    indexed_close(&store);
    sentences_of_a_word_have_none();
    order_does_not_matter();
    fixture_remove();
    return 0;
}
