/* Tests of io/append_file: what is behind the mark is dropped, what is before it is compared, and failure is
 * told. */
#include "fixture_store.h"

#include "core/hash.h"
#include "io/append_file.h"

#include <fcntl.h>
#include <unistd.h>

static void expect_text(const char *path, const char *wanted)
{
    struct file_map m;
    EXPECT_OK(file_map_open(&m, path));
    EXPECT(m.n == strlen(wanted) && (m.n == 0 || memcmp(m.data, wanted, m.n) == 0), "%s has %zu bytes", path,
           m.n);
    file_map_close(&m);
}

static void it_grows_from_its_mark(const char *path)
{
    struct append_file f;
    EXPECT_OK(append_file_open(&f, path, (struct append_mark){0}));
    append_file_put(&f, "one ", 4);
    EXPECT_OK(append_file_sync(&f));
    struct append_mark mark = f.mark;
    EXPECT(mark.n_bytes == 4 && mark.crc == hash_crc32c(0, "one ", 4), "%llu bytes",
           (unsigned long long)mark.n_bytes);
    append_file_put(&f, "lost", 4);
    EXPECT_OK(append_file_sync(&f));
    append_file_put(&f, "buffered", 8);
    append_file_close(&f);
    append_file_close(&f);
    expect_text(path, "one lost");

    EXPECT_OK(append_file_open(&f, path, mark));
    append_file_put(&f, "two", 3);
    EXPECT_OK(append_file_sync(&f));
    EXPECT(f.mark.n_bytes == 7 && f.mark.crc == hash_crc32c(0, "one two", 7), "the mark is of the whole");
    append_file_close(&f);
    expect_text(path, "one two");

    EXPECT_OK(append_file_open(&f, path, (struct append_mark){0}));
    append_file_close(&f);
    expect_text(path, "");
}

/* More than the buffer, in pieces of every kind, over two runs: the checksums of blocks are those of one. */
static void sums_are_those_of_the_whole(const char *path)
{
    enum { N = (2 << 20) + 12345, CUT = 1234567, LARGE = 700000 };
    unsigned char *bytes = malloc(N);
    struct append_file f;
    struct block_sums sums = {0};
    struct append_mark mark = {0};
    EXPECT(bytes != NULL, "memory");
    for (int i = 0; i < N; i++) {
        bytes[i] = (unsigned char)(i * 7 + (i >> 9));
    }
    block_sums_add(&sums, bytes, N);
    EXPECT_OK(append_file_open(&f, path, mark));
    append_file_put(&f, bytes, LARGE);
    append_file_put(&f, bytes + LARGE, CUT - LARGE);
    EXPECT_OK(append_file_sync(&f));
    mark = f.mark;
    append_file_put(&f, bytes, 99);
    append_file_close(&f);
    EXPECT_OK(append_file_open(&f, path, mark));
    for (size_t at = CUT; at < N; at += 1000) {
        append_file_put(&f, bytes + at, N - at < 1000 ? N - at : 1000);
    }
    EXPECT_OK(append_file_sync(&f));
    EXPECT(f.mark.crc == hash_crc32c(0, bytes, N) && f.sums.crc == sums.crc && f.sums.crcs.n == sums.crcs.n &&
               memcmp(f.sums.crcs.data, sums.crcs.data, sums.crcs.n) == 0,
           "other checksums");
    append_file_close(&f);
    block_sums_fini(&sums);
    free(bytes);
}

static void other_files_are_refused(const char *path)
{
    struct append_file f;
    struct append_mark mark = {.n_bytes = 3, .crc = hash_crc32c(0, "abc", 3)};
    EXPECT_OK(file_write_atomic(path, "abd", 3));
    EXPECT_ERROR(append_file_open(&f, path, mark), STATUS_DATA,
                 "has changed since an earlier run wrote its first");
    EXPECT_OK(file_write_atomic(path, "ab", 2));
    EXPECT_ERROR(append_file_open(&f, path, mark), STATUS_DATA,
                 "has changed since an earlier run wrote its first");
    expect_text(path, "ab"); /* untouched */
    EXPECT(unlink(path) == 0, "unlink");
    EXPECT_ERROR(append_file_open(&f, path, mark), STATUS_DATA, "cannot open");
    EXPECT_ERROR(append_file_open(&f, fixture_path("no/such/file"), (struct append_mark){0}), STATUS_IO,
                 "no/such/file");
}

static void failure_is_sticky(void)
{
    struct append_file f;
    if (access("/dev/full", W_OK) != 0) {
        return;
    }
    EXPECT_OK(append_file_open(&f, fixture_path("full"), (struct append_mark){0}));
    int full = open("/dev/full", O_WRONLY);
    EXPECT(dup2(full, f.fd) == f.fd, "dup2");
    append_file_put(&f, "x", 1);
    EXPECT_ERROR(append_file_sync(&f), STATUS_IO, "No space left");
    append_file_put(&f, "x", 1);
    EXPECT_ERROR(append_file_sync(&f), STATUS_IO, "No space left");
    append_file_close(&f);
    close(full);
}

int main(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s", fixture_path("file"));
    it_grows_from_its_mark(path);
    sums_are_those_of_the_whole(path);
    other_files_are_refused(path);
    failure_is_sticky();
    fixture_remove();
    return 0;
}
