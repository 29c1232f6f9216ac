#include "serve/likelihood.h"

#include "data/text_batch.h"

#include <math.h>
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

enum likelihood_masking likelihood_masking_find(const char *name)
{
    return strcmp(name, "token") == 0 ? LIKELIHOOD_TOKEN : LIKELIHOOD_WITHIN_WORD;
}

struct status likelihood_init(struct likelihood *l, const struct session *s, enum likelihood_masking masking)
{
    *l = (struct likelihood){.session = s, .masking = masking, .form = s->frame.one};
    l->is_decoder = s->model->task == MODEL_TASK_CAUSAL_LM;
    if (l->is_decoder) {
        l->form = (struct input_form){.before = s->tokenizer->frame.one.before};
        return status_ok();
    }
    return tokenizer_require(s->tokenizer, 1U << SPECIAL_MASK, "a likelihood by masked tokens");
}

struct status likelihood_begin_texts(struct likelihood *l)
{
    const struct tokenizer *t = l->session->tokenizer;
    if (l->form.before.n > 0) {
        return status_ok();
    }
    TRY(tokenizer_require(t, 1U << SPECIAL_BEGIN, "a likelihood of first tokens"));
    l->form.before = (struct input_specials){.n = 1, .ids = {t->special[SPECIAL_BEGIN]}};
    return status_ok();
}

void likelihood_fini(struct likelihood *l)
{
    id_list_fini(&l->ids);
    buf_fini(&l->texts);
    free(l->order);
    free(l->losses);
    *l = (struct likelihood){0};
}

/* The tokens of a text that no others predict: the special ones, or a decoder's first. */
static int64_t n_given(const struct likelihood *l)
{
    int64_t n = input_form_n_special(&l->form);
    return n == 0 && l->is_decoder ? 1 : n;
}

static struct status check_length(const struct likelihood *l, size_t n)
{
    int64_t n_read = (int64_t)n - l->is_decoder; /* the last token is only predicted */
    FAIL_IF((int64_t)n > 0 && (int64_t)n == n_given(l) && input_form_n_special(&l->form) == 0, STATUS_DATA,
            "the text has one token, which has none before it that predicts it");
    FAIL_IF((int64_t)n <= n_given(l), STATUS_DATA, "the text has no token to predict");
    FAIL_IF(n_read > l->session->max_length, STATUS_DATA,
            "the text has %zu tokens with the special ones, but the model reads at most %lld", n,
            (long long)l->session->max_length);
    return status_ok();
}

struct status likelihood_add(struct likelihood *l, struct tokenizer_scratch *scratch, const char *text,
                             size_t n)
{
    struct likelihood_text t = {.start = l->ids.n};
    TRY(input_specials_append(&l->ids, &l->form.before));
    TRY(tokenizer_encode_ids(scratch, &l->ids, text, n));
    TRY(input_specials_append(&l->ids, &l->form.after));
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
    return (int64_t)t->n - n_given(l);
}

/* The text of sequence i.  Of a masked model a text is a sequence for each of its tokens, which is masked. */
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
    const struct likelihood *l = self;
    return (int64_t)text_at(self, i)->n - l->is_decoder;
}

/* Appends the text without its last token, which asks for each token after the given ones. */
static void add_next(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct likelihood *l = self;
    const struct likelihood_text *t = text_at(l, i);
    const int32_t *ids = l->ids.ids + t->start;
    int64_t n = (int64_t)t->n - 1, given = n_given(l), m = n_predicted(l, t);
    memcpy(text_batch_add(out, n, n, -1, key), ids, (size_t)n * sizeof *ids);
    for (int64_t k = 0; k < m; k++) {
        text_batch_masked_positions(out)[k] = (int32_t)(given + k - 1);
        text_batch_masked_labels(out)[k] = ids[given + k];
    }
    text_batch_take_masked(out, m);
}

/* Appends the text with the mask at the token that is to be predicted. */
static void add_masked(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct likelihood *l = self;
    const struct likelihood_text *t = text_at(l, i);
    const struct tokenizer *tokenizer = l->session->tokenizer;
    const struct input_form *form = &l->form;
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
    tensor losses = outputs[MODEL_WORD_LOSSES];
    int64_t first = l->is_decoder ? n_given(l) : l->form.before.n + i - t->first;
    for (int64_t k = 0; k < tensor_count(losses); k++) {
        l->losses[(int64_t)t->start + first + k] = tensor_load(losses, k);
        t->sum -= tensor_load(losses, k);
    }
    return status_ok();
}

/* Without a loss so far. */
static struct status make_losses(struct likelihood *l)
{
    free(l->losses);
    l->losses = malloc((l->ids.n + 1) * sizeof *l->losses);
    FAIL_IF(l->losses == NULL, STATUS_MEMORY, "out of memory for the losses of %zu tokens", l->ids.n);
    for (size_t i = 0; i < l->ids.n; i++) {
        l->losses[i] = NAN;
    }
    return status_ok();
}

struct status likelihood_make(struct likelihood *l)
{
    int64_t n = 0, n_asked = 1;
    TRY(make_losses(l));
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
        n += l->is_decoder ? 1 : n_predicted(l, t);
    }
    if (l->is_decoder && l->n > 0) {
        n_asked = n_predicted(l, l->order[0]);
    }
    l->request = (struct request){.source = {.name = "texts",
                                             .self = l,
                                             .n = n,
                                             .length = length,
                                             .add = l->is_decoder ? add_next : add_masked},
                                  .n_asked = n_asked,
                                  .outputs = 1U << MODEL_WORD_LOSSES,
                                  .take = take,
                                  .self = l};
    return status_ok();
}

double likelihood_get(const struct likelihood *l, int64_t i)
{
    return text_of(l, i)->sum;
}

const double *likelihood_losses(const struct likelihood *l, int64_t i)
{
    return l->losses + text_of(l, i)->start + l->form.before.n;
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
