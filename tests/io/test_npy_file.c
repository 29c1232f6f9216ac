/* npy_file: the bytes are numpy's, and headers of other arrays are refused with what they say. */
#include "test.h"

#include "io/npy_file.h"

#include <unistd.h>

static char directory[] = "/tmp/kiln-npy-XXXXXX";
static char path[64];

/* numpy 2.4.6 writes these headers; older ones, from 1.9 on, the same. */
static const struct {
    const char *type, *text;
    int n_dims;
    int64_t dims[2];
} cases[] = {
    {"<i4", "{'descr': '<i4', 'fortran_order': False, 'shape': (5,), }", 1, {5, 1}},
    {"<i4", "{'descr': '<i4', 'fortran_order': False, 'shape': (0,), }", 1, {0, 1}},
    {"<i4", "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2), }", 2, {3, 2}},
    {"<u4", "{'descr': '<u4', 'fortran_order': False, 'shape': (6,), }", 1, {6, 1}},
};

static void bytes_are_numpys(void)
{
    static const int32_t numbers[6] = {1, -2, 3, 1 << 30, 5, 6};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char wanted[128];
        size_t n = (size_t)(cases[i].dims[0] * cases[i].dims[1]) * 4;
        memset(wanted, ' ', sizeof wanted);
        memcpy(wanted, "\x93NUMPY\x01\x00v\x00", 10);
        memcpy(wanted + 10, cases[i].text, strlen(cases[i].text));
        wanted[127] = '\n';
        struct file_writer w = {0};
        EXPECT_OK(npy_file_create(&w, path, cases[i].type, cases[i].n_dims, cases[i].dims));
        file_writer_put(&w, numbers, n);
        EXPECT_OK(file_writer_commit(&w));
        struct file_map map;
        EXPECT_OK(file_map_open(&map, path));
        EXPECT(map.n == 128 + n && memcmp(map.data, wanted, 128) == 0, "header of case %zu", i);
        EXPECT(memcmp(map.data + 128, numbers, n) == 0, "numbers of case %zu", i);
        file_map_close(&map);
        struct npy_file f;
        EXPECT_OK(npy_file_open(&f, path, cases[i].type, cases[i].n_dims));
        EXPECT(f.dims[0] == cases[i].dims[0] && f.dims[1] == cases[i].dims[1], "shape of case %zu", i);
        EXPECT(memcmp(f.data, numbers, n) == 0, "case %zu read back", i);
        npy_file_close(&f);
    }
}

/* A file with this header, of version 1 or 2, and n_numbers numbers. */
static struct status open_made(int version, const char *text, size_t n_numbers)
{
    static const int32_t zeros[8];
    unsigned char head[12] = "\x93NUMPY";
    size_t n = strlen(text);
    head[6] = (unsigned char)version;
    head[8] = (unsigned char)n;
    FILE *file = fopen(path, "wb");
    EXPECT(file != NULL, "%s", path);
    fwrite(head, 1, version == 1 ? 10 : 12, file);
    fwrite(text, 1, n, file);
    fwrite(zeros, 4, n_numbers, file);
    fclose(file);
    struct npy_file f;
    struct status status = npy_file_open(&f, path, "<i4", 1);
    if (!failed(status)) {
        npy_file_close(&f);
    }
    return status;
}

static void others_are_refused(void)
{
    EXPECT_OK(open_made(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n", 2));
    EXPECT_OK(open_made(2, "{'fortran_order': False, 'shape': ( 2,), 'descr': '<i4'}\n   ", 2));
    EXPECT_ERROR(open_made(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }\n", 2), STATUS_DATA,
                 "numbers of type '<i8'");
    EXPECT_ERROR(open_made(1, "{'descr': '<i4', 'fortran_order': True, 'shape': (2,), } \n", 2), STATUS_DATA,
                 "Fortran");
    EXPECT_ERROR(open_made(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (1,2), }", 2), STATUS_DATA,
                 "1 dimension");
    EXPECT_ERROR(open_made(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (-2,), }", 2), STATUS_DATA,
                 "the shape");
    EXPECT_ERROR(open_made(1, "{'descr': '<i4', 'fortran_order': False,                  ", 2), STATUS_DATA,
                 "lacks");
    EXPECT_ERROR(open_made(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (9,), }\n", 2), STATUS_DATA,
                 "36 bytes of numbers, but the file has 8");
    EXPECT_ERROR(open_made(3, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n", 2), STATUS_DATA,
                 "version 3");
    EXPECT(truncate(path, 40) == 0, "truncate");
    struct npy_file f;
    EXPECT_ERROR(npy_file_open(&f, path, "<i4", 1), STATUS_DATA, "version 3");
    EXPECT(truncate(path, 5) == 0, "truncate");
    EXPECT_ERROR(npy_file_open(&f, path, "<i4", 1), STATUS_DATA, "not an array of numpy");
    EXPECT(unlink(path) == 0, "unlink");
    EXPECT_ERROR(npy_file_open(&f, path, "<i4", 1), STATUS_DATA, path);
}

static void expect_rows(int64_t n)
{
    struct npy_file f;
    EXPECT_OK(npy_file_open(&f, path, "<f4", 2));
    EXPECT(f.dims[0] == n && f.dims[1] == 3, "%lld rows of %lld", (long long)f.dims[0], (long long)f.dims[1]);
    for (int64_t i = 0; i < 3 * n; i++) {
        EXPECT(((const float *)f.data)[i] == (float)(i % 6), "number %lld", (long long)i);
    }
    npy_file_close(&f);
}

static void rows_grow(void)
{
    static const float rows[6] = {0, 1, 2, 3, 4, 5};
    struct npy_rows r;
    EXPECT_OK(npy_rows_open(&r, path, 3, false));
    expect_rows(0);
    EXPECT_OK(npy_rows_put(&r, rows, 2));
    expect_rows(2); /* before it is closed */
    EXPECT_OK(npy_rows_close(&r));
    EXPECT_OK(npy_rows_open(&r, path, 3, true));
    EXPECT_OK(npy_rows_put(&r, rows, 1));
    EXPECT_OK(npy_rows_close(&r));
    expect_rows(3);
    EXPECT_ERROR(npy_rows_open(&r, path, 4, true), STATUS_DATA, "has vectors of 3 numbers, not 4");
}

/* A writer that dies within a row leaves a file that is not complete, of which the rows before are read and
 * continued. */
static void rows_survive(void)
{
    static const float rows[6] = {0, 1, 2, 3, 4, 5};
    struct npy_file f;
    struct npy_rows r;
    FILE *torn = fopen(path, "a");
    EXPECT(torn != NULL && fwrite(rows, 1, 20, torn) == 20 && fclose(torn) == 0, "%s", path);
    EXPECT_ERROR(npy_file_open(&f, path, "<f4", 2), STATUS_DATA, "it was not written to its end");
    EXPECT_OK(npy_rows_map(&f, path));
    EXPECT(f.dims[0] == 3, "%lld rows", (long long)f.dims[0]);
    npy_file_close(&f);
    EXPECT_OK(npy_rows_open(&r, path, 3, true));
    r.syncs = true;
    EXPECT_OK(npy_rows_put(&r, rows + 3, 1));
    EXPECT_OK(npy_rows_close(&r));
    expect_rows(4);
}

int main(void)
{
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    snprintf(path, sizeof path, "%s/a.npy", directory);
    bytes_are_numpys();
    others_are_refused();
    rows_grow();
    rows_survive();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
