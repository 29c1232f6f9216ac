#include "io/gguf_file.h"

#include "core/bytes.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TENSORS = 1 << 18, MOST_PAIRS = 1 << 20, MOST_NAME = 1024, MOST_NAMES_BYTES = 64 << 20 };

struct reading {
    struct gguf_file *file;
    struct span span;
    const char *source;
    uint64_t alignment, data; /* alignment of tensors; offset of the first one in the file */
    uint64_t used;            /* bytes of the data up to the end of the tensor before */
};

static struct status damaged(const struct reading *r, const char *what)
{
    return status_error(STATUS_DATA, "%s: %s at byte %zu: it is cut short, damaged, or no GGUF file",
                        r->source, what, r->span.at);
}

/* ---- pairs, which are skipped ---- */

static const unsigned char sizes[GGUF_N_VALUES] = {
    [GGUF_VALUE_U8] = 1,  [GGUF_VALUE_I8] = 1,  [GGUF_VALUE_U16] = 2, [GGUF_VALUE_I16] = 2,
    [GGUF_VALUE_U32] = 4, [GGUF_VALUE_I32] = 4, [GGUF_VALUE_F32] = 4, [GGUF_VALUE_BOOL] = 1,
    [GGUF_VALUE_U64] = 8, [GGUF_VALUE_I64] = 8, [GGUF_VALUE_F64] = 8,
};

static void skip_texts(struct span *s, uint64_t n)
{
    for (; n > 0 && !s->failed; n--) {
        (void)bytes_take_items(s, bytes_read_u64(s), 1);
    }
}

/* A value, or the list of n values of a type.  Lists of lists are not known to any model. */
static struct status skip_values(struct reading *r, uint32_t type, uint64_t n)
{
    if (type >= GGUF_N_VALUES || type == GGUF_VALUE_ARRAY) {
        return damaged(r, "a value of an unknown type");
    }
    if (type == GGUF_VALUE_TEXT) {
        skip_texts(&r->span, n);
    } else {
        (void)bytes_take_items(&r->span, n, sizes[type]);
    }
    return r->span.failed ? damaged(r, "a value") : status_ok();
}

static struct status take_alignment(struct reading *r)
{
    r->alignment = bytes_read_u32(&r->span);
    bool is_power = r->alignment > 0 && (r->alignment & (r->alignment - 1)) == 0;
    return is_power && r->alignment <= 1 << 20 ? status_ok() : damaged(r, "an impossible alignment");
}

/* Whether the key of n bytes ends so: its beginning is the architecture's name. */
static bool ends_with(const unsigned char *key, uint64_t n, const char *end)
{
    size_t n_end = strlen(end);
    return n >= n_end && memcmp(key + n - n_end, end, n_end) == 0;
}

static struct status read_pair(struct reading *r)
{
    static const char alignment[] = "general.alignment";
    uint64_t n = bytes_read_u64(&r->span);
    const unsigned char *key = bytes_take_items(&r->span, n, 1);
    uint32_t type = bytes_read_u32(&r->span);
    if (r->span.failed) {
        return damaged(r, "a key");
    }
    if (n == sizeof alignment - 1 && memcmp(key, alignment, n) == 0 && type == GGUF_VALUE_U32) {
        return take_alignment(r);
    }
    if (type == GGUF_VALUE_U32 && ends_with(key, n, ".attention.head_count")) {
        r->file->n_heads = bytes_read_u32(&r->span);
        return r->span.failed ? damaged(r, "a value") : status_ok();
    }
    if (type == GGUF_VALUE_F32 && (ends_with(key, n, ".attention.layer_norm_epsilon") ||
                                   ends_with(key, n, ".attention.layer_norm_rms_epsilon"))) {
        uint32_t bits = bytes_read_u32(&r->span);
        memcpy(&r->file->norm_eps, &bits, sizeof bits);
        return r->span.failed ? damaged(r, "a value") : status_ok();
    }
    if (type != GGUF_VALUE_ARRAY) {
        return skip_values(r, type, 1);
    }
    type = bytes_read_u32(&r->span);
    return skip_values(r, type, bytes_read_u64(&r->span));
}

/* ---- tensors ---- */

