/* hub_tag: token_classification (serve/tag_text.h). */
#include "serve/tag_text.h"
#include "service/hub_tasks.h"
#include "text/utf8.h"

struct tag_options {
    int64_t strategy, stride;
};

static void fini(void *job)
{
    tag_text_job_fini(job);
}

static struct status read(json_t **result, const struct call *c, void *job, const json_t *input,
                          int64_t strategy)
{
    const json_t *ignored = json_object_get(json_object_get(c->body, "parameters"), "ignore_labels");
    *result = tag_text_to_json(job, json_string_value(input), (enum tag_strategy)strategy,
                               json_is_array(ignored) ? ignored : NULL);
    return status_ok();
}

static struct status make(struct call *c, void *job, const json_t *input, struct tokenizer_scratch *scratch,
                          const void *options)
{
    struct tag_text_job *j = job;
    const struct tag_options *o = options;
    struct text_bytes text = call_text(input);
    FAIL_IF(text.bytes == NULL, STATUS_DATA, "\"inputs\" must be a string, or an array of strings");
    TRY(tag_text_job_make(j, &c->model->sessions[ANSWER_TAG], scratch, &text, o->stride));
    c->n_characters += utf8_count(text.bytes, text.n);
    c->n_tokens += j->windows.n_rows;
    return status_ok();
}

/* False: the call has failed. */
static bool read_options(struct call *c, struct tag_options *o)
{
    const json_t *p;
    *o = (struct tag_options){.stride = -1};
    return call_object(c, c->body, "parameters", &p) &&
           call_choice(c, p, "aggregation_strategy", tag_strategies, "none, simple, first, average or max",
                       &o->strategy) &&
           call_int(c, p, "stride", 0, INT32_MAX, &o->stride);
}

void hub_tag_answer(struct call *c)
{
    static const struct hub_job_kind kind = {ANSWER_TAG, sizeof(struct tag_text_job), make, read, fini};
    struct tag_options o;
    size_t n = hub_count(c, HUB_INPUTS);
    if (n > 0 && read_options(c, &o)) {
        hub_submit(c, &kind, n, &o, o.strategy);
    }
}
