#include "io/safetensors.h"

#include "core/bytes.h"
#include "core/hash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, KEY_BYTES = 256, SUM_BYTES = 9 };

/* Prefixes of the metadata's keys about a tensor; the name of the tensor follows. */
static const char SLICE[] = "slice.", SUM[] = SAFETENSORS_SUM;

static const struct {
    const char *label;
    enum dtype dtype;
} labels[] = {
    {"F64", DTYPE_F64},      {"F32", DTYPE_F32},      {"F16", DTYPE_F16}, {"BF16", DTYPE_BF16},
    {"I64", DTYPE_I64},      {"I32", DTYPE_I32},      {"U8", DTYPE_U8},   {"BOOL", DTYPE_U8},
    {"F8_E4M3", DTYPE_E4M3}, {"F8_E5M2", DTYPE_E5M2},
};

/* The first label that fits: a tensor of u8 is written as U8, not as BOOL. */
static const char *label_of(enum dtype dtype)
{
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        if (labels[i].dtype == dtype) {
            return labels[i].label;
        }
    }
    return NULL;
}

static struct status parse_dtype(struct stored_tensor *e, const json_t *value, const char *source)
{
    for (size_t i = 0; json_is_string(value) && i < sizeof labels / sizeof *labels; i++) {
        if (strcmp(json_string_value(value), labels[i].label) == 0) {
            e->dtype = labels[i].dtype;
            e->dtype_label = labels[i].label;
            return status_ok();
        }
    }
    return status_error(STATUS_DATA,
                        "%s: tensor %.80s: unknown dtype; kiln reads F64, F32, F16, BF16, F8_E4M3, F8_E5M2, "
                        "I64, I32, U8 and BOOL",
                        source, e->name);
}

/* Fills dims and sets *count to their product. */
static struct status parse_shape(struct stored_tensor *e, const json_t *value, const char *source,
                                 uint64_t *count)
{
    FAIL_IF(!json_is_array(value) || json_array_size(value) > TENSOR_MAX_DIMS, STATUS_DATA,
            "%s: tensor %.80s: the shape must be a list of at most %d numbers", source, e->name,
            TENSOR_MAX_DIMS);
    e->n_dims = (int)json_array_size(value);
    *count = 1;
    for (int i = 0; i < e->n_dims; i++) {
        const json_t *dim = json_array_get(value, (size_t)i);
        e->dims[i] = json_integer_value(dim);
        FAIL_IF(!json_is_integer(dim) || e->dims[i] < 0 ||
                    !bytes_multiply(*count, (uint64_t)e->dims[i], count) || *count > INT64_MAX,
                STATUS_DATA, "%s: tensor %.80s: dim %d of its shape is not a possible size", source, e->name,
                i);
    }
    return status_ok();
}

static struct status parse_range(struct stored_tensor *e, const json_t *value, const char *source,
                                 struct span buffer)
{
    const json_t *first = json_array_get(value, 0);
    const json_t *last = json_array_get(value, 1);
    int64_t begin = json_integer_value(first);
    int64_t end = json_integer_value(last);
    FAIL_IF(json_array_size(value) != 2 || !json_is_integer(first) || !json_is_integer(last) || begin < 0 ||
                end < begin || (uint64_t)end > buffer.n,
            STATUS_DATA,
            "%s: tensor %.80s: data_offsets must be [begin, end) in the %zu bytes after the "
            "header (is the file cut short?)",
            source, e->name, buffer.n);
    e->data = buffer.data + begin;
    e->bytes = (size_t)(end - begin);
    return status_ok();
}

