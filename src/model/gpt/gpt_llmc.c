#include "model/gpt/gpt_llmc.h"

#include "core/log.h"
#include "io/llmc_file.h"
#include "model/file_tensors.h"
#include "model/gpt/gpt_names.h"
#include "nn/gpt/gpt_config.h"

#include <stdio.h>
#include <stdlib.h>

struct writing {
    const struct model_dir_contents *c;
    struct file_tensors tensors;
    struct weight_source weights;
};

static struct status values_of(void *context, const char *name, int64_t layer, tensor *values)
{
    struct writing *w = context;
    char full[PARAM_NAME_BYTES];
    if (layer < 0) {
        snprintf(full, sizeof full, "%s", name);
    } else {
        snprintf(full, sizeof full, "%sh.%lld.%s", w->c->family->root, (long long)layer, name);
    }
    int i = file_tensors_find(&w->tensors, full);
    CHECK(i >= 0, "there is no %s", full);
    return file_tensors_read(&w->tensors, i, &w->weights, values);
}

/* llm.c's code has one value of these. */
static struct status check_config(const struct gpt_config *c)
{
    if (c->feed_forward_size != 4 * c->hidden_size) {
        return status_error(STATUS_UNAVAILABLE,
                            "llm.c's feed-forward layers are four times as wide as the model, %lld, but this "
                            "model's are %lld wide",
                            (long long)(4 * c->hidden_size), (long long)c->feed_forward_size);
    }
    if ((float)c->norm_eps != 1e-5F) {
        return status_error(STATUS_UNAVAILABLE,
                            "llm.c's \"layer_norm_epsilon\" is 1e-05, but this model's is %g", c->norm_eps);
    }
    if (c->gelu == LAYER_GELU_EXACT) {
        log_warning("this model has the exact GELU (erf), but llm.c has only the tanh form: it computes "
                    "slightly other logits");
    }
    return status_ok();
}

struct status gpt_llmc_write(const char *path, const struct model_dir_contents *c)
{
    const struct gpt_config *g = c->config;
    struct llmc_sizes sizes = {.version = c->form.type == MODEL_DIR_BF16 ? LLMC_BF16 : LLMC_F32,
                               .max_length = g->n_positions,
                               .n_words = c->tokenizer->n,
                               .n_layers = g->n_layers,
                               .n_heads = g->n_heads,
                               .channels = g->hidden_size};
    struct writing w = {.c = c, .weights = model_dir_weights(c)};
    TRY(check_config(g));
    TRY(file_tensors_init(&w.tensors, gpt2_llmc_layout, g->n_heads, c->params, DTYPE_F32));
    struct status s = llmc_file_write(path, &sizes, values_of, &w);
    file_tensors_fini(&w.tensors);
    return s;
}
