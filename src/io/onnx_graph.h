/* onnx_graph: builds a graph of ONNX operators (onnx.ai/onnx: the IR and the operators), which knows no
 * model.
 *
 * A value is the result of a node, an input, a constant or a weight, by its name.  Weights are named here and
 * written later (io/onnx_file.h), so a graph is small whatever the model.  A failure, which only missing
 * memory causes, is sticky. */
#ifndef KILN_IO_ONNX_GRAPH_H
#define KILN_IO_ONNX_GRAPH_H

#include "core/buf.h"

/* Opset 17 is the first with LayerNormalization, and belongs to version 8 of the format. */
enum { ONNX_OPSET = 17, ONNX_IR_VERSION = 8, ONNX_NAME_BYTES = 128, ONNX_MOST_DIMS = 4 };

struct onnx_value {
    char name[ONNX_NAME_BYTES];
};

/* The types of elements, by their numbers in TensorProto. */
enum onnx_type { ONNX_F32 = 1, ONNX_I64 = 7 };

/* A dim of an input or output: a size, or a name if it is decided when the graph runs. */
struct onnx_dim {
    const char *name;
    int64_t size;
};

struct onnx_shape {
    enum onnx_type type;
    int n_dims;
    struct onnx_dim dims[ONNX_MOST_DIMS];
};

/* An attribute of a node: a real number, an integer, or several integers. */
struct onnx_attribute {
    const char *name;
    enum { ONNX_REAL, ONNX_INTEGER, ONNX_INTEGERS } kind;
    double real;
    int64_t integers[ONNX_MOST_DIMS];
    int n_integers;
};

/* A tensor that the caller of onnx_file_write has under the same name. */
struct onnx_weight {
    char name[ONNX_NAME_BYTES];
    bool transposed; /* the file has the matrix's transpose, [in, out]: what MatMul reads */
};

struct onnx_graph {
    struct buf nodes, constants, inputs, outputs; /* fields of a GraphProto */
    struct onnx_weight *weights;                  /* [n_weights], in the order of their first use */
    int n_weights;
    int n_values;
    const char *scope; /* begins the names of values and nodes from now on; NULL: nothing does */
    bool failed;
};

/* Safe on a zeroed graph, which is an empty one. */
void onnx_graph_fini(struct onnx_graph *g);

/* STATUS_MEMORY if anything failed. */
struct status onnx_graph_status(const struct onnx_graph *g);

struct onnx_value onnx_graph_input(struct onnx_graph *g, const char *name, struct onnx_shape shape);
void onnx_graph_output(struct onnx_graph *g, const char *name, struct onnx_value value,
                       struct onnx_shape shape);

/* A weight, whole or as its transpose; one name is always asked for in the same form. */
struct onnx_value onnx_graph_weight(struct onnx_graph *g, const char *name, bool transposed);

struct onnx_value onnx_graph_real(struct onnx_graph *g, double value);                     /* f32 [] */
struct onnx_value onnx_graph_integers(struct onnx_graph *g, int n, const int64_t *values); /* i64 [n] */

/* The result of an operator of one, two or three inputs; with an attribute, or several until one without a
 * name. */
struct onnx_value onnx_graph_1(struct onnx_graph *g, const char *op, struct onnx_value a,
                               const struct onnx_attribute *attributes);
struct onnx_value onnx_graph_2(struct onnx_graph *g, const char *op, struct onnx_value a, struct onnx_value b,
                               const struct onnx_attribute *attributes);
struct onnx_value onnx_graph_n(struct onnx_graph *g, const char *op, int n, const struct onnx_value *inputs,
                               const struct onnx_attribute *attributes);

#endif
