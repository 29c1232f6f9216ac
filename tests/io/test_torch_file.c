/* torch_file: what PyTorch wrote reads as PyTorch has it, dense or strided, in every form; what is damaged,
 * or made to harm, is refused in a sentence. */
#include "test.h"

#include "fixture_pickle.h"
#include "fixture_zip.h"
#include "io/safetensors.h"
#include "io/torch_file.h"
#include "io/torch_tensors.h"
#include "io/zip_file.h"

#include <unistd.h>

static struct safetensors golden; /* tests/golden/torch_files.safetensors, by make_torch_files.py */

static const struct stored_tensor *golden_file(const char *name)
{
    const struct stored_tensor *e = safetensors_find(&golden, name);
    EXPECT(e != NULL, "the golden has no %s", name);
    return e;
}

/* Reads a tensor in its own type, as bytes; the caller frees them. */
static unsigned char *read_bytes(const struct stored_tensor *t)
{
    tensor out = {.dtype = t->dtype, .n_dims = t->n_dims == 0 ? 1 : t->n_dims, .dims = {1}};
    EXPECT(t->n_dims <= TENSOR_MAX_DIMS, "%s", t->name);
    memcpy(out.dims, t->dims, (size_t)t->n_dims * sizeof *out.dims);
    for (int64_t i = out.n_dims - 1, stride = 1; i >= 0; i--) {
        out.strides[i] = stride;
        stride *= out.dims[i];
    }
    out.data = malloc(t->bytes + 1);
    EXPECT(out.data != NULL, "memory");
    EXPECT_OK(stored_tensor_read(t, out));
    return out.data;
}

static void compare(const struct torch_file *f, const struct stored_tensor *wanted, const char *name)
{
    const struct stored_tensor *t = stored_tensor_find(f->tensors, f->n, name);
    EXPECT(t != NULL, "%s is not there", wanted->name);
    EXPECT(t->n_dims == wanted->n_dims && t->bytes == wanted->bytes, "%s: %zu bytes", wanted->name, t->bytes);
    EXPECT(memcmp(t->dims, wanted->dims, (size_t)t->n_dims * sizeof *t->dims) == 0, "%s: dims", wanted->name);
    EXPECT(t->dtype == wanted->dtype || strncmp(t->dtype_label, "float8", 6) == 0, "%s: %s", wanted->name,
           t->dtype_label);
    unsigned char *bytes = read_bytes(t);
    EXPECT(memcmp(bytes, wanted->data, wanted->bytes) == 0, "%s: values", wanted->name);
    free(bytes);
}

/* Every file, and every tensor that must be in it, and no other. */
static void test_golden(void)
{
    int n_files = 0;
    for (int i = 0; i < golden.n; i++) {
        const struct stored_tensor *e = &golden.entries[i];
        struct torch_file f;
        if (strchr(e->name, ':') != NULL || strcmp(e->name, "script.pt") == 0) {
            continue;
        }
        int n_wanted = 0, n_unreadable = 0;
        EXPECT_OK(torch_file_parse(&f, e->data, e->bytes, e->name));
        for (int k = 0; k < golden.n; k++) {
            const char *colon = strchr(golden.entries[k].name, ':');
            if (colon != NULL && strncmp(golden.entries[k].name, e->name, strlen(e->name)) == 0 &&
                colon == golden.entries[k].name + strlen(e->name)) {
                compare(&f, &golden.entries[k], colon + 1);
                n_wanted++;
            }
        }
        for (int k = 0; k < f.n; k++) {
            n_unreadable += f.tensors[k].unreadable != NULL;
        }
        EXPECT(n_wanted > 0 && f.n == n_wanted + n_unreadable, "%s: %d tensors, of which %d are known",
               e->name, f.n, n_wanted);
        torch_file_close(&f);
        n_files++;
    }
    EXPECT(n_files == 12, "%d files", n_files);
}

static void open_golden(struct torch_file *f, const char *name)
{
    const struct stored_tensor *e = golden_file(name);
    EXPECT_OK(torch_file_parse(f, e->data, e->bytes, name));
}

