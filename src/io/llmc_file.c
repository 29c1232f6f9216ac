#include "io/llmc_file.h"

#include "core/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_NUMBERS = 256, HEADER_BYTES = 4 * HEADER_NUMBERS, N_FIELDS = 8, NAMES_BYTES = 64 << 20 };

/* ---- what a file has, in order ---- */

/* A dim in terms of the sizes; PADDED are the rows of the table of words. */
enum extent { ONE, PADDED, LENGTH, CHANNELS, THREE_CHANNELS, FOUR_CHANNELS };

static const struct kind {
    const char *name;
    bool of_layer;
    enum extent rows, cols; /* rows ONE: a vector */
} kinds[] = {
    {"wte", false, PADDED, CHANNELS},
    {"wpe", false, LENGTH, CHANNELS},
    {"ln1w", true, ONE, CHANNELS},
    {"ln1b", true, ONE, CHANNELS},
    {"qkvw", true, THREE_CHANNELS, CHANNELS},
    {"qkvb", true, ONE, THREE_CHANNELS},
    {"attprojw", true, CHANNELS, CHANNELS},
    {"attprojb", true, ONE, CHANNELS},
    {"ln2w", true, ONE, CHANNELS},
    {"ln2b", true, ONE, CHANNELS},
    {"fcw", true, FOUR_CHANNELS, CHANNELS},
    {"fcb", true, ONE, FOUR_CHANNELS},
    {"fcprojw", true, CHANNELS, FOUR_CHANNELS},
    {"fcprojb", true, ONE, CHANNELS},
    {"lnfw", false, ONE, CHANNELS},
    {"lnfb", false, ONE, CHANNELS},
};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static int64_t padded(const struct llmc_sizes *s)
{
    return (s->n_words + LLMC_WORD_MULTIPLE - 1) / LLMC_WORD_MULTIPLE * LLMC_WORD_MULTIPLE;
}

static int64_t extent_of(const struct llmc_sizes *s, enum extent e)
{
    switch (e) {
    case PADDED: return padded(s);
    case LENGTH: return s->max_length;
    case CHANNELS: return s->channels;
    case THREE_CHANNELS: return 3 * s->channels;
    case FOUR_CHANNELS: return 4 * s->channels;
    default: return 1;
    }
}

static int64_t count_of(const struct llmc_sizes *s, const struct kind *k)
{
    return extent_of(s, k->rows) * extent_of(s, k->cols);
}

static size_t item_bytes(const struct llmc_sizes *s)
{
    return s->version == LLMC_F32 ? sizeof(float) : sizeof(uint16_t);
}

static uint64_t bytes_of(const struct llmc_sizes *s)
{
    uint64_t n = 0;
    for (int k = 0; k < N_KINDS; k++) {
        n += (uint64_t)(count_of(s, &kinds[k]) * (kinds[k].of_layer ? s->n_layers : 1));
    }
    return HEADER_BYTES + n * item_bytes(s);
}

/* ---- reading ---- */

bool llmc_file_is_one(const void *bytes, size_t n)
{
    uint32_t date = n >= HEADER_BYTES ? bytes_load_u32(bytes) : 0;
    return date >= 20240101 && date <= 20241231;
}

/* The fields of the header: where it has them, and their limits. */
static struct status read_sizes(struct llmc_sizes *s, const unsigned char *header, const char *source)
{
    const struct {
        const char *name;
        int64_t *to;
        int64_t max;
    } fields[N_FIELDS] = {{NULL, NULL, 0},
                          {NULL, NULL, 0},
                          {"longest sequence", &s->max_length, 1 << 20},
                          {"number of words", &s->n_words, 1 << 24},
                          {"number of layers", &s->n_layers, 1024},
                          {"number of heads", &s->n_heads, 1024},
                          {"number of channels", &s->channels, 1 << 16}};
    for (int i = 2; i < N_FIELDS - 1; i++) {
        *fields[i].to = (int32_t)bytes_load_u32(header + 4 * i);
        if (*fields[i].to < 1 || *fields[i].to > fields[i].max) {
            return status_error(STATUS_DATA, "%s: the %s is %lld, but must lie between 1 and %lld", source,
                                fields[i].name, (long long)*fields[i].to, (long long)fields[i].max);
        }
    }
    int64_t rows = (int32_t)bytes_load_u32(header + 4 * (N_FIELDS - 1));
    if (rows != padded(s)) {
        return status_error(STATUS_DATA,
                            "%s: the vocabulary of %lld words has %lld rows, but llm.c pads it to %lld",
                            source, (long long)s->n_words, (long long)rows, (long long)padded(s));
    }
    return s->channels % s->n_heads == 0
               ? status_ok()
               : status_error(STATUS_DATA, "%s: %lld channels are not a multiple of %lld heads", source,
                              (long long)s->channels, (long long)s->n_heads);
}

