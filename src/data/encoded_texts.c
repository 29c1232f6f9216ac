#include "data/encoded_texts.h"

#include "core/integers.h"

#include <string.h>

struct status encoded_texts_init(struct encoded_texts *t, const struct tokenizer *tokenizer, int64_t limit,
                                 const char *what)
{
    *t = (struct encoded_texts){.limit = limit, .width = 1};
    return tokenizer_frame(&t->frame, tokenizer, what);
}

void encoded_texts_fini(struct encoded_texts *t)
{
    id_list_fini(&t->ids);
    buf_fini(&t->texts);
    buf_fini(&t->labels);
    *t = (struct encoded_texts){0};
}

const struct encoded_text *encoded_texts_get(const struct encoded_texts *t, int64_t i)
{
    return (const struct encoded_text *)(const void *)t->texts.data + i;
}

static const struct input_form *form_of(const struct encoded_texts *t, const struct encoded_text *x)
{
    return x->is_pair ? &t->frame.pair : &t->frame.one;
}

int64_t encoded_texts_length(const struct encoded_texts *t, int64_t i)
{
    const struct encoded_text *x = encoded_texts_get(t, i);
    return input_form_n_special(form_of(t, x)) + x->a.n + x->b.n;
}

int64_t encoded_texts_first_length(const struct encoded_texts *t, int64_t i)
{
    const struct encoded_text *x = encoded_texts_get(t, i);
    return input_form_n_first(form_of(t, x), x->a.n, x->b.n);
}

int64_t encoded_texts_second_at(const struct encoded_texts *t, int64_t i)
{
    const struct encoded_text *x = encoded_texts_get(t, i);
    return input_form_second_at(form_of(t, x), x->a.n);
}

/* ---- making ---- */

struct status encoded_texts_tokenize(struct encoded_texts *t, struct token_range *tokens,
                                     struct tokenizer_scratch *scratch, struct text_bytes text)
{
    tokens->first = (int64_t)t->ids.n;
    TRY(tokenizer_encode_ids(scratch, &t->ids, text.bytes, text.n));
    tokens->n = (int64_t)t->ids.n - tokens->first;
    return status_ok();
}

struct status encoded_texts_add_tokens(struct encoded_texts *t, struct token_range a,
                                       const struct token_range *b)
{
    struct encoded_text x = {
        .a = a, .b = b != NULL ? *b : (struct token_range){0}, .is_pair = b != NULL, .row = t->n_rows};
    buf_append(&t->texts, &x, sizeof x);
    TRY(buf_status(&t->texts));
    int64_t n = encoded_texts_length(t, t->n++);
    t->n_rows += n;
    t->max_length = int_larger(t->max_length, n);
    return status_ok();
}

/* The arithmetic of truncate_encodings in the crate tokenizers. */
void encoded_texts_cut(int64_t *a, int64_t *b, int64_t room)
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

struct status encoded_texts_fit(struct encoded_texts *t, struct token_range a, const struct token_range *b)
{
    int64_t n_special = input_form_n_special(b != NULL ? &t->frame.pair : &t->frame.one);
    int64_t room = t->limit - n_special, n_a = a.n, n_b = b != NULL ? b->n : 0;
    struct token_range second = b != NULL ? *b : (struct token_range){0};
    FAIL_IF(n_a + n_b > room && t->cut == TEXT_CUT_NOTHING, STATUS_DATA,
            "text %lld has %lld tokens, special ones included, but the model reads at most %lld",
            (long long)t->n, (long long)(n_a + n_b + n_special), (long long)t->limit);
    FAIL_IF(n_special + n_a + n_b == 0, STATUS_DATA, "a text has no tokens, and the tokenizer adds none");
    t->n_cut += n_a + n_b > room;
    encoded_texts_cut(&a.n, &second.n, room);
    if (t->cut == TEXT_CUT_BEGINNING) {
        a.first += n_a - a.n;
        second.first += n_b - second.n;
    } else if (b == NULL) {
        t->ids.n = (size_t)(a.first + a.n); /* tokens that are cut off need no memory */
    }
    return encoded_texts_add_tokens(t, a, b != NULL ? &second : NULL);
}

struct status encoded_texts_add(struct encoded_texts *t, struct tokenizer_scratch *scratch,
                                struct text_bytes a, const struct text_bytes *b)
{
    int64_t n_special = input_form_n_special(b != NULL ? &t->frame.pair : &t->frame.one);
    struct token_range first, second;
    FAIL_IF(t->limit < n_special, STATUS_USAGE,
            "%lld tokens leave no room for a text beside the %lld special tokens", (long long)t->limit,
            (long long)n_special);
    TRY(encoded_texts_tokenize(t, &first, scratch, a));
    if (b != NULL) {
        TRY(encoded_texts_tokenize(t, &second, scratch, *b));
    }
    return encoded_texts_fit(t, first, b != NULL ? &second : NULL);
}

bool encoded_texts_next_window(struct token_range *window, int64_t n, int64_t room, int64_t step)
{
    if (window->first + window->n >= n) {
        return false;
    }
    window->first += window->n > 0 ? step : 0;
    window->n = int_smaller(room, n - window->first);
    return true;
}

/* ---- batches ---- */

static void copy(int32_t *to, const struct encoded_texts *t, struct token_range from)
{
    if (from.n > 0) { /* without any tokens ids is NULL */
        memcpy(to, t->ids.ids + from.first, (size_t)from.n * sizeof *to);
    }
}

void encoded_texts_write(const struct encoded_texts *t, int64_t i, int32_t *ids)
{
    const struct encoded_text *x = encoded_texts_get(t, i);
    const struct input_form *form = form_of(t, x);
    input_form_write(form, ids, x->a.n, x->b.n);
    copy(ids + form->before.n, t, x->a);
    copy(ids + input_form_second_at(form, x->a.n), t, x->b);
}

int32_t *encoded_texts_append(const struct encoded_texts *t, int64_t i, int32_t key, struct batch *out)
{
    int32_t *ids = text_batch_add(out, encoded_texts_length(t, i), encoded_texts_first_length(t, i), -1, key);
    encoded_texts_write(t, i, ids);
    return ids;
}

static int64_t length(const void *self, int64_t i)
{
    return encoded_texts_length(self, i);
}

static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct encoded_texts *t = self;
    const struct encoded_text *x = encoded_texts_get(t, i);
    int64_t row = encoded_texts_append(t, i, key, out) - out->ids, n = encoded_texts_length(t, i);
    if (t->width == 0) {
        return;
    }
    int64_t first = t->of_tokens ? row : out->n_sequences - 1; /* first of the sequence's rows of labels */
    int32_t *labels = out->fields[TEXT_CLASS_LABELS] + first * t->width;
    memset(labels, -1, (size_t)((t->of_tokens ? n : 1) * t->width) * sizeof *labels); /* a NaN in fp32 */
    if (t->labels.n > 0) {
        const int32_t *from = (const int32_t *)(const void *)t->labels.data;
        from += (t->of_tokens ? x->a.first : i) * t->width;
        memcpy(labels + (t->of_tokens ? form_of(t, x)->before.n * t->width : 0), from,
               (size_t)((t->of_tokens ? x->a.n : 1) * t->width) * sizeof *labels);
    }
}

struct example_source encoded_texts_source(const struct encoded_texts *t, const char *name)
{
    return (struct example_source){
        .name = name, .self = t, .n = t->n, .max_length = t->max_length, .length = length, .add = add};
}
