#include "io/tf_bundle.h"

#include "core/hash.h"
#include "io/protobuf.h"

#include <stdlib.h>
#include <string.h>

/* BundleHeaderProto, BundleEntryProto, TensorShapeProto and its Dim, by their field numbers. */
enum { HEADER_NUM_SHARDS = 1, HEADER_ENDIANNESS = 2 };
enum {
    ENTRY_DTYPE = 1,
    ENTRY_SHAPE = 2,
    ENTRY_SHARD_ID = 3,
    ENTRY_OFFSET = 4,
    ENTRY_SIZE = 5,
    ENTRY_CRC32C = 6,
    ENTRY_SLICES = 7
};
enum { SHAPE_DIM = 2, SHAPE_UNKNOWN_RANK = 3, DIM_SIZE = 1 };

#define NO_TYPE "has a dtype that kiln does not support"

/* DataType of tensorflow/core/framework/types.proto. */
static const struct bundle_dtype {
    uint64_t number;
    const char *label;
    size_t bytes; /* size of an element; 0: it varies */
    enum dtype dtype;
    const char *unreadable;
} dtypes[] = {
    {1, "float32", 4, DTYPE_F32, NULL},
    {2, "float64", 8, DTYPE_F64, NULL},
    {3, "int32", 4, DTYPE_I32, NULL},
    {4, "uint8", 1, DTYPE_U8, NULL},
    {5, "int16", 2, DTYPE_U8, NO_TYPE},
    {6, "int8", 1, DTYPE_U8, NO_TYPE},
    {7, "string", 0, DTYPE_U8, "holds strings"},
    {8, "complex64", 8, DTYPE_U8, NO_TYPE},
    {9, "int64", 8, DTYPE_I64, NULL},
    {10, "bool", 1, DTYPE_U8, NULL},
    {14, "bfloat16", 2, DTYPE_BF16, NULL},
    {17, "uint16", 2, DTYPE_U8, NO_TYPE},
    {18, "complex128", 16, DTYPE_U8, NO_TYPE},
    {19, "float16", 2, DTYPE_F16, NULL},
    {22, "uint32", 4, DTYPE_U8, NO_TYPE},
    {23, "uint64", 8, DTYPE_U8, NO_TYPE},
};

static const struct bundle_dtype unknown_dtype = {0, "unknown", 0, DTYPE_U8, NO_TYPE};

/* A BundleEntryProto. */
struct entry {
    const struct bundle_dtype *dtype;
    uint64_t shard, offset, bytes;
    uint32_t crc;
    bool has_slices;
    bool is_possible; /* the shape is valid */
};

static bool read_dim(struct span dim, int64_t *size)
{
    struct protobuf_field f;
    *size = 0;
    while (protobuf_read(&f, &dim)) {
        *size = f.number == DIM_SIZE && f.type == PROTOBUF_VARINT ? (int64_t)f.value : *size;
    }
    return !dim.failed && *size >= 0;
}

static bool read_shape(struct stored_tensor *t, struct span shape)
{
    struct protobuf_field f;
    while (protobuf_read(&f, &shape)) {
        if (f.number == SHAPE_DIM && f.type == PROTOBUF_BYTES) {
            if (t->n_dims == STORED_MAX_DIMS || !read_dim(f.bytes, &t->dims[t->n_dims++])) {
                return false;
            }
        } else if (f.number == SHAPE_UNKNOWN_RANK && f.value != 0) {
            return false;
        }
    }
    return !shape.failed;
}

static const struct bundle_dtype *find_dtype(uint64_t number)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (dtypes[i].number == number) {
            return &dtypes[i];
        }
    }
    return &unknown_dtype;
}

