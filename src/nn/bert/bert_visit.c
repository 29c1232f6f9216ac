
#include "nn/bert/bert_model.h"

#include <stdio.h>
#include <string.h>

/* The path of a module of a layer; of the layer itself for "". */
struct module_path {
    char text[MODEL_MODULE_BYTES];
};

static struct module_path module_path(const struct model *m, int64_t layer, const char *name)
{
    struct module_path p;
    char layer_path[MODEL_MODULE_BYTES];
    block_model_path(layer_path, m, layer);
    snprintf(p.text, sizeof p.text, "%s%s%s", layer_path, *name == '\0' ? "" : ".", name);
    return p;
}

static const struct bert_kind *kind_of(const struct model *m)
{
    return bert_config_kind(&((const struct bert_model *)m)->config);
}

static const enum bert_module qkv_modules[] = {BERT_MODULE_QUERY, BERT_MODULE_KEY, BERT_MODULE_VALUE};

/* Columns of the product of queries, keys and values; null if it is null. */
static tensor third_of(tensor qkv, int i)
{
    return tensor_is_null(qkv) ? qkv : tensor_columns(qkv, i * qkv.dims[1] / 3, qkv.dims[1] / 3);
}

/* Some rows of an activation or a gradient after a layer's attention. */
struct part {
    struct module_path module;
    enum batch_rows rows;
    tensor value;
};

/* The i-th part: all tokens or, of selected rows, those of a list.  False: there is none. */
static bool find_part(struct part *part, const struct model *m, const struct row_picks *picks, int i,
                      int64_t layer, const char *module, tensor value)
{
    char name[MODEL_MODULE_BYTES / 2];
    if (picks == NULL || i >= picks->n_lists) {
        *part = (struct part){module_path(m, layer, module), BATCH_OF_TOKENS, value};
        return picks == NULL && i == 0;
    }
    const struct batch_field *f = &text_batch_layout.fields[picks->lists[i].field];
    snprintf(name, sizeof name, "%s%s%s", module, *module == '\0' ? "" : ".", f->name);
    *part = (struct part){module_path(m, layer, name), f->rows, row_picks_list(picks, i, value)};
    return true;
}

struct visiting {
    const struct model *model;
    const struct row_picks *picks;
    int64_t layer;
    model_visitor *visitor;
    void *context;
};

/* Visits an activation part by part; `module` is NULL if it is the output of no module. */
static void visit_parts(const struct visiting *v, const char *name, const char *module, tensor value)
{
    struct part part;
    const char *path = module == NULL ? "" : module;
    for (int i = 0; !tensor_is_null(value) && find_part(&part, v->model, v->picks, i, v->layer, path, value);
         i++) {
        v->visitor(v->context, name, module == NULL ? NULL : part.module.text, part.rows, part.value);
    }
}

/* Logits of all words, or null where there is memory for a chunk of them only
 * (network_config.whole_logits). */
static tensor whole(const struct bert_acts *a, tensor logits)
{
    bool is_chunk = !tensor_is_null(logits) && logits.dims[0] < a->heads.t_out.dims[0];
    return is_chunk ? NULL_TENSOR : logits;
}

static void visit_layer(const struct block_acts *l, const struct visiting *v)
{
    const char *const *modules = kind_of(v->model)->modules;
    v->visitor(v->context, "query, key, value", NULL, BATCH_OF_TOKENS, l->attention.qkv);
    for (int i = 0; i < 3; i++) {
        v->visitor(v->context, NULL, module_path(v->model, v->layer, modules[qkv_modules[i]]).text,
                   BATCH_OF_TOKENS, third_of(l->attention.qkv, i));
    }
    v->visitor(v->context, "attention", module_path(v->model, v->layer, modules[BERT_MODULE_ATTENTION]).text,
               BATCH_OF_TOKENS, l->attention.heads);
    visit_parts(v, "attention output", modules[BERT_MODULE_ATTENTION_OUTPUT], l->h_2);
    visit_parts(v, "intermediate", modules[BERT_MODULE_INTERMEDIATE], l->ff.act);
    visit_parts(v, "output before LayerNorm", NULL, l->norm_2.sum);
    visit_parts(v, "output", modules[BERT_MODULE_OUTPUT], l->out);
}

