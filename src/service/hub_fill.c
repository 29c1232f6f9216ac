/* hub_fill: fill_mask. */
#include "serve/fill_mask.h"
#include "serve/token_text.h"
#include "service/hub_tasks.h"
#include "text/utf8.h"

#include <stdlib.h>

struct fill_options {
    int64_t top_k;
    struct id_list words; /* words that may be filled in; none: all */
};

static void fini(void *job)
{
    fill_job_fini(job);
}

static struct status find_words(struct served_model *m, const json_t *targets, struct id_list *words)
{
    struct tokenizer_scratch *scratch;
    bool is_one = json_is_string(targets);
    size_t n = is_one ? 1 : json_array_size(targets);
    TRY(served_model_take_scratch(m, &scratch));
    struct status s = status_ok();
    for (size_t i = 0; i < n && !failed(s); i++) {
        const json_t *target = is_one ? targets : json_array_get(targets, i);
        s = json_is_string(target)
                ? fill_mask_find_word(words, scratch, json_string_value(target), json_string_length(target))
                : status_error(STATUS_DATA, "target %zu is not a string", i);
    }
    served_model_give_scratch(m, scratch);
    return failed(s) || words->n > 0
               ? s
               : status_error(STATUS_DATA, "\"targets\" has no word that the model knows");
}

/* False: the call has failed. */
static bool read_options(struct call *c, struct fill_options *o)
{
    enum { MOST_TARGETS = 1000 };
    const json_t *p;
    *o = (struct fill_options){.top_k = 5};
    if (!call_object(c, c->body, "parameters", &p) || !call_int(c, p, "top_k", 1, INT32_MAX, &o->top_k)) {
        return false;
    }
    const json_t *targets = call_field(p, "targets");
    if (targets == NULL) {
        return true;
    }
    struct status s = json_array_size(targets) > MOST_TARGETS
                          ? status_error(STATUS_DATA, "\"targets\" has more than %d words", MOST_TARGETS)
                          : find_words(c->model, targets, &o->words);
    if (failed(s)) {
        call_fail_status(c, "targets", s);
    }
    return !failed(s);
}

static struct status make(struct call *c, void *job, const json_t *input, struct tokenizer_scratch *scratch,
                          const void *options)
{
    struct fill_job *j = job;
    const struct fill_options *o = options;
    struct text_bytes text = call_text(input);
    FAIL_IF(text.bytes == NULL, STATUS_DATA, "\"inputs\" must be a string, or an array of strings");
    TRY(fill_job_make(j, &c->model->sessions[ANSWER_FILL], scratch, text.bytes, text.n, o->top_k));
    c->n_characters += utf8_count(text.bytes, text.n);
    c->n_tokens += (int64_t)j->ids.n;
    return o->words.n > 0 ? fill_job_choose(j, o->words.ids, (int64_t)o->words.n) : status_ok();
}

/* The text with a word instead of mask `at`; other masks, and then the special tokens too, are shown. */
static json_t *sequence_of(const struct fill_job *j, const struct tokenizer *t, size_t at, int32_t id,
                           bool is_only)
{
    struct buf text = {0};
    int32_t before = j->ids.ids[at];
    j->ids.ids[at] = id;
    token_text_append(&text, t, j->ids.ids, j->ids.n, is_only);
    j->ids.ids[at] = before;
    return token_text_to_json(&text);
}

static json_t *words_to_json(const struct fill_job *j, const struct tokenizer *t, int64_t mask, size_t at)
{
    const struct fill_result *r = &j->result;
    json_t *list = json_array();
    for (int64_t k = 0; k < r->top_k; k++) {
        const struct fill_candidate *f = &r->candidates[mask * r->top_k + k];
        struct buf word = {0};
        token_text_append(&word, t, &f->id, 1, false);
        json_array_append_new(list, json_pack("{s:f, s:i, s:o, s:o}", "score", f->probability, "token", f->id,
                                              "token_str", token_text_to_json(&word), "sequence",
                                              sequence_of(j, t, at, f->id, r->n_masks == 1)));
    }
    return list;
}

/* The JSON of one mask, a list of words, or of several, a list of these. */
static struct status read(json_t **result, const struct call *c, void *job, const json_t *input, int64_t own)
{
    const struct fill_job *j = job;
    const struct tokenizer *t = c->model->model.tokenizer;
    json_t *list = json_array();
    (void)input, (void)own;
    for (size_t i = 0; i < j->ids.n; i++) {
        if (j->ids.ids[i] == t->special[SPECIAL_MASK]) {
            json_array_append_new(list, words_to_json(j, t, (int64_t)json_array_size(list), i));
        }
    }
    *result = j->result.n_masks > 1 ? list : json_incref(json_array_get(list, 0));
    if (j->result.n_masks == 1) {
        json_decref(list);
    }
    return status_ok();
}

void hub_fill_answer(struct call *c)
{
    static const struct hub_job_kind kind = {ANSWER_FILL, sizeof(struct fill_job), make, read, fini};
    struct fill_options o = {0};
    size_t n = hub_count(c, HUB_INPUTS);
    if (n > 0 && read_options(c, &o)) {
        hub_submit(c, &kind, n, &o, 0);
    }
    id_list_fini(&o.words);
}
