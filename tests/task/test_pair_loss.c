/* The losses over pairs are those of sentence-transformers' formulas, written out term by term here, and
 * their gradients those of central differences, both in fp64. */
#include "test.h"

#include "core/rng.h"
#include "task/pair_loss.h"

#include <math.h>
#include <string.h>

enum { N = 5, WIDTH = 7, ALL = 2 * N * WIDTH };

/* torch.nn.functional.cosine_similarity of the first text of pair i and the second of pair j. */
static double cosine(const double *v, int i, int j)
{
    double aa = 0, bb = 0, ab = 0;
    for (int c = 0; c < WIDTH; c++) {
        double a = v[2 * i * WIDTH + c], b = v[(2 * j + 1) * WIDTH + c];
        aa += a * a, bb += b * b, ab += a * b;
    }
    return ab / sqrt(aa * bb);
}

/* MultipleNegativesRankingLoss: cross_entropy(scores, range(n)), scores = cos_sim(a, b) * scale. */
static double ranking(const double *v, const float *scores, double scale)
{
    double loss = 0;
    (void)scores;
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int j = 0; j < N; j++) {
            sum += exp(scale * cosine(v, i, j));
        }
        loss += log(sum) - scale * cosine(v, i, i);
    }
    return loss / N;
}

/* CoSENTLoss: logsumexp of 0 and of scores[i] - scores[j] where labels[i] < labels[j]. */
static double cosent(const double *v, const float *scores, double scale)
{
    double sum = 1;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            sum += scores[i] < scores[j] ? exp(scale * (cosine(v, i, i) - cosine(v, j, j))) : 0;
        }
    }
    return log(sum);
}

static void check(const float *scores, double scale)
{
    float vectors[ALL];
    double wide[ALL], gradients[ALL], loss, largest = 0, worst = 0;
    struct rng_stream r = rng_stream(rng_key(1, 2));
    for (int i = 0; i < ALL; i++) {
        vectors[i] = (float)rng_below(&r, 2001) / 1000 - 1;
        wide[i] = vectors[i];
    }
    double (*wanted)(const double *, const float *, double) = scores != NULL ? cosent : ranking;
    EXPECT_OK(pair_loss(&loss, gradients, &(struct pair_vectors){vectors, scores, N, WIDTH, scale}));
    EXPECT_NEAR(loss, wanted(wide, scores, scale), 1e-12 * (1 + loss));
    for (int i = 0; i < ALL; i++) {
        const double step = 1e-6;
        double at = wide[i], above, below;
        wide[i] = at + step;
        above = wanted(wide, scores, scale);
        wide[i] = at - step;
        below = wanted(wide, scores, scale);
        wide[i] = at;
        largest = fmax(largest, fabs(gradients[i]));
        worst = fmax(worst, fabs(gradients[i] - (above - below) / (2 * step)));
    }
    EXPECT(worst <= 1e-7 * largest, "gradients differ by %g of %g", worst, largest);
    EXPECT_NEAR(pair_loss_cosine(vectors, vectors + WIDTH, WIDTH), cosine(wide, 0, 0), 1e-12);
}

int main(void)
{
    static const float scores[N] = {0.5F, 3, 0.5F, 5, 1.25F};
    static const double scales[] = {1, 20};
    for (int i = 0; i < 2; i++) {
        check(NULL, scales[i]);
        check(scores, scales[i]);
    }
    float zero[2 * 2 * 2] = {0, 0, 1, 0, 0, 1, 1, 1}; /* a vector of zeros has a cosine of 0 */
    double gradients[8], loss;
    EXPECT_OK(pair_loss(&loss, gradients, &(struct pair_vectors){zero, NULL, 2, 2, 20}));
    EXPECT(isfinite(loss) && isfinite(gradients[2]), "%g", loss);
    float large[2 * 2 * 2] = {1, 0, 1, 0, 0, 1, -1, 0}; /* large exponents do not overflow */
    EXPECT_OK(pair_loss(&loss, gradients, &(struct pair_vectors){large, (float[]){1, 0}, 2, 2, 1e6}));
    EXPECT(isfinite(loss), "%g", loss);
    return 0;
}