static struct status parse_entry(struct stored_tensor *e, const char *name, const json_t *value,
                                 const char *source, struct span buffer)
{
    *e = (struct stored_tensor){.name = name};
    FAIL_IF(!stored_tensor_name_is_printable(name, strlen(name)), STATUS_DATA,
            "%s: a tensor's name is empty or has control characters", source);
    const json_t *dtype = json_object_get(value, "dtype");
    const json_t *shape = json_object_get(value, "shape");
    const json_t *range = json_object_get(value, "data_offsets");
    FAIL_IF(json_object_size(value) != 3 || dtype == NULL || shape == NULL || range == NULL, STATUS_DATA,
            "%s: tensor %.80s must have exactly dtype, shape and data_offsets", source, name);
    uint64_t count = 0;
    uint64_t bytes;
    TRY(parse_dtype(e, dtype, source));
    TRY(parse_shape(e, shape, source, &count));
    TRY(parse_range(e, range, source, buffer));
    FAIL_IF(!bytes_multiply(count, dtype_bytes(e->dtype), &bytes) || bytes != e->bytes, STATUS_DATA,
            "%s: tensor %.80s: its data_offsets hold %zu bytes, which does not match its shape and dtype",
            source, name, e->bytes);
    e->storage = e->data;
    e->storage_bytes = e->bytes;
    CHECK(stored_tensor_make_dense(e, dtype_bytes(e->dtype)), "%s has an impossible shape", name);
    return status_ok();
}

