#include "io/onnx_graph.h"

#include "io/onnx_fields.h"
#include "io/protobuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void onnx_graph_fini(struct onnx_graph *g)
{
    buf_fini(&g->nodes);
    buf_fini(&g->constants);
    buf_fini(&g->inputs);
    buf_fini(&g->outputs);
    free(g->weights);
    *g = (struct onnx_graph){0};
}

struct status onnx_graph_status(const struct onnx_graph *g)
{
    bool failed =
        g->failed || g->nodes.failed || g->constants.failed || g->inputs.failed || g->outputs.failed;
    return failed ? status_error(STATUS_MEMORY, "out of memory for the graph of a model") : status_ok();
}

static struct onnx_value named(const char *name)
{
    struct onnx_value v;
    int n = snprintf(v.name, sizeof v.name, "%s", name);
    CHECK(n > 0 && n < (int)sizeof v.name, "the name %s of a value", name);
    return v;
}

/* A new name: SCOPE/OP_NUMBER. */
static struct onnx_value numbered(struct onnx_graph *g, const char *op)
{
    struct onnx_value v;
    int n = snprintf(v.name, sizeof v.name, "%s%s%s_%d", g->scope == NULL ? "" : g->scope,
                     g->scope == NULL ? "" : "/", op, g->n_values++);
    CHECK(n > 0 && n < (int)sizeof v.name, "the name of a %s", op);
    return v;
}

/* ValueInfoProto { name, type { tensor_type { elem_type, shape } } } */
static void put_info(struct buf *b, int field, const char *name, const struct onnx_shape *s)
{
    struct buf shape = {0}, tensor_type = {0}, type = {0}, info = {0};
    for (int i = 0; i < s->n_dims; i++) {
        struct buf dim = {0};
        if (s->dims[i].name != NULL) {
            protobuf_put_text(&dim, ONNX_DIM_PARAM, s->dims[i].name);
        } else {
            protobuf_put_int(&dim, ONNX_DIM_VALUE, s->dims[i].size);
        }
        protobuf_put_message(&shape, ONNX_SHAPE_DIM, &dim);
        buf_fini(&dim);
    }
    protobuf_put_int(&tensor_type, ONNX_TENSOR_TYPE_ELEMENTS, s->type);
    protobuf_put_message(&tensor_type, ONNX_TENSOR_TYPE_SHAPE, &shape);
    protobuf_put_message(&type, ONNX_TYPE_TENSOR, &tensor_type);
    protobuf_put_text(&info, ONNX_INFO_NAME, name);
    protobuf_put_message(&info, ONNX_INFO_TYPE, &type);
    protobuf_put_message(b, field, &info);
    buf_fini(&shape);
    buf_fini(&tensor_type);
    buf_fini(&type);
    buf_fini(&info);
}

struct onnx_value onnx_graph_input(struct onnx_graph *g, const char *name, struct onnx_shape shape)
{
    put_info(&g->inputs, ONNX_GRAPH_INPUT, name, &shape);
    return named(name);
}

/* AttributeProto */
static void put_attribute(struct buf *node, const struct onnx_attribute *a)
{
    struct buf b = {0};
    protobuf_put_text(&b, ONNX_ATTRIBUTE_NAME, a->name);
    if (a->kind == ONNX_REAL) {
        protobuf_put_float(&b, ONNX_ATTRIBUTE_FLOAT, (float)a->real);
        protobuf_put_int(&b, ONNX_ATTRIBUTE_TYPE, ONNX_ATTRIBUTE_IS_FLOAT);
    } else if (a->kind == ONNX_INTEGER) {
        protobuf_put_int(&b, ONNX_ATTRIBUTE_INT, a->integers[0]);
        protobuf_put_int(&b, ONNX_ATTRIBUTE_TYPE, ONNX_ATTRIBUTE_IS_INT);
    } else {
        for (int i = 0; i < a->n_integers; i++) {
            protobuf_put_int(&b, ONNX_ATTRIBUTE_INTS, a->integers[i]);
        }
        protobuf_put_int(&b, ONNX_ATTRIBUTE_TYPE, ONNX_ATTRIBUTE_IS_INTS);
    }
    protobuf_put_message(node, ONNX_NODE_ATTRIBUTE, &b);
    buf_fini(&b);
}