/* What has no type here is listed, and says so when it is read; types convert as everywhere. */
static void test_types(void)
{
    struct torch_file f;
    int64_t two[2];
    double real[3];
    open_golden(&f, "dtypes.pt");
    const struct stored_tensor *t = stored_tensor_find(f.tensors, f.n, "i16");
    EXPECT(t != NULL && t->n_dims == 1 && t->dims[0] == 2 && t->bytes == 4, "i16");
    EXPECT_ERROR(stored_tensor_read(t, tensor_1d(two, DTYPE_I64, 2)), STATUS_DATA,
                 "tensor i16 (int16) cannot be read");
    t = stored_tensor_find(f.tensors, f.n, "scalar");
    EXPECT_OK(stored_tensor_read(t, tensor_1d(real, DTYPE_F64, 1)));
    EXPECT(real[0] == 2.5, "a scalar, converted");
    t = stored_tensor_find(f.tensors, f.n, "i64");
    EXPECT_ERROR(stored_tensor_read(t, tensor_1d(real, DTYPE_F64, 2)), STATUS_DATA,
                 "dtype int64, which does not convert");
    EXPECT_ERROR(stored_tensor_read(t, tensor_1d(two, DTYPE_I64, 1)), STATUS_DATA, "1 dims [1, ");
    torch_file_close(&f);
}

/* Tied tensors have one storage; which are dense is told; a converted read of a strided one is of its
 * values. */
static void test_strides(void)
{
    struct torch_file f;
    float part[2];
    open_golden(&f, "strides.pt");
    const struct stored_tensor *whole = stored_tensor_find(f.tensors, f.n, "whole");
    EXPECT(stored_tensor_find(f.tensors, f.n, "tied")->data == whole->data, "tied");
    EXPECT(stored_tensor_find(f.tensors, f.n, "transposed")->storage == whole->storage, "of one storage");
    EXPECT(stored_tensor_is_dense(whole), "whole");
    EXPECT(stored_tensor_is_dense(stored_tensor_find(f.tensors, f.n, "one_row")),
           "strides of dims of 1 do not count");
    EXPECT(!stored_tensor_is_dense(stored_tensor_find(f.tensors, f.n, "transposed")), "transposed");
    EXPECT(!stored_tensor_is_dense(stored_tensor_find(f.tensors, f.n, "expanded")), "expanded");
    struct stored_tensor column = *stored_tensor_find(f.tensors, f.n, "column");
    column.dims[0] = 2; /* as model_dir_weights cuts rows of a padded vocabulary */
    EXPECT_OK(stored_tensor_read(&column, tensor_1d(part, DTYPE_F32, 2)));
    EXPECT(part[0] == 14 && part[1] == 18, "%g %g", (double)part[0], (double)part[1]);
    uint16_t half[12];
    EXPECT_OK(stored_tensor_read(stored_tensor_find(f.tensors, f.n, "transposed"),
                                 tensor_2d(half, DTYPE_BF16, 4, 3)));
    EXPECT(bf16_to_f32(half[1]) == 4 && bf16_to_f32(half[11]) == 11, "transposed and rounded");
    float values[12];
    const struct stored_tensor *transposed = stored_tensor_find(f.tensors, f.n, "transposed");
    struct stored_tensor back = stored_tensor_transpose(transposed);
    EXPECT(stored_tensor_is_dense(&back), "transposed twice");
    EXPECT_OK(stored_tensor_read(&back, tensor_2d(values, DTYPE_F32, 3, 4)));
    EXPECT(values[1] == 1 && values[4] == 4, "%g %g", (double)values[1], (double)values[4]);
    EXPECT_OK(stored_tensor_read_elements(&back, 3, tensor_1d(part, DTYPE_F32, 2)));
    EXPECT(part[0] == 3 && part[1] == 4, "elements in a row");
    EXPECT_OK(stored_tensor_read_elements(transposed, 3, tensor_1d(part, DTYPE_F32, 2)));
    EXPECT(part[0] == 1 && part[1] == 5, "elements of the transpose: %g %g", (double)part[0],
           (double)part[1]);
    torch_file_close(&f);
}

