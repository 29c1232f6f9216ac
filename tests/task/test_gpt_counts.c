/* The baseline of counts beside a decoder's run: the nats of held-out windows, each token behind those before
 * it in its window, are those of a model of counts made of the whole text, or of 64 stretches of it. */
#include "test.h"

#include "core/rng.h"
#include "ngram/kneser_ney.h"
#include "data/gpt/window_batches.h"
#include "task/gpt/gpt_pretrain.h"

#include <math.h>
#include <stdlib.h>

enum { WORDS = 40, LENGTH = 16, N = 6400, HELDOUT = 10 };

static const double whole = 1;
static int32_t text[N + 1], heldout[HELDOUT * LENGTH + 1];

/* Tokens that follow from the one before, two times of three. */
static void fill(int32_t *ids, int64_t n, uint64_t seed)
{
    struct rng_stream r = rng_stream(rng_key(seed, 1));
    for (int64_t i = 0; i < n; i++) {
        bool follows = i > 0 && rng_below(&r, 3) > 0;
        ids[i] = follows ? (7 * ids[i - 1] + 3) % WORDS : (int32_t)rng_below(&r, WORDS);
    }
}

static void write_store(const char *prefix, const int32_t *ids, int64_t n)
{
    struct indexed_writer w;
    EXPECT_OK(indexed_writer_open(&w, prefix, WORDS));
    for (int64_t i = 0; i < n; i += 100) {
        indexed_writer_add(&w, ids + i, n - i < 100 ? n - i : 100);
        indexed_writer_end_document(&w);
    }
    EXPECT_OK(indexed_writer_commit(&w, NULL));
    indexed_writer_close(&w);
}

static struct token_windows windows_of(const struct indexed *x, int64_t first)
{
    return (struct token_windows){
        .index = x, .path = "store", .first = first, .end = x->n_tokens, .length = LENGTH, .n_words = WORDS};
}

/* Counts of stretches of `here` of each 100 tokens; all of the text if that is 100. */
static double wanted(int64_t here, int64_t n_samples)
{
    int32_t *ids = malloc((N + 64) * sizeof *ids);
    struct kneser_ney k;
    double nats = 0;
    int64_t n = 0;
    EXPECT(ids != NULL, "out of memory");
    for (int64_t i = 0; i < N; i++) {
        if (i == 0 || (i % 100 == 0 && here < 100)) {
            ids[n++] = NGRAM_BEGIN;
        }
        if (i % 100 < here) {
            ids[n++] = text[1 + i];
        }
    }
    EXPECT_OK(kneser_ney_init(&k, ids, n, 6, WORDS));
    for (int64_t w = 0; w < n_samples; w++) {
        for (int64_t i = 1; i <= LENGTH; i++) {
            const int32_t *sample = heldout + w * LENGTH;
            nats -= log(kneser_ney_p(&k, sample, i, sample[i]));
        }
    }
    kneser_ney_fini(&k);
    free(ids);
    return nats / (double)(n_samples * LENGTH);
}

static void check(const struct token_windows *train, const struct batch_source *source, int64_t n_tokens,
                  int64_t n_samples, double loss)
{
    struct ngram_score s;
    EXPECT_OK(gpt_counts_measure(&s, train, &whole, 1, n_tokens, source, n_samples));
    EXPECT(s.order == 6 && s.n_counted == (n_tokens < N ? n_tokens : N) && s.n_samples == n_samples,
           "order %d, %lld tokens, %lld samples", s.order, (long long)s.n_counted, (long long)s.n_samples);
    EXPECT_NEAR(s.loss, loss, 1e-12);
}

int main(void)
{
    char directory[] = "/tmp/test_gpt_counts_XXXXXX", path[2][64];
    struct indexed x[2];
    EXPECT(mkdtemp(directory) != NULL, "no directory");
    snprintf(path[0], sizeof path[0], "%s/train", directory);
    snprintf(path[1], sizeof path[1], "%s/heldout", directory);
    fill(text, N + 1, 5);
    fill(heldout, HELDOUT * LENGTH + 1, 6);
    write_store(path[0], text, N + 1);
    write_store(path[1], heldout, HELDOUT * LENGTH + 1);
    EXPECT_OK(indexed_open(&x[0], path[0]));
    EXPECT_OK(indexed_open(&x[1], path[1]));
    struct token_windows train = windows_of(&x[0], 1), of_heldout = windows_of(&x[1], 0);
    struct window_batches batches = {.sets = &of_heldout, .batch_size = 4, .micro_size = 4};
    struct batch_source source = window_batches_source(&batches, 1);
    check(&train, &source, N, HELDOUT, wanted(100, HELDOUT));
    check(&train, &source, 1 << 20, HELDOUT, wanted(100, HELDOUT));
    check(&train, &source, N / 2, HELDOUT, wanted(50, HELDOUT));
    check(&train, &source, N, 5, wanted(100, 5));
    double all = wanted(100, HELDOUT), half = wanted(50, HELDOUT);
    EXPECT(all != half && all < 0.7 * log(WORDS), "%g and %g", all, half);
    struct ngram_score s, both;
    static const double halves[] = {0.5, 0.5}; /* the same set twice */
    struct token_windows twice[] = {train, train};
    EXPECT_OK(gpt_counts_measure(&both, twice, halves, 2, N, &source, HELDOUT));
    EXPECT(both.n_counted == N && both.loss > all, "%lld tokens, %g", (long long)both.n_counted, both.loss);
    train.n_words = 20;
    EXPECT_ERROR(gpt_counts_measure(&s, &train, &whole, 1, N, &source, HELDOUT), STATUS_DATA,
                 "--ngram_tokens");
    indexed_close(&x[0]);
    indexed_close(&x[1]);
    for (int i = 0; i < 2; i++) {
        static const char *const ends[] = {".bin", ".idx", ".sizes", ".bounds"};
        for (int e = 0; e < 4; e++) {
            char file[80];
            snprintf(file, sizeof file, "%s%s", path[i], ends[e]);
            remove(file);
        }
    }
    remove(directory);
    puts("test_gpt_counts: counts lose what they lose by hand");
    return 0;
}
