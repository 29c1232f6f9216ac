#include "serve/likelihood.h"

#include "data/text_batch.h"

#include <stdlib.h>
#include <string.h>

struct likelihood_text {
    size_t start, n; /* tokens in `ids`, special ones included */
    int64_t first;   /* the number of its first sequence, among those of all texts by length */
    double sum;
};

static struct likelihood_text *text_of(const struct likelihood *l, int64_t i)
{
    return (struct likelihood_text *)(void *)l->texts.data + i;
}

struct status likelihood_init(struct likelihood *l, const struct session *s, enum likelihood_masking masking)
{
    *l = (struct likelihood){.session = s, .masking = masking};
    return tokenizer_require(s->tokenizer, 1U << SPECIAL_MASK, "a likelihood by masked tokens");
}

void likelihood_fini(struct likelihood *l)
{
    id_list_fini(&l->ids);
    buf_fini(&l->texts);
    free(l->order);
    *l = (struct likelihood){0};
}

static struct status check_length(const struct likelihood *l, size_t n)
{
    FAIL_IF((int64_t)n == input_form_n_special(&l->session->frame.one), STATUS_DATA,
            "the text has no token to predict");
    FAIL_IF((int64_t)n > l->session->max_length, STATUS_DATA,
            "the text has %zu tokens with the special ones, but the model reads at most %lld", n,
            (long long)l->session->max_length);
    return status_ok();
}

struct status likelihood_add(struct likelihood *l, struct tokenizer_scratch *scratch, const char *text,
                             size_t n)
{
    struct likelihood_text t = {.start = l->ids.n};
    TRY(input_specials_append(&l->ids, &l->session->frame.one.before));
    TRY(tokenizer_encode_ids(scratch, &l->ids, text, n));
    TRY(input_specials_append(&l->ids, &l->session->frame.one.after));
    t.n = l->ids.n - t.start;
    struct status status = check_length(l, t.n);
    if (failed(status)) {
        l->ids.n = t.start;
        return status;
    }
    buf_append(&l->texts, &t, sizeof t);
    l->n++;
    return buf_status(&l->texts);
}

static int by_length(const void *a, const void *b)
{
    const struct likelihood_text *x = *(struct likelihood_text *const *)a,
                                 *y = *(struct likelihood_text *const *)b;
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : (x->start > y->start) - (x->start < y->start);
}

static int64_t n_predicted(const struct likelihood *l, const struct likelihood_text *t)
{
    return (int64_t)t->n - input_form_n_special(&l->session->frame.one);
}

/* The text of sequence i: each text is a sequence for each of its tokens, which is masked. */
static struct likelihood_text *text_at(const struct likelihood *l, int64_t i)
{
    int64_t low = 0, high = l->n;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        *(l->order[middle]->first <= i ? &low : &high) = middle;
    }
    return l->order[low];
}

static int64_t length(const void *self, int64_t i)
{
    return (int64_t)text_at(self, i)->n;
}

/* Appends the text with the mask at the token that is to be predicted. */
static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct likelihood *l = self;
    const struct likelihood_text *t = text_at(l, i);
    const struct tokenizer *tokenizer = l->session->tokenizer;
    const struct input_form *form = &l->session->frame.one;
    const int32_t *ids = l->ids.ids + t->start;
    int64_t n = (int64_t)t->n, position = form->before.n + i - t->first;
    int32_t *to = text_batch_add(out, n, input_form_n_first(form, n_predicted(l, t), 0), -1, key),
            mask = tokenizer->special[SPECIAL_MASK];
    memcpy(to, ids, t->n * sizeof *to);
    to[position] = mask;
    for (int64_t k = position + 1; l->masking == LIKELIHOOD_WITHIN_WORD && k < n - form->after.n &&
                                   tokenizer_continues_word(tokenizer, ids[k]);
         k++) {
        to[k] = mask;
    }
    text_batch_masked_positions(out)[0] = (int32_t)position;
    text_batch_masked_labels(out)[0] = ids[position];
    text_batch_take_masked(out, 1);
}

static struct status take(void *self, int64_t i, const tensor outputs[MODEL_N_OUTPUTS])
{
    struct likelihood *l = self;
    struct likelihood_text *t = text_at(l, i);
    t->sum -= tensor_load(outputs[MODEL_WORD_LOSSES], 0);
    return status_ok();
}

struct status likelihood_make(struct likelihood *l)
{
    int64_t n = 0;
    free(l->order);
    l->order = calloc((size_t)l->n + 1, sizeof(struct likelihood_text *));
    FAIL_IF(l->order == NULL, STATUS_MEMORY, "out of memory for %lld texts", (long long)l->n);
    for (int64_t i = 0; i < l->n; i++) {
        l->order[i] = text_of(l, i);
    }
    qsort(l->order, (size_t)l->n, sizeof(struct likelihood_text *), by_length);
    for (int64_t i = 0; i < l->n; i++) {
        struct likelihood_text *t = l->order[i];
        t->sum = 0;
        t->first = n;
        n += n_predicted(l, t);
    }
    l->request =
        (struct request){.source = {.name = "texts", .self = l, .n = n, .length = length, .add = add},
                         .n_asked = 1,
                         .outputs = 1U << MODEL_WORD_LOSSES,
                         .take = take,
                         .self = l};
    return status_ok();
}

double likelihood_get(const struct likelihood *l, int64_t i)
{
    return text_of(l, i)->sum;
}

int64_t likelihood_tokens(const struct likelihood *l, int64_t i)
{
    return n_predicted(l, text_of(l, i));
}

bool likelihood_same_tokens(const struct likelihood *l, int64_t i, int64_t k)
{
    const struct likelihood_text *a = text_of(l, i), *b = text_of(l, k);
    return a->n == b->n &&
           memcmp(l->ids.ids + a->start, l->ids.ids + b->start, a->n * sizeof *l->ids.ids) == 0;
}