static struct status read_name(struct reading *r, struct stored_tensor *t)
{
    uint64_t n = bytes_read_u64(&r->span);
    const char *name = (const char *)bytes_take_items(&r->span, n, 1);
    if (r->span.failed || n == 0 || n > MOST_NAME || !stored_tensor_name_is_printable(name, (size_t)n)) {
        return damaged(r, "the name of a tensor");
    }
    t->name = bump_copy(&r->file->memory, name, (size_t)n);
    return t->name == NULL ? bump_status(&r->file->memory, r->source) : status_ok();
}

/* The fastest dim is first in the file. */
static struct status read_dims(struct reading *r, struct stored_tensor *t)
{
    uint32_t n = bytes_read_u32(&r->span);
    if (r->span.failed || n < 1 || n > GGUF_MOST_DIMS) {
        return damaged(r, "the number of dims of a tensor");
    }
    t->n_dims = (int)n;
    for (int i = t->n_dims - 1; i >= 0; i--) {
        uint64_t dim = bytes_read_u64(&r->span);
        if (dim < 1 || dim > INT64_MAX) {
            return damaged(r, "a dim of a tensor");
        }
        t->dims[i] = (int64_t)dim;
    }
    return status_ok();
}

/* Types that kiln does not read, by their numbers (ggml.h). */
static const char *other_type_name(int64_t type)
{
    static const char *const names[] = {
        [2] = "Q4_0",    [3] = "Q4_1",     [6] = "Q5_0",   [7] = "Q5_1",    [9] = "Q8_1",   [10] = "Q2_K",
        [11] = "Q3_K",   [12] = "Q4_K",    [13] = "Q5_K",  [14] = "Q6_K",   [15] = "Q8_K",  [16] = "IQ2_XXS",
        [17] = "IQ2_XS", [18] = "IQ3_XXS", [19] = "IQ1_S", [20] = "IQ4_NL", [21] = "IQ3_S", [22] = "IQ2_S",
        [23] = "IQ4_XS", [29] = "IQ1_M",   [34] = "TQ1_0", [35] = "TQ2_0",  [39] = "MXFP4"};
    bool is_known = type >= 0 && type < (int64_t)(sizeof names / sizeof names[0]) && names[type] != NULL;
    return is_known ? names[type] : "of an unknown type";
}

/* A tensor of a type that kiln does not read has no bytes here. */
static void set_type(struct stored_tensor *t, int64_t type)
{
    t->dtype = type == GGUF_F16 ? DTYPE_F16 : type == GGUF_BF16 ? DTYPE_BF16 : DTYPE_F32;
    t->dtype_label = gguf_type_name(type);
    if (t->dtype_label == NULL) {
        t->dtype_label = other_type_name(type);
        t->unreadable = "is quantized in a way that kiln does not read";
    }
}

static struct status read_tensor(struct reading *r, struct stored_tensor *t, uint64_t *at, uint32_t *type)
{
    TRY(read_name(r, t));
    TRY(read_dims(r, t));
    *type = bytes_read_u32(&r->span);
    *at = bytes_read_u64(&r->span);
    set_type(t, *type);
    if (r->span.failed || !stored_tensor_make_dense(t, dtype_bytes(t->dtype))) {
        return damaged(r, "what a tensor is");
    }
    return *at % r->alignment == 0 ? status_ok() : damaged(r, "the place of a tensor");
}

static struct status decode(struct reading *r, struct stored_tensor *t)
{
    float *values = malloc(t->bytes);
    FAIL_IF(values == NULL, STATUS_MEMORY, "out of memory for the tensor %s of %s", t->name, r->source);
    gguf_decode_q8(values, t->data, (int64_t)(t->bytes / sizeof *values));
    r->file->decoded[r->file->n_decoded++] = values;
    t->data = t->storage = (const unsigned char *)values;
    t->storage_bytes = t->bytes;
    return status_ok();
}

