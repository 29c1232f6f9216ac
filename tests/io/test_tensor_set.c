/* tensor_set: slices in several files make the tensor that one file would hold, any part of it can be read
 * alone, and slices that overlap, leave a hole or disagree are refused with the file and the tensor. */
#include "test.h"

#include "core/bytes.h"
#include "io/stored_rects.h"
#include "io/tensor_set.h"

#include <stdlib.h>
#include <unistd.h>

enum { MOST_FILES = 3, FILE_BYTES = 1024 };

struct case_file {
    unsigned char bytes[FILE_BYTES];
    struct safetensors f;
};

struct set_case {
    struct case_file files[MOST_FILES];
    struct tensor_set_file list[MOST_FILES];
    struct tensor_set set;
};

static const char *const sources[MOST_FILES] = {"one", "two", "three"};

static void add_file(struct set_case *c, int i, const char *header, const void *data, size_t n)
{
    struct case_file *file = &c->files[i];
    bytes_store_u64(file->bytes, strlen(header));
    memcpy(file->bytes + 8, header, strlen(header));
    memcpy(file->bytes + 8 + strlen(header), data, n);
    EXPECT_OK(safetensors_parse(&file->f, file->bytes, 8 + strlen(header) + n, sources[i]));
    c->list[i] = (struct tensor_set_file){&file->f, sources[i]};
}

static void close_files(struct set_case *c, int n)
{
    tensor_set_fini(&c->set);
    for (int i = 0; i < n; i++) {
        safetensors_close(&c->files[i].f);
    }
}

/* A file with one slice `words` of the tensor w, of `n` floats. */
static void add_slice(struct set_case *c, int i, const char *words, const float *data, int n)
{
    char header[512];
    snprintf(
        header, sizeof header,
        "{\"__metadata__\":{\"slice.w\":\"%s\"},\"w\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":"
        "[0,%d]}}",
        words, n, 4 * n);
    add_file(c, i, header, data, 4 * (size_t)n);
}

/* Elements [begin, end) of some columns of a tensor [rows, cols]. */
static struct tensor_slice slice_of(int64_t rows, int64_t cols, int64_t first, int64_t n, int64_t begin,
                                    int64_t end)
{
    return (struct tensor_slice){
        .n_dims = 2, .dims = {rows, cols}, .part = {{0, first}, {rows, n}, begin, end}};
}

/* The tensor w lies in as many rectangles, and has the numbers from any element on, and in another list. */
static void expect_rects(const struct set_case *c, const float *wanted, int n_rects)
{
    const struct stored_tensor *t = tensor_set_find(&c->set, "w");
    int64_t n = (int64_t)(t->bytes / sizeof(float)), rows = t->dims[0], cols = t->dims[1];
    void *list;
    float read[12];
    EXPECT(t->n_rects == n_rects, "%lld rectangles, not %d", (long long)t->n_rects, n_rects);
    for (int64_t first = 0; first < n; first++) {
        EXPECT_OK(stored_tensor_read_elements(t, first, tensor_1d(read, DTYPE_F32, n - first)));
        EXPECT(memcmp(read, wanted + first, (size_t)(n - first) * sizeof *read) == 0, "from element %lld",
               (long long)first);
    }
    for (int64_t first = 0; first < rows; first++) {
        struct stored_rects rects = {0};
        struct stored_tensor rest = {
            .name = "rest", .dtype = DTYPE_F32, .n_dims = 2, .dims = {rows - first, cols}};
        stored_rects_add(&rects, (int64_t[2]){0}, t, (int64_t[2]){first, 0}, rest.dims);
        EXPECT_OK(stored_rects_take(&rects, &rest, &list));
        EXPECT_OK(stored_tensor_read(&rest, tensor_2d(read, DTYPE_F32, rows - first, cols)));
        EXPECT(memcmp(read, wanted + first * cols, rest.bytes) == 0, "rows from %lld on", (long long)first);
        free(list);
    }
}

