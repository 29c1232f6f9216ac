#include "io/onnx_file.h"

#include "io/onnx_fields.h"
#include "io/protobuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

static const char LOCATION[] = "location", OFFSET[] = "offset", LENGTH[] = "length";

/* ---- writing ---- */

struct writing {
    const struct onnx_graph *graph;
    onnx_source *source;
    const void *context;
    struct file_writer model, data; /* data only if `is_external` */
    bool is_external;
    const char *data_name; /* without its folder, as the model names it */
    uint64_t at;           /* the next weight's place in `data` */
};

static tensor value_of(const struct writing *w, const struct onnx_weight *weight)
{
    tensor t = w->source(w->context, weight->name);
    CHECK(t.dtype == DTYPE_F32 && tensor_is_dense(t) && t.n_dims <= 2 &&
              (t.n_dims == 2 || !weight->transposed),
          "%s is not what the graph asks for", weight->name);
    return t;
}

/* StringStringEntryProto of a tensor's external_data */
static void put_entry(struct buf *b, const char *key, const char *value)
{
    struct buf entry = {0};
    protobuf_put_text(&entry, ONNX_ENTRY_KEY, key);
    protobuf_put_text(&entry, ONNX_ENTRY_VALUE, value);
    protobuf_put_message(b, ONNX_TENSOR_EXTERNAL_DATA, &entry);
    buf_fini(&entry);
}

static void put_number(struct buf *b, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    put_entry(b, key, text);
}

static uint64_t page_of(uint64_t at)
{
    return (at + PAGE - 1) / PAGE * PAGE;
}

/* TensorProto of a weight, without its elements if they are the field's last, or with the place of them. */
static void describe(struct buf *b, struct writing *w, const struct onnx_weight *weight, tensor t)
{
    for (int i = 0; i < t.n_dims; i++) {
        protobuf_put_int(b, ONNX_TENSOR_DIMS, t.dims[weight->transposed ? t.n_dims - 1 - i : i]);
    }
    protobuf_put_int(b, ONNX_TENSOR_DATA_TYPE, ONNX_F32);
    protobuf_put_text(b, ONNX_TENSOR_NAME, weight->name);
    if (!w->is_external) {
        protobuf_put_length(b, ONNX_TENSOR_RAW_DATA, tensor_bytes(t));
        return;
    }
    w->at = page_of(w->at);
    put_entry(b, LOCATION, w->data_name);
    put_number(b, OFFSET, w->at);
    put_number(b, LENGTH, tensor_bytes(t));
    protobuf_put_int(b, ONNX_TENSOR_DATA_LOCATION, ONNX_LOCATION_EXTERNAL);
    w->at += tensor_bytes(t);
}

/* The field of a GraphProto up to the elements. */
static void put_field(struct buf *b, struct writing *w, const struct onnx_weight *weight, tensor t)
{
    struct buf message = {0};
    describe(&message, w, weight, t);
    protobuf_put_length(b, ONNX_GRAPH_INITIALIZER, message.n + (w->is_external ? 0 : tensor_bytes(t)));
    buf_append(b, message.data, message.n);
    b->failed = b->failed || message.failed;
    buf_fini(&message);
}

/* Columns of the matrix become rows, a cache line of them at a time. */
static void put_transposed(struct file_writer *file, tensor t)
{
    enum { LINE = 16 };
    int64_t rows = t.dims[0], cols = t.dims[1];
    float *lines = malloc((size_t)rows * LINE * sizeof *lines);
    if (lines == NULL && !failed(file->status)) {
        file->status = status_error(STATUS_MEMORY, "out of memory for columns of a weight");
    }
    for (int64_t first = 0; first < cols && !failed(file->status); first += LINE) {
        int64_t n = cols - first < LINE ? cols - first : LINE;
        for (int64_t r = 0; r < rows; r++) {
            const float *from = (const float *)t.data + r * cols + first;
            for (int64_t i = 0; i < n; i++) {
                lines[i * rows + r] = from[i];
            }
        }
        file_writer_put(file, lines, (size_t)(n * rows) * sizeof *lines);
    }
    free(lines);
}

static void put_elements(struct file_writer *file, const struct onnx_weight *weight, tensor t)
{
    if (weight->transposed) {
        put_transposed(file, t);
    } else {
        file_writer_put(file, t.data, tensor_bytes(t));
    }
}

static void put_padding(struct file_writer *file)
{
    static const unsigned char zeros[PAGE];
    file_writer_put(file, zeros, (size_t)(page_of(file->n_bytes) - file->n_bytes));
}

