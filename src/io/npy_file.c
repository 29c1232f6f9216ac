#include "io/npy_file.h"

#include "core/integers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAGIC_BYTES = 6, ALIGNMENT = 64, NUMBER_BYTES = 4, HEADER_BYTES = 256 };
static const char MAGIC[] = "\x93NUMPY";

/* ---- reading ---- */

static struct status refuse(const char *path, const char *what)
{
    return status_error(STATUS_DATA, "%s: %s", path, what);
}

/* The header's text: its place after the magic bytes and the version, and its length. */
static struct status find_header(const struct file_map *map, const char *path, size_t *begin, size_t *n)
{
    const unsigned char *at = map->data;
    if (map->n < MAGIC_BYTES + 4 || memcmp(at, MAGIC, MAGIC_BYTES) != 0) {
        return refuse(path, "this is not an array of numpy: it does not begin with \\x93NUMPY");
    }
    int version = at[MAGIC_BYTES];
    if (version == 1) {
        *begin = MAGIC_BYTES + 4;
        *n = at[8] | (size_t)at[9] << 8;
    } else if (version == 2 && map->n >= MAGIC_BYTES + 6) {
        *begin = MAGIC_BYTES + 6;
        *n = at[8] | (size_t)at[9] << 8 | (size_t)at[10] << 16 | (size_t)at[11] << 24;
    } else {
        return status_error(STATUS_DATA, "%s: version %d of numpy's format; 1 and 2 are read", path, version);
    }
    return *n <= map->n - *begin ? status_ok() : refuse(path, "the file ends inside its header");
}

/* The text after 'key': and blanks in the header; NULL: there is no such key. */
static const char *value_of(const char *header, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *at = strstr(header, quoted);
    return at == NULL ? NULL : at + strlen(quoted) + strspn(at + strlen(quoted), " ");
}

/* "(3,)" or "(3, 2)". */
static bool read_shape(const char *at, int n_dims, int64_t dims[NPY_MOST_DIMS])
{
    dims[1] = 1;
    for (int i = 0; i < n_dims; i++) {
        char *end;
        if (*at != (i == 0 ? '(' : ',')) {
            return false;
        }
        at += 1 + strspn(at + 1, " ");
        dims[i] = strtoll(at, &end, 10);
        if (end == at || *at == '-' || *at == '+' || dims[i] > (int64_t)1 << 40) {
            return false;
        }
        at = end;
    }
    return strncmp(at, n_dims == 1 ? ",)" : ")", n_dims == 1 ? 2 : 1) == 0;
}

static struct status read_header(struct npy_file *f, const char *path, const char *header, const char *type,
                                 int n_dims)
{
    const char *descr = value_of(header, "descr"), *order = value_of(header, "fortran_order"),
               *shape = value_of(header, "shape");
    if (descr == NULL || order == NULL || shape == NULL) {
        return refuse(path, "the header lacks 'descr', 'fortran_order' or 'shape'");
    }
    FAIL_IF(descr[0] != '\'' || strncmp(descr + 1, type, strlen(type)) != 0 ||
                descr[1 + strlen(type)] != '\'',
            STATUS_DATA, "%s: numbers of type %.8s; this array needs '%s'", path, descr, type);
    if (strncmp(order, "False", 5) != 0) {
        return refuse(path, "the array is in Fortran's order; C's is needed");
    }
    return read_shape(shape, n_dims, f->dims)
               ? status_ok()
               : status_error(STATUS_DATA, "%s: the shape %.40s; %d dimension%s are needed", path, shape,
                              n_dims, n_dims == 1 ? "" : "s");
}

/* With `grows` there may be bytes after the numbers. */
static struct status parse(struct npy_file *f, const char *path, const char *type, int n_dims, bool grows)
{
    size_t begin = 0, n = 0;
    char header[HEADER_BYTES];
    TRY(find_header(&f->map, path, &begin, &n));
    FAIL_IF(n >= sizeof header || (begin + n) % NUMBER_BYTES != 0, STATUS_DATA,
            "%s: a header of %zu bytes; numpy's own for such arrays have 118", path, n);
    memcpy(header, f->map.data + begin, n);
    header[n] = '\0';
    TRY(read_header(f, path, header, type, n_dims));
    const uint64_t wanted = (uint64_t)f->dims[0] * (uint64_t)f->dims[1] * NUMBER_BYTES,
                   has = f->map.n - begin - n;
    f->data = f->map.data + begin + n;
    return wanted == has || (grows && wanted < has)
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s: the header says %" PRIu64 " bytes of numbers, but the file has "
                              "%" PRIu64 ": it was not written to its end",
                              path, wanted, has);
}

struct status npy_file_parse(struct npy_file *f, const char *path, const char *type, int n_dims)
{
    return parse(f, path, type, n_dims, false);
}

