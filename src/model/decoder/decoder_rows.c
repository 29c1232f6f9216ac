#include "model/decoder/decoder_rows.h"

#include "nn/decoder/decoder_config.h"

#include <stdio.h>

struct model_family_sizes decoder_sizes(const void *config)
{
    const struct decoder_config *c = config;
    return (struct model_family_sizes){c->vocab_size, decoder_config_max_length(c),
                                       c->n_layers,   {c->n_heads, decoder_config_head_size(c)},
                                       c->norm_eps,   false};
}

void decoder_set_words(void *config, int64_t vocab_size, int64_t n_words)
{
    struct decoder_config *c = config;
    c->vocab_size = vocab_size;
    c->n_words = n_words;
}

struct model_labels *decoder_labels(void *config)
{
    return &((struct decoder_config *)config)->labels;
}

struct status decoder_same(const void *a, const void *b)
{
    return decoder_config_same_architecture(a, b);
}

/* The decoder's weight is the table of words, so the files of a bare model have all that a language model
 * has. */
enum model_task decoder_task_of(const bool has[NAMES_N_PARTS], const json_t *config)
{
    (void)has, (void)config;
    return MODEL_TASK_CAUSAL_LM;
}

/* The key of a number of the architecture. */
static const char *key_of(char key[64], const char *architecture, const char *name)
{
    snprintf(key, 64, "%s.%s", architecture, name);
    return key;
}

void decoder_put_size(struct gguf_writer *w, const char *architecture, const char *name, int64_t value)
{
    char key[64];
    gguf_put_u32(w, key_of(key, architecture, name), (uint32_t)value);
}

void decoder_put_real(struct gguf_writer *w, const char *architecture, const char *name, double value)
{
    char key[64];
    gguf_put_f32(w, key_of(key, architecture, name), (float)value);
}

void decoder_put_sizes(struct gguf_writer *w, const char *architecture, const struct decoder_config *c)
{
    const struct {
        const char *name;
        int64_t value;
    } rows[] = {
        {"context_length", c->n_positions},
        {"embedding_length", c->hidden_size},
        {"block_count", c->n_layers},
        {"feed_forward_length", c->feed_forward_size},
        {"attention.head_count", c->n_heads},
        {"attention.head_count_kv", c->n_kv_heads > 0 ? c->n_kv_heads : c->n_heads},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        decoder_put_size(w, architecture, rows[i].name, rows[i].value);
    }
}
