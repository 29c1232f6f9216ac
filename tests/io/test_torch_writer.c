/* What kiln writes as torch.save would: CRC-32, ZIP archives and pickles, read back by the readers of
 * PyTorch's files; larger than 4 GiB, cut, and onto a full disk. */
#include "test.h"

#include "io/pickle_writer.h"
#include "io/torch_file.h"
#include "io/torch_writer.h"
#include "io/zip_file.h"
#include "io/zip_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static char directory[128];

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

/* The check value of the CRC catalogue (CRC-32/ISO-HDLC), and the same bit by bit for every length and
 * cut. */
static void test_crc(void)
{
    struct hash_crc32_tables tables;
    unsigned char bytes[67];
    hash_crc32_init(&tables);
    EXPECT(hash_crc32(&tables, 0, "123456789", 9) == 0xCBF43926U, "the check value");
    for (size_t n = 0; n < sizeof bytes; n++) {
        uint32_t wanted = 0xFFFFFFFFU;
        bytes[n] = (unsigned char)(n * 151 + 7);
        for (size_t i = 0; i <= n; i++) {
            wanted ^= bytes[i];
            for (int bit = 0; bit < 8; bit++) {
                wanted = wanted & 1 ? wanted >> 1 ^ 0xEDB88320U : wanted >> 1;
            }
        }
        for (size_t cut = 0; cut <= n; cut += 5) {
            uint32_t crc = hash_crc32(&tables, hash_crc32(&tables, 0, bytes, cut), bytes + cut, n + 1 - cut);
            EXPECT(crc == ~wanted, "%zu bytes, cut at %zu", n + 1, cut);
        }
    }
}

static void expect_member(const struct zip_file *z, const struct file_map *map, const char *name,
                          const void *data, size_t n)
{
    const struct zip_member *m = zip_file_find(z, name, strlen(name));
    EXPECT(m != NULL && m->is_stored && m->n == n && memcmp(m->data, data, n) == 0, "%s", name);
    EXPECT((size_t)(m->data - map->data) % ZIP_ALIGNMENT == 0, "%s is not aligned", name);
}

/* Members of many lengths, and names that shift them. */
static void test_zip(void)
{
    struct zip_writer w;
    struct zip_file z;
    struct file_map map;
    unsigned char data[300];
    char name[64];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (unsigned char)(i * 31);
    }
    EXPECT_OK(zip_writer_open(&w, path_of("a.zip")));
    for (size_t i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "%.*s%zu", (int)i, "a_name_that_is_long_enough_for_each_of_them", i);
        zip_writer_put(&w, name, data, i * 7);
    }
    EXPECT_OK(zip_writer_commit(&w));
    EXPECT_OK(file_map_open(&map, path_of("a.zip")));
    EXPECT_OK(zip_file_parse(&z, map.data, map.n, "a.zip"));
    EXPECT(z.n == 40, "%zu members", z.n);
    for (size_t i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "%.*s%zu", (int)i, "a_name_that_is_long_enough_for_each_of_them", i);
        expect_member(&z, &map, name, data, i * 7);
    }
    zip_file_close(&z);
    file_map_close(&map);
}

static void write_at(int fd, const struct buf *b, uint64_t at)
{
    EXPECT_OK(buf_status(b));
    EXPECT(pwrite(fd, b->data, b->n, (off_t)at) == (ssize_t)b->n, "pwrite");
}

/* A member of more than 4 GiB and one behind it, in a file that is mostly a hole. */
static void test_large_zip(void)
{
    const uint64_t large = (UINT64_C(1) << 32) + 1000;
    struct buf first = {0}, second = {0}, entries = {0}, end = {0};
    struct zip_file z;
    int fd = open(path_of("large.zip"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    EXPECT(fd >= 0, "open");
    zip_writer_describe(&first, &entries, "large", 0, large, 0);
    uint64_t place = first.n + large;
    zip_writer_describe(&second, &entries, "behind", place, 4, 0);
    uint64_t directory_at = place + second.n + 4;
    zip_writer_end(&end, 2, directory_at, entries.n);
    write_at(fd, &first, 0);
    write_at(fd, &second, place);
    EXPECT(pwrite(fd, "kiln", 4, (off_t)(place + second.n)) == 4, "pwrite");
    write_at(fd, &entries, directory_at);
    write_at(fd, &end, directory_at + entries.n);
    size_t n = (size_t)(directory_at + entries.n + end.n);
    unsigned char *map = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    EXPECT(map != MAP_FAILED, "mmap");
    EXPECT_OK(zip_file_parse(&z, map, n, "large.zip"));
    const struct zip_member *m = zip_file_find(&z, "large", 5), *behind = zip_file_find(&z, "behind", 6);
    EXPECT(m != NULL && m->is_stored && m->n == large && m->data == map + first.n, "large");
    EXPECT(behind != NULL && behind->n == 4 && memcmp(behind->data, "kiln", 4) == 0, "behind");
    zip_file_close(&z);
    munmap(map, n);
    close(fd);
    buf_fini(&first);
    buf_fini(&second);
    buf_fini(&entries);
    buf_fini(&end);
}

/* Every opcode that is written, as the tree that the reader makes of it. */
static void test_pickle(void)
{
    static const int64_t numbers[] = {0, -1, 255, INT32_MAX, INT32_MIN, INT64_C(1) << 40, INT64_MIN};
    static const struct pickle_allowed allowed[] = {{"collections", "OrderedDict", PICKLE_MAKE_DICT, 0},
                                                    {"torch", "f", PICKLE_KEEP_OBJECT, 3}};
    struct buf b = {0};
    struct pickle p;
    pickle_put_begin(&b);
    pickle_put_ordered_dict(&b);
    pickle_put(&b, MARK);
    pickle_put_text(&b, "numbers");
    pickle_put(&b, MARK);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        pickle_put_int(&b, numbers[i]);
    }
    pickle_put(&b, TUPLE);
    pickle_put_text(&b, "call");
    pickle_put_global(&b, "torch", "f");
    pickle_put(&b, MARK);
    pickle_put_bool(&b, false);
    pickle_put(&b, EMPTY_DICT);
    pickle_put(&b, TUPLE);
    pickle_put(&b, REDUCE);
    pickle_put_text(&b, "outside");
    pickle_put(&b, MARK);
    pickle_put_text(&b, "it");
    pickle_put(&b, TUPLE);
    pickle_put(&b, BINPERSID);
    pickle_put(&b, SETITEMS);
    pickle_put(&b, STOP);
    EXPECT_OK(buf_status(&b));
    EXPECT_OK(pickle_parse(&p, b.data, b.n, allowed, 2, "pickle"));
    EXPECT(p.n_read == b.n, "%zu of %zu bytes", p.n_read, b.n);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct pickle_node *node = pickle_item(pickle_find(p.root, "numbers"), i);
        EXPECT(node != NULL && node->kind == PICKLE_INT && node->integer == numbers[i], "number %zu", i);
    }
    const struct pickle_node *call = pickle_find(p.root, "call"), *outside = pickle_find(p.root, "outside");
    EXPECT(call != NULL && call->kind == PICKLE_OBJECT && call->meaning == 3, "call");
    EXPECT(pickle_item(call->object.arguments, 0)->kind == PICKLE_BOOL &&
               pickle_item(call->object.arguments, 1)->kind == PICKLE_DICT,
           "arguments");
    EXPECT(outside != NULL && outside->kind == PICKLE_PERSISTENT &&
               pickle_is_text(pickle_item(outside->persistent.id, 0), "it"),
           "outside");
    pickle_close(&p);
    buf_fini(&b);
}

