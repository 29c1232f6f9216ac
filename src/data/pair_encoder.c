#include "data/pair_encoder.h"

struct status pair_encoder_init(struct pair_encoder *e, struct tokenizer_scratch *scratch, int64_t max_length)
{
    *e = (struct pair_encoder){.scratch = scratch, .max_length = max_length};
    return tokenizer_require(scratch->tokenizer, 1U << SPECIAL_BEGIN | 1U << SPECIAL_SEPARATOR,
                             "a text to classify");
}

void pair_encoder_fini(struct pair_encoder *e)
{
    id_list_fini(&e->a);
    id_list_fini(&e->b);
    id_list_fini(&e->whole);
    *e = (struct pair_encoder){0};
}

/* From the crate tokenizers, truncate_encodings. */
void pair_encoder_cut(int64_t *a, int64_t *b, int64_t room)
{
    bool swap = *a > *b;
    int64_t shorter = swap ? *b : *a, longer = swap ? *a : *b;
    if (shorter + longer > room) {
        longer = shorter > room ? shorter : (shorter > room - shorter ? shorter : room - shorter);
        if (shorter + longer > room) {
            shorter = room / 2;
            longer = shorter + room % 2;
        }
    }
    *a = swap ? longer : shorter;
    *b = swap ? shorter : longer;
}

static bool put(struct id_list *out, const struct id_list *ids, int64_t n, int32_t separator)
{
    bool room = true;
    for (int64_t i = 0; i < n; i++) {
        room = room && id_list_append(out, ids->ids[i]);
    }
    return room && id_list_append(out, separator);
}

struct status pair_encoder_add(struct pair_encoder *e, struct labelled_texts *out, struct text_bytes a,
                               const struct text_bytes *b, const int32_t *labels)
{
    const int32_t *special = e->scratch->tokenizer->special;
    bool pair = b != NULL;
    int64_t room = e->max_length - (pair ? 3 : 2);
    if (room < 0) {
        return status_error(
            STATUS_USAGE,
            "%lld tokens leave no room for a text between the special ones, of which there are %d",
            (long long)e->max_length, pair ? 3 : 2);
    }
    e->a.n = e->b.n = e->whole.n = 0;
    TRY(tokenizer_encode_ids(e->scratch, &e->a, a.bytes, a.n));
    if (pair) {
        TRY(tokenizer_encode_ids(e->scratch, &e->b, b->bytes, b->n));
    }
    int64_t n_a = (int64_t)e->a.n, n_b = (int64_t)e->b.n;
    e->n_cut += n_a + n_b > room;
    pair_encoder_cut(&n_a, &n_b, room);
    bool has_room = id_list_append(&e->whole, special[SPECIAL_BEGIN]) &&
                    put(&e->whole, &e->a, n_a, special[SPECIAL_SEPARATOR]) &&
                    (!pair || put(&e->whole, &e->b, n_b, special[SPECIAL_SEPARATOR]));
    return has_room ? labelled_texts_add(out, e->whole.ids, (int64_t)e->whole.n, n_a + 2, labels)
                    : status_error(STATUS_MEMORY, "out of memory for the tokens of a text");
}
