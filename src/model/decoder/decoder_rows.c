#include "model/decoder/decoder_rows.h"

#include "nn/decoder/decoder_config.h"

struct model_family_sizes decoder_sizes(const void *config)
{
    const struct decoder_config *c = config;
    return (struct model_family_sizes){
        c->vocab_size, c->n_positions, c->n_layers, {c->n_heads, decoder_config_head_size(c), c->n_kv_heads},
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