static bool read_entry(struct entry *e, struct stored_tensor *t, struct span message)
{
    struct protobuf_field f;
    *e = (struct entry){.dtype = &unknown_dtype, .is_possible = true};
    while (protobuf_read(&f, &message)) {
        bool is_number = f.type == PROTOBUF_VARINT;
        if (f.number == ENTRY_DTYPE && is_number) {
            e->dtype = find_dtype(f.value);
        } else if (f.number == ENTRY_SHAPE && f.type == PROTOBUF_BYTES) {
            e->is_possible = e->is_possible && t->n_dims == 0 && read_shape(t, f.bytes);
        } else if (f.number == ENTRY_SHARD_ID && is_number) {
            e->shard = f.value;
        } else if (f.number == ENTRY_OFFSET && is_number) {
            e->offset = f.value;
        } else if (f.number == ENTRY_SIZE && is_number) {
            e->bytes = f.value;
        } else if (f.number == ENTRY_CRC32C && f.type == PROTOBUF_32) {
            e->crc = hash_unmask_crc((uint32_t)f.value);
        } else if (f.number == ENTRY_SLICES) {
            e->has_slices = true;
        }
    }
    return !message.failed;
}

static struct status wrong(const char *source, const struct sorted_table_entry *entry, const char *what)
{
    return status_error(STATUS_DATA, "%s: tensor %.80s %s", source, entry->key, what);
}

/* Fills in everything but the data, which needs the shard. */
static struct status describe(struct entry *e, struct stored_tensor *t, const struct tf_bundle *b,
                              const struct sorted_table_entry *entry, const char *source)
{
    *t = (struct stored_tensor){.name = entry->key};
    FAIL_IF(!stored_tensor_name_is_printable(entry->key, entry->key_bytes), STATUS_DATA,
            "%s: a tensor's name has control characters", source);
    if (!read_entry(e, t, bytes_span(entry->value, entry->value_bytes))) {
        return wrong(source, entry, "has a damaged entry");
    }
    t->dtype = e->dtype->dtype;
    t->dtype_label = e->dtype->label;
    t->unreadable = e->has_slices ? "is stored in slices" : e->dtype->unreadable;
    if (!e->is_possible || !stored_tensor_make_dense(t, e->dtype->bytes > 0 ? e->dtype->bytes : 1)) {
        return wrong(source, entry, "has an impossible shape");
    }
    if (e->has_slices) {
        return status_ok();
    }
    if (e->shard >= (uint64_t)b->n_shards) {
        return wrong(source, entry, "is in a shard that the checkpoint does not have");
    }
    if (e->dtype->bytes == 0) {
        t->bytes = e->bytes <= INT64_MAX ? (size_t)e->bytes : 0;
    } else if (t->bytes != e->bytes) {
        return wrong(source, entry, "has another size than its shape");
    }
    return status_ok();
}

static struct status read_header(struct tf_bundle *b, const char *source)
{
    struct protobuf_field f;
    const struct sorted_table_entry *header = b->table.n > 0 ? &b->table.entries[0] : NULL;
    FAIL_IF(header == NULL || header->key_bytes != 0, STATUS_DATA,
            "%s is not the index of a TensorFlow checkpoint: it has no header", source);
    struct span message = bytes_span(header->value, header->value_bytes);
    uint64_t n_shards = 0, endianness = 0;
    while (protobuf_read(&f, &message)) {
        n_shards = f.number == HEADER_NUM_SHARDS ? f.value : n_shards;
        endianness = f.number == HEADER_ENDIANNESS ? f.value : endianness;
    }
    FAIL_IF(message.failed || n_shards == 0 || n_shards > BUNDLE_MAX_SHARDS, STATUS_DATA,
            "%s: its header is damaged, or says that it has %llu shards", source,
            (unsigned long long)n_shards);
    FAIL_IF(endianness != 0, STATUS_DATA,
            "%s was written on a big-endian machine, whose numbers kiln does not read", source);
    b->n_shards = (int)n_shards;
    return status_ok();
}

/* Source of the bytes of shards: files that are opened when first needed, or the caller. */
struct source {
    const char *name; /* name of the index, for messages */
    const char *prefix;
    const struct span *given; /* [n_given] */
    int n_given;
};

