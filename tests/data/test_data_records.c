/* Tests of data/bert/bert_records: padded and packed forms of the loader's sequences give back the loader's
 * stream, and every kind of damage is named. */
#include "fixture_store.h"

#include "data/bert/bert_loader.h"
#include "data/bert/bert_records.h"

enum { VOCAB = 3000, S = 48, P = 7, N = 24, D = BERT_RECORDS_MAX_PACKED };
enum { PACKED_S = 100, PACKED_P = D * P };

struct padded {
    int32_t ids[N][S];
    int8_t mask[N][S], segments[N][S];
    int32_t positions[N][P], labels[N][P];
    int8_t nsp[N];
};

struct packed {
    int64_t n; /* records used */
    int32_t ids[N][PACKED_S], mask[N][PACKED_S], places[N][PACKED_S];
    int8_t segments[N][PACKED_S];
    int32_t positions[N][PACKED_P], labels[N][PACKED_P];
    int32_t cls[N][D], weights[N][D];
    int8_t nsp[N][D];
};

static struct bert_records view_padded(const struct padded *r)
{
    return (struct bert_records){.n = N,
                                 .seq_length = S,
                                 .n_predictions = P,
                                 .vocab_size = VOCAB,
                                 .input_ids = &r->ids[0][0],
                                 .input_mask = &r->mask[0][0],
                                 .segment_ids = &r->segments[0][0],
                                 .masked_lm_positions = &r->positions[0][0],
                                 .masked_lm_ids = &r->labels[0][0],
                                 .next_sentence_labels = r->nsp};
}

static struct bert_records view_packed(const struct packed *r)
{
    return (struct bert_records){.n = r->n,
                                 .seq_length = PACKED_S,
                                 .n_predictions = PACKED_P,
                                 .vocab_size = VOCAB,
                                 .packed = true,
                                 .input_ids = &r->ids[0][0],
                                 .input_mask = &r->mask[0][0],
                                 .segment_ids = &r->segments[0][0],
                                 .positions = &r->places[0][0],
                                 .masked_lm_positions = &r->positions[0][0],
                                 .masked_lm_ids = &r->labels[0][0],
                                 .next_sentence_positions = &r->cls[0][0],
                                 .next_sentence_labels = &r->nsp[0][0],
                                 .next_sentence_weights = &r->weights[0][0]};
}

/* Labels [*first, end) of the batch lie in sequence k. */
static int64_t labels_end(const struct batch *b, int64_t k, int64_t first)
{
    while (first < b->n_real_labels && b->fields[TEXT_MASKED_ROWS][first] < b->cu_seqlens[k + 1]) {
        first++;
    }
    return first;
}

static void to_padded(struct padded *out, const struct batch *b)
{
    memset(out, 0, sizeof *out);
    int64_t label = 0;
    for (int64_t k = 0; k < N; k++) {
        int32_t begin = b->cu_seqlens[k];
        for (int32_t i = begin; i < b->cu_seqlens[k + 1]; i++) {
            out->ids[k][i - begin] = b->ids[i];
            out->mask[k][i - begin] = 1;
            out->segments[k][i - begin] = (int8_t)b->fields[TEXT_TYPES][i];
        }
        int64_t end = labels_end(b, k, label);
        for (int64_t j = 0; label < end; label++, j++) {
            out->positions[k][j] = b->fields[TEXT_MASKED_ROWS][label] - begin;
            out->labels[k][j] = b->fields[TEXT_MASKED_LABELS][label];
        }
        out->nsp[k] = (int8_t)b->fields[TEXT_PAIR_LABELS][k];
    }
}

/* Sequences in order, as many to a record as fit. */
static void to_packed(struct packed *out, const struct batch *b)
{
    memset(out, 0, sizeof *out);
    int64_t label = 0, used = 0, n_labels = 0;
    int d = 0;
    for (int64_t k = 0; k < N; k++) {
        int32_t begin = b->cu_seqlens[k], n = b->cu_seqlens[k + 1] - begin;
        if (d == D || used + n > PACKED_S) {
            out->n++;
            used = n_labels = d = 0;
        }
        for (int32_t i = 0; i < n; i++) {
            out->ids[out->n][used + i] = b->ids[begin + i];
            out->mask[out->n][used + i] = d + 1;
            out->places[out->n][used + i] = i;
            out->segments[out->n][used + i] = (int8_t)b->fields[TEXT_TYPES][begin + i];
        }
        int64_t end = labels_end(b, k, label);
        for (; label < end; label++, n_labels++) {
            out->positions[out->n][n_labels] = (int32_t)(b->fields[TEXT_MASKED_ROWS][label] - begin + used);
            out->labels[out->n][n_labels] = b->fields[TEXT_MASKED_LABELS][label];
        }
        out->cls[out->n][d] = (int32_t)used;
        out->nsp[out->n][d] = (int8_t)b->fields[TEXT_PAIR_LABELS][k];
        out->weights[out->n][d++] = 1;
        used += n;
    }
    out->n++;
}

