/* safetensors: bytes of the reference writer are understood, our own are the format's to the byte, and every
 * malformed header is refused with its reason. */
#include "test.h"

#include "core/bytes.h"
#include "io/safetensors.h"

#include <unistd.h>

/* Made by safetensors 0.8.0 for Python: a = int64 [7, -1], b = float32 [[1.5, -2]], s = float16 3. */
static const char golden_header[] =
    "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[16,24]},"
    "\"s\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[24,26]}}   ";
static const char golden_data[] = "\7\0\0\0\0\0\0\0\377\377\377\377\377\377\377\377\0\0\300?\0\0\0\300\0B";

enum { MAX_FILE_BYTES = 4096 };

/* Header and data as a file's bytes; returns how many. */
static size_t assemble(unsigned char *out, const char *header, const char *data, size_t data_bytes)
{
    size_t n = strlen(header);
    EXPECT(8 + n + data_bytes <= MAX_FILE_BYTES, "too long");
    bytes_store_u64(out, n);
    memcpy(out + 8, header, n);
    memcpy(out + 8 + n, data, data_bytes);
    return 8 + n + data_bytes;
}

static void test_golden(void)
{
    unsigned char bytes[MAX_FILE_BYTES];
    size_t n = assemble(bytes, golden_header, golden_data, sizeof golden_data - 1);
    struct safetensors f;
    int64_t a[2];
    float b[2];
    double s;
    EXPECT_OK(safetensors_parse(&f, bytes, n, "golden"));
    EXPECT(f.n == 3 && strcmp(json_string_value(json_object_get(f.metadata, "format")), "pt") == 0, "golden");
    EXPECT_OK(stored_tensor_read(safetensors_find(&f, "a"), tensor_1d(a, DTYPE_I64, 2)));
    EXPECT_OK(stored_tensor_read(safetensors_find(&f, "b"), tensor_2d(b, DTYPE_F32, 1, 2)));
    EXPECT_OK(stored_tensor_read(safetensors_find(&f, "s"), tensor_1d(&s, DTYPE_F64, 1)));
    EXPECT(a[0] == 7 && a[1] == -1 && b[0] == 1.5f && b[1] == -2.0f && s == 3.0, "golden values");
    EXPECT(safetensors_find(&f, "c") == NULL, "there is no c");
    EXPECT_ERROR(stored_tensor_read(safetensors_find(&f, "b"), tensor_1d(b, DTYPE_F32, 2)), STATUS_DATA,
                 "[1, 2]");
    EXPECT_ERROR(stored_tensor_read(safetensors_find(&f, "a"), tensor_1d(&b, DTYPE_F32, 2)), STATUS_DATA,
                 "I64");
    safetensors_close(&f);
}

/* Damage at every byte: a cut never passes, a flip is refused or changes only a value or a name. */
static void test_every_byte(void)
{
    unsigned char bytes[MAX_FILE_BYTES];
    size_t n = assemble(bytes, golden_header, golden_data, sizeof golden_data - 1);
    struct safetensors f;
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *exact = malloc(cut + 1); /* for AddressSanitizer to see a read past the end */
        EXPECT(exact != NULL, "memory");
        memcpy(exact, bytes, cut);
        EXPECT_ERROR(safetensors_parse(&f, exact, cut, "cut"), STATUS_DATA, "cut");
        free(exact);
    }
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
        struct status s = safetensors_parse(&f, bytes, n, "flipped");
        EXPECT(s.code == STATUS_OK || s.code == STATUS_DATA, "bit %zu: %s", bit, s.message);
        safetensors_close(&f);
        bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
}

