#include "model/gpt/gpt_names.h"

/* Query, key and value below a module: the `kind` of each. */
#define QKV(module, kind)                                                                                    \
    {                                                                                                        \
        module ".query." kind, module ".key." kind, module ".value." kind                                    \
    }

/* A tensor that is all three, and its bias. */
#define JOINED(whole, end_w, end_b, module, by_head, transposed)                                             \
    {whole end_w, QKV(module, "weight"), by_head, transposed},                                               \
    {                                                                                                        \
        whole end_b, QKV(module, "bias"), by_head, false                                                     \
    }

#define END_OF_RENAMES                                                                                       \
    {                                                                                                        \
        NULL, NULL, false, false                                                                             \
    }
#define END_OF_JOINS                                                                                         \
    {                                                                                                        \
        NULL, {NULL, NULL, NULL}, false, false                                                               \
    }

/* A part of a name, in a file and in kiln. */
#define NAMED(theirs, ours)                                                                                  \
    {                                                                                                        \
        theirs, ours, false, false                                                                           \
    }

/* ---- GGUF: llama.cpp's names, matrices [out, in] ---- */

#define GGUF_GPT2                                                                                            \
    NAMED("token_embd.", "transformer.wte."), NAMED("position_embd.", "transformer.wpe."),                   \
        NAMED("output_norm.", "transformer.ln_f."), NAMED("blk.", "transformer.h."),                         \
        NAMED(".attn_norm.", ".ln_1."), NAMED(".attn_output.", ".attn.out."), NAMED(".ffn_norm.", ".ln_2."), \
        NAMED(".ffn_up.", ".mlp.in."), NAMED(".ffn_down.", ".mlp.out.")

#define GGUF_BLOOM                                                                                           \
    NAMED("token_embd_norm.", "transformer.word_embeddings_layernorm."),                                     \
        NAMED("token_embd.", "transformer.word_embeddings."), NAMED("output_norm.", "transformer.ln_f."),    \
        NAMED("blk.", "transformer.h."), NAMED(".attn_norm.", ".input_layernorm."),                          \
        NAMED(".attn_output.", ".self_attention.dense."), NAMED(".ffn_norm.", ".post_attention_layernorm."), \
        NAMED(".ffn_up.", ".mlp.dense_h_to_4h."), NAMED(".ffn_down.", ".mlp.dense_4h_to_h.")

/* Some converters write the decoder, which is tied to the table of words; it is read to be compared. */
#define GGUF_DECODER NAMED("output.weight", "lm_head.weight")

#define GGUF_JOINED(module) JOINED(".attn_qkv", ".weight", ".bias", module, false, false)

static const struct model_family_rename gpt2_gguf_renames[] = {GGUF_GPT2, END_OF_RENAMES};
static const struct model_family_rename bloom_gguf_renames[] = {GGUF_BLOOM, END_OF_RENAMES};
static const struct model_family_join gpt2_gguf_joins[] = {GGUF_JOINED(".attn"), END_OF_JOINS};
static const struct model_family_join bloom_gguf_joins[] = {GGUF_JOINED(".self_attention"), END_OF_JOINS};
const struct model_family_layout gpt2_gguf_layout = {gpt2_gguf_renames, gpt2_gguf_joins};
const struct model_family_layout bloom_gguf_layout = {bloom_gguf_renames, bloom_gguf_joins};

/* ---- Megatron-DeepSpeed: names of megatron_names.h, matrices [out, in] ----
 *
 * Its attention is called "attention" in Microsoft's program, which trains GPT-2's network, and
 * "self_attention" in bigscience's, which trains BLOOM's; both are read. */

#define MEGATRON_GPT2                                                                                        \
    NAMED("embedding.word_embeddings.", "transformer.wte."),                                                 \
        NAMED("embedding.position_embeddings.", "transformer.wpe."), NAMED("final.", "transformer.ln_f."),   \
        NAMED("layers.", "transformer.h."), NAMED(".input_layernorm.", ".ln_1."),                            \
        NAMED(".post_attention_layernorm.", ".ln_2."), NAMED(".attention.dense.", ".attn.out."),             \
        NAMED(".mlp.dense_h_to_4h.", ".mlp.in."), NAMED(".mlp.dense_4h_to_h.", ".mlp.out.")

#define MEGATRON_BLOOM                                                                                       \
    NAMED("embedding.word_embeddings.norm.", "transformer.word_embeddings_layernorm."),                      \
        NAMED("embedding.word_embeddings.", "transformer.word_embeddings."),                                 \
        NAMED("embedding.position_embeddings.", "transformer.word_position_embeddings."),                    \
        NAMED("final.", "transformer.ln_f."), NAMED("layers.", "transformer.h.")

#define BLOOM_JOINED                                                                                         \
    JOINED(".self_attention.query_key_value", ".weight", ".bias", ".self_attention", true, false)
#define MEGATRON_JOINED JOINED(".attention.query_key_value", ".weight", ".bias", ".attn", true, false)

static const struct model_family_rename gpt2_megatron_renames[] = {MEGATRON_GPT2, END_OF_RENAMES};
static const struct model_family_rename bloom_megatron_renames[] = {MEGATRON_BLOOM, END_OF_RENAMES};
static const struct model_family_join gpt2_megatron_joins[] = {MEGATRON_JOINED, END_OF_JOINS};
static const struct model_family_join bloom_megatron_joins[] = {BLOOM_JOINED, END_OF_JOINS};
const struct model_family_layout gpt2_megatron_layout = {gpt2_megatron_renames, gpt2_megatron_joins};
const struct model_family_layout bloom_megatron_layout = {bloom_megatron_renames, bloom_megatron_joins};

/* ---- all that is read ---- */

/* ".attn.bias" is a causal mask that older files hold beside the weights of each layer. */
const struct model_family_rename gpt2_renames[] = {
    {".attn.bias", ".attn.masked_bias", true, false}, GGUF_GPT2,     GGUF_DECODER,
    NAMED(".self_attention.", ".attention."),         MEGATRON_GPT2, END_OF_RENAMES,
};

/* GPT-2's linear layers are Conv1D, whose matrices are [in, out]. */
const struct model_family_rename gpt2_forms[] = {
    {".attn.c_proj.weight", ".attn.out.weight", true, true},
    {".attn.c_proj.bias", ".attn.out.bias", true, false},
    {".mlp.c_fc.weight", ".mlp.in.weight", true, true},
    {".mlp.c_fc.bias", ".mlp.in.bias", true, false},
    {".mlp.c_proj.weight", ".mlp.out.weight", true, true},
    {".mlp.c_proj.bias", ".mlp.out.bias", true, false},
    END_OF_RENAMES,
};

const struct model_family_join gpt2_joins[] = {
    JOINED(".attn.c_attn", ".weight", ".bias", ".attn", false, true),
    GGUF_JOINED(".attn"),
    MEGATRON_JOINED,
    END_OF_JOINS,
};

const struct model_family_rename bloom_renames[] = {
    GGUF_BLOOM, GGUF_DECODER, MEGATRON_BLOOM, NAMED(".attention.", ".self_attention."), END_OF_RENAMES,
};

const struct model_family_join bloom_joins[] = {
    BLOOM_JOINED,
    GGUF_JOINED(".self_attention"),
    END_OF_JOINS,
};