static void expect_same(const struct batch *a, const struct batch *b, const char *form)
{
    EXPECT(a->n_tokens == b->n_tokens && a->n_sequences == b->n_sequences && a->n_labels == b->n_labels &&
               a->n_streams == b->n_streams && a->max_seqlen == b->max_seqlen,
           "sizes of the %s form", form);
    size_t t = (size_t)a->n_tokens * sizeof(int32_t), m = (size_t)a->n_labels * sizeof(int32_t);
    EXPECT(memcmp(a->ids, b->ids, t) == 0 && memcmp(a->fields[TEXT_TYPES], b->fields[TEXT_TYPES], t) == 0 &&
               memcmp(a->positions, b->positions, t) == 0 && memcmp(a->row_keys, b->row_keys, 2 * t) == 0,
           "tokens of the %s form", form);
    EXPECT(memcmp(a->fields[TEXT_MASKED_ROWS], b->fields[TEXT_MASKED_ROWS], m) == 0 &&
               memcmp(a->fields[TEXT_MASKED_LABELS], b->fields[TEXT_MASKED_LABELS], m) == 0,
           "labels of the %s form", form);
    EXPECT(memcmp(a->cu_seqlens, b->cu_seqlens, (size_t)(a->n_streams + 1) * sizeof(int32_t)) == 0 &&
               memcmp(a->fields[TEXT_CLS_ROWS], b->fields[TEXT_CLS_ROWS],
                      (size_t)a->n_sequences * sizeof(int32_t)) == 0 &&
               memcmp(a->fields[TEXT_PAIR_LABELS], b->fields[TEXT_PAIR_LABELS],
                      (size_t)a->n_sequences * sizeof(int32_t)) == 0,
           "sequences of the %s form", form);
}

static struct status read_padded(const struct padded *r, struct batch *b)
{
    struct bert_records view = view_padded(r);
    batch_clear(b);
    for (int64_t k = 0; k < N; k++) {
        TRY(bert_records_add(&view, k, (int32_t)k, b));
    }
    batch_finish(b, FIXTURE_PAD);
    return status_ok();
}

static struct status read_packed(const struct packed *r, struct batch *b)
{
    struct bert_records view = view_packed(r);
    batch_clear(b);
    for (int64_t k = 0; k < r->n; k++) {
        TRY(bert_records_add(&view, k, (int32_t)b->n_sequences, b));
    }
    batch_finish(b, FIXTURE_PAD);
    return status_ok();
}

static struct padded padded, damaged_padded;
static struct packed packed, damaged_packed;

/* Changes one element of a copy, reads the copy, and expects an error that names the field. */
#define EXPECT_PADDED_ERROR(element, value, part)                                                            \
    do {                                                                                                     \
        damaged_padded = padded;                                                                             \
        damaged_padded.element = (value);                                                                    \
        EXPECT_ERROR(read_padded(&damaged_padded, b), STATUS_DATA, part);                                    \
    } while (0)
#define EXPECT_PACKED_ERROR(element, value, part)                                                            \
    do {                                                                                                     \
        damaged_packed = packed;                                                                             \
        damaged_packed.element = (value);                                                                    \
        EXPECT_ERROR(read_packed(&damaged_packed, b), STATUS_DATA, part);                                    \
    } while (0)

