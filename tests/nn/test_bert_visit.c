/* Who looks at a pass sees each tensor under its module's name, in the order of computation: queries, keys
 * and values as columns of their product. */

#include "core/buf.h"
#include "nn/bert/bert_model.h"
#include "test.h"

enum { ROWS = 3, WIDTH = 8, LAYERS = 3 };

static float product[ROWS][3 * WIDTH], other[32];

/* What was seen: "MODULE:COLUMNS" and T, L or S for rows of tokens, labels or sequences, "<" for the gradient
 * of an input. */
static struct buf seen;

static void note(const char *module, enum batch_rows rows, bool of_input, tensor value)
{
    if (!tensor_is_null(value)) {
        buf_printf(&seen, "%s:%lld%c%s ", module == NULL ? "" : module, (long long)value.dims[1], "TLS"[rows],
                   of_input ? "<" : "");
    }
    if (!tensor_is_null(value) && value.n_dims == 2 && value.strides[0] == 3 * WIDTH &&
        value.dims[1] == WIDTH) {
        int64_t third = ((const float *)value.data - product[0]) / WIDTH;
        buf_printf(&seen, "(columns %lld) ", (long long)third * WIDTH);
    }
}

static void visitor(void *context, const char *name, const char *module, enum batch_rows rows, tensor value)
{
    (void)context, (void)name;
    note(module, rows, false, value);
}

static void gradient_visitor(void *context, const char *module, enum batch_rows rows, bool of_input,
                             tensor value)
{
    (void)context;
    note(module, rows, of_input, value);
}

/* Of another number of columns each, so that one is not taken for another. */
static tensor columns(int64_t n)
{
    return tensor_2d(other, DTYPE_F32, 1, n);
}

static const struct {
    int64_t layer;
    const char *activations, *gradients;
} cases[] = {
    {MODEL_INPUT_LAYER, "bert.embeddings:1T ", ""},
    {1,
     ":24T bert.encoder.layer.1.attention.self.query:8T (columns 0) "
     "bert.encoder.layer.1.attention.self.key:8T (columns 8) "
     "bert.encoder.layer.1.attention.self.value:8T (columns 16) "
     "bert.encoder.layer.1.attention.self:2T bert.encoder.layer.1.attention.output:3T "
     "bert.encoder.layer.1.intermediate:4T :5T bert.encoder.layer.1.output:6T ",
     "bert.encoder.layer.1.intermediate.dense:12T bert.encoder.layer.1.attention.self:13T "
     "bert.encoder.layer.1.attention.self.query:8T (columns 0) "
     "bert.encoder.layer.1.attention.self.key:8T (columns 8) "
     "bert.encoder.layer.1.attention.self.value:8T (columns 16) bert.encoder.layer.1:14T< "},
    {LAYERS, "cls.predictions:7L bert.pooler:9S cls.seq_relationship:10S qa_outputs:11T classifier:15S ",
     "cls.predictions:16L cls.seq_relationship:17S qa_outputs:18T classifier:19S bert.encoder.layer.2:14T "},
};

static void expect_seen(const char *wanted, const char *what)
{
    EXPECT_OK(buf_status(&seen));
    EXPECT(strcmp(buf_text(&seen), wanted) == 0, "%s: '%s', not '%s'", what, buf_text(&seen), wanted);
    buf_fini(&seen);
}

int main(void)
{
    const struct bert_config config = {.vocab_size = 64,
                                       .hidden_size = WIDTH,
                                       .num_hidden_layers = LAYERS,
                                       .num_attention_heads = 2,
                                       .intermediate_size = WIDTH,
                                       .max_position_embeddings = 16,
                                       .type_vocab_size = 2};
    const struct bert_model m = bert_model(&config, MODEL_TASK_PRETRAINING);
    struct block_acts layers[LAYERS] = {0}, *l = &layers[1];
    struct bert_acts acts = {.stack.layers = layers};
    acts.embed.out = columns(1);
    l->attention.qkv = acts.stack.scratch.dqkv = tensor_2d(product, DTYPE_F32, ROWS, 3 * WIDTH);
    l->attention.heads = columns(2);
    l->h_2 = columns(3);
    l->ff.act = columns(4);
    l->norm_2.sum = columns(5);
    l->out = columns(6);
    acts.heads.t_out = columns(1);
    acts.heads.words.all_logits = columns(7);
    acts.heads.pooled = columns(9);
    acts.heads.nsp_logits = columns(10);
    acts.qa.logits = columns(11);
    acts.classifier.logits = columns(15);
    acts.stack.scratch.dff = columns(12);
    acts.stack.scratch.dheads = columns(13);
    acts.heads.words.dlogits = columns(16);
    acts.heads.dnsp_logits = columns(17);
    acts.qa.dlogits = columns(18);
    acts.classifier.dlogits = columns(19);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bert_visit(&m.blocks.model, &acts, cases[i].layer, visitor, NULL);
        expect_seen(cases[i].activations, "activations");
        bert_visit_gradients(&m.blocks.model, &acts, cases[i].layer, columns(14), gradient_visitor, NULL);
        expect_seen(cases[i].gradients, "gradients");
    }
    acts.heads.t_out.dims[0] = 2; /* there is room for a chunk of the logits only */
    bert_visit(&m.blocks.model, &acts, LAYERS, visitor, NULL);
    expect_seen(strchr(cases[2].activations, ' ') + 1, "a chunk of logits");
    return 0;
}