/* Everything of the model but the weights: what is in front of the graph, and the graph's own fields. */
static void put_front(struct buf *model, struct buf *graph, const struct onnx_graph *g)
{
    struct buf opset = {0};
    protobuf_put_text(&opset, ONNX_OPSET_DOMAIN, "");
    protobuf_put_int(&opset, ONNX_OPSET_VERSION, ONNX_OPSET);
    protobuf_put_int(model, ONNX_MODEL_IR_VERSION, ONNX_IR_VERSION);
    protobuf_put_text(model, ONNX_MODEL_PRODUCER, "kiln");
    protobuf_put_message(model, ONNX_MODEL_OPSET, &opset);
    buf_fini(&opset);
    buf_append(graph, g->nodes.data, g->nodes.n);
    protobuf_put_text(graph, ONNX_GRAPH_NAME, "kiln");
    buf_append(graph, g->constants.data, g->constants.n);
    buf_append(graph, g->inputs.data, g->inputs.n);
    buf_append(graph, g->outputs.data, g->outputs.n);
}

/* The length of the graph comes before it, so fields are made twice: first to add up their bytes. */
static uint64_t weights_bytes(struct writing *w)
{
    uint64_t sum = 0;
    for (int i = 0; i < w->graph->n_weights; i++) {
        struct buf field = {0};
        tensor t = value_of(w, &w->graph->weights[i]);
        put_field(&field, w, &w->graph->weights[i], t);
        sum += field.n + (w->is_external ? 0 : tensor_bytes(t));
        buf_fini(&field);
    }
    w->at = 0;
    return sum;
}

static struct status put_all(struct writing *w)
{
    struct buf model = {0}, graph = {0}, field = {0};
    put_front(&model, &graph, w->graph);
    protobuf_put_length(&model, ONNX_MODEL_GRAPH, graph.n + weights_bytes(w));
    file_writer_put(&w->model, model.data, model.n);
    file_writer_put(&w->model, graph.data, graph.n);
    bool complete = !model.failed && !graph.failed;
    for (int i = 0; i < w->graph->n_weights && complete; i++) {
        const struct onnx_weight *weight = &w->graph->weights[i];
        tensor t = value_of(w, weight);
        buf_clear(&field);
        put_field(&field, w, weight, t);
        complete = !field.failed;
        file_writer_put(&w->model, field.data, field.n);
        if (w->is_external) {
            put_padding(&w->data);
        }
        put_elements(w->is_external ? &w->data : &w->model, weight, t);
    }
    buf_fini(&model);
    buf_fini(&graph);
    buf_fini(&field);
    return complete ? status_ok() : status_error(STATUS_MEMORY, "out of memory for the graph of a model");
}

/* The data first: a model without them would be broken, data without a model are only large. */
static struct status commit(struct writing *w)
{
    if (w->is_external) {
        TRY(file_writer_commit(&w->data));
    }
    return file_writer_commit(&w->model);
}

static uint64_t bytes_of_weights(const struct writing *w)
{
    uint64_t sum = 0;
    for (int i = 0; i < w->graph->n_weights; i++) {
        sum += tensor_bytes(value_of(w, &w->graph->weights[i]));
    }
    return sum;
}

static struct status data_path(char out[FILE_PATH_BYTES], const char *path)
{
    int n = snprintf(out, FILE_PATH_BYTES, "%s" ONNX_DATA_SUFFIX, path);
    return n > 0 && n < FILE_PATH_BYTES ? status_ok()
                                        : status_error(STATUS_USAGE, "the path %.60s... is too long", path);
}

struct status onnx_file_write(const char *path, const struct onnx_graph *g, uint64_t most_bytes,
                              onnx_source *source, const void *context)
{
    struct writing w = {.graph = g, .source = source, .context = context};
    char beside[FILE_PATH_BYTES];
    TRY(onnx_graph_status(g));
    TRY(data_path(beside, path));
    const char *slash = strrchr(beside, '/');
    w.data_name = slash == NULL ? beside : slash + 1;
    w.is_external =
        bytes_of_weights(&w) > (most_bytes < ONNX_MOST_ONE_BYTES ? most_bytes : ONNX_MOST_ONE_BYTES);
    struct status s = file_writer_open(&w.model, path);
    if (!failed(s) && w.is_external) {
        s = file_writer_open(&w.data, beside);
    }
    if (!failed(s)) {
        s = put_all(&w);
    }
    if (!failed(s)) {
        s = commit(&w);
    }
    file_writer_abandon(&w.model);
    file_writer_abandon(&w.data);
    return s;
}

/* ---- reading ---- */

#define NO_TYPE "has a dtype that kiln does not support"

/* Where the elements of a tensor are. */
struct place {
    const unsigned char *data; /* in the file */
    uint64_t bytes;
    bool is_external;
    struct span location, offset, length; /* the texts of external_data */
};