/* The path of a module whose weights' names begin with `prefix`. */
static struct module_path without_dot(const char *prefix)
{
    struct module_path p;
    snprintf(p.text, sizeof p.text, "%.*s", (int)strlen(prefix) - 1, prefix);
    return p;
}

/* The path of the pooler, or of what has its place. */
static struct module_path pooler_path(const struct model *m)
{
    const struct bert_kind *kind = kind_of(m);
    return kind->pooler != NULL ? without_dot(kind->pooler) : without_dot(kind->dense);
}

void bert_visit(const struct model *m, const void *acts, int64_t layer, model_visitor *visitor, void *context)
{
    const struct bert_kind *kind = kind_of(m);
    const struct bert_acts *a = acts;
    enum batch_rows rows = bert_acts_classified(m->task);
    if (layer == MODEL_INPUT_LAYER) {
        visitor(context, "embeddings", without_dot(kind->embeddings).text, BATCH_OF_TOKENS, a->embed.out);
    } else if (layer == m->n_layers) {
        visitor(context, "MLM logits", without_dot(kind->mlm).text, BATCH_OF_LABELS,
                whole(a, a->heads.words.all_logits));
        visitor(context, "pooled output", pooler_path(m).text, BATCH_OF_SEQUENCES, a->heads.pooled);
        visitor(context, "NSP logits", "cls.seq_relationship", BATCH_OF_SEQUENCES, a->heads.nsp_logits);
        visitor(context, "logits of answers", "qa_outputs", BATCH_OF_TOKENS, a->qa.logits);
        visitor(context, "logits of the classifier", "classifier", rows, a->classifier.logits);
    } else {
        struct visiting v = {m, block_model_picks(m, &a->stack, layer), layer, visitor, context};
        visit_layer(&a->stack.layers[layer], &v);
    }
}

static void visit_gradient_parts(const struct model *m, const struct bert_acts *a, int64_t layer,
                                 const char *module, tensor value, model_gradient_visitor *visitor,
                                 void *context)
{
    struct part part;
    for (int i = 0; find_part(&part, m, block_model_picks(m, &a->stack, layer), i, layer, module, value);
         i++) {
        visitor(context, part.module.text, part.rows, false, part.value);
    }
}

/* The gradient of the input layer's output is that of layer 0's input. */
void bert_visit_gradients(const struct model *m, const void *acts, int64_t layer, tensor dx,
                          model_gradient_visitor *visitor, void *context)
{
    const char *const *modules = kind_of(m)->modules;
    const struct bert_acts *a = acts;
    enum batch_rows rows = bert_acts_classified(m->task);
    if (layer == m->n_layers) {
        visitor(context, without_dot(kind_of(m)->mlm).text, BATCH_OF_LABELS, false,
                whole(a, a->heads.words.dlogits));
        visitor(context, "cls.seq_relationship", BATCH_OF_SEQUENCES, false, a->heads.dnsp_logits);
        visitor(context, "qa_outputs", BATCH_OF_TOKENS, false, a->qa.dlogits);
        visitor(context, "classifier", rows, false, a->classifier.dlogits);
        visit_gradient_parts(m, a, layer - 1, "", dx, visitor, context);
    } else if (layer != MODEL_INPUT_LAYER) {
        visit_gradient_parts(m, a, layer, modules[BERT_MODULE_INTERMEDIATE_PRODUCT], a->stack.scratch.dff,
                             visitor, context);
        visitor(context, module_path(m, layer, modules[BERT_MODULE_ATTENTION]).text, BATCH_OF_TOKENS, false,
                a->stack.scratch.dheads);
        for (int i = 0; i < 3; i++) {
            visitor(context, module_path(m, layer, modules[qkv_modules[i]]).text, BATCH_OF_TOKENS, false,
                    third_of(a->stack.scratch.dqkv, i));
        }
        visitor(context, module_path(m, layer, "").text, BATCH_OF_TOKENS, true, dx);
    }
}
