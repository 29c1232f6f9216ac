/* The gradients of small decoders with dropout, GPT-2's, BLOOM's, Llama's and its relatives', with every
 * activation and with layers that are recomputed, on the reference ops in fp64, against central differences
 * of their loss: within 1e-7 of the largest gradient. */
#include "gpt_fixture.h"
#include "gradient_check.h"

#include <stdlib.h>

enum { SEQUENCES = 3, LONGEST = 10, WORDS = 21 };

static struct decoder_config small(bool alibi, enum layer_activation activation)
{
    return (struct decoder_config){.vocab_size = 24,
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
                                   .activation = activation,
                                   .positions = alibi ? LAYER_POSITIONS_ALIBI : LAYER_POSITIONS_OF_INPUT,
                                   .embedding_norm = alibi};
}

/* Of heads that share keys and values, with a decoder of its own. */
static struct decoder_config small_llama(enum layer_activation activation)
{
    static const struct llama_kind kind = {.model_type = "llama",
                                           .class_name = "LlamaForCausalLM",
                                           .bare_class = "LlamaModel",
                                           .qkv_bias = true};
    struct decoder_config c = small(false, activation);
    c.embedding_dropout = 0;
    c.n_heads = 4, c.n_kv_heads = 2, c.head_size = 6;
    c.norm = LAYER_NORM_RMS;
    c.positions = LAYER_POSITIONS_ROTARY;
    c.rotary = (struct rotary){.theta = 50, .size = 4};
    c.qkv_bias = c.own_decoder = true;
    c.llama = &kind;
    return c;
}

/* Qwen 3's and OLMo 2's: queries and keys have norms. */
static struct decoder_config small_normed(enum layer_qk_norm norm)
{
    struct decoder_config c = small_llama(LAYER_SWIGLU);
    c.qkv_bias = false;
    c.qk_norm = norm;
    return c;
}

/* SmolLM 3's: layer 1 of 3 has no positions. */
static struct decoder_config small_smollm3(void)
{
    struct decoder_config c = small_llama(LAYER_SWIGLU);
    c.unturned = (struct layer_cycle){2, 1};
    return c;
}

/* GPT-NeoX's, whose sublayers are parallel. */
static struct decoder_config small_pythia(void)
{
    struct decoder_config c = small(false, LAYER_GELU_EXACT);
    c.positions = LAYER_POSITIONS_ROTARY;
    c.rotary = (struct rotary){.theta = 50, .size = 2};
    c.is_parallel = c.own_decoder = true;
    return c;
}

static void check(struct decoder_config c, int64_t recompute)
{
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
    snprintf(what, sizeof what, "%s, activation %d, chunks of %lld layers", model->type->name,
             (int)c.activation, (long long)recompute);
    gradient_check(&t, &step, what);
    trainer_fini(&t);
    batch_step_fini(&step);
    free(model);
}

/* ALiBi has no table of positions: the length of a run's sequences is no size of a BLOOM, but of a GPT-2. */
static void lengths_are_no_size_of_a_bloom(void)
{
    struct decoder_config a = small(true, LAYER_GELU_TANH), b = a;
    b.n_positions = 2 * a.n_positions;
    EXPECT_OK(decoder_config_same_architecture(&a, &b));
    b.hidden_size *= 2;
    EXPECT_ERROR(decoder_config_same_architecture(&a, &b), STATUS_DATA, "hidden_size");
    a = b = small(false, LAYER_GELU_TANH);
    b.n_positions = 2 * a.n_positions;
    EXPECT_ERROR(decoder_config_same_architecture(&a, &b), STATUS_DATA, "n_positions");
}

int main(void)
{
    lengths_are_no_size_of_a_bloom();
    check(small(false, LAYER_GELU_EXACT), 0);
    check(small(false, LAYER_GELU_TANH), 0);
    check(small(true, LAYER_GELU_TANH), 0);
    check(small(true, LAYER_GELU_TANH), 2);
    check(small_llama(LAYER_SWIGLU), 0);
    check(small_llama(LAYER_SWIGLU), 2);
    check(small_llama(LAYER_GEGLU), 0);
    check(small_smollm3(), 2);
    check(small_pythia(), 0);
    check(small_pythia(), 2);
    check(small_normed(LAYER_QK_NORM_HEADS), 0);
    check(small_normed(LAYER_QK_NORM_HEADS), 2);
    check(small_normed(LAYER_QK_NORM_ALL), 0);
    check(small_normed(LAYER_QK_NORM_ALL), 2);
    return 0;
}