static void damaged_padded_records_are_named(struct batch *b)
{
    EXPECT_PADDED_ERROR(ids[3][1], VOCAB, "record 3: input_ids[1] is 3000");
    EXPECT_PADDED_ERROR(ids[3][0], -1, "input_ids[0]");
    EXPECT_PADDED_ERROR(mask[3][0], 0, "input_mask[0]");
    EXPECT_PADDED_ERROR(mask[3][2], 0, "input_mask[3] is 1");
    EXPECT_PADDED_ERROR(mask[3][1], 2, "input_mask[1] is 2");
    EXPECT_PADDED_ERROR(segments[3][0], 1, "segment_ids[1] is 0");
    EXPECT_PADDED_ERROR(segments[3][1], -1, "segment_ids");
    EXPECT_PADDED_ERROR(positions[3][0], S, "masked_lm_positions[0]");
    EXPECT_PADDED_ERROR(positions[3][0], -1, "masked_lm_positions[0] is -1");
    EXPECT_PADDED_ERROR(positions[3][1], padded.positions[3][0], "masked_lm_positions[1]");
    EXPECT_PADDED_ERROR(labels[3][0], VOCAB, "masked_lm_ids[0] is 3000");
    EXPECT_PADDED_ERROR(nsp[3], 2, "next_sentence_labels");
    damaged_padded = padded;
    memset(damaged_padded.mask[5], 0, sizeof damaged_padded.mask[5]);
    EXPECT_ERROR(read_padded(&damaged_padded, b), STATUS_DATA, "record 5: input_mask[0] is 0");
}

static void damaged_packed_records_are_named(struct batch *b)
{
    EXPECT(packed.weights[0][1] == 1, "the first record has two sequences");
    int32_t second = packed.cls[0][1];
    EXPECT_PACKED_ERROR(ids[0][second], VOCAB, "record 0: input_ids");
    EXPECT_PACKED_ERROR(mask[0][0], 2, "next_sentence_weights[0]");
    EXPECT_PACKED_ERROR(mask[0][PACKED_S - 1], 1, "input_mask[99]");
    EXPECT_PACKED_ERROR(places[0][second], 1, "positions");
    EXPECT_PACKED_ERROR(places[0][1], 0, "positions[1] is 0");
    EXPECT_PACKED_ERROR(segments[0][second], 2, "segment_ids");
    EXPECT_PACKED_ERROR(positions[0][0], PACKED_S, "masked_lm_positions[0]");
    EXPECT_PACKED_ERROR(labels[0][0], -5, "masked_lm_ids[0] is -5");
    EXPECT_PACKED_ERROR(cls[0][1], second + 1, "next_sentence_positions[1]");
    EXPECT_PACKED_ERROR(nsp[0][1], -1, "next_sentence_labels");
    EXPECT_PACKED_ERROR(weights[0][1], 0, "next_sentence_weights[1] is 0");
    EXPECT_PACKED_ERROR(weights[0][0], 2, "next_sentence_weights[0] is 2");
    int32_t on_cls = second;
    int64_t j = 0;
    while (packed.positions[0][j] < second) {
        j++;
    }
    EXPECT_PACKED_ERROR(positions[0][j], on_cls, "masked_lm_positions"); /* a [CLS] cannot be masked */
}

int main(void)
{
    struct indexed store;
    fixture_store(&store, "store", 60, 12, 14, VOCAB);
    struct bert_loader_config c = {.store = &store,
                                   .vocab_size = VOCAB,
                                   .pad_id = FIXTURE_PAD,
                                   .cls_id = FIXTURE_CLS,
                                   .sep_id = FIXTURE_SEP,
                                   .mask_id = FIXTURE_MASK,
                                   .seed = 3,
                                   .batch.max_seq_length = S,
                                   .max_predictions_per_seq = P,
                                   .batch.train_batch_size = N,
                                   .batch.gradient_accumulation_steps = 1,
                                   .masked_lm_prob = 0.15,
                                   .short_seq_prob = 0.5};
    struct bert_loader l;
    struct batch_step step;
    struct batch batch;
    EXPECT_OK(bert_loader_open(&l, c));
    EXPECT_OK(bert_loader_init_step(&c, &step));
    EXPECT_OK(text_batch_init(&batch, bert_loader_limits(&c)));
    for (int64_t s = 1; s <= 50; s++) {
        EXPECT_OK(bert_loader_step(&l, s, &step));
        to_padded(&padded, &step.micro[0]);
        EXPECT_OK(read_padded(&padded, &batch));
        expect_same(&step.micro[0], &batch, "padded");
        to_packed(&packed, &step.micro[0]);
        EXPECT_OK(read_packed(&packed, &batch));
        expect_same(&step.micro[0], &batch, "packed");
        EXPECT(packed.n < N, "%lld records of %d sequences", (long long)packed.n, N);
    }
    damaged_padded_records_are_named(&batch);
    damaged_packed_records_are_named(&batch);
    batch_fini(&batch);
    batch_step_fini(&step);
    bert_loader_close(&l);
    indexed_close(&store);
    fixture_remove();
    return 0;
}
