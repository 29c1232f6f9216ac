/* What a rank of a mesh takes is what its trainer plans, and what it sends is what a small decoder's shapes
 * say. */
#include "test.h"

#include "data/text_batch.h"
#include "nn/decoder/decoder_config.h"
#include "train/rank_plan.h"

#include <stdlib.h>

enum { N_LAYERS = 4, HIDDEN = 32, WORDS = 48, TOKENS = 24, N_MICRO = 6 };

static struct trainer_config config_of(const struct model *m, struct mesh_shape shape, int n_chunks,
                                       int zero_stage)
{
    return (struct trainer_config){.net = {.model = m,
                                           .device = &device_cpu,
                                           .ops = ops_cpu(),
                                           .precision = {.dtype = DTYPE_F32},
                                           .limits = text_batch_limits(2, TOKENS / 2, TOKENS / 2),
                                           .learns = true},
                                   .ranks = {.shape = shape,
                                             .cut = {.n_chunks = n_chunks},
                                             .zero_stage = zero_stage,
                                             .n_micro = N_MICRO},
                                   .optimizer = optimizer_defaults(&optimizer_adamw)};
}

/* A layer sums twice forward and twice backward, [T, H]; of a sum each of two peers sends as many bytes. */
static void a_rank_sends_what_shapes_say(const struct model *m)
{
    const struct batch_limits limits = text_batch_limits(2, TOKENS / 2, TOKENS / 2);
    const double message = (double)limits.n_tokens * HIDDEN * sizeof(float),
                 word_table = WORDS * HIDDEN * sizeof(float);
    struct rank_plan p[4];
    struct trainer_config c = config_of(m, (struct mesh_shape){.tp = 1, .pp = 4, .dp = 1}, 1, 0);
    for (int stage = 0; stage < 4; stage++) {
        c.ranks.place.pp = stage;
        EXPECT_OK(rank_plan(&p[stage], &c));
        bool is_end = stage == 0 || stage == 3;
        EXPECT(p[stage].pipe_bytes == (is_end ? 1 : 2) * message * N_MICRO, "stage %d: %g bytes to stages",
               stage, p[stage].pipe_bytes);
        EXPECT(p[stage].tied_bytes == (is_end ? word_table : 0), "stage %d: %g tied bytes", stage,
               p[stage].tied_bytes);
        EXPECT(p[stage].tensor_bytes == 0, "stage %d: %g bytes to slices", stage, p[stage].tensor_bytes);
    }
    c.ranks.shape = (struct mesh_shape){.tp = 2, .pp = 2, .dp = 1};
    c.ranks.cut.n_chunks = 2;
    for (int stage = 0; stage < 2; stage++) {
        c.ranks.place.pp = stage;
        EXPECT_OK(rank_plan(&p[stage], &c));
    }
    EXPECT(p[0].pipe_bytes == 3 * message * N_MICRO && p[1].pipe_bytes == 3 * message * N_MICRO,
           "two chunks: %g and %g bytes to stages", p[0].pipe_bytes, p[1].pipe_bytes);
    /* the first stage has two layers and the words' sum */
    EXPECT(p[0].tensor_bytes == (2 * 4 + 1) * message * N_MICRO, "%g bytes to slices, not %g",
           p[0].tensor_bytes, (2 * 4 + 1) * message * N_MICRO);
}

/* A layer gathers the input of a product and sums its output in parts, twice forward and twice backward, and
 * backward gathers the two inputs again, which it has kept in parts: ten times a half of a sum, where it was
 * eight.  The gradients of two norms and of a bias behind attention are summed once a step. */
static void divided_rows_send_and_take_what_shapes_say(const struct model *m)
{
    const int64_t rows = text_batch_limits(2, TOKENS / 2, TOKENS / 2).n_tokens;
    const double all = (double)rows * HIDDEN * sizeof(float), half = all / 2;
    struct trainer_config c = config_of(m, (struct mesh_shape){.tp = 2, .pp = 2, .dp = 1}, 1, 0);
    struct rank_plan without, p;
    EXPECT_OK(rank_plan(&without, &c));
    c.ranks.cut.sequence_parallel = true;
    EXPECT_OK(rank_plan(&p, &c));
    EXPECT(p.pipe_bytes == without.pipe_bytes / 2, "%g bytes to stages, %g without", p.pipe_bytes,
           without.pipe_bytes);
    /* the first stage has two layers, sums the words in parts, and gathers their gradient */
    double wanted = (2 * 10 + 2) * half * N_MICRO + 2 * 5 * HIDDEN * sizeof(float);
    EXPECT(p.tensor_bytes == wanted, "%g bytes to slices, not %g", p.tensor_bytes, wanted);
    /* in each of two slots: halves of input, gradient, and four results of a layer, but room for all rows */
    double saved = 2 * ((2 + 2 * 4) * half - all), of_vectors = 2 * 2 * 4 * (double)rows / 2 * sizeof(float);
    double got = (double)without.activation_bytes - (double)p.activation_bytes;
    EXPECT(got >= saved && got <= saved + of_vectors + 4096, "%g bytes less, not %g", got, saved);
}

