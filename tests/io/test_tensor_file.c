/* tensor_file: one list of tensors, whichever format a file has. */
#include "test.h"

#include "io/tensor_file.h"

static char directory[] = "/tmp/kiln_tensor_file_XXXXXX";

static const char *in_directory(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

/* Writes a file of a golden into the directory, under a name that says nothing of its format. */
static void unpack(const struct safetensors *golden, const char *member, const char *name)
{
    const struct stored_tensor *e = safetensors_find(golden, member);
    EXPECT(e != NULL, "the golden has no %s", member);
    EXPECT_OK(file_write_atomic(in_directory(name), e->data, e->bytes));
}

static void expect_one(const char *name, enum tensor_file_format format, const char *tensor_name, int n)
{
    struct tensor_file f;
    EXPECT_OK(tensor_file_open(&f, in_directory(name)));
    EXPECT(f.format == format && f.n == n, "%s: %s of %d tensors", name, tensor_file_format_name(f.format),
           f.n);
    const struct stored_tensor *t = stored_tensor_find(f.tensors, f.n, tensor_name);
    EXPECT(t != NULL && t->dtype == DTYPE_F32 && t->n_dims == 2 && stored_tensor_is_dense(t), "%s",
           tensor_name);
    tensor_file_close(&f);
}

/* The format is what the file begins with; of a bundle, that there is an index. */
static void test_formats(void)
{
    struct safetensors torch, bundles;
    struct tensor_file f;
    EXPECT_OK(safetensors_open(&torch, KILN_SOURCE_DIR "/tests/golden/torch_files.safetensors"));
    EXPECT_OK(safetensors_open(&bundles, KILN_SOURCE_DIR "/tests/golden/tf_bundles.safetensors"));
    unpack(&torch, "dtypes.pt", "new");
    unpack(&torch, "legacy.pt", "old.safetensors");
    unpack(&bundles, "types/model.ckpt-20.index", "model.ckpt-20.index");
    unpack(&bundles, "types/model.ckpt-20.data-00000-of-00001", "model.ckpt-20.data-00000-of-00001");
    EXPECT_OK(file_write_atomic(in_directory("tensors"), torch.map.data, torch.map.n));
    expect_one("new", TENSOR_FILE_TORCH, "f32", 16);
    expect_one("old.safetensors", TENSOR_FILE_TORCH, "f32", 10);
    expect_one("model.ckpt-20", TENSOR_FILE_BUNDLE, "f32", 11);
    expect_one("model.ckpt-20.index", TENSOR_FILE_BUNDLE, "f32", 11);
    expect_one("tensors", TENSOR_FILE_SAFETENSORS, "strides.pt:transposed", torch.n);
    EXPECT_ERROR(tensor_file_open(&f, in_directory("none")), STATUS_DATA, "none");
    EXPECT_ERROR(tensor_file_open(&f, directory), STATUS_DATA, directory);
    EXPECT_OK(file_write_atomic(in_directory("text"), "some text", 9));
    EXPECT_ERROR(tensor_file_open(&f, in_directory("text")), STATUS_DATA, "is not a safetensors file");
    EXPECT_OK(file_write_atomic(in_directory("empty"), "", 0));
    EXPECT_ERROR(tensor_file_open(&f, in_directory("empty")), STATUS_DATA, "is not a safetensors file");
    EXPECT_OK(file_write_atomic(in_directory("zip"), "PK\3\4 and no more", 16));
    EXPECT_ERROR(tensor_file_open(&f, in_directory("zip")), STATUS_DATA, "is a damaged archive");
    EXPECT_OK(file_write_atomic(in_directory("cut.index"), "PK", 2));
    EXPECT_ERROR(tensor_file_open(&f, in_directory("cut")), STATUS_DATA, "cut.index is not the index");
    char long_name[FILE_PATH_BYTES + 10];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    EXPECT(failed(tensor_file_open(&f, long_name)), "a name that is too long");
    EXPECT(f.tensors == NULL && f.n == 0, "something is left");
    safetensors_close(&torch);
    safetensors_close(&bundles);
}

static void remove_directory(void)
{
    file_remove_tree(directory);
}

/* A tensor [4, 3] that lies in rectangles, and its transpose, read as if they lay in one place, from any
 * element on, and in any part; what a part has beyond the tensor keeps its values. */
static void test_rects(void)
{
    enum { ROWS = 4, COLS = 3, N = ROWS * COLS };
    static const float values[N] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    const unsigned char *data = (const unsigned char *)values;
    /* the first two rows by columns, then one column by rows, and two columns that repeat a row */
    const struct stored_rect rects[] = {{{0, 0}, {2, 3}, data, {1, 2}},
                                        {{2, 0}, {2, 1}, data + 6 * sizeof(float), {3, 1}},
                                        {{2, 1}, {2, 2}, data + 7 * sizeof(float), {0, 1}}};
    static const float wanted[N] = {0, 2, 4, 1, 3, 5, 6, 7, 8, 9, 7, 8};
    struct stored_tensor t = {.name = "cut", .dtype = DTYPE_F32, .n_dims = 2, .dims = {ROWS, COLS}};
    struct stored_tensor whole = t, turned, turned_whole;
    bool same;
    EXPECT(stored_tensor_make_dense(&t, sizeof(float)) && stored_tensor_make_dense(&whole, sizeof(float)),
           "dims");
    t.rects = rects;
    t.n_rects = 3;
    whole.data = (const unsigned char *)wanted;
    turned = stored_tensor_transpose(&t);
    turned_whole = stored_tensor_transpose(&whole);
    EXPECT_OK(stored_tensor_compare(&same, &t, &whole));
    EXPECT(same, "in rectangles it is another");
    EXPECT_OK(stored_tensor_compare(&same, &turned, &turned_whole));
    EXPECT(same, "its transpose is another");
    for (int first = 0; first < N; first++) {
        for (int n = 1; n <= N - first; n++) {
            double wide[N], wide_turned[N];
            EXPECT_OK(stored_tensor_read_elements(&t, first, tensor_1d(wide, DTYPE_F64, n)));
            EXPECT_OK(stored_tensor_read_elements(&turned, first, tensor_1d(wide_turned, DTYPE_F64, n)));
            for (int i = 0; i < n; i++) {
                int at = first + i;
                EXPECT(wide[i] == wanted[at] && wide_turned[i] == wanted[at % ROWS * COLS + at / ROWS],
                       "element %d of %d from %d on is %g, of the transpose %g", i, n, first, wide[i],
                       wide_turned[i]);
            }
        }
    }
    for (int k = 0; k < ROWS * COLS * ROWS * (COLS + 1); k++) {
        struct stored_part part = {.at = {k % ROWS, k / ROWS % COLS},
                                   .n = {k / N % ROWS + 1, k / N / ROWS % (COLS + 1) + 1}};
        part.end = part.n[0] * part.n[1];
        float read[ROWS * (COLS + 1)];
        memset(read, 0, sizeof read);
        EXPECT_OK(stored_tensor_read_part(&t, &part, tensor_1d(read, DTYPE_F32, part.end)));
        for (int64_t i = 0; i < part.end; i++) {
            int64_t row = part.at[0] + i / part.n[1], col = part.at[1] + i % part.n[1];
            float value = row < ROWS && col < COLS ? wanted[row * COLS + col] : 0;
            EXPECT(read[i] == value, "part %d, element %lld is %g, not %g", k, (long long)i, (double)read[i],
                   (double)value);
        }
    }
}

/* Strided tensors of more dims than a matrix has are read row by row. */
static void test_strided(void)
{
    static const float values[24] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                     12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
    struct stored_tensor t = {
        .name = "cube", .dtype = DTYPE_F32, .n_dims = 3, .dims = {4, 2, 3}, .strides = {1, 12, 4}};
    EXPECT(stored_tensor_place(&t, sizeof(float), 0, values, sizeof values), "it is inside");
    for (int first = 0; first < 24; first++) {
        float read[24];
        EXPECT_OK(stored_tensor_read_elements(&t, first, tensor_1d(read, DTYPE_F32, 24 - first)));
        for (int i = first; i < 24; i++) {
            EXPECT_NEAR(read[i - first], (float)(i / 6 + i / 3 % 2 * 12 + i % 3 * 4), 0);
        }
    }
}

int main(void)
{
    EXPECT(mkdtemp(directory) != NULL, "mkdtemp");
    atexit(remove_directory);
    test_formats();
    test_rects();
    test_strided();
    return 0;
}
