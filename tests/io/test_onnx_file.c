/* ONNX files: the wire format against its published examples, graphs and weights read back, in one file and
 * in two; cut, damaged, and onto a full disk.  tests/cli/test_convert.sh has onnx and onnxruntime read whole
 * models. */
#include "test.h"

#include "io/onnx_fields.h"
#include "io/onnx_file.h"
#include "io/protobuf.h"

static char directory[128];

static const char *path_of(const char *name)
{
    static char paths[2][256];
    static int next;
    char *path = paths[next++ % 2];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

/* Examples of protobuf.dev/programming-guides/encoding: 150, -2, "testing", a message with 150 inside. */
static void test_wire(void)
{
    static const unsigned char wanted[] = {0x08, 0x96, 0x01, 0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                           0xff, 0xff, 0x01, 0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e,
                                           0x67, 0x1a, 0x03, 0x08, 0x96, 0x01, 0x25, 0x00, 0x00, 0x80, 0x3f};
    struct buf b = {0}, inner = {0};
    struct protobuf_field f;
    protobuf_put_int(&inner, 1, 150);
    protobuf_put_int(&b, 1, 150);
    protobuf_put_int(&b, 1, -2);
    protobuf_put_text(&b, 2, "testing");
    protobuf_put_message(&b, 3, &inner);
    protobuf_put_float(&b, 4, 1);
    EXPECT_OK(buf_status(&b));
    EXPECT(b.n == sizeof wanted && memcmp(b.data, wanted, b.n) == 0, "the published bytes");
    struct span s = bytes_span(b.data, b.n);
    EXPECT(protobuf_read(&f, &s) && f.number == 1 && f.value == 150, "150");
    EXPECT(protobuf_read(&f, &s) && (int64_t)f.value == -2, "-2");
    EXPECT(protobuf_read(&f, &s) && f.number == 2 && f.bytes.n == 7, "testing");
    EXPECT(protobuf_read(&f, &s) && f.number == 3, "a message");
    struct span message = f.bytes;
    EXPECT(protobuf_read(&f, &message) && f.value == 150, "the 150 in it");
    EXPECT(protobuf_read(&f, &s) && f.type == PROTOBUF_32 && f.value == 0x3f800000, "1.0");
    EXPECT(!protobuf_read(&f, &s) && !s.failed, "the end");
    buf_fini(&b);
    buf_fini(&inner);
}

enum { ROWS = 19, COLS = 37 };
static float matrix[ROWS * COLS], vector[ROWS];

static tensor value_of(const void *context, const char *name)
{
    (void)context;
    return strcmp(name, "w") == 0 ? tensor_2d(matrix, DTYPE_F32, ROWS, COLS)
                                  : tensor_1d(vector, DTYPE_F32, ROWS);
}

/* y = transpose(x w^T + b), with a constant nobody reads. */
static void build(struct onnx_graph *g)
{
    struct onnx_shape shape = {ONNX_F32, 2, {{"batch", 0}, {NULL, COLS}}};
    struct onnx_attribute order[] = {
        {.name = "perm", .kind = ONNX_INTEGERS, .integers = {1, 0}, .n_integers = 2}, {.name = NULL}};
    *g = (struct onnx_graph){0};
    struct onnx_value x = onnx_graph_input(g, "x", shape);
    g->scope = "layer.0";
    struct onnx_value y = onnx_graph_2(g, "MatMul", x, onnx_graph_weight(g, "w", true), NULL);
    y = onnx_graph_2(g, "Add", y, onnx_graph_weight(g, "b", false), NULL);
    EXPECT(strncmp(y.name, "layer.0/Add_", 12) == 0, "%s", y.name);
    onnx_graph_weight(g, "b", false);
    EXPECT(g->n_weights == 2, "%d weights", g->n_weights);
    onnx_graph_integers(g, 3, (int64_t[]){3, -1, 5});
    onnx_graph_real(g, 0.5);
    onnx_graph_output(g, "y", onnx_graph_1(g, "Transpose", y, order), shape);
    EXPECT_OK(onnx_graph_status(g));
}

static void write_model(const char *path, uint64_t most_bytes)
{
    struct onnx_graph g;
    build(&g);
    EXPECT_OK(onnx_file_write(path, &g, most_bytes, value_of, NULL));
    onnx_graph_fini(&g);
}

/* The transposed matrix is there as [in, out]; constants are listed too. */
static void expect_weights(const char *path)
{
    struct onnx_file f;
    float got[ROWS * COLS];
    int64_t integers[3];
    EXPECT_OK(onnx_file_open(&f, path));
    EXPECT(f.n == 4, "%d tensors", f.n);
    const struct stored_tensor *w = stored_tensor_find(f.tensors, f.n, "w");
    EXPECT(w != NULL && w->dims[0] == COLS && w->dims[1] == ROWS, "w");
    EXPECT_OK(stored_tensor_read(w, tensor_2d(got, DTYPE_F32, COLS, ROWS)));
    for (int i = 0; i < ROWS * COLS; i++) {
        EXPECT(got[i] == matrix[i % ROWS * COLS + i / ROWS], "element %d", i);
    }
    EXPECT_OK(stored_tensor_read(stored_tensor_find(f.tensors, f.n, "b"), tensor_1d(got, DTYPE_F32, ROWS)));
    EXPECT(memcmp(got, vector, sizeof vector) == 0, "b");
    for (int i = 0; i < f.n; i++) {
        if (f.tensors[i].dtype == DTYPE_I64) {
            EXPECT_OK(stored_tensor_read(&f.tensors[i], tensor_1d(integers, DTYPE_I64, 3)));
        }
    }
    EXPECT(integers[0] == 3 && integers[1] == -1 && integers[2] == 5, "integers");
    onnx_file_close(&f);
}

static void test_one_file(void)
{
    write_model(path_of("one.onnx"), UINT64_MAX);
    EXPECT(!file_exists(path_of("one.onnx.data")), "a file of data that is not needed");
    expect_weights(path_of("one.onnx"));
}

/* Each weight begins a page of the file beside; a limit of exactly their bytes needs none. */
static void test_two_files(void)
{
    struct file_map data;
    size_t bytes = sizeof matrix + sizeof vector;
    write_model(path_of("two.onnx"), bytes);
    EXPECT(!file_exists(path_of("two.onnx.data")), "they fit");
    write_model(path_of("two.onnx"), bytes - 1);
    expect_weights(path_of("two.onnx"));
    EXPECT_OK(file_map_open(&data, path_of("two.onnx.data")));
    EXPECT(data.n == 4096 + sizeof vector && memcmp(data.data + 4096, vector, sizeof vector) == 0,
           "%zu bytes", data.n);
    file_map_close(&data);
}

static void test_cut(void)
{
    struct file_map map, data;
    struct onnx_file f;
    EXPECT_OK(file_map_open(&map, path_of("two.onnx")));
    EXPECT_OK(file_map_open(&data, path_of("two.onnx.data")));
    for (size_t n = 0; n < map.n; n++) {
        EXPECT(onnx_file_parse(&f, map.data, n, data.data, data.n, "two.onnx").code == STATUS_DATA,
               "%zu bytes", n);
    }
    EXPECT_OK(onnx_file_parse(&f, map.data, map.n, data.data, data.n, "two.onnx"));
    onnx_file_close(&f);
    EXPECT_ERROR(onnx_file_parse(&f, map.data, map.n, data.data, data.n - 1, "two.onnx"), STATUS_DATA,
                 "that the .data file beside it lacks");
    EXPECT_ERROR(onnx_file_parse(&f, map.data, map.n, data.data, data.n, "renamed.onnx"), STATUS_DATA,
                 "that the .data file beside it lacks");
    EXPECT_ERROR(onnx_file_open(&f, path_of("none.onnx")), STATUS_DATA, "none.onnx");
    file_map_close(&map);
    file_map_close(&data);
}

/* A model with one tensor of these fields. */
static struct status parse_tensor(const struct buf *tensor_fields)
{
    struct buf graph = {0}, model = {0};
    struct onnx_file f;
    protobuf_put_message(&graph, ONNX_GRAPH_INITIALIZER, tensor_fields);
    protobuf_put_message(&model, ONNX_MODEL_GRAPH, &graph);
    struct status s = onnx_file_parse(&f, model.data, model.n, "1234", 4, "m.onnx");
    if (!failed(s)) {
        onnx_file_close(&f);
    }
    buf_fini(&graph);
    buf_fini(&model);
    return s;
}

static void put_place(struct buf *b, const char *key, const char *value)
{
    struct buf entry = {0};
    protobuf_put_text(&entry, ONNX_ENTRY_KEY, key);
    protobuf_put_text(&entry, ONNX_ENTRY_VALUE, value);
    protobuf_put_message(b, ONNX_TENSOR_EXTERNAL_DATA, &entry);
    buf_fini(&entry);
}

/* Tensors of impossible sizes, and data elsewhere. */
static void test_damage(void)
{
    static const struct {
        int64_t dim;
        const char *location, *offset, *length, *error; /* NULL: inside the file, or no error */
    } cases[] = {
        {1, NULL, NULL, NULL, NULL},
        {2, NULL, NULL, NULL, "another size"},
        {-1, NULL, NULL, NULL, "another size"},
        {INT64_MAX, NULL, NULL, NULL, "another size"},
        {1, "m.onnx.data", "0", "4", NULL},
        {1, "m.onnx.data", "1", "4", "names a place for its data"},
        {1, "m.onnx.data", "18446744073709551615", "4", "names a place for its data"},
        {1, "m.onnx.data", "99999999999999999999", "4", "names a place for its data"},
        {1, "m.onnx.data", "-1", "4", "names a place for its data"},
        {1, "../m.onnx.data", "0", "4", "names a place for its data"},
        {1, "/etc/passwd", "0", "4", "names a place for its data"},
        {1, "m.onnx.data", "0", "3", "another size"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf b = {0};
        protobuf_put_int(&b, ONNX_TENSOR_DIMS, cases[i].dim);
        protobuf_put_int(&b, ONNX_TENSOR_DATA_TYPE, ONNX_F32);
        protobuf_put_text(&b, ONNX_TENSOR_NAME, "t");
        if (cases[i].location == NULL) {
            protobuf_put_bytes(&b, ONNX_TENSOR_RAW_DATA, "abcd", 4);
        } else {
            put_place(&b, "location", cases[i].location);
            put_place(&b, "offset", cases[i].offset);
            put_place(&b, "length", cases[i].length);
            protobuf_put_int(&b, ONNX_TENSOR_DATA_LOCATION, ONNX_LOCATION_EXTERNAL);
        }
        struct status s = parse_tensor(&b);
        EXPECT(cases[i].error == NULL ? !failed(s)
                                      : s.code == STATUS_DATA && strstr(s.message, cases[i].error) != NULL,
               "case %zu: %s", i, s.message);
        buf_fini(&b);
    }
}

/* Neither file is there when one cannot be written. */
static void test_full_disk(void)
{
    struct onnx_graph g;
    build(&g);
    EXPECT_ERROR(onnx_file_write("/dev/full", &g, UINT64_MAX, value_of, NULL), STATUS_IO, "No space left");
    EXPECT_ERROR(onnx_file_write(path_of("nothing/a.onnx"), &g, 1, value_of, NULL), STATUS_IO, "nothing");
    onnx_graph_fini(&g);
}

int main(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/kiln_onnx_XXXXXX", parent == NULL ? "/tmp" : parent);
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    for (int i = 0; i < ROWS * COLS; i++) {
        matrix[i] = (float)(i * 7 % 101) / 8;
        vector[i % ROWS] = (float)i;
    }
    test_wire();
    test_one_file();
    test_two_files();
    test_cut();
    test_damage();
    test_full_disk();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