static void test_malformed(void)
{
#define ONE(dtype, shape, range)                                                                             \
    "{\"t\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" range "}}"
#define TWO(range1, range2)                                                                                  \
    "{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" range1 "},"                                   \
    "\"u\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" range2 "}}"
    static const struct {
        const char *header;
        const char *part; /* of the message; NULL: accepted */
    } cases[] = {
        {ONE("U8", "[8]", "[0,8]"), NULL},
        {ONE("U8", "[2,2,2,1]", "[0,8]"), NULL},
        {ONE("BOOL", "[8]", "[0,8]"), NULL},
        {TWO("[0,4]", "[4,8]"), NULL},
        {TWO("[4,8]", "[0,4]"), NULL},
        {" " ONE("U8", "[8]", "[0,8]"), "does not begin with '{'"},
        {"", "does not begin with '{'"},
        {"{", "not valid JSON"},
        {ONE("U8", "[8]", "[0,8]") "x", "not valid JSON"},
        {"{}", "8 bytes of data, but its tensors use only the first 0"},
        {ONE("F8_E8M0", "[8]", "[0,8]"), "unknown dtype"},
        {ONE("u8", "[8]", "[0,8]"), "unknown dtype"},
        {ONE("U8", "8", "[0,8]"), "the shape must be a list"},
        {ONE("U8", "[1,1,1,1,8]", "[0,8]"), "at most 4"},
        {ONE("U8", "[-8]", "[0,8]"), "dim 0"},
        {ONE("U8", "[8.0]", "[0,8]"), "dim 0"},
        {ONE("U8", "[4294967296,4294967296]", "[0,8]"), "dim 1"},
        {ONE("F64", "[2305843009213693953]", "[0,8]"), "which does not match its shape and dtype"},
        {ONE("U8", "[7]", "[0,8]"), "which does not match its shape and dtype"},
        {ONE("F32", "[2]", "[0,7]"), "which does not match its shape and dtype"},
        {ONE("U8", "[9]", "[0,9]"), "data_offsets must be"},
        {ONE("U8", "[8]", "[8,0]"), "data_offsets must be"},
        {ONE("U8", "[8]", "[-1,7]"), "data_offsets must be"},
        {ONE("U8", "[8]", "[0,8,8]"), "data_offsets must be"},
        {ONE("U8", "[8]", "{}"), "data_offsets must be"},
        {ONE("U8", "[8]", "[0,18446744073709551616]"), "not valid JSON"},
        {ONE("U8", "[4]", "[0,4]"), "use only the first 4"},
        {ONE("U8", "[4]", "[4,8]"), "begins at byte 4"},
        {TWO("[0,4]", "[0,4]"), "begins at byte 0"},
        {TWO("[0,4]", "[2,6]"), "begins at byte 2"},
        {"{\"t\":{\"dtype\":\"U8\",\"shape\":[8]}}", "exactly dtype, shape and data_offsets"},
        {"{\"t\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8],\"x\":1}}", "exactly"},
        {"{\"t\":8}", "exactly"},
        {"{\"\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}", "empty or has control"},
        {"{\"a\\u001b[2J\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}", "control characters"},
        {"{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}", "not valid JSON"},
        {"{\"t\":1,\"t\":1}", "not valid JSON"},
        {"{\"__metadata__\":{\"a\":1}}", "every value of __metadata__ must be a text"},
        {"{\"__metadata__\":[]}", "must be an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char bytes[MAX_FILE_BYTES];
        struct safetensors f;
        size_t n = assemble(bytes, cases[i].header, "01234567", 8);
        if (cases[i].part == NULL) {
            EXPECT_OK(safetensors_parse(&f, bytes, n, "case"));
        } else {
            EXPECT_ERROR(safetensors_parse(&f, bytes, n, "case"), STATUS_DATA, cases[i].part);
        }
        safetensors_close(&f);
    }
}

static void test_long_header(void)
{
    size_t n = 8 + SAFETENSORS_MAX_HEADER_BYTES + 1;
    unsigned char *bytes = malloc(n);
    struct safetensors f;
    EXPECT(bytes != NULL, "memory");
    memset(bytes, ' ', n);
    memcpy(bytes + 8, "{}", 2);
    bytes_store_u64(bytes, n - 8);
    EXPECT_ERROR(safetensors_parse(&f, bytes, n, "long"), STATUS_DATA, "exceeds the limit");
    bytes_store_u64(bytes, n - 9);
    EXPECT_OK(safetensors_parse(&f, bytes, n - 1, "long"));
    safetensors_close(&f);
    free(bytes);
}

/* Every type as it is, and floating-point types as each other; the data begins at a multiple of 8. */
static void test_writer(void)
{
    float f32[2][3] = {{1.0f, -0.0f, 3.14159265f}, {1e-40f, INFINITY, 65504.0f}};
    double f64[5000];
    int32_t i32[2] = {-5, INT32_MAX};
    uint8_t u8 = 200;
    char path[] = "/tmp/kiln_safetensors_XXXXXX";
    int fd = mkstemp(path);
    EXPECT(fd >= 0 && close(fd) == 0, "%s", path);
    for (int i = 0; i < 5000; i++) {
        f64[i] = i / 3.0;
    }
    const struct safetensors_item items[] = {
        {"single", tensor_2d(NULL, DTYPE_F32, 2, 3), NULL, false, 0},
        {"brain", tensor_2d(NULL, DTYPE_BF16, 2, 3), NULL, false, 0},
        {"half \"quoted\"", tensor_2d(NULL, DTYPE_F16, 2, 3), NULL, false, 0},
        {"double", tensor_1d(NULL, DTYPE_F64, 5000), NULL, false, 0},
        {"narrowed", tensor_1d(NULL, DTYPE_F32, 5000), NULL, false, 0},
        {"int", tensor_1d(NULL, DTYPE_I32, 2), NULL, false, 0},
        {"byte", tensor_1d(NULL, DTYPE_U8, 1), NULL, false, 0},
        {"empty", tensor_1d(NULL, DTYPE_F32, 0), NULL, false, 0}};
    struct safetensors_writer w;
    EXPECT_OK(safetensors_writer_open(&w, path, items, 8));
    tensor single = tensor_2d(f32, DTYPE_F32, 2, 3);
    safetensors_writer_put(&w, single);
    safetensors_writer_put(&w, single);
    safetensors_writer_put(&w, single);
    safetensors_writer_put(&w, tensor_1d(f64, DTYPE_F64, 5000));
    safetensors_writer_put(&w, tensor_1d(f64, DTYPE_F64, 5000));
    safetensors_writer_put(&w, tensor_1d(i32, DTYPE_I32, 2));
    safetensors_writer_put(&w, tensor_1d(&u8, DTYPE_U8, 1));
    safetensors_writer_put(&w, tensor_1d(f64, DTYPE_F64, 0));
    EXPECT_OK(safetensors_writer_commit(&w));

    struct safetensors f;
    EXPECT_OK(safetensors_open(&f, path));
    EXPECT(f.n == 8 && (f.entries[0].data - f.map.data) % 8 == 0, "data must be aligned");
    EXPECT(memcmp(safetensors_find(&f, "single")->data, f32, sizeof f32) == 0, "fp32 must be bit-exact");
    EXPECT(memcmp(safetensors_find(&f, "double")->data, f64, sizeof f64) == 0, "fp64 must be bit-exact");
    EXPECT(memcmp(safetensors_find(&f, "int")->data, i32, sizeof i32) == 0, "i32");
    EXPECT(*safetensors_find(&f, "byte")->data == 200, "u8");
    float brain[6];
    float half[6];
    static float narrowed[5000];
    EXPECT_OK(stored_tensor_read(safetensors_find(&f, "brain"), tensor_2d(brain, DTYPE_F32, 2, 3)));
    EXPECT_OK(stored_tensor_read(safetensors_find(&f, "half \"quoted\""), tensor_2d(half, DTYPE_F32, 2, 3)));
    EXPECT_OK(stored_tensor_read(safetensors_find(&f, "narrowed"), tensor_1d(narrowed, DTYPE_F32, 5000)));
    for (int i = 0; i < 6; i++) {
        EXPECT(brain[i] == bf16_to_f32(bf16_from_f32(f32[i / 3][i % 3])), "bf16 element %d", i);
        EXPECT(half[i] == f16_to_f32(f16_from_f32(f32[i / 3][i % 3])), "fp16 element %d", i);
    }
    for (int i = 0; i < 5000; i++) {
        EXPECT(narrowed[i] == (float)f64[i], "narrowed element %d", i);
    }
    safetensors_close(&f);
    EXPECT(unlink(path) == 0, "unlink");
    EXPECT_ERROR(safetensors_open(&f, path), STATUS_DATA, "cannot open");
}

/* With sums, a file with any one bit turned is refused, or has the same tensors. */
static void test_sums(void)
{
    char path[] = "/tmp/kiln_test_sums_XXXXXX";
    float a[4] = {1, -2, 3.5f, 0}, b[4] = {0.25f, 7, -1, 9};
    int32_t c[3] = {1, 2, 3};
    struct safetensors_item items[] = {
        {"layer.0.w", tensor_2d(a, DTYPE_F32, 2, 2), NULL, true,
         safetensors_sum(tensor_2d(a, DTYPE_F32, 2, 2))},
        {"layer.1.w", tensor_2d(b, DTYPE_F32, 2, 2), NULL, true,
         safetensors_sum(tensor_2d(b, DTYPE_F32, 2, 2))},
        {"c", tensor_1d(c, DTYPE_I32, 3), NULL, true, safetensors_sum(tensor_1d(c, DTYPE_I32, 3))}};
    struct safetensors_writer w;
    struct safetensors f, flipped;
    close(mkstemp(path));
    EXPECT_OK(safetensors_writer_open(&w, path, items, 3));
    for (int i = 0; i < 3; i++) {
        safetensors_writer_put(&w, items[i].shape);
    }
    EXPECT_OK(safetensors_writer_commit(&w));
    EXPECT_OK(safetensors_open(&f, path));
    EXPECT(safetensors_has_sums(&f), "no sums");
    unsigned char *bytes = malloc(f.map.n);
    EXPECT(bytes != NULL, "memory");
    memcpy(bytes, f.map.data, f.map.n);
    int n_refused = 0;
    for (size_t bit = 0; bit < 8 * f.map.n; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
        struct status s = safetensors_parse(&flipped, bytes, f.map.n, "flipped");
        s = failed(s) ? s : safetensors_check_sums(&flipped, "flipped");
        n_refused += failed(s);
        EXPECT(s.code == STATUS_OK || s.code == STATUS_DATA, "bit %zu: %s", bit, s.message);
        for (int i = 0; i < f.n && !failed(s); i++) {
            const struct stored_tensor *is = safetensors_find(&flipped, f.entries[i].name);
            EXPECT(is != NULL && is->dtype == f.entries[i].dtype && is->n_dims == f.entries[i].n_dims &&
                       memcmp(is->dims, f.entries[i].dims, sizeof is->dims) == 0 &&
                       memcmp(is->data, f.entries[i].data, is->bytes) == 0,
                   "bit %zu: %s is another", bit, f.entries[i].name);
        }
        safetensors_close(&flipped);
        bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
    EXPECT(n_refused > 8 * 44, "%d were refused", n_refused);
    bytes[f.map.n - 1] ^= 1;
    FILE *file = fopen(path, "wb");
    EXPECT(file != NULL && fwrite(bytes, 1, f.map.n, file) == f.map.n && fclose(file) == 0, "%s", path);
    free(bytes);
    safetensors_close(&f);
    EXPECT_ERROR(safetensors_open(&f, path), STATUS_DATA, "the CRC-32C of tensor c is");
    EXPECT(unlink(path) == 0, "unlink");
}

int main(void)
{
    test_golden();
    test_every_byte();
    test_malformed();
    test_long_header();
    test_writer();
    test_sums();
    return 0;
}
