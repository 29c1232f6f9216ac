#include "data/pair_encoder.h"

struct status pair_encoder_init(struct pair_encoder *e, struct tokenizer_scratch *scratch, int64_t max_length)
{
    *e = (struct pair_encoder){.scratch = scratch, .max_length = max_length};
    return tokenizer_frame(&e->frame, scratch->tokenizer, "a text to classify");
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

static bool make_room(struct id_list *l, int64_t n)
{
    bool room = true;
    for (l->n = 0; room && (int64_t)l->n < n;) {
        room = id_list_append(l, 0);
    }
    return room;
}

/* The n tokens of a text that are kept. */
static const int32_t *kept(const struct pair_encoder *e, const struct id_list *text, int64_t n)
{
    return text->ids + (e->cut == TEXT_CUT_BEGINNING ? (int64_t)text->n - n : 0);
}

/* Lays out n_a and n_b tokens of both texts. */
static struct status put(struct pair_encoder *e, struct labelled_texts *out, const struct input_form *form,
                         int64_t n_a, int64_t n_b, const int32_t *labels)
{
    int64_t n = input_form_n_special(form) + n_a + n_b;
    if (n == 0) {
        return status_error(STATUS_DATA, "a text has no tokens, and the tokenizer adds none");
    }
    if (!make_room(&e->whole, n)) {
        return status_error(STATUS_MEMORY, "out of memory for the tokens of a text");
    }
    input_form_write(form, e->whole.ids, n_a, n_b);
    for (int64_t i = 0; i < n_a; i++) {
        e->whole.ids[form->before.n + i] = kept(e, &e->a, n_a)[i];
    }
    for (int64_t i = 0; i < n_b; i++) {
        e->whole.ids[input_form_second_at(form, n_a) + i] = kept(e, &e->b, n_b)[i];
    }
    return labelled_texts_add(out, e->whole.ids, n, input_form_n_first(form, n_a, n_b), labels);
}

struct status pair_encoder_add(struct pair_encoder *e, struct labelled_texts *out, struct text_bytes a,
                               const struct text_bytes *b, const int32_t *labels)
{
    const struct input_form *form = b != NULL ? &e->frame.pair : &e->frame.one;
    int64_t room = e->max_length - input_form_n_special(form);
    if (room < 0) {
        return status_error(STATUS_USAGE,
                            "%lld tokens leave no room for a text beside the %lld special tokens",
                            (long long)e->max_length, (long long)input_form_n_special(form));
    }
    e->a.n = e->b.n = 0;
    TRY(tokenizer_encode_ids(e->scratch, &e->a, a.bytes, a.n));
    if (b != NULL) {
        TRY(tokenizer_encode_ids(e->scratch, &e->b, b->bytes, b->n));
    }
    int64_t n_a = (int64_t)e->a.n, n_b = (int64_t)e->b.n;
    if (n_a + n_b > room && e->cut == TEXT_CUT_NOTHING) {
        return status_error(
            STATUS_DATA, "text %lld has %lld tokens, special ones included, but the model reads at most %lld",
            (long long)out->n, (long long)(n_a + n_b + e->max_length - room), (long long)e->max_length);
    }
    e->n_cut += n_a + n_b > room;
    pair_encoder_cut(&n_a, &n_b, room);
    return put(e, out, form, n_a, n_b, labels);
}
