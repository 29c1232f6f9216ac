#define _GNU_SOURCE
#include "serve/fill_mask.h"

#include "core/integers.h"
#include "data/text_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char MASK[] = "[MASK]";

static struct status append_id(struct id_list *ids, int32_t id)
{
    return id_list_append(ids, id) ? status_ok()
                                   : status_error(STATUS_MEMORY, "out of memory for the tokens of a text");
}

/* A mask in a text: "[MASK]", or the mask token as its tokenizer spells it, with the white space that it
 * takes. */
struct mask_place {
    const char *at; /* NULL: there is none */
    size_t n;
};

static struct mask_place find_text(const char *text, size_t n, const char *mask, size_t n_mask)
{
    const char *at = memmem(text, n, mask, n_mask);
    return (struct mask_place){at, n_mask};
}

static struct mask_place next_mask(const struct tokenizer *t, const char *text, size_t n)
{
    struct mask_place place = find_text(text, n, MASK, sizeof MASK - 1), own;
    const struct added_token *token = added_tokens_of(&t->added, t->special[SPECIAL_MASK]);
    if (token == NULL) {
        return place;
    }
    own = find_text(text, n, added_tokens_text(&t->added, token), token->n);
    place = place.at == NULL || (own.at != NULL && own.at < place.at) ? own : place;
    for (; place.at != NULL && token->lstrip && place.at > text && place.at[-1] == ' '; place.n++) {
        place.at--;
    }
    return place;
}

bool fill_mask_is_in(const struct tokenizer *t, const char *text, size_t n)
{
    return next_mask(t, text, n).at != NULL;
}

/* The text, with the mask token for each mask, between the special tokens. */
static struct status encode(struct id_list *ids, const struct session *s, struct tokenizer_scratch *scratch,
                            const char *text, size_t n)
{
    const char *end = text + n;
    TRY(tokenizer_require(s->tokenizer, 1U << SPECIAL_MASK, "filling a [MASK]"));
    TRY(input_specials_append(ids, &s->frame.one.before));
    for (;;) {
        struct mask_place mask = next_mask(s->tokenizer, text, (size_t)(end - text));
        TRY(tokenizer_encode_ids(scratch, ids, text, (size_t)((mask.at == NULL ? end : mask.at) - text)));
        if (mask.at == NULL) {
            break;
        }
        TRY(append_id(ids, s->tokenizer->special[SPECIAL_MASK]));
        text = mask.at + mask.n;
    }
    return input_specials_append(ids, &s->frame.one.after);
}

/* The text as a source of one sequence, whose mask tokens are asked for. */
static int64_t length(const void *self, int64_t i)
{
    (void)i;
    return (int64_t)((const struct fill_job *)self)->ids.n;
}

static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct fill_job *j = self;
    int64_t n = length(j, i), n_text = n - input_form_n_special(&j->session->frame.one), m = 0;
    int32_t *ids = text_batch_add(out, n, input_form_n_first(&j->session->frame.one, n_text, 0), -1, key);
    memcpy(ids, j->ids.ids, j->ids.n * sizeof *ids);
    for (int64_t k = 0; k < n; k++) {
        if (ids[k] == j->session->tokenizer->special[SPECIAL_MASK]) {
            text_batch_masked_positions(out)[m] = (int32_t)k;
            text_batch_masked_labels(out)[m++] = -1;
        }
    }
    text_batch_take_masked(out, m);
}

static int64_t count_masks(const struct fill_job *j)
{
    int64_t n = 0;
    for (size_t i = 0; i < j->ids.n; i++) {
        n += j->ids.ids[i] == j->session->tokenizer->special[SPECIAL_MASK];
    }
    return n;
}

/* The k words with the largest logits, by insertion into a sorted list. */
static void take_best(const struct fill_job *j, const float *logits, struct fill_candidate *best, int64_t k)
{
    int64_t n = 0;
    for (int64_t i = 0; i < j->n_words; i++) {
        int32_t id = j->words == NULL ? (int32_t)i : j->words[i];
        if (n == k && logits[id] <= logits[best[n - 1].id]) {
            continue;
        }
        n += n < k;
        int64_t place = n - 1;
        for (; place > 0 && logits[best[place - 1].id] < logits[id]; place--) {
            best[place] = best[place - 1];
        }
        best[place].id = id;
    }
}

/* Their probabilities among all words. */
static void set_probabilities(const float *logits, int64_t n_words, struct fill_candidate *best, int64_t k)
{
    double max = -INFINITY, sum = 0;
    for (int64_t id = 0; id < n_words; id++) {
        max = fmax(max, logits[id]);
    }
    for (int64_t id = 0; id < n_words; id++) {
        sum += exp(logits[id] - max);
    }
    for (int64_t i = 0; i < k; i++) {
        best[i].probability = exp(logits[best[i].id] - max) / sum;
    }
}

