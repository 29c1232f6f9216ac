/* How position embeddings begin: as random numbers of the seed, or as sinusoids (Vaswani et al. 2017, section
 * 3.5) of twice their root mean square, whatever the seed; and heads that look at neighbours from the first
 * step. */
#include "nn/bert/bert.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N_POSITIONS = 40, HIDDEN = 128, N_HEADS = 4, N_VALUES = N_POSITIONS * HIDDEN };

/* How a model begins. */
struct begin {
    bool sinusoidal, positional_heads;
    uint64_t seed;
};

/* Returns whether weight decay applies to it. */
static bool make_param(float *values, const char *name, struct begin b)
{
    struct bert_config config = {.vocab_size = 100,
                                 .hidden_size = HIDDEN,
                                 .num_hidden_layers = 2,
                                 .num_attention_heads = N_HEADS,
                                 .intermediate_size = 64,
                                 .max_position_embeddings = N_POSITIONS,
                                 .type_vocab_size = 2,
                                 .initializer_range = 0.02,
                                 .sinusoidal_positions = b.sinusoidal,
                                 .positional_heads = b.positional_heads};
    struct param_table table = {0};
    EXPECT_OK(bert_declare(&table, &config, MODEL_TASK_MASKED_LM));
    struct param p = *param_table_find(&table, name);
    int64_t n = param_count(&p);
    p.offset = 0;
    param_initialize(&p, tensor_1d(values, DTYPE_F32, n), b.seed, 0, n);
    param_table_fini(&table);
    return p.decay;
}

static bool make_positions(float *values, bool sinusoidal, uint64_t seed)
{
    return make_param(values, "bert.embeddings.position_embeddings.weight",
                      (struct begin){sinusoidal, false, seed});
}

static double root_mean_square(const float *values)
{
    double sum = 0;
    for (int i = 0; i < N_VALUES; i++) {
        sum += (double)values[i] * (double)values[i];
    }
    return sqrt(sum / N_VALUES);
}

static int count_equal(const float *a, const float *b)
{
    int n = 0;
    for (int i = 0; i < N_VALUES; i++) {
        n += a[i] == b[i];
    }
    return n;
}

static void sinusoids(void)
{
    static float values[N_VALUES], others[N_VALUES];
    EXPECT(!make_positions(values, true, 1), "sinusoids that no sequence reaches fade");
    make_positions(others, true, 2);
    EXPECT(count_equal(values, others) == N_VALUES, "sinusoids depend on the seed");
    double scale = values[1]; /* the cosine of 0 */
    for (int pos = 0; pos < N_POSITIONS; pos++) {
        for (int i = 0; i < HIDDEN / 2; i++) {
            double angle = pos / pow(10000, 2.0 * i / HIDDEN);
            const float *pair = values + (size_t)pos * HIDDEN + 2 * (size_t)i;
            EXPECT_NEAR(pair[0], scale * sin(angle), 1e-7);
            EXPECT_NEAR(pair[1], scale * cos(angle), 1e-7);
        }
    }
    EXPECT_NEAR(root_mean_square(values), 2 * 0.02, 1e-7);
}

static void random_numbers(void)
{
    static float values[N_VALUES], others[N_VALUES];
    EXPECT(make_positions(values, false, 1), "random positions do not decay");
    make_positions(others, false, 2);
    EXPECT(count_equal(values, others) < N_VALUES / 100, "they do not depend on the seed");
    EXPECT_NEAR(root_mean_square(values), 0.02, 0.001);
}

/* out [N_POSITIONS, HIDDEN] = positions w^T */
static void project(double *out, const float *positions, const float *w)
{
    for (int i = 0; i < N_POSITIONS; i++) {
        for (int row = 0; row < HIDDEN; row++) {
            double sum = 0;
            for (int col = 0; col < HIDDEN; col++) {
                sum += (double)positions[i * HIDDEN + col] * (double)w[row * HIDDEN + col];
            }
            out[i * HIDDEN + row] = sum;
        }
    }
}

/* The distance at which the products of a head's queries and keys are largest, over all positions. */
static int looks_at(const double *queries, const double *keys, int head)
{
    enum { HEAD_SIZE = HIDDEN / N_HEADS, FAR = 8 };
    int best = 0;
    double most = -INFINITY;
    for (int distance = -FAR; distance <= FAR; distance++) {
        double sum = 0;
        for (int i = FAR; i < N_POSITIONS - FAR; i++) {
            for (int c = head * HEAD_SIZE; c < (head + 1) * HEAD_SIZE; c++) {
                sum += queries[i * HIDDEN + c] * keys[(i + distance) * HIDDEN + c];
            }
        }
        if (sum > most) {
            most = sum;
            best = distance;
        }
    }
    return best;
}

static void heads_look_at_neighbours(const char *layer)
{
    static const int distances[N_HEADS] = {-1, 1, -2, 2};
    static float positions[N_VALUES], query[HIDDEN * HIDDEN], key[HIDDEN * HIDDEN];
    static double queries[N_VALUES], keys[N_VALUES];
    struct begin b = {true, true, 1};
    char name[96];
    make_positions(positions, true, 1);
    snprintf(name, sizeof name, "%s.attention.self.query.weight", layer);
    make_param(query, name, b);
    snprintf(name, sizeof name, "%s.attention.self.key.weight", layer);
    make_param(key, name, b);
    project(queries, positions, query);
    project(keys, positions, key);
    for (int head = 0; head < N_HEADS; head++) {
        int found = looks_at(queries, keys, head);
        EXPECT(found == distances[head], "%s: head %d looks at %+d", layer, head, found);
    }
}

static void heads_are_of_the_seed_and_the_layer(void)
{
    static float one[HIDDEN * HIDDEN], other[HIDDEN * HIDDEN];
    const char *key = "bert.encoder.layer.0.attention.self.key.weight";
    const char *next = "bert.encoder.layer.1.attention.self.key.weight";
    make_param(one, key, (struct begin){true, true, 1});
    make_param(other, key, (struct begin){true, true, 2});
    EXPECT(memcmp(one, other, sizeof one) != 0, "two seeds, the same heads");
    make_param(other, next, (struct begin){true, true, 1});
    EXPECT(memcmp(one, other, sizeof one) != 0, "two layers, the same heads");
    make_param(one, "bert.encoder.layer.0.attention.self.value.weight", (struct begin){true, true, 1});
    make_param(other, "bert.encoder.layer.0.attention.self.value.weight", (struct begin){true, false, 1});
    EXPECT(memcmp(one, other, sizeof one) == 0, "values begin otherwise");
}

int main(void)
{
    sinusoids();
    random_numbers();
    heads_look_at_neighbours("bert.encoder.layer.0");
    heads_look_at_neighbours("bert.encoder.layer.1");
    heads_are_of_the_seed_and_the_layer();
    return 0;
}