/* What is not a tensor, of ckpt_N.pt and of DeepSpeed's files. */
static void test_tree(void)
{
    struct torch_file f;
    open_golden(&f, "ckpt_20.pt");
    EXPECT(pickle_find(f.root, "epoch")->integer == 3, "epoch");
    EXPECT(pickle_is_text(pickle_item(pickle_find(f.root, "files"), 2), "b.hdf5"), "files");
    const struct pickle_node *optimizer = pickle_find(f.root, "optimizer");
    const struct pickle_node *state = pickle_find(optimizer, "state");
    EXPECT(state->list.n == 2 && state->list.items[0]->integer == 0, "the key of a state is a number");
    EXPECT(pickle_find(state->list.items[1], "step")->integer == 20, "step");
    EXPECT(pickle_find(state->list.items[1], "exp_avg")->kind == PICKLE_TENSOR, "a moment");
    const struct pickle_node *group = pickle_item(pickle_find(optimizer, "param_groups"), 0);
    EXPECT(pickle_find(group, "lr")->real == 6e-3, "lr");
    EXPECT(pickle_item(pickle_find(group, "betas"), 1)->real == 0.999, "beta 2");
    const struct pickle_node *loader = pickle_find(f.root, "data_loader");
    EXPECT(loader->kind == PICKLE_OBJECT &&
               pickle_is_text(loader->object.name, "torch.utils.data.dataloader.DataLoader"),
           "the loader of the data is an object");
    torch_file_close(&f);

    open_golden(&f, "mp_rank_00_model_states.pt");
    const struct pickle_node *shapes = pickle_item(pickle_find(f.root, "param_shapes"), 0);
    EXPECT(shapes->list.n == 6 && shapes->list.items[1]->kind == PICKLE_TUPLE, "a size is a tuple");
    EXPECT(pickle_item(shapes->list.items[1], 1)->integer == 3, "of the dims");
    const struct pickle_node *arguments = pickle_find(f.root, "args");
    EXPECT(pickle_find(arguments->object.state, "seed")->integer == 42, "an argument of the run");
    torch_file_close(&f);

    open_golden(&f, "state_0");
    const struct pickle_node *rng = pickle_find(f.root, "rng_state");
    EXPECT(pickle_item(pickle_item(pickle_find(rng, "random"), 1), 624)->integer == 624,
           "the state of random");
    EXPECT(pickle_item(pickle_find(rng, "np"), 1)->kind == PICKLE_OBJECT, "numpy's array is an object");
    torch_file_close(&f);

    open_golden(&f, "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt");
    const struct pickle_node *mappings =
        pickle_find(pickle_find(f.root, "optimizer_state_dict"), "param_slice_mappings");
    const struct pickle_node *address =
        pickle_find(pickle_item(mappings, 0), "module.bert.pooler.dense_act.weight");
    EXPECT(pickle_is_text(address->object.name, "deepspeed.utils.tensor_fragment.fragment_address"),
           "an address");
    EXPECT(pickle_find(address->object.state, "start")->integer == 6, "of a fragment");
    torch_file_close(&f);
}

/* Parses, and reads what it lists, as whoever opens the file would. */
static struct status try_file(const void *bytes, size_t n)
{
    struct torch_file f;
    struct status s = torch_file_parse(&f, bytes, n, "file.pt");
    for (int i = 0; i < f.n; i++) {
        const struct stored_tensor *t = &f.tensors[i];
        if (t->unreadable == NULL && t->n_dims <= TENSOR_MAX_DIMS && t->bytes <= 1 << 16) {
            free(read_bytes(t));
        }
    }
    torch_file_close(&f);
    return s;
}

/* Damage at every byte: a cut never passes, a flip is refused in one sentence or changes a value or a
 * name. */