static struct status take(void *self, int64_t sequence, const tensor outputs[MODEL_N_OUTPUTS])
{
    struct fill_job *j = self;
    struct fill_result *r = &j->result;
    tensor logits = outputs[MODEL_WORD_LOGITS];
    (void)sequence;
    for (int64_t m = 0; m < r->n_masks; m++) {
        const float *row = (const float *)logits.data + m * logits.strides[0];
        take_best(j, row, r->candidates + m * r->top_k, r->top_k);
        set_probabilities(row, j->session->tokenizer->n, r->candidates + m * r->top_k, r->top_k);
    }
    return status_ok();
}

static struct status make_result(struct fill_result *r, const struct fill_job *j, int64_t top_k)
{
    int32_t n_words = j->session->tokenizer->n;
    *r = (struct fill_result){.n_masks = count_masks(j), .top_k = top_k < n_words ? top_k : n_words};
    FAIL_IF(r->n_masks == 0, STATUS_DATA, "the text has no [MASK] to fill");
    FAIL_IF(r->n_masks > j->session->net.config.limits.n_labels, STATUS_DATA,
            "the text has %lld masks, but at most %lld are filled at once", (long long)r->n_masks,
            (long long)j->session->net.config.limits.n_labels);
    r->candidates = calloc((size_t)(r->n_masks * r->top_k), sizeof *r->candidates);
    return r->candidates != NULL ? status_ok()
                                 : status_error(STATUS_MEMORY, "out of memory for %lld candidates",
                                                (long long)(r->n_masks * r->top_k));
}

struct status fill_job_make(struct fill_job *j, const struct session *s, struct tokenizer_scratch *scratch,
                            const char *text, size_t n, int64_t top_k)
{
    *j = (struct fill_job){.session = s, .n_words = s->tokenizer->n};
    TRY(encode(&j->ids, s, scratch, text, n));
    FAIL_IF((int64_t)j->ids.n > s->max_length, STATUS_DATA,
            "the text has %zu tokens, but the model reads at most %lld", j->ids.n, (long long)s->max_length);
    TRY(make_result(&j->result, j, top_k));
    FAIL_IF(j->result.n_masks > s->packer.limits.n_labels, STATUS_DATA,
            "the text has %lld masks, but at most %lld are filled at once", (long long)j->result.n_masks,
            (long long)s->packer.limits.n_labels);
    j->request =
        (struct request){.source = {.name = "texts", .self = j, .n = 1, .length = length, .add = add},
                         .n_asked = j->result.n_masks,
                         .outputs = 1U << MODEL_WORD_LOGITS,
                         .take = take,
                         .self = j};
    return status_ok();
}

struct status fill_job_choose(struct fill_job *j, const int32_t *words, int64_t n)
{
    j->words = malloc((size_t)n * sizeof *words);
    FAIL_IF(j->words == NULL, STATUS_MEMORY, "out of memory for %lld words", (long long)n);
    memcpy(j->words, words, (size_t)n * sizeof *words);
    j->n_words = n;
    j->result.top_k = int_smaller(j->result.top_k, n);
    return status_ok();
}

static bool has(const struct id_list *l, int32_t id)
{
    bool found = false;
    for (size_t i = 0; i < l->n; i++) {
        found = found || l->ids[i] == id;
    }
    return found;
}

struct status fill_mask_find_word(struct id_list *words, struct tokenizer_scratch *scratch, const char *text,
                                  size_t n)
{
    struct id_list pieces = {0};
    int32_t id = tokenizer_find(scratch->tokenizer, text, n);
    struct status s = id >= 0 ? status_ok() : tokenizer_encode_ids(scratch, &pieces, text, n);
    id = id < 0 && pieces.n > 0 ? pieces.ids[0] : id;
    id_list_fini(&pieces);
    return failed(s) || id < 0 || has(words, id) ? s : append_id(words, id);
}

void fill_job_read(struct fill_job *j, struct fill_result *result)
{
    *result = j->result;
    j->result = (struct fill_result){0};
}

void fill_job_fini(struct fill_job *j)
{
    free(j->words);
    id_list_fini(&j->ids);
    fill_result_fini(&j->result);
}

struct status fill_mask(struct session *s, const char *text, size_t n, int64_t top_k,
                        struct fill_result *result)
{
    return fill_mask_with(s, text, n, top_k, &(struct id_list){0}, result);
}

struct status fill_mask_with(struct session *s, const char *text, size_t n, int64_t top_k,
                             const struct id_list *words, struct fill_result *result)
{
    struct fill_job j;
    *result = (struct fill_result){0};
    struct status status = fill_job_make(&j, s, &s->scratch, text, n, top_k);
    if (!failed(status) && words->n > 0) {
        status = fill_job_choose(&j, words->ids, (int64_t)words->n);
    }
    status = failed(status) ? status : packer_answer(&s->packer, &j.request);
    if (!failed(status)) {
        fill_job_read(&j, result);
    }
    fill_job_fini(&j);
    return status;
}

void fill_result_fini(struct fill_result *r)
{
    free(r->candidates);
    *r = (struct fill_result){0};
}
