#include "model/gpt/gpt_gguf.h"

#include "core/log.h"
#include "io/gguf_writer.h"
#include "model/gpt/gpt_names.h"
#include "nn/gpt/gpt_config.h"

#include <stdio.h>

/* The key of a number of the architecture. */
static const char *key_of(char key[64], const char *architecture, const char *name)
{
    snprintf(key, 64, "%s.%s", architecture, name);
    return key;
}

static void put_sizes(struct gguf_writer *w, const char *architecture, const struct gpt_config *c)
{
    const struct {
        const char *name;
        int64_t value;
    } rows[] = {
        {"context_length", c->n_positions},   {"embedding_length", c->hidden_size},
        {"block_count", c->n_layers},         {"feed_forward_length", c->feed_forward_size},
        {"attention.head_count", c->n_heads}, {"attention.head_count_kv", c->n_heads},
    };
    char key[64];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gguf_put_u32(w, key_of(key, architecture, rows[i].name), (uint32_t)rows[i].value);
    }
    gguf_put_f32(w, key_of(key, architecture, "attention.layer_norm_epsilon"), (float)c->norm_eps);
}

/* llama.cpp rounds the length of a context up to this (GGML_PAD in llama_context). */
enum { CONTEXT_PAD = 256 };

static void put_gpt2(struct gguf_writer *w, const void *config)
{
    const struct gpt_config *c = config;
    put_sizes(w, gpt2_gguf.architecture, c);
    if (c->n_positions < CONTEXT_PAD) {
        log_warning("this model has %lld positions, but llama.cpp rounds a context up to %d and aborts at a "
                    "position that the file lacks: train a model of %d positions for it",
                    (long long)c->n_positions, CONTEXT_PAD, CONTEXT_PAD);
    }
    if (c->gelu == LAYER_GELU_EXACT) {
        log_warning("this model has the exact GELU (erf), but GGUF's gpt2 graph has only the tanh form: a "
                    "program that runs the file computes slightly other logits");
    }
}

static void put_bloom(struct gguf_writer *w, const void *config)
{
    put_sizes(w, bloom_gguf.architecture, config);
}

/* llama.cpp adds the positions to the embeddings in fp32. */
static const char *const gpt2_in_f32[] = {"position_embd.weight", NULL};
static const char *const bloom_in_f32[] = {NULL};

const struct model_family_gguf gpt2_gguf = {"gpt2", &gpt2_gguf_layout, gpt2_in_f32, put_gpt2};
const struct model_family_gguf bloom_gguf = {"bloom", &bloom_gguf_layout, bloom_in_f32, put_bloom};
