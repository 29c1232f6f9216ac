#include "data/shard_rows.h"

#include <string.h>

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

void shard_rows_put(void *memory, const struct shard_shape *shape, const struct shard_place *t,
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