static struct status place(struct reading *r, struct stored_tensor *t, uint64_t at, enum gguf_type type)
{
    uint64_t count = t->bytes / dtype_bytes(t->dtype), bytes, end;
    FAIL_IF(at < r->used, STATUS_DATA, "%s: the tensor %.80s overlaps the one before it", r->source, t->name);
    r->used = at;
    if (t->unreadable != NULL) {
        t->bytes = 0;
        t->data = t->storage = r->span.data;
        return status_ok();
    }
    bool whole = type != GGUF_Q8_0 || t->dims[t->n_dims - 1] % GGUF_Q8_ITEMS == 0;
    FAIL_IF(!whole || !gguf_type_bytes(&bytes, type, count) || !bytes_add(r->data, at, &at) ||
                !bytes_add(at, bytes, &end) || end > r->span.n,
            STATUS_DATA, "%s: the tensor %.80s ends behind the end of the file: it is cut short", r->source,
            t->name);
    r->used = end - r->data;
    t->data = t->storage = r->span.data + at;
    t->storage_bytes = (size_t)bytes;
    return type == GGUF_Q8_0 ? decode(r, t) : status_ok();
}

static struct status read_tensors(struct reading *r, uint64_t n)
{
    struct gguf_file *f = r->file;
    uint64_t *places = calloc(n + 1, sizeof *places);
    uint32_t *types = calloc(n + 1, sizeof *types);
    f->tensors = calloc(n + 1, sizeof *f->tensors);
    f->decoded = calloc(n + 1, sizeof *f->decoded);
    struct status s = places == NULL || types == NULL || f->tensors == NULL || f->decoded == NULL
                          ? status_error(STATUS_MEMORY, "out of memory for the tensors of %s", r->source)
                          : status_ok();
    for (uint64_t i = 0; i < n && !failed(s); i++) {
        s = read_tensor(r, &f->tensors[i], &places[i], &types[i]);
    }
    r->data = (r->span.at + r->alignment - 1) / r->alignment * r->alignment;
    for (; (uint64_t)f->n < n && !failed(s); f->n += failed(s) ? 0 : 1) {
        s = place(r, &f->tensors[f->n], places[f->n], (enum gguf_type)types[f->n]);
    }
    free(places);
    free(types);
    return failed(s) ? s : stored_tensor_check_names(f->tensors, f->n, r->source);
}

bool gguf_file_is_one(const void *bytes, size_t n)
{
    return n >= 4 && bytes_load_u32(bytes) == GGUF_MAGIC;
}

static struct status read_all(struct reading *r)
{
    bool is_one = bytes_read_u32(&r->span) == GGUF_MAGIC;
    uint32_t version = bytes_read_u32(&r->span);
    uint64_t n_tensors = bytes_read_u64(&r->span), n_pairs = bytes_read_u64(&r->span);
    if (r->span.failed || !is_one) {
        return damaged(r, "no header");
    }
    FAIL_IF(version != 2 && version != GGUF_VERSION, STATUS_DATA,
            "%s is of version %u of GGUF; kiln reads 2 and 3", r->source, version);
    FAIL_IF(n_tensors > MOST_TENSORS || n_pairs > MOST_PAIRS, STATUS_DATA,
            "%s says that it has %llu tensors and %llu keys; kiln reads up to "
            "%d and %d",
            r->source, (unsigned long long)n_tensors, (unsigned long long)n_pairs, MOST_TENSORS, MOST_PAIRS);
    for (uint64_t i = 0; i < n_pairs; i++) {
        TRY(read_pair(r));
    }
    return read_tensors(r, n_tensors);
}

struct status gguf_file_parse(struct gguf_file *f, const void *bytes, size_t n, const char *source)
{
    *f = (struct gguf_file){.memory = bump_with_limit(MOST_NAMES_BYTES)};
    struct reading r = {
        .file = f, .span = bytes_span(bytes, n), .source = source, .alignment = GGUF_ALIGNMENT};
    struct status s = read_all(&r);
    if (failed(s)) {
        gguf_file_close(f);
    }
    return s;
}

struct status gguf_file_open(struct gguf_file *f, const char *path)
{
    struct file_map map;
    *f = (struct gguf_file){0};
    TRY(file_map_open(&map, path));
    struct status s = gguf_file_parse(f, map.data, map.n, path);
    if (failed(s)) {
        file_map_close(&map);
    } else {
        f->map = map;
    }
    return s;
}

void gguf_file_close(struct gguf_file *f)
{
    for (int i = 0; i < f->n_decoded; i++) {
        free(f->decoded[i]);
    }
    free(f->decoded);
    free(f->tensors);
    bump_fini(&f->memory);
    file_map_close(&f->map);
    *f = (struct gguf_file){0};
}
