/* tensor_file: real files of other programs, whose values PyTorch and TensorFlow told. */
#include "test.h"

#include "core/hash.h"
#include "fixture_shared.h"
#include "io/tensor_file.h"

static char directory[] = "/tmp/kiln_tensor_file_real_XXXXXX";

static const char *in_directory(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void fetch(const char *member, const char *name)
{
    struct buf b = shared_read_member("formats.tar.xz", member);
    EXPECT_OK(file_write_atomic(in_directory(name), b.data, b.n));
    buf_fini(&b);
}

/* The sum of a tensor's elements and the last of them, in double; no tensor of these files has more than
 * 2^17. */
static void expect_values(const struct stored_tensor *t, double sum, double last)
{
    static double values[1 << 17];
    static int64_t integers[1 << 17];
    tensor out = tensor_1d(t->dtype == DTYPE_I64 ? (void *)integers : values,
                           t->dtype == DTYPE_I64 ? DTYPE_I64 : DTYPE_F64, 1);
    int64_t n = 1;
    out.n_dims = t->n_dims > 0 ? t->n_dims : 1;
    for (int i = t->n_dims - 1; i >= 0; i--) {
        out.dims[i] = t->dims[i];
        out.strides[i] = n;
        n *= t->dims[i];
    }
    EXPECT(n <= 1 << 17, "%s is large", t->name);
    EXPECT_OK(stored_tensor_read(t, out));
    double total = 0;
    for (int64_t i = 0; i < n; i++) {
        total += tensor_get(out, i);
    }
    EXPECT_NEAR(total, sum, 1e-9 * fabs(sum));
    EXPECT_NEAR(tensor_get(out, n - 1), last, 1e-7 * fabs(last));
}

/* torch.load and tf.train.load_checkpoint told these. */
static const struct real_file {
    const char *path; /* in formats.tar.xz */
    int n;            /* tensors */
    struct {
        const char *name;
        double sum, last;
    } tensors[4];
} real_files[] = {
    {"pt/test.pt", 1, {{"test", 36, 8}}},
    {"pt/test_with_key.pt", 1, {{"model_state_dict.test", 36, 8}}},
    {"pt/fortran_tensor_3d.pth", 1, {{"tensor_fortran", 300, 24}}},
    {"pt/mel.pt", 1, {{"tensor", -341838.1445617676, -8.9453125}}},
    {"tf-bundle/bundle_checkpoint", 2, {{"some_scope/embeddings", 3160, 79}, {"some_scope/indices", 25, 7}}},
    {"tf-bundle/foo", 4, {{"floats", 97.08000183105469, 16.18}}},
    {"tf-bundle/variables", 3, {{"a", 0.5, 0.5}, {"b", 2, 2}, {"c", 3, 3}}},
    {"tf-bundle/model.ckpt-46900",
     27,
     {{"conv2d_1/kernel", -3929.0269469760538, 0.057098657},
      {"dense/kernel", -1258.0741315110254, 0.0143991485},
      {"dense_1/kernel", -512.3251403045324, -0.05966955},
      {"global_step", 46900, 46900}}},
};

static void check_real(const struct real_file *r)
{
    struct tensor_file f;
    bool is_bundle = strncmp(r->path, "tf-", 3) == 0;
    char member[128];
    snprintf(member, sizeof member, "%s%s", r->path, is_bundle ? ".index" : "");
    const char *name = strchr(r->path, '/') + 1;
    fetch(member, strchr(member, '/') + 1);
    if (is_bundle) {
        snprintf(member, sizeof member, "%s.data-00000-of-00001", r->path);
        fetch(member, strchr(member, '/') + 1);
    }
    EXPECT_OK(tensor_file_open(&f, in_directory(name)));
    EXPECT(f.n == r->n, "%s: %d tensors", name, f.n);
    for (size_t i = 0; i < 4 && r->tensors[i].name != NULL; i++) {
        const struct stored_tensor *t = stored_tensor_find(f.tensors, f.n, r->tensors[i].name);
        EXPECT(t != NULL, "%s has no %s", name, r->tensors[i].name);
        expect_values(t, r->tensors[i].sum, r->tensors[i].last);
    }
    for (int i = 0; i < f.n;
         i++) { /* checksums of the others; NaN is never within a bound, so sums are not asked for */
        const struct stored_tensor *t = &f.tensors[i];
        EXPECT(t->unreadable != NULL || !is_bundle || hash_crc32c(0, t->storage, t->storage_bytes) == t->crc,
               "%s", t->name);
    }
    tensor_file_close(&f);
}

static void test_real_files(void)
{
    struct tensor_file f;
    for (size_t i = 0; i < sizeof real_files / sizeof *real_files; i++) {
        check_real(&real_files[i]);
    }
    fetch("safetensors/voices.safetensors", "voices");
    EXPECT_OK(tensor_file_open(&f, in_directory("voices")));
    EXPECT(f.format == TENSOR_FILE_SAFETENSORS && f.n == 2, "%d tensors", f.n);
    tensor_file_close(&f);
    fetch("tf-bundle/lenet_test_model.index", "lenet_test_model.index"); /* of which the shard is not there */
    EXPECT_ERROR(tensor_file_open(&f, in_directory("lenet_test_model")), STATUS_DATA,
                 "lenet_test_model.data-00000-of-00001");
    fetch("pt/test.npy", "test.npy");
    EXPECT_ERROR(tensor_file_open(&f, in_directory("test.npy")), STATUS_DATA, "is not a safetensors file");
    fetch("npz/test.npz", "test.npz");
    EXPECT_ERROR(tensor_file_open(&f, in_directory("test.npz")), STATUS_DATA,
                 "torch.save did not write it: it has no data.pkl");
}

static void remove_directory(void)
{
    file_remove_tree(directory);
}

int main(void)
{
    EXPECT(mkdtemp(directory) != NULL, "mkdtemp");
    atexit(remove_directory);
    test_real_files();
    return 0;
}
