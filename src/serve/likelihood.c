#include "serve/likelihood.h"

#include "data/text_batch.h"
#include "dev/host_view.h"
#include "pass/culprit.h"

#include <stdlib.h>
#include <string.h>

struct likelihood_text {
    size_t start, n; /* in the ids, special tokens included */
    double sum;
};

/* The next sequence: a text with one position to predict. */
struct cursor {
    struct likelihood_text **text, **end; /* of the texts by length */
    size_t position;                      /* counted from [CLS] */
};

struct likelihood_job {
    struct likelihood *l;
    struct likelihood_text **order; /* [n] longest first */
    int64_t *owners;                /* [sequences of a batch] the numbers of their texts */
    double work, done;              /* tokens of all sequences, and of those computed */
};

static struct likelihood_text *text_of(const struct likelihood *l, int64_t i)
{
    return (struct likelihood_text *)(void *)l->texts.data + i;
}

struct status likelihood_init(struct likelihood *l, struct session *s, enum likelihood_masking masking)
{
    *l = (struct likelihood){.session = s, .masking = masking};
    return tokenizer_require(s->tokenizer, 1U << SPECIAL_MASK, "a likelihood by masked tokens");
}

void likelihood_fini(struct likelihood *l)
{
    id_list_fini(&l->ids);
    buf_fini(&l->texts);
    *l = (struct likelihood){0};
}

static struct status append_id(struct likelihood *l, enum special_token token)
{
    return id_list_append(&l->ids, l->session->tokenizer->special[token])
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for the tokens of texts");
}

static struct status check_length(const struct likelihood *l, size_t n)
{
    if (n == 2) {
        return status_error(STATUS_DATA, "the text has no token to predict");
    }
    if ((int64_t)n > l->session->max_length) {
        return status_error(STATUS_DATA,
                            "the text has %zu tokens with [CLS] and [SEP], but the model reads at most %lld",
                            n, (long long)l->session->max_length);
    }
    return status_ok();
}

struct status likelihood_add(struct likelihood *l, const char *text, size_t n)
{
    struct likelihood_text t = {.start = l->ids.n};
    TRY(append_id(l, SPECIAL_BEGIN));
    TRY(tokenizer_encode_ids(&l->session->scratch, &l->ids, text, n));
    TRY(append_id(l, SPECIAL_SEPARATOR));
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

/* Appends the text with the mask at `position`, which is to be predicted. */
static void add_sequence(const struct likelihood *l, const struct likelihood_text *t, size_t position)
{
    struct batch *b = &l->session->batch;
    const struct tokenizer *tokenizer = l->session->tokenizer;
    const int32_t *ids = l->ids.ids + t->start;
    int32_t *out = text_batch_add(b, (int64_t)t->n, (int64_t)t->n, -1, 0),
            mask = tokenizer->special[SPECIAL_MASK];
    memcpy(out, ids, t->n * sizeof *out);
    out[position] = mask;
    for (size_t i = position + 1;
         l->masking == LIKELIHOOD_WITHIN_WORD && i + 1 < t->n && tokenizer_continues_word(tokenizer, ids[i]);
         i++) {
        out[i] = mask;
    }
    text_batch_masked_positions(b)[0] = (int32_t)position;
    text_batch_masked_labels(b)[0] = ids[position];
    text_batch_take_masked(b, 1);
}

static bool fits(const struct batch *b, size_t n_tokens)
{
    return b->n_real_tokens + (int64_t)n_tokens <= b->limits.n_tokens &&
           b->n_sequences + 1 < b->limits.n_sequences && b->n_real_labels < b->limits.n_labels;
}

/* Fills the batch with the next sequences: at least one. */
static void fill_batch(struct likelihood_job *j, struct cursor *c)
{
    struct batch *b = &j->l->session->batch;
    batch_clear(b);
    while (c->text < c->end && fits(b, (*c->text)->n)) {
        j->owners[b->n_sequences] = *c->text - text_of(j->l, 0);
        add_sequence(j->l, *c->text, c->position++);
        if (c->position + 1 == (*c->text)->n) { /* [SEP] */
            c->text++;
            c->position = 1;
        }
    }
    j->done += (double)b->n_real_tokens;
    batch_finish(b, tokenizer_tail_id(j->l->session->tokenizer));
}

/* The losses of the batch that ran, -log p of each label, are computed where the logits are, and only they
 * are fetched. */
static struct status take_losses(struct likelihood_job *j)
{
    struct session *s = j->l->session;
    struct stage *stage = &s->net.stage;
    tensor losses = stage_head_output(stage, MODEL_WORD_LOSSES);
    struct host_view view;
    exec_enter(&s->net.x, "likelihood", -1);
    s->net.x.ops->cross_entropy(&s->net.x, losses, stage_head_output(stage, MODEL_WORD_CORRECT), NULL_TENSOR,
                                stage_head_output(stage, MODEL_WORD_LOGITS),
                                stage_field(stage, TEXT_MASKED_LABELS), s->model->n_words,
                                tensor_slice(stage_loss_scales(stage), 0, 1));
    TRY(host_view_open(&view, &s->net.x, losses));
    struct status status = culprit_of_result(&s->net, tensor_slice(view.host, 0, s->batch.n_real_labels),
                                             "the likelihood of a text");
    for (int64_t i = 0; i < s->batch.n_real_labels && !failed(status); i++) {
        text_of(j->l, j->owners[i])->sum -= tensor_load(view.host, i);
    }
    host_view_close(&view);
    return status;
}

static struct status run(struct likelihood_job *j, void (*done)(void *self, double part), void *self)
{
    struct likelihood *l = j->l;
    for (int64_t i = 0; i < l->n; i++) {
        struct likelihood_text *t = j->order[i] = text_of(l, i);
        t->sum = 0;
        j->work += (double)t->n * (double)(t->n - 2);
    }
    qsort(j->order, (size_t)l->n, sizeof(struct likelihood_text *), by_length);
    struct cursor c = {.text = j->order, .end = j->order + l->n, .position = 1};
    while (c.text < c.end) {
        fill_batch(j, &c);
        stage_infer(&l->session->net.stage, &l->session->batch);
        TRY(take_losses(j));
        if (done != NULL) {
            done(self, j->done / j->work);
        }
    }
    return status_ok();
}

struct status likelihood_run(struct likelihood *l, void (*done)(void *self, double part), void *self)
{
    struct likelihood_job j = {
        .l = l,
        .order = calloc((size_t)l->n + 1, sizeof(struct likelihood_text *)),
        .owners = calloc((size_t)l->session->batch.limits.n_sequences, sizeof(int64_t)),
    };
    struct status s = j.order == NULL || j.owners == NULL
                          ? status_error(STATUS_MEMORY, "out of memory for %lld texts", (long long)l->n)
                          : run(&j, done, self);
    free(j.order);
    free(j.owners);
    return s;
}

double likelihood_get(const struct likelihood *l, int64_t i)
{
    return text_of(l, i)->sum;
}

int64_t likelihood_tokens(const struct likelihood *l, int64_t i)
{
    return (int64_t)text_of(l, i)->n - 2;
}

bool likelihood_same_tokens(const struct likelihood *l, int64_t i, int64_t k)
{
    const struct likelihood_text *a = text_of(l, i), *b = text_of(l, k);
    return a->n == b->n &&
           memcmp(l->ids.ids + a->start, l->ids.ids + b->start, a->n * sizeof *l->ids.ids) == 0;
}
