/* tf_bundle: checkpoints that TensorFlow wrote read as TensorFlow has them, in one shard and in several, with
 * and without Snappy; damage is seen, and what is made to harm is refused in a sentence. */
#include "test.h"

#include "fixture_table.h"
#include "io/safetensors.h"
#include "io/sorted_table.h"
#include "io/tf_bundle.h"

static struct safetensors golden; /* tests/golden/tf_bundles.safetensors, by make_tf_bundles.py */

__attribute__((format(printf, 1, 2))) static struct span golden_file(const char *format, ...)
{
    char name[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    const struct stored_tensor *e = safetensors_find(&golden, name);
    return e == NULL ? bytes_span(NULL, 0) : bytes_span(e->data, e->bytes);
}

enum { MAX_SHARDS = 3 };

struct bundle_files {
    struct span index, shards[MAX_SHARDS];
    int n_shards;
};

static struct bundle_files golden_case(const char *name)
{
    struct bundle_files files = {.index = golden_file("%s/model.ckpt-20.index", name)};
    EXPECT(files.index.data != NULL, "the golden has no case %s", name);
    for (int n = 1; n <= MAX_SHARDS && files.n_shards == 0; n++) {
        for (int i = 0; i < n; i++) {
            files.shards[i] = golden_file("%s/model.ckpt-20.data-%05d-of-%05d", name, i, n);
            files.n_shards = files.shards[i].data != NULL ? n : 0;
        }
    }
    EXPECT(files.n_shards > 0, "the case %s has no shards", name);
    return files;
}

static struct status parse(struct tf_bundle *b, const struct bundle_files *files)
{
    return tf_bundle_parse(b, files->index, files->shards, files->n_shards, "model.ckpt-20.index");
}

static tensor like(const struct stored_tensor *t, void *data)
{
    tensor out = tensor_1d(data, t->dtype, t->n_dims == 0 ? 1 : t->dims[0]);
    if (t->n_dims == 2) {
        out = tensor_2d(data, t->dtype, t->dims[0], t->dims[1]);
    }
    return out;
}

/* Reads a tensor in its own type. */
static struct status read_bytes(const struct stored_tensor *t, unsigned char bytes[256])
{
    EXPECT(t->bytes <= 256, "%s has %zu bytes", t->name, t->bytes);
    return stored_tensor_read(t, like(t, bytes));
}

static void check_case(const char *name, int n_unreadable)
{
    struct tf_bundle b;
    struct bundle_files files = golden_case(name);
    int n_wanted = 0;
    EXPECT_OK(parse(&b, &files));
    for (int i = 0; i < golden.n; i++) {
        const struct stored_tensor *wanted = &golden.entries[i];
        size_t n = strlen(name);
        if (strncmp(wanted->name, name, n) == 0 && wanted->name[n] == ':') {
            unsigned char bytes[256];
            const struct stored_tensor *t = stored_tensor_find(b.tensors, b.n, wanted->name + n + 1);
            EXPECT(t != NULL, "%s is not there", wanted->name);
            EXPECT(t->n_dims == wanted->n_dims && t->bytes == wanted->bytes, "%s: %zu bytes", t->name,
                   t->bytes);
            EXPECT(memcmp(t->dims, wanted->dims, (size_t)t->n_dims * sizeof *t->dims) == 0, "%s: dims",
                   t->name);
            EXPECT(strcmp(t->name, "bf16") == 0 ? t->dtype == DTYPE_BF16 : t->dtype == wanted->dtype,
                   "%s: %s", t->name, t->dtype_label);
            EXPECT_OK(read_bytes(t, bytes));
            EXPECT(memcmp(bytes, wanted->data, wanted->bytes) == 0, "%s: values", wanted->name);
            n_wanted++;
        }
    }
    EXPECT(n_wanted > 0 && b.n == n_wanted + n_unreadable, "%s: %d tensors, of which %d are known", name, b.n,
           n_wanted);
    tf_bundle_close(&b);
}

static void test_golden(void)
{
    check_case("types", 1);
    check_case("sharded", 0);
    check_case("compressed", 0);
}

/* What cannot be read is listed, and says why. */
static void test_unreadable(void)
{
    struct tf_bundle b;
    float values[8];
    struct bundle_files files = golden_case("types");
    EXPECT_OK(parse(&b, &files));
    const struct stored_tensor *t = stored_tensor_find(b.tensors, b.n, "strings");
    EXPECT(t != NULL && strcmp(t->dtype_label, "string") == 0 && t->dims[0] == 2, "strings");
    EXPECT_ERROR(stored_tensor_read(t, tensor_1d(values, DTYPE_F32, 2)), STATUS_DATA, "it holds strings");
    tf_bundle_close(&b);
    files = golden_case("sliced");
    EXPECT_OK(parse(&b, &files));
    EXPECT(b.n == 2, "%d tensors", b.n);
    t = stored_tensor_find(b.tensors, b.n, "parts");
    EXPECT(t != NULL && t->n_dims == 2 && t->dims[0] == 4, "parts");
    EXPECT_ERROR(stored_tensor_read(t, tensor_2d(values, DTYPE_F32, 4, 2)), STATUS_DATA,
                 "it is stored in slices");
    EXPECT_OK(
        stored_tensor_read(stored_tensor_find(b.tensors, b.n, "whole"), tensor_1d(values, DTYPE_F32, 2)));
    tf_bundle_close(&b);
}

/* The files that it needs are found by the prefix; one that is missing is named. */
static void test_open(void)
{
    struct tf_bundle b;
    char directory[] = "/tmp/kiln_tf_bundle_XXXXXX", path[256], prefix[256];
    struct bundle_files files = golden_case("sharded");
    EXPECT(mkdtemp(directory) != NULL, "mkdtemp");
    snprintf(prefix, sizeof prefix, "%s/model.ckpt-20", directory);
    EXPECT_ERROR(tf_bundle_open(&b, prefix), STATUS_DATA, "model.ckpt-20.index");
    snprintf(path, sizeof path, "%s.index", prefix);
    EXPECT_OK(file_write_atomic(path, files.index.data, files.index.n));
    for (int i = 0; i < files.n_shards; i++) {
        EXPECT_ERROR(tf_bundle_open(&b, prefix), STATUS_DATA, ".data-0000");
        snprintf(path, sizeof path, "%s.data-%05d-of-%05d", prefix, i, files.n_shards);
        EXPECT_OK(file_write_atomic(path, files.shards[i].data, files.shards[i].n));
    }
    EXPECT_OK(tf_bundle_open(&b, prefix));
    unsigned char bytes[256];
    for (int i = 0; i < b.n; i++) {
        EXPECT_OK(read_bytes(&b.tensors[i], bytes));
    }
    tf_bundle_close(&b);
    EXPECT_OK(file_remove_tree(directory));
}

/* Damage at every byte: of an index it is seen when it is opened, of a shard when the tensor is read. */
static void test_damage(void)
{
    struct tf_bundle b;
    struct bundle_files files = golden_case("compressed");
    const struct span index = files.index;
    for (size_t cut = 0; cut < index.n; cut++) {
        unsigned char *exact = malloc(cut + 1); /* for AddressSanitizer to see a read past the end */
        EXPECT(exact != NULL, "memory");
        memcpy(exact, index.data, cut);
        files.index = bytes_span(exact, cut);
        EXPECT_ERROR(parse(&b, &files), STATUS_DATA, "model.ckpt-20.index");
        free(exact);
    }
    unsigned char *copy = malloc(index.n);
    EXPECT(copy != NULL, "memory");
    memcpy(copy, index.data, index.n);
    files.index = bytes_span(copy, index.n);
    size_t n_seen = 0;
    for (size_t bit = 0; bit < 8 * index.n; bit++) {
        copy[bit / 8] ^= (unsigned char)(1U << bit % 8);
        struct status s = parse(&b, &files);
        EXPECT(s.code == STATUS_OK || s.code == STATUS_DATA, "bit %zu: %s", bit, s.message);
        EXPECT(failed(s) || bit / 8 > index.n - 48, "bit %zu was not seen", bit); /* the footer has filling */
        n_seen += failed(s);
        tf_bundle_close(&b);
        copy[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
    EXPECT(n_seen > 8 * (index.n - 48), "%zu", n_seen);
    free(copy);

    files = golden_case("types");
    const struct span shard = files.shards[0];
    copy = malloc(shard.n);
    EXPECT(copy != NULL, "memory");
    memcpy(copy, shard.data, shard.n);
    files.shards[0] = bytes_span(copy, shard.n);
    EXPECT_OK(parse(&b, &files));
    const struct stored_tensor *t = stored_tensor_find(b.tensors, b.n, "f32");
    unsigned char bytes[256];
    for (size_t bit = 0; bit < 8 * shard.n; bit++) {
        bool is_its = &copy[bit / 8] >= t->data && &copy[bit / 8] < t->data + t->bytes;
        copy[bit / 8] ^= (unsigned char)(1U << bit % 8);
        struct status s = read_bytes(t, bytes);
        EXPECT(failed(s) == is_its, "bit %zu: '%s'", bit, s.message);
        EXPECT(!is_its || strstr(s.message, "tensor f32 is damaged") != NULL, "%s", s.message);
        copy[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
    tf_bundle_close(&b);
    files.shards[0].n--;
    EXPECT_ERROR(parse(&b, &files), STATUS_DATA, "is not inside its shard");
    free(copy);
}

#define BYTES(text) (text), sizeof(text) - 1

/* A table of one block with a header and one entry; the shard has 16 bytes. */
static struct status try_entry(const char *header, size_t header_bytes, const char *name, const char *entry,
                               size_t n)
{
    struct tf_bundle b;
    struct buf block = {0};
    struct table_maker t = {0};
    table_entry(&block, 0, "", 0, header, header_bytes);
    table_entry(&block, 0, name, strlen(name), entry, n);
    table_restarts(&block);
    table_block(&t, block.data, block.n, SORTED_TABLE_PLAIN);
    table_finish(&t);
    const struct span shard = bytes_span("0123456789abcdef", 16);
    struct status s = tf_bundle_parse(&b, bytes_span(t.out.data, t.out.n), &shard, 1, "x.index");
    tf_bundle_close(&b);
    table_maker_fini(&t);
    buf_fini(&block);
    return s;
}

static void test_entries(void)
{
    static const struct {
        const char *entry;
        size_t n;
        const char *part; /* NULL: it is taken */
    } cases[] = {
        {BYTES("\x08\x01\x12\x04\x12\x02\x08\x04\x28\x10"), NULL},
        {BYTES("\x08\x01\x12\x04\x12\x02\x08\x03\x20\x04\x28\x0c\x35\1\2\3\4"), NULL},
        {BYTES("\x08\x01\x28\x04\x58\x07\x61\1\2\3\4\5\6\7\x08\x6a\1x"), NULL}, /* fields of later versions */
        {BYTES("\x08\x01\x12\x04\x12\x02\x08\x03\x28\x10"), "tensor w has another size than its shape"},
        {BYTES("\x08\x01\x12\x04\x12\x02\x08\x03\x20\x05\x28\x0c"), "tensor w is not inside its shard"},
        {BYTES("\x08\x01\x12\x04\x12\x02\x08\x01\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x28\x04"),
         "is not inside its shard"},
        {BYTES("\x08\x01\x12\x04\x12\x02\x08\x04\x18\x01\x28\x10"),
         "in a shard that the checkpoint does not have"},
        {BYTES("\x08\x01\x12\x0d\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x28\x10"),
         "impossible shape"},
        {BYTES("\x08\x01\x12\x0c\x12\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x28\x10"),
         "impossible shape"},
        {BYTES("\x08\x01\x12\x24\x12\x02\x08\1\x12\x02\x08\1\x12\x02\x08\1\x12\x02\x08\1\x12\x02\x08\1\x12"
               "\x02\x08\1\x12"
               "\x02\x08\1\x12\x02\x08\1\x12\x02\x08\1\x28\4"),
         "impossible shape"}, /* of 9 dims */
        {BYTES("\x08\x01\x12\x02\x18\x01\x28\x10"), "impossible shape"},
        {BYTES("\x08\x01\x12\x04\x12\x02\x08"), "damaged entry"},
        {BYTES("\x08\x01\x12\x7f\x12"), "damaged entry"},
        {BYTES("\x08"), "damaged entry"},
        {BYTES("\x0b"), "damaged entry"}, /* a group, which no version has */
        {BYTES("\x08\x07\x28\xff\xff\x03"), "is not inside its shard"},
    };
    static const struct {
        const char *header;
        size_t n;
        const char *part;
    } headers[] = {
        {BYTES("\x08\x00"), "0 shards"},
        {BYTES(""), "0 shards"},
        {BYTES("\x08\xa0\x8d\x06"), "100000 shards"},
        {BYTES("\x08\x01\x10\x01"), "on a big-endian machine"},
        {BYTES("\x08\x02"), "names 2 shards, but 1 were given"},
        {BYTES("\x08"), "header is damaged"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct status s = try_entry(BYTES("\x08\x01"), "w", cases[i].entry, cases[i].n);
        if (cases[i].part == NULL) {
            EXPECT_OK(s);
        } else {
            EXPECT_ERROR(s, STATUS_DATA, cases[i].part);
        }
    }
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        EXPECT_ERROR(try_entry(headers[i].header, headers[i].n, "w", BYTES("\x08\x01\x28\x04")), STATUS_DATA,
                     headers[i].part);
    }
    EXPECT_ERROR(try_entry(BYTES("\x08\x01"), "a\x1b[2J", BYTES("\x08\x01\x28\x04")), STATUS_DATA,
                 "control characters");
}

/* A table of one block of these bytes, restarts included. */
static struct status try_block(const void *bytes, size_t n, char compression)
{
    struct sorted_table file;
    struct table_maker t = {0};
    table_block(&t, bytes, n, compression);
    table_finish(&t);
    struct status s = sorted_table_parse(&file, t.out.data, t.out.n, "x.index");
    sorted_table_close(&file);
    table_maker_fini(&t);
    return s;
}

static void test_blocks(void)
{
#define END "\0\0\0\0\1\0\0\0"
    static const struct {
        const char *block;
        size_t n;
        char compression;
        const char *part;
    } cases[] = {
        {BYTES("\0\1\1ab\1\1\1cd" END), SORTED_TABLE_PLAIN, NULL},
        {BYTES(END), SORTED_TABLE_PLAIN, NULL},
        {BYTES("\0\1\1ab\0\1\1ab" END), SORTED_TABLE_PLAIN, "keys are not in order"},
        {BYTES("\0\1\1bb\0\1\1ab" END), SORTED_TABLE_PLAIN, "keys are not in order"},
        {BYTES("\0\2\1abb\0\1\1ab" END), SORTED_TABLE_PLAIN, "keys are not in order"},
        {BYTES("\1\1\1ab" END), SORTED_TABLE_PLAIN, "an entry is damaged"},
        {BYTES("\0\1\1ab\2\1\1ab" END), SORTED_TABLE_PLAIN, "an entry is damaged"},
        {BYTES("\0\1\2ab" END), SORTED_TABLE_PLAIN, "an entry is damaged"},
        {BYTES("\0\x80" END), SORTED_TABLE_PLAIN, "an entry is damaged"},
        {BYTES("\0\0\0\0\3\0\0\0"), SORTED_TABLE_PLAIN, "a block lacks its restart points"},
        {BYTES("\0\0\0\0\xff\xff\xff\xff"), SORTED_TABLE_PLAIN, "a block lacks its restart points"},
        {BYTES("\0\0"), SORTED_TABLE_PLAIN, "a block lacks its restart points"},
        {BYTES(END), 2, "an unknown compression"},
        {BYTES("\x08\x1c" END), SORTED_TABLE_SNAPPY, NULL},
        {BYTES("\x09\x1c" END), SORTED_TABLE_SNAPPY, "a compressed block is damaged"},
        {BYTES("\xff\xff\xff\xff\x0f\x1c" END), SORTED_TABLE_SNAPPY,
         "an unknown compression"}, /* 4 GiB of 14 bytes */
        {BYTES(""), SORTED_TABLE_SNAPPY, "an unknown compression"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct status s = try_block(cases[i].block, cases[i].n, cases[i].compression);
        if (cases[i].part == NULL) {
            EXPECT_OK(s);
        } else {
            EXPECT_ERROR(s, STATUS_DATA, cases[i].part);
        }
    }
}

/* Tables that would become much larger than they are. */
static void test_bounds(void)
{
    struct sorted_table file;
    struct table_maker t = {0};
    struct buf block = {0};
    char key[SORTED_TABLE_KEY_BYTES];
    memset(key, 'k', sizeof key);
    table_entry(&block, 0, key, sizeof key, "", 0);
    table_restarts(&block);
    EXPECT_ERROR(try_block(block.data, block.n, SORTED_TABLE_PLAIN), STATUS_DATA,
                 "a key of more than 4095 bytes");
    buf_clear(&block);
    table_entry(&block, 0, key, sizeof key - 10, "", 0);
    for (unsigned i = 0; i < 100000; i++) { /* 4 KB for 9 bytes each: 400 MB */
        unsigned char number[5] = {(unsigned char)(i >> 24), (unsigned char)(i >> 16),
                                   (unsigned char)(i >> 8), (unsigned char)i, 'x'};
        table_entry(&block, sizeof key - 10, number, sizeof number, "", 0);
    }
    table_restarts(&block);
    EXPECT_ERROR(try_block(block.data, block.n, SORTED_TABLE_PLAIN), STATUS_DATA,
                 "more memory than the limit of 256 MiB");

    table_block(&t, BYTES("\0\1\1ab" END), SORTED_TABLE_PLAIN);
    struct buf twice = {0};
    buf_append(&twice, t.index.data, t.index.n);
    buf_append(&t.index, twice.data, twice.n); /* the same block again, a bomb of any size */
    table_finish(&t);
    EXPECT_ERROR(sorted_table_parse(&file, t.out.data, t.out.n, "x.index"), STATUS_DATA,
                 "its blocks overlap");
    table_maker_fini(&t);
    buf_fini(&twice);
    table_entry(&t.index, 0, "z", 1, "\x7f\x7f", 2);
    table_finish(&t);
    EXPECT_ERROR(sorted_table_parse(&file, t.out.data, t.out.n, "x.index"), STATUS_DATA,
                 "a block is not inside it");
    table_maker_fini(&t);
    table_finish(&t);
    EXPECT_OK(sorted_table_parse(&file, t.out.data, t.out.n, "x.index"));
    sorted_table_close(&file);
    t.out.data[0] ^= 1;
    EXPECT_ERROR(sorted_table_parse(&file, t.out.data, t.out.n, "x.index"), STATUS_DATA,
                 "the checksum of a block");
    t.out.data[0] ^= 1;
    struct tf_bundle b;
    EXPECT_ERROR(tf_bundle_parse(&b, bytes_span(t.out.data, t.out.n), NULL, 0, "x.index"), STATUS_DATA,
                 "no header");
    table_maker_fini(&t);
    EXPECT_ERROR(sorted_table_parse(&file, "GGUF", 4, "x.index"), STATUS_DATA,
                 "not the index of a TensorFlow checkpoint");
    buf_fini(&block);
}

/* What the library made of bytes becomes them again. */
static void test_snappy(void)
{
    unsigned char out[8192];
    size_t length;
    int n = 0;
    for (; golden_file("snappy:%d", n).data != NULL; n++) {
        struct span packed = golden_file("snappy:%d", n);
        struct span plain = golden_file("snappy=%d", n);
        EXPECT(snappy_length(&length, packed.data, packed.n) && length == plain.n && length <= sizeof out,
               "%d", n);
        EXPECT(snappy_expand(out, length, packed.data, packed.n), "case %d", n);
        EXPECT(memcmp(out, plain.data, plain.n) == 0, "case %d has other bytes", n);
        EXPECT(!snappy_expand(out, length + 1, packed.data, packed.n), "case %d into more", n);
        for (size_t cut = 0; cut < packed.n; cut++) {
            EXPECT(!snappy_expand(out, length, packed.data, cut), "case %d cut to %zu", n, cut);
        }
    }
    EXPECT(n == 7, "%d cases", n);
}

/* Elements of every kind that the format's page has, and what is none. */
static void test_snappy_elements(void)
{
    unsigned char out[8];
    size_t length;
    static const struct {
        const char *bytes;
        size_t n, length;
        const char *wanted; /* NULL: damaged */
    } cases[] = {
        {BYTES("\x05\x00"
               "a\x01\x01"),
         5, "aaaaa"},                                            /* a literal of 1, a copy of 4 from 1 back */
        {BYTES("\x07\x04xy\x12\x02\x00"), 7, "xyxyxyx"},         /* a copy of 5 from 2 back, by two bytes */
        {BYTES("\x07\x04xy\x13\x02\x00\x00\x00"), 7, "xyxyxyx"}, /* by four */
        {BYTES("\x05\xf0\x04"
               "abcde"),
         5, "abcde"}, /* a literal with its length behind it, in each of the ways */
        {BYTES("\x05\xf4\x04\x00"
               "abcde"),
         5, "abcde"},
        {BYTES("\x05\xf8\x04\x00\x00"
               "abcde"),
         5, "abcde"},
        {BYTES("\x05\xfc\x04\x00\x00\x00"
               "abcde"),
         5, "abcde"},
        {BYTES("\x05\xfc\xff\xff\xff\xff"
               "abcde"),
         5, NULL},
        {BYTES("\x05\x00"
               "a\x01\x00"),
         5, NULL}, /* from itself */
        {BYTES("\x05\x00"
               "a\x01\x02"),
         5, NULL}, /* from before the begin */
        {BYTES("\x04\x00"
               "a\x01\x01"),
         4, NULL}, /* more than it says */
        {BYTES("\x06\x00"
               "a\x01\x01"),
         6, NULL}, /* less */
        {BYTES("\x02\x08"
               "abc"),
         2, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool whole = snappy_expand(out, cases[i].length, cases[i].bytes, cases[i].n);
        EXPECT(whole == (cases[i].wanted != NULL), "case %zu", i);
        EXPECT(!whole || memcmp(out, cases[i].wanted, cases[i].length) == 0, "case %zu has other bytes", i);
    }
    EXPECT(!snappy_length(&length, "\xff\xff\xff\xff\x0f\0\0\0", 8), "4 GiB of 3 bytes");
    EXPECT(!snappy_length(&length, "\x80", 1), "a length without an end");
}

int main(void)
{
    EXPECT_OK(safetensors_open(&golden, KILN_SOURCE_DIR "/tests/golden/tf_bundles.safetensors"));
    test_golden();
    test_unreadable();
    test_open();
    test_damage();
    test_entries();
    test_blocks();
    test_bounds();
    test_snappy();
    test_snappy_elements();
    safetensors_close(&golden);
    return 0;
}