struct parsing {
    struct onnx_file *f;
    const char *source;
    const unsigned char *data; /* [data_bytes] of the file beside */
    size_t data_bytes, names_bytes;
};

static struct status damaged(const struct parsing *p, const char *what)
{
    return status_error(STATUS_DATA, "%s is a damaged ONNX file, or cut short: %s", p->source, what);
}

static bool is_text(struct span s, const char *text)
{
    return s.data != NULL && s.n == strlen(text) && memcmp(s.data, text, s.n) == 0;
}

static void read_entry(struct place *place, struct span message)
{
    struct protobuf_field f;
    struct span key = {0}, value = {0};
    while (protobuf_read(&f, &message)) {
        bool is_bytes = f.type == PROTOBUF_BYTES;
        key = is_bytes && f.number == ONNX_ENTRY_KEY ? f.bytes : key;
        value = is_bytes && f.number == ONNX_ENTRY_VALUE ? f.bytes : value;
    }
    if (is_text(key, LOCATION)) {
        place->location = value;
    } else if (is_text(key, OFFSET)) {
        place->offset = value;
    } else if (is_text(key, LENGTH)) {
        place->length = value;
    }
}

/* A decimal number; false if it is none or too large. */
static bool read_number(uint64_t *number, struct span text)
{
    *number = 0;
    for (size_t i = 0; i < text.n; i++) {
        unsigned digit = (unsigned)text.data[i] - '0';
        if (digit > 9 || !bytes_multiply(*number, 10, number) || !bytes_add(*number, digit, number)) {
            return false;
        }
    }
    return true;
}

/* Takes the elements from the file beside. */
static bool place_outside(struct place *place, const struct parsing *p)
{
    uint64_t offset, end;
    const char *name = strrchr(p->source, '/');
    name = name == NULL ? p->source : name + 1;
    size_t n = strlen(name);
    bool is_beside = place->location.data != NULL && place->location.n == n + strlen(ONNX_DATA_SUFFIX) &&
                     memcmp(place->location.data, name, n) == 0 &&
                     memcmp(place->location.data + n, ONNX_DATA_SUFFIX, strlen(ONNX_DATA_SUFFIX)) == 0;
    if (!is_beside || !read_number(&offset, place->offset) || !read_number(&place->bytes, place->length) ||
        !bytes_add(offset, place->bytes, &end) || end > p->data_bytes) {
        return false;
    }
    place->data = p->data + offset;
    return true;
}

static void set_type(struct stored_tensor *t, uint64_t type)
{
    t->dtype = type == ONNX_I64 ? DTYPE_I64 : DTYPE_F32;
    t->dtype_label = type == ONNX_F32 ? "float32" : type == ONNX_I64 ? "int64" : "unknown";
    t->unreadable = type == ONNX_F32 || type == ONNX_I64 ? NULL : NO_TYPE;
}

/* The fields of a TensorProto.  Dims come one by one, or packed. */
static bool read_tensor(struct stored_tensor *t, struct place *place, struct span *name, struct span message)
{
    struct protobuf_field f;
    while (protobuf_read(&f, &message)) {
        if (f.number == ONNX_TENSOR_DIMS) {
            struct span packed = f.bytes;
            bool is_packed = f.type == PROTOBUF_BYTES;
            while (is_packed ? bytes_left(&packed) > 0 : f.type == PROTOBUF_VARINT) {
                if (t->n_dims == STORED_MAX_DIMS || packed.failed) {
                    return false;
                }
                t->dims[t->n_dims++] = (int64_t)(is_packed ? bytes_read_varint(&packed) : f.value);
                if (!is_packed) {
                    break;
                }
            }
        } else if (f.number == ONNX_TENSOR_DATA_TYPE && f.type == PROTOBUF_VARINT) {
            set_type(t, f.value);
        } else if (f.number == ONNX_TENSOR_NAME && f.type == PROTOBUF_BYTES) {
            *name = f.bytes;
        } else if (f.number == ONNX_TENSOR_RAW_DATA && f.type == PROTOBUF_BYTES) {
            place->data = f.bytes.data;
            place->bytes = f.bytes.n;
        } else if (f.number == ONNX_TENSOR_EXTERNAL_DATA && f.type == PROTOBUF_BYTES) {
            read_entry(place, f.bytes);
        } else if (f.number == ONNX_TENSOR_DATA_LOCATION) {
            place->is_external = f.value == ONNX_LOCATION_EXTERNAL;
        }
    }
    return !message.failed;
}

