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
    const struct safetensors_entry *e = safetensors_find(golden, member);
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

/* Elements that lie in several places read as if they lay in one, from any of them on. */
static void test_pieces(void)
{
    enum { N = 12 };
    static const float values[N] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    const struct stored_piece pieces[] = {{(const unsigned char *)(values + 7), 5},
                                          {(const unsigned char *)values, 1},
                                          {(const unsigned char *)(values + 1), 6}};
    struct stored_tensor t = {
        .name = "cut", .dtype = DTYPE_F32, .n_dims = 2, .dims = {4, 3}, .pieces = pieces};
    struct stored_tensor whole = t;
    float wanted[N], read[N];
    bool same;
    for (int i = 0; i < N; i++) {
        wanted[i] = values[(i + 7) % N];
    }
    EXPECT(stored_tensor_make_dense(&t, sizeof(float)) && stored_tensor_make_dense(&whole, sizeof(float)),
           "dims");
    t.data = pieces[0].data;
    whole.data = (const unsigned char *)wanted;
    whole.pieces = NULL;
    EXPECT_OK(stored_tensor_read(&t, tensor_2d(read, DTYPE_F32, 4, 3)));
    for (int i = 0; i < N; i++) {
        EXPECT_NEAR(read[i], wanted[i], 0);
    }
    EXPECT_OK(stored_tensor_compare(&same, &t, &whole));
    EXPECT(same, "in pieces it is another");
    for (int first = 0; first < N; first++) {
        for (int n = 1; n <= N - first; n++) {
            double wide[N];
            EXPECT_OK(stored_tensor_read_elements(&t, first, tensor_1d(wide, DTYPE_F64, n)));
            for (int i = 0; i < n; i++) {
                EXPECT(wide[i] == wanted[first + i], "element %d of %d from %d on is %g", i, n, first,
                       wide[i]);
            }
        }
    }
}

int main(void)
{
    EXPECT(mkdtemp(directory) != NULL, "mkdtemp");
    atexit(remove_directory);
    test_formats();
    test_pieces();
    return 0;
}