static void damage(const char *name)
{
    const struct stored_tensor *e = golden_file(name);
    for (size_t cut = 0; cut < e->bytes; cut++) {
        unsigned char *exact = malloc(cut + 1); /* for AddressSanitizer to see a read past the end */
        EXPECT(exact != NULL, "memory");
        memcpy(exact, e->data, cut);
        struct status s = try_file(exact, cut);
        EXPECT(s.code == STATUS_DATA && strchr(s.message, '\n') == NULL, "cut to %zu: %s", cut, s.message);
        free(exact);
    }
    unsigned char *bytes = malloc(e->bytes);
    EXPECT(bytes != NULL, "memory");
    memcpy(bytes, e->data, e->bytes);
    for (size_t bit = 0; bit < 8 * e->bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
        struct status s = try_file(bytes, e->bytes);
        EXPECT(s.code == STATUS_OK || s.code == STATUS_DATA, "bit %zu: %s", bit, s.message);
        EXPECT(strchr(s.message, '\n') == NULL && strstr(s.message, "\x1b") == NULL, "bit %zu: %s", bit,
               s.message);
        bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
    free(bytes);
}

static struct status open_written(const unsigned char *bytes, size_t n)
{
    char path[] = "/tmp/kiln_torch_file_XXXXXX";
    struct torch_file f;
    int fd = mkstemp(path);
    EXPECT(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && close(fd) == 0, "%s", path);
    struct status s = torch_file_open(&f, path);
    unlink(path);
    if (!failed(s)) {
        torch_file_close(&f);
    }
    return s;
}

/* A file on disk is checked by its own sums: a flipped bit of a value is damage, but a writer may have
 * computed none. */
static void test_sums(void)
{
    const struct stored_tensor *e = golden_file("kinds.pt");
    struct zip_file z;
    unsigned char *bytes = malloc(e->bytes);
    EXPECT(bytes != NULL, "memory");
    memcpy(bytes, e->data, e->bytes);
    EXPECT_OK(open_written(bytes, e->bytes));
    EXPECT_OK(zip_file_parse(&z, bytes, e->bytes, "kinds.pt"));
    const struct zip_member *m = zip_file_find(&z, "archive/data/0", 14);
    EXPECT(m != NULL && m->n > 0, "no storage");
    bytes[m->data - bytes] ^= 4;
    EXPECT_ERROR(open_written(bytes, e->bytes), STATUS_DATA, "is damaged: the CRC-32 of its member");
    for (size_t i = 0; i < z.n; i++) {
        z.members[i].crc ^= 1;
    }
    EXPECT_OK(zip_file_check_sums(&z, "without sums"));
    zip_file_close(&z);
    free(bytes);
}

static void test_damage(void)
{
    damage("bare.pt");
    damage("kinds.pt");
    damage("legacy_strides.pt");
}

/* An archive of one pickle and one storage of 24 bytes. */
static void make_archive(struct zip_maker *z, const void *pickle, size_t n)
{
    zip_put(z, "archive/data.pkl", pickle, n);
    zip_put(z, "archive/data/0", "012345678901234567890123", 24);
    zip_put(z, "archive/version", "3\n", 2);
    zip_finish(z, "");
}

static void test_tensors(void)
{
    const int64_t big = INT64_C(1) << 40;
    static const char outside[] = "is not inside its storage 0 of 24 bytes";
    const struct {
        struct pickled_tensor tensor;
        const char *part; /* NULL: it is read */
    } cases[] = {
        {{"FloatStorage", "0", 6, 0, 2, 2, {2, 3}, {3, 1}}, NULL},
        {{"FloatStorage", "0", 6, 5, 1, 1, {1}, {1}}, NULL},
        {{"FloatStorage", "0", 6, 5, 0, 0, {0}, {0}}, NULL},
        {{"FloatStorage", "0", 6, 0, 2, 2, {2, 2}, {5, 0}}, NULL},
        {{"FloatStorage", "0", 6, 99, 2, 2, {0, 7}, {big, big}}, NULL},
        {{"UntypedStorage", "0", 24, 0, 1, 1, {24}, {1}}, NULL},
        {{"FloatStorage", "0", 6, 6, 1, 1, {1}, {1}}, outside},
        {{"FloatStorage", "0", 6, -1, 1, 1, {1}, {1}}, outside},
        {{"FloatStorage", "0", 6, 0, 1, 1, {7}, {1}}, outside},
        {{"FloatStorage", "0", 6, 0, 1, 1, {-1}, {1}}, outside},
        {{"FloatStorage", "0", 6, 0, 1, 1, {2}, {-1}}, outside},
        {{"FloatStorage", "0", 6, 0, 1, 1, {2}, {6}}, outside},
        {{"FloatStorage", "0", 6, 0, 2, 2, {2, 2}, {INT64_MAX, INT64_MAX}}, outside},
        {{"FloatStorage", "0", 6, 0, 2, 2, {big, big}, {0, 0}}, outside},
        {{"FloatStorage", "0", 6, INT64_MAX, 1, 1, {1}, {1}}, outside},
        {{"FloatStorage", "0", 6, 0, 9, 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {0}}, "9 dims; the limit is 8"},
        {{"FloatStorage", "0", 6, 0, 2, 1, {1, 1}, {1}}, "arguments that are not a tensor's"},
        {{"FloatStorage", "0", 5, 0, 1, 1, {1}, {1}}, "storage 0 has 24 bytes, but its pickle says 20"},
        {{"DoubleStorage", "0", 6, 0, 1, 1, {1}, {1}}, "storage 0 has 24 bytes, but its pickle says 48"},
        {{"FloatStorage", "0", big << 22, 0, 1, 1, {1}, {1}}, "which no file can hold"},
        {{"FloatStorage", "0", -6, 0, 1, 1, {1}, {1}}, "not a tensor's storage"},
        {{"FloatStorage", "1", 6, 0, 1, 1, {1}, {1}}, "the storage 1, which the file does not hold"},
        {{"FloatStorage", "../0", 6, 0, 1, 1, {1}, {1}}, "the storage ../0, which the file does not hold"},
        {{"FooStorage", "0", 6, 0, 1, 1, {1}, {1}}, "unknown class torch.FooStorage"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf pickle = {0};
        struct zip_maker z = {0};
        buf_puts(&pickle, "\x80\x02");
        pickle_tensor(&pickle, &cases[i].tensor);
        buf_putc(&pickle, '.');
        make_archive(&z, pickle.data, pickle.n);
        if (cases[i].part == NULL) {
            EXPECT_OK(try_file(z.out.data, z.out.n));
        } else {
            EXPECT_ERROR(try_file(z.out.data, z.out.n), STATUS_DATA, cases[i].part);
        }
        zip_fini(&z);
        buf_fini(&pickle);
    }
}

/* Pickles of which torch.save made none, in an archive that is whole. */
static void test_pickles(void)
{
#define PICKLE(text) (text), sizeof(text) - 1
#define TENSOR       "ctorch._utils\n_rebuild_tensor_v2\n"
    static const struct {
        const char *bytes;
        size_t n;
        const char *part;
    } cases[] = {
        {PICKLE("\x80\x02"
                "cposix\nsystem\nX\2\0\0\0id\x85R."),
         "file.pt: the pickle asks for posix.system, which kiln does not run"},
        {PICKLE("\x80\x02"
                "ctorch.hub\nload\n."),
         "asks for torch.hub.load"},
        {PICKLE("\x80\x02"
                "ctorch.jit._pickle\nrestore_type_tag\n."),
         "asks for torch.jit._pickle.restore_type_tag"},
        {PICKLE("\x80\x02" TENSOR ")R."), "arguments that are not a tensor's"},
        {PICKLE("\x80\x02" TENSOR "(NNNNNNtR."), "arguments that are not a tensor's"},
        {PICKLE("\x80\x02" TENSOR "(X\1\0\0\000aQK\0))\x89NtR."), "not a tensor's storage"},
        {PICKLE("\x80\x02" TENSOR
                "((X\6\0\0\0modulectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\6tQK\0))\x89NtR."),
         "not a tensor's storage"},
        {PICKLE("\x80\x02" TENSOR "((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\6("
                "X\1\0\0\0001K\0K\1ttQK\0))\x89NtR."),
         "not a tensor's storage"},
        {PICKLE("\x80\x02"
                "ctorch._utils\n_rebuild_parameter\n(NtR."),
         "arguments that are not a tensor's"},
        {PICKLE("\x80\x02"
                "ctorch\nSize\n(NtR."),
         "arguments that are not a tensor's"},
        {PICKLE("\x80\x02"
                "ctorch._tensor\n_rebuild_from_type_v2\n)R."),
         "arguments that are not a tensor's"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct zip_maker z = {0};
        make_archive(&z, cases[i].bytes, cases[i].n);
        EXPECT_ERROR(try_file(z.out.data, z.out.n), STATUS_DATA, cases[i].part);
        zip_fini(&z);
    }
}

static void expect_refused(const struct buf *pickle, const char *part)
{
    struct zip_maker z = {0};
    make_archive(&z, pickle->data, pickle->n);
    EXPECT_ERROR(try_file(z.out.data, z.out.n), STATUS_DATA, part);
    zip_fini(&z);
}

/* Nodes that are nested too deep, or have more paths than there is time for. */
static void test_walk(void)
{
    struct buf b = {0};
    const struct pickled_tensor one = {"FloatStorage", "0", 6, 0, 1, 1, {6}, {1}};
    for (int i = 0; i < 100; i++) {
        buf_putc(&b, ']');
    }
    for (int i = 0; i < 99; i++) {
        buf_putc(&b, 'a');
    }
    buf_putc(&b, '.');
    expect_refused(&b, "nests objects more than 32 deep");
    buf_clear(&b);
    buf_append(&b, "]q\0h\0a.", 7);
    expect_refused(&b, "nests objects more than 32 deep");
    buf_clear(&b);
    buf_append(&b, "]q", 3);
    for (int level = 0; level < 20; level++) {
        buf_puts(&b, "](");
        for (int i = 0; i < 200; i++) {
            buf_append(&b, "h", 2);
        }
        buf_append(&b, "eq", 3);
    }
    buf_putc(&b, '.');
    expect_refused(&b, "more paths to them than the limit of 16777216 steps");
    buf_clear(&b);
    buf_append(&b, "]q", 3);
    for (int level = 0; level < 30; level++) {
        buf_append(&b, "](h\0h\0eq", 9);
    }
    buf_putc(&b, '.');
    expect_refused(&b, "more paths to them than the limit of 16777216 steps");
    buf_clear(&b);
    pickle_tensor(&b, &one);
    buf_append(&b, "q\0](", 4);
    for (int i = 0; i <= TORCH_MAX_TENSORS; i++) {
        buf_append(&b, "h", 2);
    }
    buf_puts(&b, "e.");
    expect_refused(&b, "more than 262144 tensors");
    buf_fini(&b);
}

/* Names that no message could show, that two tensors have, or that are too long. */
static void test_wrong_names(void)
{
    struct buf b = {0};
    const struct pickled_tensor one = {"FloatStorage", "0", 6, 0, 1, 1, {6}, {1}};
    static const char *const wrong_names[][3] = {{"a\x1b[2J", "b", "control characters"},
                                                 {"a.b", "a.b", "two tensors named a.b"}};
    for (size_t i = 0; i < 2; i++) {
        buf_clear(&b);
        buf_puts(&b, "}(");
        for (int k = 0; k < 2; k++) {
            pickle_text(&b, wrong_names[i][k]);
            pickle_tensor(&b, &one);
        }
        buf_puts(&b, "u.");
        expect_refused(&b, wrong_names[i][2]);
    }
    buf_clear(&b);
    buf_puts(&b, "}");
    char *name = malloc(2 * TORCH_NAME_BYTES);
    EXPECT(name != NULL, "memory");
    memset(name, 'n', 2 * TORCH_NAME_BYTES - 1);
    name[2 * TORCH_NAME_BYTES - 1] = '\0';
    pickle_text(&b, name);
    pickle_tensor(&b, &one);
    buf_puts(&b, "s.");
    expect_refused(&b, "names of more than 1023 bytes");
    free(name);
    buf_fini(&b);
}

/* Keys that are neither text nor alone are told apart by their numbers. */
static void test_names(void)
{
    struct torch_file f;
    struct buf b = {0};
    struct zip_maker z = {0};
    const struct pickled_tensor one = {"FloatStorage", "0", 6, 0, 1, 1, {6}, {1}};
    buf_puts(&b, "}(X\1");
    buf_append(&b, "\0\0\0a](", 6);
    pickle_tensor(&b, &one);
    pickle_tensor(&b, &one);
    buf_puts(&b, "eJ\xff\xff\xff\xff");
    pickle_tensor(&b, &one);
    buf_puts(&b, ")");
    pickle_tensor(&b, &one);
    buf_puts(&b, "u.");
    make_archive(&z, b.data, b.n);
    EXPECT_OK(torch_file_parse(&f, z.out.data, z.out.n, "file.pt"));
    static const char *const names[] = {"a.0", "a.1", "-1", "#2"};
    EXPECT(f.n == 4, "%d", f.n);
    for (int i = 0; i < 4; i++) {
        EXPECT(strcmp(f.tensors[i].name, names[i]) == 0, "%s is not %s", f.tensors[i].name, names[i]);
    }
    torch_file_close(&f);
    zip_fini(&z);
    buf_fini(&b);
}

/* Archives that are none, or hide something. */
static void test_archives(void)
{
    static const char none[] = "\x80\x02N.";
    struct zip_maker z = {0};
    zip_put(&z, "a/data.pkl", none, 4);
    z.method = 8; /* deflate */
    zip_put(&z, "a/data/0", none, 4);
    zip_finish(&z, "");
    EXPECT_ERROR(try_file(z.out.data, z.out.n), STATUS_DATA, "member a/data/0 is compressed or encrypted");
    zip_fini(&z);
    z.flags = 1;
    zip_put(&z, "a/data.pkl", none, 4);
    zip_finish(&z, "");
    EXPECT_ERROR(try_file(z.out.data, z.out.n), STATUS_DATA, "member a/data.pkl is compressed or encrypted");
    zip_fini(&z);

    zip_put(&z, "a/data.pkl", none, 4);
    zip_list(&z, "a/data.pkl", 0, 4);
    zip_finish(&z, "");
    EXPECT_ERROR(try_file(z.out.data, z.out.n), STATUS_DATA, "two of its members overlap");
    zip_fini(&z);
    zip_put(&z, "a/data.pkl", none, 4);
    zip_put(&z, "a/data.pkl", none, 4);
    zip_finish(&z, "");
    EXPECT_ERROR(try_file(z.out.data, z.out.n), STATUS_DATA, "two of its members have the same name");
    zip_fini(&z);
    zip_put(&z, "a/data.pkl", none, 4);
    zip_list(&z, "a/data/0", 0, 4); /* the place of another name */
    zip_finish(&z, "");
    EXPECT_ERROR(try_file(z.out.data, z.out.n), STATUS_DATA, "member a/data/0 is not where it says");
    zip_fini(&z);
    zip_header(&z, "a/data.pkl", 1 << 30);
    zip_list(&z, "a/data.pkl", 0, 1 << 30);
    zip_finish(&z, "");
    EXPECT_ERROR(try_file(z.out.data, z.out.n), STATUS_DATA, "member a/data.pkl is not where it says");
    zip_fini(&z);
    zip_put(&z, "a/weights.pkl", none, 4);
    zip_finish(&z, "");
    EXPECT_ERROR(try_file(z.out.data, z.out.n), STATUS_DATA,
                 "torch.save did not write it: it has no data.pkl");
    zip_fini(&z);
    zip_put(&z, "a/data.pkl", none, 4);
    zip_put(&z, "a/byteorder", "big", 3);
    zip_finish(&z, "");
    EXPECT_ERROR(try_file(z.out.data, z.out.n), STATUS_DATA, "on a big-endian machine");
    zip_fini(&z);
    zip_put(&z, "a/data.pkl", none, 4);
    zip_finish(&z, "a comment behind the end");
    EXPECT_OK(try_file(z.out.data, z.out.n));
    zip_fini(&z);
    const struct stored_tensor *script = golden_file("script.pt");
    EXPECT_ERROR(try_file(script->data, script->bytes), STATUS_DATA, "is a TorchScript program");
    EXPECT_ERROR(try_file("GGUF", 4), STATUS_DATA, "not a file of torch.save");
    EXPECT_ERROR(try_file("", 0), STATUS_DATA, "not a file of torch.save");
}

/* Pickles before 1.6 with another version, another byte order, and other storages than the object has. */
static void test_legacy(void)
{
#define MAGIC     "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."
#define VERSION   "\x80\x02M\xe9\3."
#define LITTLE    "\x80\x02}X\r\0\0\0little_endian\x88s."
#define STORAGE_0 "((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\1NtQ"
#define OBJECT    "\x80\x02" TENSOR STORAGE_0 "K\0))\x89NtR."
#define KEYS      "\x80\x02]X\1\0\0\0000a."
    static const struct {
        const char *bytes;
        size_t n;
        const char *part;
    } cases[] = {
        {PICKLE(MAGIC VERSION LITTLE OBJECT KEYS "\1\0\0\0\0\0\0\0abcd"), NULL},
        {PICKLE(MAGIC VERSION LITTLE OBJECT KEYS "\1\0\0\0\0\0\0\0abc"), "ends in storage 1 of 1"},
        {PICKLE(MAGIC VERSION LITTLE OBJECT KEYS "\2\0\0\0\0\0\0\0abcd"),
         "storage 0 has 2 elements, but its pickle says 1"},
        {PICKLE(MAGIC VERSION LITTLE OBJECT "\x80\x02]."), "lacks a storage that its pickle uses"},
        {PICKLE(MAGIC VERSION LITTLE OBJECT "\x80\x02]X\1\0\0\0001a."),
         "a storage that its pickle does not use"},
        {PICKLE(MAGIC VERSION LITTLE OBJECT "\x80\x02]Na."), "contains a storage"},
        {PICKLE(MAGIC VERSION LITTLE OBJECT "\x80\x02N."), "lacks a storage that its pickle uses"},
        {PICKLE(MAGIC "\x80\x02M\xea\3."), "version 1002"},
        {PICKLE(MAGIC VERSION "\x80\x02}X\r\0\0\0little_endian\x89s."), "on a big-endian machine"},
        {PICKLE(MAGIC VERSION "\x80\x02N."), "on a big-endian machine"},
        {PICKLE(MAGIC VERSION LITTLE "\x80\x02"
                                     "cposix\nsystem\n."),
         "asks for posix.system"},
        {PICKLE(MAGIC VERSION LITTLE OBJECT "\x80\x02"
                                            "cposix\nsystem\n."),
         "asks for posix.system"},
        {PICKLE(MAGIC), "cut short"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].part == NULL) {
            EXPECT_OK(try_file(cases[i].bytes, cases[i].n));
        } else {
            EXPECT_ERROR(try_file(cases[i].bytes, cases[i].n), STATUS_DATA, cases[i].part);
        }
    }
}

static void write_at(int fd, const void *bytes, size_t n, uint64_t place)
{
    EXPECT(pwrite(fd, bytes, n, (off_t)place) == (ssize_t)n, "cannot write at %llu",
           (unsigned long long)place);
}

/* A storage of 5 GB, which is a hole but for its last number, in an archive whose sizes and places need 64
 * bits. */
static void test_large(void)
{
    const uint64_t bytes = UINT64_C(5) << 30;
    const struct pickled_tensor last = {
        "FloatStorage", "0", (int64_t)(bytes / 4), (int64_t)(bytes / 4) - 2, 1, 1, {2}, {1}};
    struct buf pickle = {0};
    struct zip_maker z = {.zip64 = true};
    struct torch_file f;
    float value = 1.5f, read[2];
    pickle_tensor(&pickle, &last);
    buf_putc(&pickle, '.');
    zip_header(&z, "a/data/0", bytes);
    zip_list(&z, "a/data/0", 0, bytes);
    z.hole_at = z.out.n;
    z.hole = bytes;
    zip_put(&z, "a/data.pkl", pickle.data, pickle.n);
    zip_finish(&z, "");
    char path[] = "/tmp/kiln_torch_file_XXXXXX";
    int fd = mkstemp(path);
    EXPECT(fd >= 0, "%s", path);
    write_at(fd, z.out.data, z.hole_at, 0);
    write_at(fd, &value, sizeof value, z.hole_at + bytes - sizeof value);
    write_at(fd, z.out.data + z.hole_at, z.out.n - z.hole_at, z.hole_at + bytes);
    EXPECT(close(fd) == 0, "%s", path);
    struct file_map map; /* parsed only, since a sum of 5 GB takes its time */
    struct status s = file_map_open(&map, path);
    unlink(path);
    EXPECT_OK(s);
    EXPECT_OK(torch_file_parse(&f, map.data, map.n, path));
    EXPECT(f.n == 1 && f.tensors[0].storage_bytes == bytes, "a storage of %zu bytes",
           f.tensors[0].storage_bytes);
    EXPECT_OK(stored_tensor_read(&f.tensors[0], tensor_1d(read, DTYPE_F32, 2)));
    EXPECT(read[0] == 0 && read[1] == 1.5f, "%g %g", (double)read[0], (double)read[1]);
    torch_file_close(&f);
    file_map_close(&map);
    zip_fini(&z);
    buf_fini(&pickle);
}

int main(void)
{
    EXPECT_OK(safetensors_open(&golden, KILN_SOURCE_DIR "/tests/golden/torch_files.safetensors"));
    test_golden();
    test_types();
    test_strides();
    test_tree();
    test_sums();
    test_damage();
    test_tensors();
    test_pickles();
    test_walk();
    test_wrong_names();
    test_names();
    test_archives();
    test_legacy();
    test_large();
    safetensors_close(&golden);
    return 0;
}
