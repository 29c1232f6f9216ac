/* Who looks at a pass sees queries, keys and values as columns of their product, and their gradients too. */
#include "nn/bert/bert_visit.h"

#include "nn/bert/bert_acts.h"
#include "nn/bert/bert_model.h"
#include "test.h"

enum { ROWS = 3, WIDTH = 8 };

static float product[ROWS][3 * WIDTH];
static int n_seen;

/* Counts the columns that are the right ones. */
static void see(const char *module, enum batch_rows rows, tensor value)
{
    static const char *const names[] = {"query", "key", "value"};
    for (int i = 0; module != NULL && i < 3; i++) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "bert.encoder.layer.1.attention.self.%s", names[i]);
        if (strcmp(module, wanted) == 0) {
            EXPECT(value.data == &product[0][i * WIDTH] && value.n_dims == 2 && value.dims[0] == ROWS &&
                       value.dims[1] == WIDTH && value.strides[0] == sizeof product[0] / sizeof(float) &&
                       rows == BATCH_OF_TOKENS,
                   "%s is [%lld, %lld]", module, (long long)value.dims[0], (long long)value.dims[1]);
            n_seen++;
        }
    }
}

static void visitor(void *context, const char *name, const char *module, enum batch_rows rows, tensor value)
{
    (void)context, (void)name;
    see(module, rows, value);
}

static void gradient_visitor(void *context, const char *module, enum batch_rows rows, bool of_input,
                             tensor value)
{
    (void)context, (void)of_input;
    see(module, rows, value);
}

int main(void)
{
    const struct bert_config config = {.vocab_size = 64,
                                       .hidden_size = WIDTH,
                                       .num_hidden_layers = 3,
                                       .num_attention_heads = 2,
                                       .intermediate_size = WIDTH,
                                       .max_position_embeddings = 16,
                                       .type_vocab_size = 2};
    const struct bert_model m = bert_model(&config, MODEL_TASK_PRETRAINING);
    struct bert_layer_acts layers[3] = {0};
    struct bert_acts acts = {.layers = layers};
    layers[1].attention.qkv = tensor_2d(product, DTYPE_F32, ROWS, 3 * WIDTH);
    acts.scratch.dqkv = layers[1].attention.qkv;
    bert_visit(&m.model, &acts, 1, visitor, NULL);
    EXPECT(n_seen == 3, "%d activations", n_seen);
    bert_visit_gradients(&m.model, &acts, 1, NULL_TENSOR, gradient_visitor, NULL);
    EXPECT(n_seen == 6, "%d gradients", n_seen - 3);
    return 0;
}
