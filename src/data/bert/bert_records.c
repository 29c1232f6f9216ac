#include "data/bert/bert_records.h"

#include <string.h>

/* One sequence of a record. */
struct piece {
    int64_t record; /* number of the record, for messages */
    int64_t begin, n;
    const int32_t *ids;     /* [n] */
    const int8_t *segments; /* [n] */
    int32_t nsp_label;
    int32_t key;
};

static struct status bad_value(int64_t record, const char *field, int64_t place, int64_t value,
                               const char *wanted)
{
    return status_error(STATUS_DATA, "record %lld: %s[%lld] is %lld, but must be %s", (long long)record,
                        field, (long long)place, (long long)value, wanted);
}

/* Appends the tokens of a sequence, whose segment numbers must be zeros, then ones. */
static struct status add_tokens(struct batch *b, const struct piece *p, int32_t vocab_size)
{
    int64_t n_first = 0;
    while (n_first < p->n && p->segments[n_first] == 0) {
        n_first++;
    }
    for (int64_t i = 0; i < p->n; i++) {
        if (p->segments[i] != (i >= n_first)) {
            return bad_value(p->record, "segment_ids", p->begin + i, p->segments[i], "zeros, then ones");
        }
        if (p->ids[i] < 0 || p->ids[i] >= vocab_size) {
            return bad_value(p->record, "input_ids", p->begin + i, p->ids[i], "an id of the vocabulary");
        }
    }
    if (p->nsp_label != 0 && p->nsp_label != 1) {
        return bad_value(p->record, "next_sentence_labels", p->begin, p->nsp_label, "0 or 1");
    }
    memcpy(text_batch_add(b, p->n, n_first, p->nsp_label, p->key), p->ids, (size_t)p->n * sizeof *p->ids);
    return status_ok();
}

/* Predictions of one record. */
struct predictions {
    const int32_t *positions, *ids; /* [n] */
    int64_t n;
    int64_t taken; /* used by the sequences so far */
};

/* The list ends at the first 0: position 0 is [CLS], which is never masked. */
static struct predictions find_predictions(const int32_t *positions, const int32_t *ids, int64_t room)
{
    struct predictions list = {.positions = positions, .ids = ids};
    while (list.n < room && positions[list.n] != 0) {
        list.n++;
    }
    return list;
}

/* Gives the last sequence of the batch the predictions that lie in it. */
static struct status add_predictions(struct batch *b, const struct piece *p, struct predictions *list,
                                     int32_t vocab_size)
{
    int32_t *positions = text_batch_masked_positions(b);
    int32_t *labels = text_batch_masked_labels(b);
    int64_t room = b->limits.n_labels - b->n_real_labels;
    int64_t m = 0;
    int64_t last = p->begin; /* [CLS] */
    for (; list->taken < list->n && list->positions[list->taken] < p->begin + p->n; list->taken++) {
        int32_t position = list->positions[list->taken], id = list->ids[list->taken];
        if (position <= last) {
            return bad_value(p->record, "masked_lm_positions", list->taken, position,
                             "ascending places after [CLS]");
        }
        if (id < 0 || id >= vocab_size) {
            return bad_value(p->record, "masked_lm_ids", list->taken, id, "an id of the vocabulary");
        }
        CHECK(m < room, "%lld predictions in a batch with room for %lld", (long long)m, (long long)room);
        positions[m] = (int32_t)(position - p->begin);
        labels[m++] = id;
        last = position;
    }
    text_batch_take_masked(b, m);
    return status_ok();
}

static struct status check_all_taken(int64_t record, const struct predictions *list)
{
    if (list->taken < list->n) {
        return bad_value(record, "masked_lm_positions", list->taken, list->positions[list->taken],
                         "a place inside the tokens");
    }
    return status_ok();
}

