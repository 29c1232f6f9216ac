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
    bool keys_alone;          /* tensors are not decoded */
};

static struct status damaged(const struct reading *r, const char *what)
{
    return status_error(STATUS_DATA, "%s: %s at byte %zu: it is cut short, damaged, or no GGUF file",
                        r->source, what, r->span.at);
}

/* ---- pairs ---- */

static void skip_texts(struct span *s, uint64_t n)
{
    for (; n > 0 && !s->failed; n--) {
        (void)bytes_take_items(s, bytes_read_u64(s), 1);
    }
}

/* A value, or the list of n values of a type.  Lists of lists are not known to any model. */
static struct status take_values(struct reading *r, struct gguf_pair *p)
{
    size_t at = r->span.at;
    if (p->type >= GGUF_N_VALUES || p->type == GGUF_VALUE_ARRAY) {
        return damaged(r, "a value of an unknown type");
    }
    if (p->type == GGUF_VALUE_TEXT) {
        skip_texts(&r->span, p->n);
    } else {
        (void)bytes_take_items(&r->span, p->n, gguf_value_bytes(p->type));
    }
    if (r->span.failed) {
        return damaged(r, "a value");
    }
    p->values = bytes_span(r->span.data + at, r->span.at - at);
    return status_ok();
}

static struct status read_key(struct reading *r, struct gguf_pair *p)
{
    uint64_t n = bytes_read_u64(&r->span);
    const char *key = (const char *)bytes_take_items(&r->span, n, 1);
    if (r->span.failed || n == 0 || n > MOST_NAME || !stored_tensor_name_is_printable(key, (size_t)n)) {
        return damaged(r, "a key");
    }
    p->key = bump_copy(&r->file->memory, key, (size_t)n);
    return p->key == NULL ? bump_status(&r->file->memory, r->source) : status_ok();
}

static struct status read_pair(struct reading *r, struct gguf_pair *p)
{
    TRY(read_key(r, p));
    p->type = bytes_read_u32(&r->span);
    p->n = 1;
    p->is_list = p->type == GGUF_VALUE_ARRAY;
    if (p->is_list) {
        p->type = bytes_read_u32(&r->span);
        p->n = bytes_read_u64(&r->span);
    }
    return r->span.failed ? damaged(r, "a key") : take_values(r, p);
}

const struct gguf_pair *gguf_file_find(const struct gguf_file *f, const char *key)
{
    int i = 0;
    while (i < f->n_pairs && strcmp(f->pairs[i].key, key) != 0) {
        i++;
    }
    return i < f->n_pairs ? &f->pairs[i] : NULL;
}

static struct status take_alignment(struct reading *r)
{
    const struct gguf_pair *p = gguf_file_find(r->file, "general.alignment");
    if (p == NULL) {
        return status_ok();
    }
    bool is_int = !p->is_list && p->type == GGUF_VALUE_U32;
    r->alignment = is_int ? bytes_load_u32(p->values.data) : 0;
    FAIL_IF(
        r->alignment == 0 || (r->alignment & (r->alignment - 1)) != 0 || r->alignment > 1 << 20, STATUS_DATA,
        "%s: general.alignment is %llu, an impossible alignment: it must be a power of two, at most 1048576",
        r->source, (unsigned long long)r->alignment);
    return status_ok();
}

/* The one pair of this type whose key ends so: its beginning is the architecture's name; NULL: there is
 * none. */
static const struct gguf_pair *find_ending(const struct gguf_file *f, enum gguf_value type, const char *end)
{
    size_t n_end = strlen(end);
    for (int i = 0; i < f->n_pairs; i++) {
        const struct gguf_pair *p = &f->pairs[i];
        size_t n = strlen(p->key);
        if (!p->is_list && p->type == (uint32_t)type && n >= n_end && strcmp(p->key + n - n_end, end) == 0) {
            return p;
        }
    }
    return NULL;
}

