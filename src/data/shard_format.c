#include "data/shard_format.h"

#include "data/bert/bert_records.h"

#include <string.h>

static const size_t ALIGNMENT = 64;
static const uint64_t MAX_BYTES = UINT64_C(4) << 30;

enum { MIN_SEQ_LENGTH = 3, MAX_SEQ_LENGTH = 65536 };

/* How many columns an array has. */
enum columns { ONE, SEQUENCE, PREDICTIONS, PACKED };

struct row {
    const char *name;
    enum hdf5_type type;
    enum columns columns;
};

enum { PADDED_IDS, PADDED_MASK, PADDED_SEGMENTS, PADDED_PLACES, PADDED_LABELS, PADDED_NSP, N_PADDED };

static const struct row padded[N_PADDED] = {
    [PADDED_IDS] = {"input_ids", HDF5_I32, SEQUENCE},
    [PADDED_MASK] = {"input_mask", HDF5_I8, SEQUENCE},
    [PADDED_SEGMENTS] = {"segment_ids", HDF5_I8, SEQUENCE},
    [PADDED_PLACES] = {"masked_lm_positions", HDF5_I32, PREDICTIONS},
    [PADDED_LABELS] = {"masked_lm_ids", HDF5_I32, PREDICTIONS},
    [PADDED_NSP] = {"next_sentence_labels", HDF5_I8, ONE},
};

enum {
    PACKED_IDS,
    PACKED_MASK,
    PACKED_SEGMENTS,
    PACKED_POSITIONS,
    PACKED_PLACES,
    PACKED_LABELS,
    PACKED_CLS,
    PACKED_NSP,
    PACKED_WEIGHTS,
    N_PACKED
};

static const struct row packed[N_PACKED] = {
    [PACKED_IDS] = {"input_ids", HDF5_I32, SEQUENCE},
    [PACKED_MASK] = {"input_mask", HDF5_I32, SEQUENCE},
    [PACKED_SEGMENTS] = {"segment_ids", HDF5_I8, SEQUENCE},
    [PACKED_POSITIONS] = {"positions", HDF5_I32, SEQUENCE},
    [PACKED_PLACES] = {"masked_lm_positions", HDF5_I32, PREDICTIONS},
    [PACKED_LABELS] = {"masked_lm_ids", HDF5_I32, PREDICTIONS},
    [PACKED_CLS] = {"next_sentence_positions", HDF5_I32, PACKED},
    [PACKED_NSP] = {"next_sentence_labels", HDF5_I8, PACKED},
    [PACKED_WEIGHTS] = {"next_sentence_weights", HDF5_I32, PACKED},
};

static int64_t columns_of(const struct shard_shape *shape, enum columns columns)
{
    return columns == SEQUENCE      ? shape->seq_length
           : columns == PREDICTIONS ? shape->n_predictions
           : columns == PACKED      ? BERT_RECORDS_MAX_PACKED
                                    : 1;
}