/* Every part of a tensor [2, 5] that lies in three files, in no order. */
static void test_parts(void)
{
    static const float w[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    static struct set_case c;
    add_slice(&c, 0, "[7, 10) of [2, 5]", w + 7, 3);
    add_slice(&c, 1, "[0, 1) of [2, 5]", w, 1);
    add_slice(&c, 2, "[1, 7) of [2, 5]", w + 1, 6);
    EXPECT_OK(tensor_set_init(&c.set, c.list, 3));
    EXPECT(c.set.n == 1, "%d tensors", c.set.n);
    const struct stored_tensor *first = tensor_set_find(&c.set, "w");
    EXPECT(first != NULL && strcmp(c.set.sources[0], "two") == 0, "the first slice");
    EXPECT(tensor_set_find(&c.set, "v") == NULL && tensor_set_find(&c.set, "x") == NULL, "no such tensors");
    for (int begin = 0; begin <= 10; begin++) {
        for (int end = begin; end <= 10; end++) {
            double read[11];
            for (int i = 0; i < 11; i++) {
                read[i] = -1;
            }
            const struct tensor_slice wanted = slice_of(2, 5, 0, 5, begin, end);
            EXPECT_OK(tensor_set_read(&c.set, first, &wanted, tensor_1d(read, DTYPE_F64, end - begin)));
            for (int i = 0; i < 11; i++) {
                double value = i < end - begin ? w[begin + i] : -1;
                EXPECT(read[i] == value, "[%d, %d): element %d is %g", begin, end, i, read[i]);
            }
        }
    }
    float whole[10];
    const struct tensor_slice other = slice_of(5, 2, 0, 2, 0, 10);
    EXPECT_ERROR(tensor_set_read(&c.set, first, &other, tensor_1d(whole, DTYPE_F32, 10)), STATUS_DATA,
                 "two: tensor w has the shape [2, 5], but should have [5, 2]");
    expect_rects(&c, w, 4);
    close_files(&c, 3);
}

/* Every part of some columns of a tensor [3, 4], whose columns lie in stripes of three files, one of which is
 * in two runs. */
static void test_columns(void)
{
    static const float left[6] = {0, 1, 10, 11, 20, 21}, third[3] = {2, 12, 22}, last[3] = {3, 13, 23};
    static struct set_case c;
    float read[12];
    add_slice(&c, 0, "[0, 5) of columns [0, 2) of [3, 4]", left, 5);
    add_file(&c, 1,
             "{\"__metadata__\":{\"slice.w\":\"[0, 3) of columns [2, 3) of [3, 4]\"},"
             "\"w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}",
             third, sizeof third);
    add_slice(&c, 2, "[0, 3) of columns [3, 4) of [3, 4]", last, 3);
    EXPECT_ERROR(tensor_set_init(&c.set, c.list, 3), STATUS_DATA, "one: tensor w lacks the elements [5, 6)");
    safetensors_close(&c.files[0].f);
    add_slice(&c, 0, "[0, 6) of columns [0, 2) of [3, 4]", left, 6);
    EXPECT_OK(tensor_set_init(&c.set, c.list, 3));
    for (int64_t first = 0; first < 4; first++) {
        for (int64_t n = 1; first + n <= 4; n++) {
            for (int64_t begin = 0; begin < 3 * n; begin++) {
                for (int64_t end = begin + 1; end <= 3 * n; end++) {
                    const struct tensor_slice wanted = slice_of(3, 4, first, n, begin, end);
                    EXPECT_OK(tensor_set_read(&c.set, tensor_set_find(&c.set, "w"), &wanted,
                                              tensor_1d(read, DTYPE_F32, end - begin)));
                    for (int64_t i = begin; i < end; i++) {
                        int64_t row = i / n;
                        float value = (float)(10 * row + first + i % n);
                        EXPECT(read[i - begin] == value, "columns [%lld, +%lld), element %lld: %g",
                               (long long)first, (long long)n, (long long)i, (double)read[i - begin]);
                    }
                }
            }
        }
    }
    static const float all[12] = {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23};
    expect_rects(&c, all, 3);
    close_files(&c, 3);
}

static void expect_refused(const char *a, int n_a, const char *b, int n_b, const char *message);

static void test_refused_columns(void)
{
    expect_refused("[0, 6) of columns [0, 2) of [3, 4]", 6, "[0, 3) of columns [1, 2) of [3, 4]", 3,
                   "two: tensor w: its columns from 1 on are also in one");
    expect_refused("[0, 3) of columns [0, 1) of [3, 4]", 3, "[0, 6) of columns [2, 4) of [3, 4]", 6,
                   "two: tensor w lacks the columns [1, 2)");
    expect_refused("[0, 3) of columns [1, 2) of [3, 4]", 3, "[0, 6) of columns [2, 4) of [3, 4]", 6,
                   "one: tensor w lacks the columns [0, 1)");
    expect_refused("[0, 3) of columns [0, 1) of [3, 4]", 3, "[0, 3) of columns [1, 2) of [3, 4]", 3,
                   "two: tensor w lacks the columns [2, 4)");
    expect_refused("[0, 3) of columns [0, 1) of [3, 4]", 3, "[0, 12) of [3, 4]", 12, "tensor w");
    static const char *const words[] = {
        "[0, 3) of columns [0, 4) of [3, 4]", "[0, 3) of columns [0, 1) of [12]",
        "[0, 3) of columns [1, 1) of [3, 4]", "[0, 3) of columns [3, 5) of [3, 4]",
        "[0, 4) of columns [0, 1) of [3, 4]", "[0, 3) of columns [0, 1) of 3"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        expect_refused(words[i], 3, "[0, 9) of columns [1, 4) of [3, 4]", 9, "one: tensor w: its metadata");
    }
}

/* What two files say of w: the message. */
static void expect_refused(const char *a, int n_a, const char *b, int n_b, const char *message)
{
    static const float data[16];
    static struct set_case c;
    add_slice(&c, 0, a, data, n_a);
    add_slice(&c, 1, b, data, n_b);
    EXPECT_ERROR(tensor_set_init(&c.set, c.list, 2), STATUS_DATA, message);
    close_files(&c, 2);
}

static void test_refused(void)
{
    expect_refused("[0, 4) of [10]", 4, "[5, 10) of [10]", 5, "two: tensor w lacks the elements [4, 5)");
    expect_refused("[1, 4) of [10]", 3, "[4, 10) of [10]", 6, "one: tensor w lacks the elements [0, 1)");
    expect_refused("[4, 9) of [10]", 5, "[0, 4) of [10]", 4, "one: tensor w lacks the elements [9, 10)");
    expect_refused("[0, 6) of [10]", 6, "[5, 10) of [10]", 5,
                   "two: tensor w: its elements from 5 on are also in one");
    expect_refused("[0, 5) of [10]", 5, "[0, 5) of [10]", 5, "its elements from 0 on are also in");
    expect_refused("[0, 5) of [10]", 5, "[5, 10) of [2, 5]", 5,
                   "two: tensor w is a slice of F32 [2, 5] here, but of F32 [10] in one");
    static const char *const words[] = {"",
                                        "whole",
                                        "[0, 4)",
                                        "[0, 4) of []",
                                        "[0, 4) of [4",
                                        "[0, 4) of [4] ",
                                        "[0,4) of [4]",
                                        "[ 0, 4) of [4]",
                                        "[-1, 4) of [4]",
                                        "[+0, 4) of [4]",
                                        "[00, 4) of [4]",
                                        "[0, 04) of [4]",
                                        "[4, 0) of [4]",
                                        "[2, 2) of [4]",
                                        "[0, 5) of [4]",
                                        "[0, 4) of [1, 1, 1, 1, 4]",
                                        "[0, 4) of [4, ]",
                                        "[0, 4) of [-4]",
                                        "[0, 4) of [4294967296, 4294967296]",
                                        "[0, 4) of [9999999999999999999]",
                                        "[0, 18446744073709551616) of [4]"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        expect_refused(words[i], 4, "[4, 10) of [10]", 6, "one: tensor w: its metadata");
    }
    expect_refused("[0, 4) of [10]", 5, "[4, 10) of [10]", 6, "but it is not that many elements in one dim");
}

/* Whole tensors of two files, and one that both have. */
static void test_whole(void)
{
    static struct set_case c;
    static const char a[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[2,1],\"data_offsets\":[0,2]}}";
    static const char b[] = "{\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
                            "\"e\":{\"dtype\":\"U8\",\"shape\":[0,3],\"data_offsets\":[1,1]}}";
    const struct tensor_slice all = slice_of(2, 1, 0, 1, 0, 2);
    unsigned char read[2];
    add_file(&c, 0, a, "\1\2", 2);
    add_file(&c, 1, b, "\3", 1);
    EXPECT_OK(tensor_set_init(&c.set, c.list, 2));
    EXPECT(c.set.n == 3, "%d tensors", c.set.n);
    EXPECT_OK(tensor_set_read(&c.set, tensor_set_find(&c.set, "a"), &all, tensor_1d(read, DTYPE_U8, 2)));
    EXPECT(read[0] == 1 && read[1] == 2, "values");
    tensor_set_fini(&c.set);
    safetensors_close(&c.files[0].f);
    add_file(&c, 0, b, "\3", 1);
    EXPECT_ERROR(tensor_set_init(&c.set, c.list, 2), STATUS_DATA, "tensor b");
    close_files(&c, 2);
}

/* What the writer writes of a slice is read as that slice, and its words stand in the metadata. */
static bool is_same(const struct tensor_slice *a, const struct tensor_slice *b)
{
    bool same = a->n_dims == b->n_dims && memcmp(&a->part, &b->part, sizeof a->part) == 0;
    for (int i = 0; i < a->n_dims && same; i++) {
        same = a->dims[i] == b->dims[i];
    }
    return same;
}

static void test_written(void)
{
    float data[3] = {1, 2, 3};
    char path[] = "/tmp/kiln_tensor_set_XXXXXX", words[TENSOR_SLICE_BYTES];
    int fd = mkstemp(path);
    EXPECT(fd >= 0 && close(fd) == 0, "no file");
    const struct tensor_slice slice = slice_of(3, 4, 0, 4, 5, 8);
    tensor_slice_format(words, &slice);
    const struct safetensors_item items[] = {{"whole", tensor_1d(data, DTYPE_F32, 2), NULL, false, 0},
                                             {"part", tensor_1d(data, DTYPE_F32, 3), words, false, 0}};
    struct safetensors_writer w;
    EXPECT_OK(safetensors_writer_open(&w, path, items, 2));
    safetensors_writer_put(&w, items[0].shape);
    safetensors_writer_put(&w, items[1].shape);
    EXPECT_OK(safetensors_writer_commit(&w));
    struct safetensors f;
    struct tensor_slice read;
    EXPECT_OK(safetensors_open(&f, path));
    EXPECT_OK(tensor_slice_of(&read, &f, safetensors_find(&f, "part"), path));
    EXPECT(is_same(&read, &slice), "another slice");
    EXPECT(strcmp(safetensors_slice_text(&f, safetensors_find(&f, "part")), "[5, 8) of [3, 4]") == 0,
           "words");
    EXPECT_OK(tensor_slice_of(&read, &f, safetensors_find(&f, "whole"), path));
    EXPECT(read.part.begin == 0 && read.part.end == 2 && read.n_dims == 1 && read.dims[0] == 2,
           "no whole tensor");
    safetensors_close(&f);
    unlink(path);
}

int main(void)
{
    test_parts();
    test_columns();
    test_refused_columns();
    test_refused();
    test_whole();
    test_written();
    return 0;
}