static struct status read_header(struct llmc_sizes *s, const unsigned char *bytes, size_t n,
                                 const char *source)
{
    if (n < HEADER_BYTES) {
        return status_error(STATUS_DATA,
                            "%s has %zu bytes, fewer than the %d of a header of llm.c: it is cut short",
                            source, n, HEADER_BYTES);
    }
    uint32_t magic = bytes_load_u32(bytes), version = bytes_load_u32(bytes + 4);
    if (magic != LLMC_MAGIC) {
        return status_error(STATUS_DATA,
                            "%s is no model of llm.c: its first number is %u, and that of a model %d; files "
                            "of tokens or of an optimizer have other numbers",
                            source, magic, LLMC_MAGIC);
    }
    if (version != LLMC_F32 && version != LLMC_BF16) {
        return status_error(STATUS_DATA,
                            "%s is of version %u of llm.c's model files; kiln reads %d (fp32) and %d (bf16)",
                            source, version, LLMC_F32, LLMC_BF16);
    }
    s->version = version;
    TRY(read_sizes(s, bytes, source));
    return n == bytes_of(s) ? status_ok()
                            : status_error(STATUS_DATA,
                                           "%s has %zu bytes, but its header describes a model of %llu: it "
                                           "is cut short or damaged",
                                           source, n, (unsigned long long)bytes_of(s));
}

static struct status list_one(struct llmc_file *f, const struct kind *k, int64_t layer,
                              const unsigned char *data, const char *source)
{
    char name[48];
    struct stored_tensor *t = &f->tensors[f->n++];
    bool is_f32 = f->sizes.version == LLMC_F32, is_vector = k->rows == ONE;
    int n = k->of_layer ? snprintf(name, sizeof name, "h.%lld.%s", (long long)layer, k->name)
                        : snprintf(name, sizeof name, "%s", k->name);
    *t = (struct stored_tensor){.name = bump_copy(&f->memory, name, (size_t)n),
                                .dtype = is_f32 ? DTYPE_F32 : DTYPE_BF16,
                                .dtype_label = is_f32 ? "float32" : "bfloat16",
                                .n_dims = is_vector ? 1 : 2,
                                .data = data,
                                .storage = data};
    t->dims[0] = k->rows == PADDED ? f->sizes.n_words : extent_of(&f->sizes, is_vector ? k->cols : k->rows);
    t->dims[1] = is_vector ? 0 : extent_of(&f->sizes, k->cols);
    CHECK(stored_tensor_make_dense(t, item_bytes(&f->sizes)), "%s", name);
    t->storage_bytes = t->bytes;
    return t->name == NULL ? bump_status(&f->memory, source) : status_ok();
}

static struct status list(struct llmc_file *f, const unsigned char *at, const char *source)
{
    f->tensors = calloc((size_t)(N_KINDS * f->sizes.n_layers), sizeof *f->tensors);
    if (f->tensors == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the tensors of %s", source);
    }
    for (int k = 0; k < N_KINDS; k++) {
        for (int64_t layer = 0; layer < (kinds[k].of_layer ? f->sizes.n_layers : 1); layer++) {
            TRY(list_one(f, &kinds[k], layer, at, source));
            at += (size_t)count_of(&f->sizes, &kinds[k]) * item_bytes(&f->sizes);
        }
    }
    return status_ok();
}