static struct status view_shard(struct span *bytes, struct tf_bundle *b, const struct source *from, int i)
{
    if (from->prefix == NULL) {
        *bytes = from->given[i];
        return status_ok();
    }
    struct file_map *map = &b->shards[i];
    if (map->data == NULL) {
        char path[FILE_PATH_BYTES];
        int n = snprintf(path, sizeof path, "%s.data-%05d-of-%05d", from->prefix, i, b->n_shards);
        FAIL_IF(n >= (int)sizeof path, STATUS_USAGE, "the path %.60s... is longer than %d bytes", path,
                FILE_PATH_BYTES - 1);
        TRY(status_context(file_map_open(map, path), "%s", from->name));
    }
    *bytes = bytes_span(map->data, map->n);
    return status_ok();
}

static struct status add_tensor(struct tf_bundle *b, const struct sorted_table_entry *entry,
                                const struct source *from)
{
    struct entry e = {0};
    struct span shard = {0};
    struct stored_tensor *t = &b->tensors[b->n];
    TRY(describe(&e, t, b, entry, from->name));
    b->n++;
    if (e.has_slices || t->bytes == 0) {
        return status_ok();
    }
    TRY(view_shard(&shard, b, from, (int)e.shard));
    if (e.offset > shard.n || t->bytes > shard.n - e.offset) {
        return wrong(from->name, entry, "is not inside its shard (is that file cut short?)");
    }
    t->data = t->storage = shard.data + e.offset;
    t->storage_bytes = t->bytes;
    t->has_crc = true;
    t->crc = e.crc;
    return status_ok();
}

/* Keys that begin with a NUL are slices; the tensor they belong to has an entry of its own. */
static struct status read_bundle(struct tf_bundle *b, const struct source *from, struct span index)
{
    TRY(sorted_table_parse(&b->table, index.data, index.n, from->name));
    TRY(read_header(b, from->name));
    FAIL_IF(from->prefix == NULL && from->n_given != b->n_shards, STATUS_DATA,
            "%s names %d shards, but %d were given", from->name, b->n_shards, from->n_given);
    b->shards = calloc((size_t)b->n_shards + 1, sizeof *b->shards);
    b->tensors = calloc(b->table.n, sizeof *b->tensors);
    FAIL_IF(b->shards == NULL || b->tensors == NULL, STATUS_MEMORY,
            "out of memory for the list of tensors of %s", from->name);
    for (size_t i = 1; i < b->table.n; i++) {
        const struct sorted_table_entry *entry = &b->table.entries[i];
        if (entry->key[0] != '\0') {
            TRY(add_tensor(b, entry, from));
        }
    }
    return status_ok();
}

struct status tf_bundle_parse(struct tf_bundle *b, struct span index, const struct span *shards, int n_shards,
                              const char *source)
{
    const struct source from = {.name = source, .given = shards, .n_given = n_shards};
    *b = (struct tf_bundle){0};
    struct status s = read_bundle(b, &from, index);
    if (failed(s)) {
        tf_bundle_close(b);
    }
    return s;
}

struct status tf_bundle_open(struct tf_bundle *b, const char *prefix)
{
    char path[FILE_PATH_BYTES];
    const struct source from = {.name = path, .prefix = prefix};
    *b = (struct tf_bundle){0};
    FAIL_IF(snprintf(path, sizeof path, "%s.index", prefix) >= (int)sizeof path, STATUS_USAGE,
            "the path %.60s... is longer than %d bytes", path, FILE_PATH_BYTES - 1);
    TRY(file_map_open(&b->index, path));
    struct status s = read_bundle(b, &from, bytes_span(b->index.data, b->index.n));
    if (failed(s)) {
        tf_bundle_close(b);
    }
    return s;
}

void tf_bundle_close(struct tf_bundle *b)
{
    for (int i = 0; b->shards != NULL && i < b->n_shards; i++) {
        file_map_close(&b->shards[i]);
    }
    free(b->shards);
    free(b->tensors);
    sorted_table_close(&b->table);
    file_map_close(&b->index);
    *b = (struct tf_bundle){0};
}