/* Of each of a layer's six matrices Muon exchanges five squares of the side that is whole and, for its
 * length, the sum of its one chunk. */
static void an_update_of_matrices_sends_what_shapes_say(const struct model *m)
{
    struct trainer_config c = config_of(m, (struct mesh_shape){.tp = 2, .pp = 1, .dp = 1}, 1, 0);
    struct rank_plan adamw, muon;
    EXPECT_OK(rank_plan(&adamw, &c));
    c.optimizer = optimizer_defaults(&optimizer_muon);
    EXPECT_OK(rank_plan(&muon, &c));
    double wanted = N_LAYERS * 6 * (5 * HIDDEN * HIDDEN * sizeof(float) + sizeof(double));
    EXPECT(muon.tensor_bytes - adamw.tensor_bytes == wanted, "an update sends %g bytes to slices, not %g",
           muon.tensor_bytes - adamw.tensor_bytes, wanted);
}

static void a_rank_takes_what_its_trainer_plans(const struct model *m, struct mesh_shape shape,
                                                int zero_stage)
{
    struct trainer_config c = config_of(m, shape, 1, zero_stage);
    size_t weights = 0;
    for (int stage = 0; stage < shape.pp; stage++) {
        struct rank_plan p;
        struct trainer_plan wanted;
        c.ranks.place.pp = stage;
        EXPECT_OK(trainer_plan(&wanted, &c));
        EXPECT_OK(rank_plan(&p, &c));
        EXPECT(p.device_bytes == wanted.net.total_bytes, "stage %d of %d: %zu bytes, not %zu", stage,
               shape.pp, p.device_bytes, wanted.net.total_bytes);
        weights += p.master_bytes;
    }
    struct trainer_plan whole;
    c.ranks = (struct trainer_ranks){0};
    EXPECT_OK(trainer_plan(&whole, &c));
    EXPECT(shape.pp == 1 || weights < whole.net.master_bytes + WORDS * HIDDEN * sizeof(float) + 4096,
           "%zu bytes of weights in stages, %zu in one", weights, whole.net.master_bytes);
}

static void rows_that_do_not_divide_are_refused(void)
{
    const struct decoder_config config = {.vocab_size = WORDS,
                                          .n_positions = 16,
                                          .hidden_size = 24,
                                          .n_layers = 1,
                                          .n_heads = 3,
                                          .feed_forward_size = 48,
                                          .initializer_range = 0.02,
                                          .norm_eps = 1e-5};
    struct model *m;
    struct rank_plan p;
    EXPECT_OK(gpt2_model_create(&m, &config, MODEL_TASK_CAUSAL_LM));
    struct trainer_config c = config_of(m, (struct mesh_shape){.tp = 3, .pp = 1, .dp = 1}, 1, 0);
    EXPECT_OK(rank_plan(&p, &c));
    c.ranks.cut.sequence_parallel = true;
    EXPECT_ERROR(rank_plan(&p, &c), STATUS_USAGE, "does not divide the rows of a batch");
    free(m);
}

int main(void)
{
    const struct decoder_config config = {.vocab_size = WORDS,
                                          .n_positions = 16,
                                          .hidden_size = HIDDEN,
                                          .n_layers = N_LAYERS,
                                          .n_heads = 4,
                                          .feed_forward_size = 64,
                                          .initializer_range = 0.02,
                                          .norm_eps = 1e-5};
    struct model *m;
    EXPECT_OK(gpt2_model_create(&m, &config, MODEL_TASK_CAUSAL_LM));
    a_rank_sends_what_shapes_say(m);
    divided_rows_send_and_take_what_shapes_say(m);
    an_update_of_matrices_sends_what_shapes_say(m);
    a_rank_takes_what_its_trainer_plans(m, (struct mesh_shape){.tp = 1, .pp = 2, .dp = 1}, 0);
    a_rank_takes_what_its_trainer_plans(m, (struct mesh_shape){.tp = 2, .pp = 4, .dp = 1}, 0);
    a_rank_takes_what_its_trainer_plans(m, (struct mesh_shape){.tp = 4, .pp = 1, .dp = 1}, 0);
    struct rank_plan p;
    struct trainer_config c = config_of(m, (struct mesh_shape){.tp = 8, .pp = 1, .dp = 1}, 1, 0);
    EXPECT_ERROR(rank_plan(&p, &c), STATUS_USAGE, "needs a multiple of 8 heads");
    free(m);
    rows_that_do_not_divide_are_refused();
    return 0;
}