struct status llmc_file_parse(struct llmc_file *f, const void *bytes, size_t n, const char *source)
{
    *f = (struct llmc_file){.memory = bump_with_limit(NAMES_BYTES)};
    struct status s = read_header(&f->sizes, bytes, n, source);
    s = failed(s) ? s : list(f, (const unsigned char *)bytes + HEADER_BYTES, source);
    if (failed(s)) {
        llmc_file_close(f);
    }
    return s;
}

struct status llmc_file_open(struct llmc_file *f, const char *path)
{
    struct file_map map;
    *f = (struct llmc_file){0};
    TRY(file_map_open(&map, path));
    struct status s = llmc_file_parse(f, map.data, map.n, path);
    if (failed(s)) {
        file_map_close(&map);
    } else {
        f->map = map;
    }
    return s;
}

void llmc_file_close(struct llmc_file *f)
{
    free(f->tensors);
    bump_fini(&f->memory);
    file_map_close(&f->map);
    *f = (struct llmc_file){0};
}

/* ---- writing ---- */

static void put_header(struct file_writer *w, const struct llmc_sizes *s)
{
    const int64_t fields[N_FIELDS] = {LLMC_MAGIC,  s->version, s->max_length, s->n_words,
                                      s->n_layers, s->n_heads, s->channels,   padded(s)};
    unsigned char header[HEADER_BYTES] = {0};
    for (int i = 0; i < N_FIELDS; i++) {
        bytes_store_u32(header + 4 * i, (uint32_t)fields[i]);
    }
    file_writer_put(w, header, sizeof header);
}

enum { CHUNK = 4096 }; /* elements */

static void put_values(struct file_writer *w, const struct llmc_sizes *s, tensor t)
{
    const float *from = t.data;
    uint16_t rounded[CHUNK];
    int64_t left = tensor_count(t);
    if (s->version == LLMC_F32) {
        file_writer_put(w, from, (size_t)left * sizeof *from);
        return;
    }
    for (; left > 0; left -= CHUNK, from += CHUNK) {
        int64_t n = left < CHUNK ? left : CHUNK;
        stored_tensor_convert(DTYPE_BF16, rounded, DTYPE_F32, from, n);
        file_writer_put(w, rounded, (size_t)n * sizeof *rounded);
    }
}

static void put_zeros(struct file_writer *w, size_t n)
{
    static const unsigned char zeros[CHUNK];
    for (; n > 0; n -= n < CHUNK ? n : CHUNK) {
        file_writer_put(w, zeros, n < CHUNK ? n : CHUNK);
    }
}

/* A kind of tensor, for all layers. */
static struct status put_kind(struct file_writer *w, const struct llmc_sizes *sizes, const struct kind *kind,
                              llmc_source *source, void *context)
{
    int64_t missing = kind->rows == PADDED ? (padded(sizes) - sizes->n_words) * sizes->channels : 0;
    for (int64_t layer = 0; layer < (kind->of_layer ? sizes->n_layers : 1); layer++) {
        tensor t;
        TRY(source(context, kind->name, kind->of_layer ? layer : -1, &t));
        CHECK(tensor_is_dense(t) && t.dtype == DTYPE_F32 &&
                  tensor_count(t) == count_of(sizes, kind) - missing,
              "%s has %lld elements", kind->name, (long long)tensor_count(t));
        put_values(w, sizes, t);
    }
    put_zeros(w, (size_t)missing * item_bytes(sizes));
    return status_ok();
}

struct status llmc_file_write(const char *path, const struct llmc_sizes *sizes, llmc_source *source,
                              void *context)
{
    struct file_writer w;
    TRY(file_writer_open(&w, path));
    put_header(&w, sizes);
    for (int k = 0; k < N_KINDS && !failed(w.status); k++) {
        struct status s = put_kind(&w, sizes, &kinds[k], source, context);
        w.status = failed(s) ? s : w.status;
    }
    return file_writer_commit(&w);
}