static float matrix[6] = {1, -2, 3.5F, 0, 1e-30F, -7}, vector[5] = {5, 4, 3, 2, 1};

static struct status save(const char *path)
{
    const struct torch_item items[] = {{"bert.w", tensor_2d(matrix, DTYPE_F32, 3, 2)},
                                       {"bert.b", tensor_1d(vector, DTYPE_F32, 5)},
                                       {"decoder.w", tensor_2d(matrix, DTYPE_F32, 3, 2)},
                                       {"short.b", tensor_1d(vector, DTYPE_F32, 2)},
                                       {"empty", tensor_1d(vector + 5, DTYPE_F32, 0)}};
    struct torch_writer w;
    torch_writer_init(&w);
    pickle_put(&w.pickle, EMPTY_DICT);
    pickle_put(&w.pickle, MARK);
    pickle_put_text(&w.pickle, "model");
    torch_writer_put_dict(&w, items, 5);
    pickle_put(&w.pickle, SETITEMS);
    return torch_writer_commit(&w, path);
}

static void expect_tensor(const struct torch_file *f, const char *name, const float *values, int64_t d0,
                          int64_t d1)
{
    float got[8];
    const struct stored_tensor *t = stored_tensor_find(f->tensors, f->n, name);
    EXPECT(t != NULL, "%s", name);
    tensor out = d1 > 0 ? tensor_2d(got, DTYPE_F32, d0, d1) : tensor_1d(got, DTYPE_F32, d0);
    EXPECT_OK(stored_tensor_read(t, out));
    EXPECT(memcmp(got, values, tensor_bytes(out)) == 0, "%s", name);
}

static void test_torch(void)
{
    struct torch_file f;
    EXPECT_OK(save(path_of("a.pt")));
    EXPECT_OK(torch_file_open(&f, path_of("a.pt")));
    EXPECT(f.n == 5 && f.root->kind == PICKLE_DICT && pickle_find(f.root, "model") != NULL, "%d tensors",
           f.n);
    expect_tensor(&f, "model.bert.w", matrix, 3, 2);
    expect_tensor(&f, "model.bert.b", vector, 5, 0);
    expect_tensor(&f, "model.decoder.w", matrix, 3, 2);
    expect_tensor(&f, "model.short.b", vector, 2, 0);
    expect_tensor(&f, "model.empty", vector, 0, 0);
    EXPECT(stored_tensor_find(f.tensors, f.n, "model.decoder.w")->storage ==
               stored_tensor_find(f.tensors, f.n, "model.bert.w")->storage,
           "tied tensors are there twice");
    torch_file_close(&f);
}

static void test_cut(void)
{
    struct file_map map;
    struct torch_file f;
    EXPECT_OK(file_map_open(&map, path_of("a.pt")));
    for (size_t n = 0; n < map.n; n++) {
        EXPECT(torch_file_parse(&f, map.data, n, "cut").code == STATUS_DATA, "cut to %zu of %zu bytes", n,
               map.n);
    }
    file_map_close(&map);
}

static void test_full_disk(void)
{
    EXPECT_ERROR(save("/dev/full"), STATUS_IO, "No space left");
    EXPECT_ERROR(save(path_of("nothing/a.pt")), STATUS_IO, "nothing");
}

int main(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/kiln_torch_XXXXXX", parent == NULL ? "/tmp" : parent);
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    test_crc();
    test_zip();
    test_large_zip();
    test_pickle();
    test_torch();
    test_cut();
    test_full_disk();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