static struct status take_tensor(struct parsing *p, struct span message)
{
    struct stored_tensor *t = &p->f->tensors[p->f->n];
    struct place place = {0};
    struct span name = {0};
    *t = (struct stored_tensor){0};
    set_type(t, 0);
    if (!read_tensor(t, &place, &name, message) || name.data == NULL ||
        !stored_tensor_name_is_printable((const char *)name.data, name.n)) {
        return damaged(p, "a tensor is malformed");
    }
    if (place.is_external && !place_outside(&place, p)) {
        return damaged(p, "a tensor names a place for its data that the .data file beside it lacks");
    }
    t->name = p->f->names + p->names_bytes;
    memcpy(p->f->names + p->names_bytes, name.data, name.n);
    p->names_bytes += name.n;
    p->f->names[p->names_bytes++] = '\0';
    size_t item = t->unreadable == NULL ? dtype_bytes(t->dtype) : 1;
    if (!stored_tensor_make_dense(t, item) || (t->unreadable == NULL && t->bytes != place.bytes)) {
        return damaged(p, "a tensor has another size than its shape");
    }
    t->data = t->storage = place.data;
    t->storage_bytes = (size_t)place.bytes;
    p->f->n++;
    return status_ok();
}

/* The bytes of a tensor's longest name: a message may repeat a field. */
static size_t name_bytes(struct span message)
{
    struct protobuf_field f;
    size_t n = 0;
    while (protobuf_read(&f, &message)) {
        n = f.number == ONNX_TENSOR_NAME && f.type == PROTOBUF_BYTES && f.bytes.n > n ? f.bytes.n : n;
    }
    return n;
}

/* The graph of a model, the number of its tensors, and the bytes of their names with a NUL behind each. */
static struct status find_graph(struct span *graph, size_t *n, size_t *names_bytes, struct span model,
                                const struct parsing *p)
{
    struct protobuf_field f;
    *graph = (struct span){0};
    while (protobuf_read(&f, &model)) {
        *graph = f.number == ONNX_MODEL_GRAPH && f.type == PROTOBUF_BYTES ? f.bytes : *graph;
    }
    if (model.failed || graph->n == 0) {
        return damaged(p, "it has no graph");
    }
    *n = *names_bytes = 0;
    struct span fields = *graph;
    while (protobuf_read(&f, &fields)) {
        if (f.number == ONNX_GRAPH_INITIALIZER && f.type == PROTOBUF_BYTES) {
            *n += 1;
            *names_bytes += name_bytes(f.bytes) + 1;
        }
    }
    return fields.failed ? damaged(p, "its graph is malformed") : status_ok();
}

static struct status parse(struct parsing *p, const void *bytes, size_t n)
{
    struct span graph;
    struct protobuf_field f;
    size_t n_tensors = 0, names_bytes = 0;
    TRY(find_graph(&graph, &n_tensors, &names_bytes, bytes_span(bytes, n), p));
    p->f->tensors = calloc(n_tensors + 1, sizeof *p->f->tensors);
    p->f->names = malloc(names_bytes + 1);
    if (p->f->tensors == NULL || p->f->names == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the tensors of %s", p->source);
    }
    while (protobuf_read(&f, &graph)) {
        if (f.number == ONNX_GRAPH_INITIALIZER && f.type == PROTOBUF_BYTES) {
            TRY(take_tensor(p, f.bytes));
        }
    }
    return stored_tensor_check_names(p->f->tensors, p->f->n, p->source);
}

struct status onnx_file_parse(struct onnx_file *f, const void *bytes, size_t n, const void *data,
                              size_t data_bytes, const char *source)
{
    struct parsing p = {.f = f, .source = source, .data = data, .data_bytes = data_bytes};
    *f = (struct onnx_file){0};
    struct status s = parse(&p, bytes, n);
    if (failed(s)) {
        onnx_file_close(f);
    }
    return s;
}

static struct status open_beside(struct file_map *data, const char *path)
{
    char beside[FILE_PATH_BYTES];
    TRY(data_path(beside, path));
    return file_exists(beside) ? file_map_open(data, beside) : status_ok();
}

struct status onnx_file_open(struct onnx_file *f, const char *path)
{
    struct file_map map = {0}, data = {0};
    *f = (struct onnx_file){0};
    TRY(file_map_open(&map, path));
    struct status s = open_beside(&data, path);
    if (!failed(s)) {
        s = onnx_file_parse(f, map.data, map.n, data.data, data.n, path);
    }
    if (failed(s)) {
        file_map_close(&map);
        file_map_close(&data);
        return s;
    }
    f->map = map;
    f->data = data;
    return s;
}

void onnx_file_close(struct onnx_file *f)
{
    free(f->tensors);
    free(f->names);
    file_map_close(&f->map);
    file_map_close(&f->data);
    *f = (struct onnx_file){0};
}