static struct status add_padded(const struct bert_records *r, int64_t index, int32_t sequence_key,
                                struct batch *b)
{
    const int8_t *mask = (const int8_t *)r->input_mask + index * r->seq_length;
    int64_t n = 0;
    while (n < r->seq_length && mask[n] == 1) {
        n++;
    }
    for (int64_t i = n; i < r->seq_length; i++) {
        if (n == 0 || mask[i] != 0) {
            return bad_value(index, "input_mask", i, mask[i], "ones, then zeros");
        }
    }
    const struct piece p = {.record = index,
                            .n = n,
                            .ids = r->input_ids + index * r->seq_length,
                            .segments = r->segment_ids + index * r->seq_length,
                            .nsp_label = r->next_sentence_labels[index],
                            .key = sequence_key};
    TRY(add_tokens(b, &p, r->vocab_size));
    struct predictions list = find_predictions(r->masked_lm_positions + index * r->n_predictions,
                                               r->masked_lm_ids + index * r->n_predictions, r->n_predictions);
    TRY(add_predictions(b, &p, &list, r->vocab_size));
    return check_all_taken(index, &list);
}

/* The tokens from `begin` on that belong to sequence `number` of a packed record. */
static struct status measure_packed(const struct bert_records *r, int64_t index, int64_t begin,
                                    int32_t number, int64_t *n)
{
    const int32_t *mask = (const int32_t *)r->input_mask + index * r->seq_length;
    const int32_t *positions = r->positions + index * r->seq_length;
    *n = 0;
    for (int64_t i = begin; i < r->seq_length && mask[i] == number; i++) {
        if (positions[i] != *n) {
            return bad_value(index, "positions", i, positions[i],
                             "places that count from 0 in each sequence");
        }
        ++*n;
    }
    return status_ok();
}

static struct status add_packed(const struct bert_records *r, int64_t index, int32_t sequence_key,
                                struct batch *b)
{
    int64_t row = index * r->seq_length;
    const int32_t *mask = (const int32_t *)r->input_mask + row;
    struct predictions list = find_predictions(r->masked_lm_positions + index * r->n_predictions,
                                               r->masked_lm_ids + index * r->n_predictions, r->n_predictions);
    int64_t begin = 0;
    for (int32_t d = 0; d < BERT_RECORDS_MAX_PACKED; d++) {
        int64_t slot = index * BERT_RECORDS_MAX_PACKED + d;
        struct piece p = {.record = index,
                          .begin = begin,
                          .ids = r->input_ids + row + begin,
                          .segments = r->segment_ids + row + begin,
                          .nsp_label = r->next_sentence_labels[slot],
                          .key = sequence_key + d};
        TRY(measure_packed(r, index, begin, d + 1, &p.n));
        if (r->next_sentence_weights[slot] != (p.n > 0)) {
            return bad_value(index, "next_sentence_weights", d, r->next_sentence_weights[slot],
                             "1 for each sequence of input_mask, else 0");
        }
        if (p.n == 0) {
            continue;
        }
        if (r->next_sentence_positions[slot] != begin) {
            return bad_value(index, "next_sentence_positions", d, r->next_sentence_positions[slot],
                             "the place of the sequence's [CLS]");
        }
        TRY(add_tokens(b, &p, r->vocab_size));
        TRY(add_predictions(b, &p, &list, r->vocab_size));
        begin += p.n;
    }
    for (int64_t i = begin; i < r->seq_length; i++) {
        if (begin == 0 || mask[i] != 0) {
            return bad_value(index, "input_mask", i, mask[i], "1.., 2.., 3.., then zeros");
        }
    }
    return check_all_taken(index, &list);
}

struct status bert_records_add(const struct bert_records *r, int64_t index, int32_t sequence_key,
                               struct batch *b)
{
    CHECK(index >= 0 && index < r->n, "record %lld of %lld", (long long)index, (long long)r->n);
    return (r->packed ? add_packed : add_padded)(r, index, sequence_key, b);
}
