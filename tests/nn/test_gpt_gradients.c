/* The gradients of small decoders with dropout, GPT-2's and BLOOM's, with either GELU and with layers that
 * are recomputed, on the reference ops in fp64, against central differences of their loss: within 1e-7 of the
 * largest gradient. */
#include "gpt_fixture.h"
#include "gradient_check.h"

#include <stdlib.h>

enum { SEQUENCES = 3, LONGEST = 10, WORDS = 21 };

static struct gpt_config small(bool alibi, enum layer_gelu gelu)
{
    return (struct gpt_config){.vocab_size = 24,
                               .n_words = WORDS,
                               .n_positions = 16,
                               .hidden_size = 12,
                               .n_layers = 3,
                               .n_heads = 3,
                               .feed_forward_size = 20,
                               .embedding_dropout = alibi ? 0 : 0.1,
                               .hidden_dropout = 0.1,
                               .attention_dropout = 0.1,
                               .initializer_range = 0.3,
                               .norm_eps = 1e-5,
                               .gelu = gelu,
                               .positions = alibi ? LAYER_POSITIONS_ALIBI : LAYER_POSITIONS_OF_INPUT,
                               .embedding_norm = alibi};
}

static void check(bool alibi, enum layer_gelu gelu, int64_t recompute)
{
    struct gpt_config c = small(alibi, gelu);
    struct model *model = fixture_decoder(&c);
    struct batch_step step;
    struct trainer t;
    char what[64];
    struct batch_limits limits = text_batch_limits(SEQUENCES, LONGEST, LONGEST);
    struct trainer_config config = {.net = {.model = model,
                                            .device = &device_cpu,
                                            .ops = &ops_ref,
                                            .precision = {.dtype = DTYPE_F64},
                                            .limits = limits,
                                            .learns = true,
                                            .recompute = recompute},
                                    .optimizer = optimizer_defaults(&optimizer_adamw),
                                    .seed = 5};
    fixture_texts(&step, 1, SEQUENCES, LONGEST, WORDS);
    EXPECT_OK(trainer_init(&t, &config));
    snprintf(what, sizeof what, "%s, %s GELU, chunks of %lld layers", model->type->name,
             gelu == LAYER_GELU_EXACT ? "exact" : "tanh", (long long)recompute);
    gradient_check(&t, &step, what);
    trainer_fini(&t);
    batch_step_fini(&step);
    free(model);
}

/* ALiBi has no table of positions: the length of a run's sequences is no size of a BLOOM, but of a GPT-2. */
static void lengths_are_no_size_of_a_bloom(void)
{
    struct gpt_config a = small(true, LAYER_GELU_TANH), b = a;
    b.n_positions = 2 * a.n_positions;
    EXPECT_OK(gpt_config_same_architecture(&a, &b));
    b.hidden_size *= 2;
    EXPECT_ERROR(gpt_config_same_architecture(&a, &b), STATUS_DATA, "hidden_size");
    a = b = small(false, LAYER_GELU_TANH);
    b.n_positions = 2 * a.n_positions;
    EXPECT_ERROR(gpt_config_same_architecture(&a, &b), STATUS_DATA, "n_positions");
}

int main(void)
{
    lengths_are_no_size_of_a_bloom();
    check(false, LAYER_GELU_EXACT, 0);
    check(false, LAYER_GELU_TANH, 0);
    check(true, LAYER_GELU_TANH, 0);
    check(true, LAYER_GELU_TANH, 2);
    return 0;
}