/* Lays out the arrays and returns their bytes. */
static size_t lay_out(struct hdf5_array *arrays, int *n, const struct shard_shape *shape, void *memory)
{
    const struct row *rows = shape->packed ? packed : padded;
    size_t at = 0;
    *n = shape->packed ? (int)N_PACKED : (int)N_PADDED;
    for (int i = 0; i < *n; i++) {
        int64_t columns = columns_of(shape, rows[i].columns);
        arrays[i] = (struct hdf5_array){.name = rows[i].name,
                                        .type = rows[i].type,
                                        .n_dims = rows[i].columns == ONE ? 1 : 2,
                                        .dims = {shape->n, columns},
                                        .data = memory == NULL ? NULL : (char *)memory + at};
        at += (size_t)(shape->n * columns) * (rows[i].type == HDF5_I8 ? 1 : sizeof(int32_t));
        at = (at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return at;
}

int shard_format_arrays(struct hdf5_array arrays[SHARD_MAX_ARRAYS], const struct shard_shape *shape,
                        void *memory)
{
    int n;
    lay_out(arrays, &n, shape, memory);
    return n;
}

size_t shard_format_bytes(const struct shard_shape *shape)
{
    struct hdf5_array arrays[SHARD_MAX_ARRAYS];
    int n;
    return lay_out(arrays, &n, shape, NULL);
}

struct status shard_format_check(const struct shard_shape *shape, const char *path)
{
    int64_t s = shape->seq_length, p = shape->n_predictions;
    FAIL_IF(s < MIN_SEQ_LENGTH || s > MAX_SEQ_LENGTH || p < 1 || p > s + BERT_RECORDS_MAX_PACKED, STATUS_DATA,
            "%s has sequences of %lld tokens with %lld predictions; they must have %d to %d "
            "tokens, and at most as many predictions",
            path, (long long)s, (long long)p, MIN_SEQ_LENGTH, MAX_SEQ_LENGTH);
    /* bytes of a row in the larger layout */
    uint64_t row_bytes = (uint64_t)(13 * s + 8 * p + 9 * BERT_RECORDS_MAX_PACKED);
    FAIL_IF(shape->n < 1 || (uint64_t)shape->n > MAX_BYTES / row_bytes, STATUS_DATA,
            "%s has %lld records of %lld tokens; a file must have at least one, and less "
            "than %llu GiB of them",
            path, (long long)shape->n, (long long)s, (unsigned long long)(MAX_BYTES >> 30));
    return status_ok();
}

/* The arrays must agree on N, S and P. */
static struct status take_shape(struct shard_shape *shape, const char *path, const struct hdf5_array *found,
                                int n)
{
    *shape =
        (struct shard_shape){.n = found[0].dims[0],
                             .seq_length = found[0].dims[1],
                             .n_predictions = found[shape->packed ? PACKED_PLACES : PADDED_PLACES].dims[1],
                             .packed = shape->packed};
    struct hdf5_array wanted[SHARD_MAX_ARRAYS];
    TRY(shard_format_check(shape, path));
    shard_format_arrays(wanted, shape, NULL);
    for (int i = 0; i < n; i++) {
        int64_t columns = found[i].n_dims == 2 ? found[i].dims[1] : 1;
        FAIL_IF(found[i].dims[0] != wanted[i].dims[0] || columns != wanted[i].dims[1], STATUS_DATA,
                "%s: the dataset %s has %lld x %lld values, but the other datasets need %lld x %lld", path,
                found[i].name, (long long)found[i].dims[0], (long long)columns, (long long)wanted[i].dims[0],
                (long long)wanted[i].dims[1]);
    }
    return status_ok();
}

struct status shard_format_measure(struct shard_shape *shape, const char *path)
{
    struct hdf5_array arrays[SHARD_MAX_ARRAYS];
    *shape = (struct shard_shape){0};
    TRY(hdf5_file_has(path, packed[PACKED_CLS].name, &shape->packed));
    int n = shard_format_arrays(arrays, shape, NULL);
    TRY(hdf5_file_measure(path, arrays, n));
    return take_shape(shape, path, arrays, n);
}

/* A struct hdf5_array for data that is only read; its pointer is not const. */
static void view(struct hdf5_array *arrays, const struct shard_shape *shape, const void *memory)
{
    shard_format_arrays(arrays, shape, (void *)memory);
}

struct status shard_format_add(struct batch *b, const struct shard_shape *shape, const void *memory,
                               int32_t vocab_size, int64_t index, int32_t sequence_key)
{
    struct hdf5_array a[SHARD_MAX_ARRAYS];
    view(a, shape, memory);
    bool is_packed = shape->packed; /* the first three arrays are the same */
    const struct bert_records r = {
        .n = shape->n,
        .seq_length = shape->seq_length,
        .n_predictions = shape->n_predictions,
        .vocab_size = vocab_size,
        .packed = is_packed,
        .input_ids = a[PADDED_IDS].data,
        .input_mask = a[PADDED_MASK].data,
        .segment_ids = a[PADDED_SEGMENTS].data,
        .positions = is_packed ? a[PACKED_POSITIONS].data : NULL,
        .masked_lm_positions = is_packed ? a[PACKED_PLACES].data : a[PADDED_PLACES].data,
        .masked_lm_ids = is_packed ? a[PACKED_LABELS].data : a[PADDED_LABELS].data,
        .next_sentence_positions = is_packed ? a[PACKED_CLS].data : NULL,
        .next_sentence_labels = is_packed ? a[PACKED_NSP].data : a[PADDED_NSP].data,
        .next_sentence_weights = is_packed ? a[PACKED_WEIGHTS].data : NULL,
    };
    return bert_records_add(&r, index, sequence_key, b);
}

int64_t shard_format_count_sequences(const struct shard_shape *shape, const void *memory)
{
    struct hdf5_array a[SHARD_MAX_ARRAYS];
    view(a, shape, memory);
    if (!shape->packed) {
        return shape->n;
    }
    const int32_t *weights = a[PACKED_WEIGHTS].data;
    int64_t n = 0;
    for (int64_t i = 0; i < shape->n * BERT_RECORDS_MAX_PACKED; i++) {
        n += weights[i] != 0;
    }
    return n;
}

void shard_format_count_labels(double *counts, int64_t vocab_size, const struct shard_shape *shape,
                               const void *memory)
{
    struct hdf5_array a[SHARD_MAX_ARRAYS];
    view(a, shape, memory);
    const int32_t *places = a[shape->packed ? (int)PACKED_PLACES : (int)PADDED_PLACES].data;
    const int32_t *labels = a[shape->packed ? (int)PACKED_LABELS : (int)PADDED_LABELS].data;
    for (int64_t i = 0; i < shape->n * shape->n_predictions; i++) {
        if (places[i] != 0 && labels[i] >= 0 && labels[i] < vocab_size) {
            counts[labels[i]]++;
        }
    }
}

static void *array_at(const struct hdf5_array *arrays, int n, const char *name, int64_t record,
                      int64_t column)
{
    for (int i = 0; i < n; i++) {
        const struct hdf5_array *a = &arrays[i];
        if (strcmp(a->name, name) == 0) {
            int64_t index = record * a->dims[1] + column;
            return (char *)a->data + index * (a->type == HDF5_I8 ? 1 : (int64_t)sizeof(int32_t));
        }
    }
    CHECK(false, "no array %s", name);
    return NULL;
}

void shard_format_put(void *memory, const struct shard_shape *shape, const struct shard_place *t,
                      const struct batch *b)
{
    struct hdf5_array arrays[SHARD_MAX_ARRAYS];
    int n = shard_format_arrays(arrays, shape, memory);
    int32_t *ids = array_at(arrays, n, "input_ids", t->record, t->at);
    void *mask = array_at(arrays, n, "input_mask", t->record, t->at);
    int8_t *segments = array_at(arrays, n, "segment_ids", t->record, t->at);
    int32_t *places = array_at(arrays, n, "masked_lm_positions", t->record, t->masked_at);
    int32_t *labels = array_at(arrays, n, "masked_lm_ids", t->record, t->masked_at);
    memcpy(ids, b->ids, (size_t)b->n_real_tokens * sizeof *ids);
    for (int64_t i = 0; i < b->n_real_tokens; i++) {
        segments[i] = (int8_t)b->fields[TEXT_TYPES][i];
    }
    for (int64_t i = 0; i < b->n_real_labels; i++) {
        places[i] = (int32_t)(b->fields[TEXT_MASKED_ROWS][i] + t->at);
        labels[i] = b->fields[TEXT_MASKED_LABELS][i];
    }
    *(int8_t *)array_at(arrays, n, "next_sentence_labels", t->record, t->slot) =
        (int8_t)b->fields[TEXT_PAIR_LABELS][0];
    if (!shape->packed) {
        memset(mask, 1, (size_t)b->n_real_tokens);
        return;
    }
    int32_t *positions = array_at(arrays, n, "positions", t->record, t->at);
    for (int64_t i = 0; i < b->n_real_tokens; i++) {
        ((int32_t *)mask)[i] = t->slot + 1;
        positions[i] = (int32_t)i;
    }
    *(int32_t *)array_at(arrays, n, "next_sentence_positions", t->record, t->slot) = (int32_t)t->at;
    *(int32_t *)array_at(arrays, n, "next_sentence_weights", t->record, t->slot) = 1;
}