static int compare_data(const void *a, const void *b)
{
    const struct stored_tensor *x = a;
    const struct stored_tensor *y = b;
    if (x->data != y->data) {
        return x->data < y->data ? -1 : 1;
    }
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Sorts the entries and checks that they tile the buffer: no hole, no overlap, nothing after the last. */
static struct status check_tiling(struct safetensors *f, const char *source, struct span buffer)
{
    const unsigned char *expected = buffer.data;
    if (f->n > 0) {
        qsort(f->entries, (size_t)f->n, sizeof *f->entries, compare_data);
    }
    for (int i = 0; i < f->n; i++) {
        const struct stored_tensor *e = &f->entries[i];
        FAIL_IF(e->data != expected, STATUS_DATA,
                "%s: tensor %.80s begins at byte %td of the data, but the one before it ends at %td", source,
                e->name, e->data - buffer.data, expected - buffer.data);
        expected += e->bytes;
    }
    FAIL_IF(expected != buffer.data + buffer.n, STATUS_DATA,
            "%s has %zu bytes of data, but its tensors use only the first %td", source, buffer.n,
            expected - buffer.data);
    return status_ok();
}

static struct status parse_metadata(struct safetensors *f, const json_t *value, const char *source)
{
    const char *key;
    json_t *text;
    FAIL_IF(!json_is_object(value), STATUS_DATA, "%s: __metadata__ must be an object", source);
    json_object_foreach((json_t *)value, key, text)
    {
        FAIL_IF(!json_is_string(text), STATUS_DATA,
                "%s: every value of __metadata__ must be a text, but that of %.80s is not", source, key);
    }
    f->metadata = value;
    return status_ok();
}

static struct status parse_entries(struct safetensors *f, const char *source, struct span buffer)
{
    const char *name;
    json_t *value;
    f->entries = calloc(json_object_size(f->header) + 1, sizeof *f->entries);
    FAIL_IF(f->entries == NULL, STATUS_MEMORY, "%s: out of memory for its %zu tensors", source,
            json_object_size(f->header));
    json_object_foreach(f->header, name, value)
    {
        if (strcmp(name, "__metadata__") == 0) {
            TRY(parse_metadata(f, value, source));
        } else {
            TRY(parse_entry(&f->entries[f->n++], name, value, source, buffer));
        }
    }
    return check_tiling(f, source, buffer);
}

struct status safetensors_parse(struct safetensors *f, const void *bytes, size_t n, const char *source)
{
    struct span s = bytes_span(bytes, n);
    uint64_t header_bytes = bytes_read_u64(&s);
    *f = (struct safetensors){0};
    FAIL_IF(s.failed || header_bytes > bytes_left(&s), STATUS_DATA,
            "%s is not a safetensors file or is cut short: it has %zu bytes", source, n);
    FAIL_IF(header_bytes > SAFETENSORS_MAX_HEADER_BYTES, STATUS_DATA,
            "%s: its header of %llu bytes exceeds the limit of %d", source, (unsigned long long)header_bytes,
            SAFETENSORS_MAX_HEADER_BYTES);
    const char *header = (const char *)bytes_take(&s, (size_t)header_bytes);
    if (header_bytes == 0 || header[0] != '{') {
        return status_error(STATUS_DATA, "%s is not a safetensors file: its header does not begin with '{'",
                            source);
    }
    struct status status = json_parse(&f->header, header, (size_t)header_bytes, source);
    if (!failed(status)) {
        status = parse_entries(f, source, bytes_span(s.data + s.at, bytes_left(&s)));
    }
    if (failed(status)) {
        safetensors_close(f);
    }
    return status;
}

struct status safetensors_open(struct safetensors *f, const char *path)
{
    struct file_map map;
    *f = (struct safetensors){0};
    TRY(file_map_open(&map, path));
    struct status s = safetensors_parse(f, map.data, map.n, path);
    if (failed(s)) {
        file_map_close(&map);
        return s;
    }
    f->map = map;
    s = safetensors_check_sums(f, path);
    if (failed(s)) {
        safetensors_close(f);
    }
    return s;
}

void safetensors_close(struct safetensors *f)
{
    free(f->entries);
    json_decref(f->header);
    file_map_close(&f->map);
    *f = (struct safetensors){0};
}

const struct stored_tensor *safetensors_find(const struct safetensors *f, const char *name)
{
    return stored_tensor_find(f->entries, f->n, name);
}

/* The key of the metadata; false if a name is too long to have one. */
static bool make_key(char out[KEY_BYTES], const char *kind, const char *name)
{
    int n = snprintf(out, KEY_BYTES, "%s%s", kind, name);
    return n > 0 && n < KEY_BYTES;
}

/* The metadata's text about a tensor, under the key KIND NAME; NULL: there is none. */
static const char *find_text(const struct safetensors *f, const char *kind, const char *name)
{
    char key[KEY_BYTES];
    return f->metadata != NULL && make_key(key, kind, name)
               ? json_string_value(json_object_get(f->metadata, key))
               : NULL;
}

const char *safetensors_slice_text(const struct safetensors *f, const struct stored_tensor *e)
{
    return find_text(f, SLICE, e->name);
}

static void format_sum(char out[SUM_BYTES], uint32_t sum)
{
    snprintf(out, SUM_BYTES, "%08" PRIx32, sum);
}

uint32_t safetensors_sum(tensor t)
{
    CHECK(tensor_is_dense(t), "a sum of strided values");
    return hash_crc32c(0, t.data, tensor_bytes(t));
}

bool safetensors_has_sums(const struct safetensors *f)
{
    const char *key;
    json_t *text;
    json_object_foreach((json_t *)f->metadata, key, text)
    {
        if (strncmp(key, SUM, sizeof SUM - 1) == 0) {
            return true;
        }
    }
    return false;
}

struct status safetensors_check_sums(const struct safetensors *f, const char *source)
{
    char sum[SUM_BYTES];
    bool has_sums = safetensors_has_sums(f);
    for (int i = 0; i < f->n && has_sums; i++) {
        const struct stored_tensor *e = &f->entries[i];
        const char *wanted = find_text(f, SUM, e->name);
        format_sum(sum, hash_crc32c(0, e->data, e->bytes));
        FAIL_IF(wanted == NULL || strcmp(sum, wanted) != 0, STATUS_DATA,
                "%s: the CRC-32C of tensor %.80s is %s, but its metadata says %.20s: the "
                "file is damaged, so copy it or make it again; a program that changed the "
                "tensors must save them without the metadata \"%s*\"",
                source, e->name, sum, wanted == NULL ? "nothing" : wanted, SUM);
    }
    return status_ok();
}

static json_t *describe(const struct safetensors_item *item, uint64_t begin)
{
    tensor t = item->shape;
    json_t *dims = json_array();
    for (int i = 0; i < t.n_dims; i++) {
        if (json_array_append_new(dims, json_integer(t.dims[i])) != 0) {
            json_decref(dims);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", label_of(t.dtype), "shape", dims, "data_offsets",
                     (json_int_t)begin, (json_int_t)(begin + tensor_bytes(t)));
}

static bool describe_text(json_t *metadata, const char *kind, const struct safetensors_item *item,
                          const char *text)
{
    char key[KEY_BYTES];
    CHECK(make_key(key, kind, item->name), "a name too long: %s", item->name);
    return json_object_set_new(metadata, key, json_string(text)) == 0;
}

static bool describe_more(json_t *metadata, const struct safetensors_item *item)
{
    char sum[SUM_BYTES];
    bool complete = item->slice == NULL || describe_text(metadata, SLICE, item, item->slice);
    if (item->summed) {
        format_sum(sum, item->sum);
        complete &= describe_text(metadata, SUM, item, sum);
    }
    return complete;
}

/* The length and the header, padded so that the data starts at a multiple of 8; free() it. */
static struct status make_header(char **header, size_t *header_bytes, const struct safetensors_item *items,
                                 int n)
{
    json_t *root = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    bool complete = root != NULL;
    uint64_t begin = 0;
    for (int i = 0; i < n; i++) {
        CHECK(items[i].shape.n_dims > 0, "%s has no shape", items[i].name);
        complete &= json_object_set_new(root, items[i].name, describe(&items[i], begin)) == 0;
        complete &= describe_more(json_object_get(root, "__metadata__"), &items[i]);
        begin += tensor_bytes(items[i].shape);
    }
    size_t text_bytes = complete ? json_dumpb(root, NULL, 0, JSON_COMPACT) : 0;
    size_t padded = (text_bytes + 7) / 8 * 8;
    CHECK(padded <= SAFETENSORS_MAX_HEADER_BYTES, "a header of %zu bytes for %d tensors", padded, n);
    *header_bytes = LENGTH_BYTES + padded;
    *header = text_bytes == 0 ? NULL : malloc(*header_bytes);
    if (*header != NULL) {
        bytes_store_u64(*header, padded);
        json_dumpb(root, *header + LENGTH_BYTES, text_bytes, JSON_COMPACT);
        memset(*header + LENGTH_BYTES + text_bytes, ' ', padded - text_bytes);
    }
    json_decref(root);
    return *header == NULL ? status_error(STATUS_MEMORY, "out of memory for the header of %d tensors", n)
                           : status_ok();
}

struct status safetensors_writer_open(struct safetensors_writer *w, const char *path,
                                      const struct safetensors_item *items, int n)
{
    char *header;
    size_t header_bytes;
    *w = (struct safetensors_writer){.items = items, .n = n};
    TRY(make_header(&header, &header_bytes, items, n));
    struct status s = file_writer_open(&w->file, path);
    if (!failed(s)) {
        file_writer_put(&w->file, header, header_bytes);
    }
    free(header);
    return s;
}

void safetensors_writer_put(struct safetensors_writer *w, tensor t)
{
    enum { CHUNK = 4096 };
    unsigned char converted[CHUNK * sizeof(double)];
    CHECK(w->next < w->n, "more tensors than the %d announced", w->n);
    const struct safetensors_item *item = &w->items[w->next++];
    CHECK(tensor_is_dense(t) && tensor_same_shape(t, item->shape) &&
              stored_tensor_converts(t.dtype, item->shape.dtype),
          "%s is not what was announced", item->name);
    if (t.dtype == item->shape.dtype) {
        file_writer_put(&w->file, t.data, tensor_bytes(t));
        return;
    }
    const unsigned char *from = t.data;
    for (int64_t left = tensor_count(t); left > 0; left -= CHUNK) {
        int64_t n = left < CHUNK ? left : CHUNK;
        stored_tensor_convert(item->shape.dtype, converted, t.dtype, from, n);
        file_writer_put(&w->file, converted, (size_t)n * dtype_bytes(item->shape.dtype));
        from += (size_t)n * dtype_bytes(t.dtype);
    }
}

struct status safetensors_writer_commit(struct safetensors_writer *w)
{
    CHECK(w->next == w->n || failed(w->file.status), "%d tensors were announced, %d written", w->n, w->next);
    return file_writer_commit(&w->file);
}
