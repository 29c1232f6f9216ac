/* Tests of io/indexed: the bytes of the format, a round trip of a store that Megatron-LM wrote, and a clear
 * error for every malformed form. */
#include "fixture_store.h"

#include "core/bytes.h"

#include <sys/stat.h>

/* Three sentences in two documents, by hand from the format's definition. */
static const unsigned char WANTED_IDX[] = {
    'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0,                                              /* magic */
    1,   0,   0,   0,   0,   0,   0,   0,                                                 /* version */
    8,                                                                                    /* u16 */
    3,   0,   0,   0,   0,   0,   0,   0,                                                 /* sequences */
    3,   0,   0,   0,   0,   0,   0,   0,                                                 /* bounds */
    2,   0,   0,   0,   1,   0,   0,   0, 3, 0, 0, 0,                                     /* sizes */
    0,   0,   0,   0,   0,   0,   0,   0, 4, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, /* pointers */
    0,   0,   0,   0,   0,   0,   0,   0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, /* bounds */
};
static const unsigned char WANTED_BIN[] = {10, 0, 0x39, 0x30, 7, 0, 1, 0, 2, 0, 0xff, 0xff};
enum {
    AT_VERSION = 9,
    AT_DTYPE = 17,
    AT_SEQUENCES = 18,
    AT_BOUNDS = 26,
    AT_SIZES = 34,
    AT_POINTERS = 46,
    AT_DOCS = 70
};

static void write_example(const char *prefix, int64_t vocab_size)
{
    struct indexed_writer w;
    EXPECT_OK(indexed_writer_open(&w, prefix, vocab_size));
    indexed_writer_add(&w, (int32_t[]){10, 12345}, 2);
    indexed_writer_add(&w, (int32_t[]){7}, 1);
    indexed_writer_end_document(&w);
    indexed_writer_add(&w, (int32_t[]){1, 2, 65535}, 3);
    indexed_writer_end_document(&w);
    EXPECT(w.n_documents == 2, "documents");
    EXPECT_OK(indexed_writer_commit(&w, NULL));
}

static void expect_file(const char *path, const void *bytes, size_t n)
{
    struct file_map m;
    EXPECT_OK(file_map_open(&m, path));
    EXPECT(m.n == n, "%s has %zu bytes, not %zu", path, m.n, n);
    for (size_t i = 0; i < n; i++) {
        EXPECT(m.data[i] == ((const unsigned char *)bytes)[i], "%s: byte %zu is %d", path, i, m.data[i]);
    }
    file_map_close(&m);
}

static void files_have_the_bytes_of_the_format(void)
{
    write_example(fixture_path("a"), 65499);
    expect_file(fixture_path("a.idx"), WANTED_IDX, sizeof WANTED_IDX);
    expect_file(fixture_path("a.bin"), WANTED_BIN, sizeof WANTED_BIN);
    write_example(fixture_path("b"), 65500);
    struct indexed x;
    EXPECT_OK(indexed_open(&x, fixture_path("b")));
    EXPECT(x.token_bytes == 4 && x.bin.n == 24, "65,500 words take 4 bytes");
    indexed_close(&x);
}

static void reads_what_it_wrote(void)
{
    struct indexed x;
    EXPECT_OK(indexed_open(&x, fixture_path("a")));
    EXPECT(x.n_sequences == 3 && x.n_documents == 2 && x.n_tokens == 6, "counts");
    EXPECT(indexed_offset(&x, 1) == 2 && indexed_offset(&x, 3) == 6, "offsets");
    EXPECT(indexed_find_document(&x, 0) == 0 && indexed_find_document(&x, 1) == 0 &&
               indexed_find_document(&x, 2) == 1,
           "documents");
    int32_t ids[5];
    indexed_copy(&x, ids, 1, 5);
    EXPECT(ids[0] == 12345 && ids[1] == 7 && ids[4] == 65535, "tokens");
    indexed_copy(&x, ids, 6, 0);
    indexed_close(&x);
    struct indexed_writer w;
    EXPECT_OK(indexed_writer_open(&w, fixture_path("empty"), 100));
    EXPECT_OK(indexed_writer_commit(&w, NULL));
    EXPECT_OK(indexed_open(&x, fixture_path("empty")));
    EXPECT(x.n_sequences == 0 && x.n_documents == 0 && x.n_tokens == 0, "an empty store");
    indexed_close(&x);
}

static void an_abandoned_store_leaves_nothing(void)
{
    struct indexed_writer w;
    EXPECT_OK(indexed_writer_open(&w, fixture_path("gone"), 100));
    indexed_writer_add(&w, (int32_t[]){1}, 1);
    indexed_writer_abandon(&w);
    indexed_writer_abandon(&w);
    EXPECT(!file_exists(fixture_path("gone.bin")) && !file_exists(fixture_path("gone.idx")), "files");
    EXPECT_ERROR(indexed_writer_open(&w, fixture_path("no/such/directory/x"), 100), STATUS_IO,
                 "its directory does not exist");
    /* The index cannot be put in place: the tokens must go as well. */
    EXPECT_OK(indexed_writer_open(&w, fixture_path("half"), 100));
    EXPECT(mkdir(fixture_path("half.idx"), 0777) == 0, "mkdir");
    EXPECT_ERROR(indexed_writer_commit(&w, NULL), STATUS_IO, "half.idx");
    indexed_writer_abandon(&w);
    EXPECT(!file_exists(fixture_path("half.bin")), "half a store");
    EXPECT_ERROR(indexed_writer_open(&w, fixture_path("half"), 100), STATUS_USAGE, "half.idx is a directory");
}