/* NodeProto, which has the name of its only output. */
static void put_node(struct onnx_graph *g, const char *op, const char *out, int n,
                     const struct onnx_value *inputs, const struct onnx_attribute *attributes)
{
    struct buf node = {0};
    for (int i = 0; i < n; i++) {
        protobuf_put_text(&node, ONNX_NODE_INPUT, inputs[i].name);
    }
    protobuf_put_text(&node, ONNX_NODE_OUTPUT, out);
    protobuf_put_text(&node, ONNX_NODE_NAME, out);
    protobuf_put_text(&node, ONNX_NODE_OP, op);
    for (const struct onnx_attribute *a = attributes; a != NULL && a->name != NULL; a++) {
        put_attribute(&node, a);
    }
    protobuf_put_message(&g->nodes, ONNX_GRAPH_NODE, &node);
    buf_fini(&node);
}

struct onnx_value onnx_graph_n(struct onnx_graph *g, const char *op, int n, const struct onnx_value *inputs,
                               const struct onnx_attribute *attributes)
{
    struct onnx_value out = numbered(g, op);
    put_node(g, op, out.name, n, inputs, attributes);
    return out;
}

struct onnx_value onnx_graph_1(struct onnx_graph *g, const char *op, struct onnx_value a,
                               const struct onnx_attribute *attributes)
{
    return onnx_graph_n(g, op, 1, &a, attributes);
}

struct onnx_value onnx_graph_2(struct onnx_graph *g, const char *op, struct onnx_value a, struct onnx_value b,
                               const struct onnx_attribute *attributes)
{
    return onnx_graph_n(g, op, 2, (struct onnx_value[]){a, b}, attributes);
}

/* A node that does nothing gives the value the name of the output. */
void onnx_graph_output(struct onnx_graph *g, const char *name, struct onnx_value value,
                       struct onnx_shape shape)
{
    put_info(&g->outputs, ONNX_GRAPH_OUTPUT, name, &shape);
    put_node(g, "Identity", name, 1, &value, NULL);
}

struct onnx_value onnx_graph_weight(struct onnx_graph *g, const char *name, bool transposed)
{
    struct onnx_value v = named(name);
    for (int i = 0; i < g->n_weights; i++) {
        if (strcmp(g->weights[i].name, name) == 0) {
            CHECK(g->weights[i].transposed == transposed, "%s is wanted in two forms", name);
            return v;
        }
    }
    struct onnx_weight *more = realloc(g->weights, ((size_t)g->n_weights + 1) * sizeof *more);
    if (more == NULL) {
        g->failed = true;
        return v;
    }
    g->weights = more;
    g->weights[g->n_weights] = (struct onnx_weight){.transposed = transposed};
    memcpy(g->weights[g->n_weights++].name, v.name, sizeof v.name);
    return v;
}

/* TensorProto with its elements inside. */
static struct onnx_value put_constant(struct onnx_graph *g, enum onnx_type type, int n_dims, int64_t n,
                                      const struct buf *raw)
{
    struct onnx_value v = numbered(g, "Constant");
    struct buf b = {0};
    if (n_dims == 1) {
        protobuf_put_int(&b, ONNX_TENSOR_DIMS, n);
    }
    protobuf_put_int(&b, ONNX_TENSOR_DATA_TYPE, type);
    protobuf_put_text(&b, ONNX_TENSOR_NAME, v.name);
    protobuf_put_message(&b, ONNX_TENSOR_RAW_DATA, raw);
    protobuf_put_message(&g->constants, ONNX_GRAPH_INITIALIZER, &b);
    buf_fini(&b);
    return v;
}

struct onnx_value onnx_graph_real(struct onnx_graph *g, double value)
{
    struct buf raw = {0};
    float single = (float)value;
    uint32_t bits;
    unsigned char bytes[4];
    memcpy(&bits, &single, sizeof bits);
    bytes_store_u32(bytes, bits);
    buf_append(&raw, bytes, sizeof bytes);
    struct onnx_value v = put_constant(g, ONNX_F32, 0, 1, &raw);
    buf_fini(&raw);
    return v;
}

struct onnx_value onnx_graph_integers(struct onnx_graph *g, int n, const int64_t *values)
{
    struct buf raw = {0};
    for (int i = 0; i < n; i++) {
        unsigned char bytes[8];
        bytes_store_u64(bytes, (uint64_t)values[i]);
        buf_append(&raw, bytes, sizeof bytes);
    }
    struct onnx_value v = put_constant(g, ONNX_I64, 1, n, &raw);
    buf_fini(&raw);
    return v;
}