static struct status open_file(struct npy_file *f, const char *path, const char *type, int n_dims, bool grows)
{
    *f = (struct npy_file){0};
    TRY(file_map_open(&f->map, path));
    struct status status = parse(f, path, type, n_dims, grows);
    if (failed(status)) {
        npy_file_close(f);
    }
    return status;
}

struct status npy_file_open(struct npy_file *f, const char *path, const char *type, int n_dims)
{
    return open_file(f, path, type, n_dims, false);
}

struct status npy_rows_map(struct npy_file *f, const char *path)
{
    return open_file(f, path, "<f4", 2, true);
}

void npy_file_close(struct npy_file *f)
{
    file_map_close(&f->map);
    *f = (struct npy_file){0};
}

/* ---- writing ---- */

/* The header, padded with blanks until the numbers begin at a multiple of 64 bytes. */
static size_t make_header(char header[HEADER_BYTES], const char *type, int n_dims, const int64_t *dims)
{
    char shape[48];
    size_t begin = MAGIC_BYTES + 4, n;
    snprintf(shape, sizeof shape, n_dims == 1 ? "(%" PRId64 ",)" : "(%" PRId64 ", %" PRId64 ")", dims[0],
             n_dims == 1 ? 0 : dims[1]);
    memset(header, ' ', HEADER_BYTES);
    n = (size_t)snprintf(header + begin, HEADER_BYTES - begin,
                         "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    header[begin + n] = ' ';
    size_t end = (size_t)int_round_up((int64_t)(begin + n + 1), ALIGNMENT);
    header[end - 1] = '\n';
    memcpy(header, MAGIC, MAGIC_BYTES);
    header[MAGIC_BYTES] = 1;
    header[MAGIC_BYTES + 1] = 0;
    header[MAGIC_BYTES + 2] = (char)((end - begin) & 0xff);
    header[MAGIC_BYTES + 3] = (char)((end - begin) >> 8);
    return end;
}

struct status npy_file_create(struct file_writer *w, const char *path, const char *type, int n_dims,
                              const int64_t *dims)
{
    char header[HEADER_BYTES];
    size_t n = make_header(header, type, n_dims, dims);
    TRY(file_writer_open(w, path));
    file_writer_put(w, header, n);
    return status_ok();
}

/* Always 128 bytes: the numbers of the shape have at most 13 digits and 7. */
static size_t rows_header(char header[HEADER_BYTES], const struct npy_rows *r)
{
    return make_header(header, "<f4", 2, (const int64_t[]){r->n, r->width});
}

/* Takes the rows that are there. */
static struct status count_rows(struct npy_rows *r)
{
    struct npy_file f;
    TRY(npy_rows_map(&f, r->path));
    struct status s = f.dims[1] == r->width
                          ? status_ok()
                          : status_error(STATUS_DATA, "%s has vectors of %" PRId64 " numbers, not %" PRId64,
                                         r->path, f.dims[1], r->width);
    r->n = f.dims[0];
    npy_file_close(&f);
    return s;
}

struct status npy_rows_open(struct npy_rows *r, const char *path, int64_t width, bool appends)
{
    *r = (struct npy_rows){.path = path, .fd = -1, .width = width};
    TRY(appends && file_has_bytes(path) ? count_rows(r) : status_ok());
    r->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (r->n == 0 ? O_TRUNC : 0), 0666);
    FAIL_IF(r->fd < 0, STATUS_IO, "cannot write %s: %s", path, strerror(errno));
    char header[HEADER_BYTES];
    size_t n_bytes = rows_header(header, r) + (size_t)(r->n * width * NUMBER_BYTES);
    FAIL_IF(r->n > 0 && ftruncate(r->fd, (off_t)n_bytes) != 0, STATUS_IO, "cannot shorten %s: %s", path,
            strerror(errno)); /* bytes that an interrupted writer left */
    return npy_rows_put(r, NULL, 0);
}

struct status npy_rows_put(struct npy_rows *r, const float *rows, int64_t n)
{
    char header[HEADER_BYTES];
    int64_t row_bytes = r->width * NUMBER_BYTES;
    int64_t at = (int64_t)rows_header(header, r) + r->n * row_bytes;
    TRY(file_write_at(r->fd, r->path, rows, (size_t)(n * row_bytes), at));
    FAIL_IF(r->syncs && fsync(r->fd) != 0, STATUS_IO, "fsync of %s failed: %s", r->path, strerror(errno));
    r->n += n;
    return file_write_at(r->fd, r->path, header, rows_header(header, r), 0);
}

struct status npy_rows_close(struct npy_rows *r)
{
    bool lost = r->fd >= 0 && close(r->fd) != 0;
    r->fd = -1;
    return lost ? status_error(STATUS_IO, "writing %s failed: %s", r->path, strerror(errno)) : status_ok();
}