/* Opens the example with n bytes at `at` of the index replaced, and the index cut to idx_bytes. */
static struct status open_damaged(size_t at, const void *bytes, size_t n, size_t idx_bytes)
{
    unsigned char idx[sizeof WANTED_IDX + 8] = {0};
    memcpy(idx, WANTED_IDX, sizeof WANTED_IDX);
    memcpy(idx + at, bytes, n);
    fixture_write("bad.idx", idx, idx_bytes);
    fixture_write("bad.bin", WANTED_BIN, sizeof WANTED_BIN);
    struct indexed x;
    struct status s = indexed_open(&x, fixture_path("bad"));
    if (!failed(s)) {
        indexed_close(&x);
    }
    return s;
}

static struct status open_with(size_t at, uint64_t value, size_t n)
{
    unsigned char bytes[8];
    bytes_store_u64(bytes, value);
    return open_damaged(at, bytes, n, sizeof WANTED_IDX);
}

static void malformed_stores_are_named(void)
{
    EXPECT_OK(open_with(AT_VERSION, 1, 8));
    EXPECT_ERROR(open_with(0, 'X', 1), STATUS_DATA, "MMIDIDX");
    EXPECT_ERROR(open_with(AT_VERSION, 2, 8), STATUS_DATA, "version 2");
    for (unsigned dtype = 0; dtype < 256; dtype++) {
        if (dtype != 8) {
            EXPECT(failed(open_with(AT_DTYPE, dtype, 1)), "element type %u", dtype);
        }
    }
    EXPECT_ERROR(open_with(AT_DTYPE, 5, 1), STATUS_DATA, "element type 5");
    static const uint64_t counts[] = {0,         2, 4, 1ULL << 32, 1ULL << 60, 1ULL << 62, UINT64_MAX / 12,
                                      UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        EXPECT_ERROR(open_with(AT_SEQUENCES, counts[i], 8), STATUS_DATA, "cut short or damaged");
        EXPECT_ERROR(open_with(AT_BOUNDS, counts[i], 8), STATUS_DATA, "cut short or damaged");
    }
    EXPECT_ERROR(open_with(AT_SIZES, (uint32_t)-1, 4), STATUS_DATA, "sequence 0 has -1 tokens");
    EXPECT_ERROR(open_with(AT_SIZES, 0x7fffffff, 4), STATUS_DATA, "sequence 0 ends at byte");
    EXPECT_ERROR(open_with(AT_SIZES + 8, 2, 4), STATUS_DATA, "describes 10 bytes");
    EXPECT_ERROR(open_with(AT_POINTERS, 2, 8), STATUS_DATA, "sequence 0");
    EXPECT_ERROR(open_with(AT_POINTERS + 8, 5, 8), STATUS_DATA, "sequence 1");
    EXPECT_ERROR(open_with(AT_POINTERS + 16, (uint64_t)-6, 8), STATUS_DATA, "sequence 2");
    EXPECT_ERROR(open_with(AT_DOCS, 1, 8), STATUS_DATA, "document bound 0");
    EXPECT_ERROR(open_with(AT_DOCS + 8, 4, 8), STATUS_DATA, "document bound 1");
    EXPECT_ERROR(open_with(AT_DOCS + 8, (uint64_t)-1, 8), STATUS_DATA, "document bound 1");
    EXPECT_ERROR(open_with(AT_DOCS + 16, 2, 8), STATUS_DATA,
                 "end at sequence 2, but should end at the last, 3");
    for (size_t n = 0; n < sizeof WANTED_IDX; n++) {
        EXPECT(open_damaged(0, "M", 1, n).code == STATUS_DATA, "an index cut to %zu bytes", n);
    }
    EXPECT_ERROR(open_damaged(0, "M", 1, sizeof WANTED_IDX + 1), STATUS_DATA, "cut short or damaged");
}

static void long_paths_are_refused(void)
{
    struct indexed x;
    char path[2000];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    EXPECT_ERROR(indexed_open(&x, path), STATUS_USAGE, "is longer than 1023 bytes");
}

static void token_files_must_fit(void)
{
    struct indexed x;
    fixture_write("bad.idx", WANTED_IDX, sizeof WANTED_IDX);
    unsigned char bin[sizeof WANTED_BIN + 1] = {0};
    for (size_t n = 0; n <= sizeof bin; n++) {
        fixture_write("bad.bin", bin, n);
        struct status s = indexed_open(&x, fixture_path("bad"));
        EXPECT(s.code == (n == sizeof WANTED_BIN ? STATUS_OK : STATUS_DATA), "%zu bytes: %s", n, s.message);
        indexed_close(&x);
    }
    EXPECT_ERROR(indexed_open(&x, fixture_path("missing")), STATUS_DATA, "missing.idx");
    EXPECT(unlink(fixture_path("bad.bin")) == 0, "unlink");
    EXPECT_ERROR(indexed_open(&x, fixture_path("bad")), STATUS_DATA, "bad.bin");
    char prefix[2000];
    memset(prefix, 'x', sizeof prefix - 1);
    prefix[sizeof prefix - 1] = '\0';
    EXPECT_ERROR(indexed_open(&x, prefix), STATUS_USAGE, "longer than");
}

int main(void)
{
    files_have_the_bytes_of_the_format();
    reads_what_it_wrote();
    an_abandoned_store_leaves_nothing();
    malformed_stores_are_named();
    token_files_must_fit();
    long_paths_are_refused();
    fixture_remove();
    return 0;
}