static void take_unshown(struct gguf_file *f)
{
    const struct gguf_pair *heads = find_ending(f, GGUF_VALUE_U32, ".attention.head_count"),
                           *eps = find_ending(f, GGUF_VALUE_F32, ".attention.layer_norm_epsilon");
    eps = eps != NULL ? eps : find_ending(f, GGUF_VALUE_F32, ".attention.layer_norm_rms_epsilon");
    f->n_heads = heads == NULL ? 0 : bytes_load_u32(heads->values.data);
    uint32_t bits = eps == NULL ? 0 : bytes_load_u32(eps->values.data);
    memcpy(&f->norm_eps, &bits, sizeof bits);
}

/* A pair is 13 bytes at least, so no count takes more memory than the file has. */
static struct status read_pairs(struct reading *r, uint64_t n)
{
    struct gguf_file *f = r->file;
    if (n > bytes_left(&r->span) / 13) {
        return damaged(r, "the number of keys");
    }
    f->pairs = calloc(n + 1, sizeof *f->pairs);
    FAIL_IF(f->pairs == NULL, STATUS_MEMORY, "out of memory for the keys of %s", r->source);
    for (; (uint64_t)f->n_pairs < n; f->n_pairs++) {
        TRY(read_pair(r, &f->pairs[f->n_pairs]));
    }
    take_unshown(f);
    return take_alignment(r);
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
        t->unreadable = "is quantized in a way that kiln does not read: it reads F32, F16, BF16 and Q8_0";
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
    if (r->keys_alone) {
        t->unreadable = "is not decoded where only keys are read";
        t->bytes = 0;
        return status_ok();
    }
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
    TRY(read_pairs(r, n_pairs));
    return read_tensors(r, n_tensors);
}

static struct status parse(struct gguf_file *f, const void *bytes, size_t n, bool keys_alone,
                           const char *source)
{
    *f = (struct gguf_file){.memory = bump_with_limit(MOST_NAMES_BYTES)};
    struct reading r = {.file = f,
                        .span = bytes_span(bytes, n),
                        .source = source,
                        .alignment = GGUF_ALIGNMENT,
                        .keys_alone = keys_alone};
    struct status s = read_all(&r);
    if (failed(s)) {
        gguf_file_close(f);
    }
    return s;
}

struct status gguf_file_parse(struct gguf_file *f, const void *bytes, size_t n, const char *source)
{
    return parse(f, bytes, n, false, source);
}

static struct status open_at(struct gguf_file *f, const char *path, bool keys_alone)
{
    struct file_map map;
    *f = (struct gguf_file){0};
    TRY(file_map_open(&map, path));
    struct status s = parse(f, map.data, map.n, keys_alone, path);
    if (failed(s)) {
        file_map_close(&map);
    } else {
        f->map = map;
    }
    return s;
}

struct status gguf_file_open(struct gguf_file *f, const char *path)
{
    return open_at(f, path, false);
}

struct status gguf_file_open_keys(struct gguf_file *f, const char *path)
{
    return open_at(f, path, true);
}

bool gguf_file_is_at(const char *path)
{
    struct file_map map;
    if (file_is_directory(path) || !file_exists(path) || failed(file_map_open(&map, path))) {
        return false;
    }
    bool is_one = gguf_file_is_one(map.data, map.n);
    file_map_close(&map);
    return is_one;
}

const struct stored_tensor *gguf_file_tensor(const struct gguf_file *f, const char *name)
{
    int i = 0;
    while (i < f->n && strcmp(f->tensors[i].name, name) != 0) {
        i++;
    }
    return i < f->n ? &f->tensors[i] : NULL;
}

void gguf_file_close(struct gguf_file *f)
{
    for (int i = 0; i < f->n_decoded; i++) {
        free(f->decoded[i]);
    }
    free(f->decoded);
    free(f->tensors);
    free(f->pairs);
    bump_fini(&f->memory);
    file_map_close(&f->map);
    *f = (struct gguf_file){0};
}
