/* How position embeddings begin: as random numbers of the seed, or as sinusoids (Vaswani et al. 2017, section
 * 3.5) of twice their root mean square, whatever the seed. */
#include "nn/bert/bert_model.h"
#include "test.h"
#include "bert_params.h"

#include <math.h>

enum { N_POSITIONS = 40, HIDDEN = 128, N_VALUES = N_POSITIONS * HIDDEN };

/* Returns whether weight decay applies to them. */
static bool make_positions(float *values, bool sinusoidal, uint64_t seed)
{
    struct bert_config config = {.vocab_size = 100,
                                 .hidden_size = HIDDEN,
                                 .num_hidden_layers = 2,
                                 .num_attention_heads = 4,
                                 .intermediate_size = 64,
                                 .max_position_embeddings = N_POSITIONS,
                                 .type_vocab_size = 2,
                                 .initializer_range = 0.02,
                                 .sinusoidal_positions = sinusoidal};
    struct param_table table = {0};
    EXPECT_OK(bert_declare(&table, &config, MODEL_TASK_MASKED_LM));
    struct param p = *param_table_find(&table, "bert.embeddings.position_embeddings.weight");
    int64_t n = param_count(&p);
    p.offset = 0;
    param_initialize(&p, tensor_1d(values, DTYPE_F32, n), seed, 0, n);
    param_table_fini(&table);
    return p.decay;
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

int main(void)
{
    sinusoids();
    random_numbers();
    return 0;
}
