#include "service/embedding_call.h"

#include "core/base64.h"
#include "serve/answer_json.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

static void free_state(void *state)
{
    struct embedding_call *e = state;
    embed_job_fini(&e->job);
    free(e->vectors);
    free(e);
}

struct embedding_call *embedding_call_make(struct call *c)
{
    struct embedding_call *e = call_make_state(c, sizeof *e, free_state);
    if (e != NULL) {
        *e = (struct embedding_call){
            .call = c, .options.normalize = EMBED_YES, .key = "inputs", .most = EMBEDDING_TEXTS};
    }
    return e;
}

/* ---- options ---- */

bool embedding_call_read_options(struct embedding_call *e, const json_t *o)
{
    struct call *c = e->call;
    static const char *const formats[] = {"float", "base64", NULL};
    bool normalize = e->options.normalize == EMBED_YES;
    int64_t format = 0;
    if (!call_cut(c, o, &e->options.cut) || !call_bool(c, o, "normalize", &normalize) ||
        !call_string(c, o, "prompt_name", &e->options.prompt_name) ||
        !call_int(c, o, "dimensions", 1, INT32_MAX, &e->options.truncate_dim) ||
        !call_choice(c, o, "encoding_format", formats, "\"float\" or \"base64\"", &format)) {
        return false;
    }
    e->options.normalize = normalize ? EMBED_YES : EMBED_NO;
    e->in_base64 = format == 1;
    return true;
}

/* ---- texts ---- */

static struct status add_ids(struct embed_input *in, struct tokenizer_scratch *scratch, const json_t *ids)
{
    size_t n = json_array_size(ids);
    struct id_list list = {0};
    struct status s = status_ok();
    for (size_t i = 0; i < n && !failed(s); i++) {
        const json_t *id = json_array_get(ids, i);
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < INT32_MIN || value > INT32_MAX) {
            s = status_error(STATUS_DATA, "id %zu of text %lld is no whole number of 32 bits", i,
                             (long long)in->texts.n);
        } else if (!id_list_append(&list, (int32_t)value)) {
            s = status_error(STATUS_MEMORY, "out of memory for the tokens of a text");
        }
    }
    s = failed(s) ? s : embed_input_add_ids(in, scratch, list.ids, list.n);
    id_list_fini(&list);
    return s;
}

/* A text, or its ids. */
static struct status add(struct embedding_call *e, struct embed_input *in, struct tokenizer_scratch *scratch,
                         const json_t *text)
{
    struct text_bytes bytes = call_text(text);
    FAIL_IF(!e->takes_empty && (json_is_string(text) ? bytes.n : json_array_size(text)) == 0 &&
                (json_is_string(text) || json_is_array(text)),
            STATUS_DATA, "text %lld of \"%s\" is empty", (long long)in->texts.n, e->key);
    if (json_is_string(text)) {
        e->call->n_characters += utf8_count(bytes.bytes, bytes.n);
        return embed_input_add(in, scratch, &bytes);
    }
    return json_is_array(text)
               ? add_ids(in, scratch, text)
               : status_error(STATUS_DATA, "text %lld of \"%s\" is neither a string nor an array of ids",
                              (long long)in->texts.n, e->key);
}

static bool is_one(const json_t *input)
{
    return json_is_string(input) || json_is_number(json_array_get(input, 0));
}

static struct status add_all(struct embedding_call *e, struct embed_input *in, const json_t *input)
{
    struct tokenizer_scratch *scratch;
    struct served_model *m = e->call->model;
    TRY(served_model_take_scratch(m, &scratch));
    struct status s = embed_input_init(in, &m->sessions[ANSWER_EMBED], scratch, &e->plan, (size_t)e->n);
    for (int64_t i = 0; i < e->n && !failed(s); i++) {
        s = add(e, in, scratch, is_one(input) ? input : json_array_get(input, (size_t)i));
    }
    served_model_give_scratch(m, scratch);
    return s;
}

static struct status make_job(struct embedding_call *e, const json_t *input)
{
    const struct session *s = &e->call->model->sessions[ANSWER_EMBED];
    struct embed_input in = {0};
    struct status status = add_all(e, &in, input);
    if (!failed(status)) {
        size_t n = (size_t)(e->of_tokens ? in.texts.n_rows : e->n),
               width = (size_t)(e->of_tokens ? s->model->hidden_size : e->plan.width);
        e->vectors = calloc(n + 1, width * sizeof *e->vectors);
        status = e->vectors != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for vectors");
    }
    if (failed(status)) {
        embed_input_fini(&in);
        return status;
    }
    e->call->n_tokens = in.texts.n_rows;
    e->call->n_cut = in.texts.n_cut;
    return embed_job_make_of(&e->job, s, e->vectors, &in, e->of_tokens);
}

static bool check_count(struct embedding_call *e, const json_t *input)
{
    struct call *c = e->call;
    if (input == NULL || (!json_is_string(input) && !json_is_array(input))) {
        call_fail_value(c, e->key, "\"%s\" must be a string, an array of ids, or an array of such", e->key);
    } else if (json_is_array(input) && json_array_size(input) == 0) {
        call_fail(c, 400, e->key, "\"%s\" has no texts", e->key);
    } else if (e->n > e->most) {
        call_fail_value(c, e->key, "\"%s\" has %lld texts; this server takes at most %lld in a request",
                        e->key, (long long)e->n, (long long)e->most);
    } else {
        return true;
    }
    return false;
}

static bool plan(struct embedding_call *e)
{
    struct call *c = e->call;
    const struct session *s = &c->model->sessions[ANSWER_EMBED];
    int64_t width = sentence_model_width(s->sentence, s->model->hidden_size);
    if (e->options.truncate_dim > width) {
        call_fail_value(c, "dimensions", "\"dimensions\" is %lld, but vectors of %s have %lld numbers",
                        (long long)e->options.truncate_dim, c->model->name, (long long)width);
        return false;
    }
    struct status status = embed_plan_make(&e->plan, s, &e->options);
    if (failed(status)) {
        call_fail_status(c, e->options.prompt_name != NULL ? "prompt_name" : NULL, status);
    }
    return !failed(status);
}

/* ---- answers ---- */

static void finish(struct call *c)
{
    struct embedding_call *e = c->state;
    call_add_headers(c);
    e->answer(e);
}

void embedding_call_start(struct embedding_call *e, const char *model, const json_t *input)
{
    struct call *c = e->call;
    e->n = is_one(input) ? 1 : (int64_t)json_array_size(input);
    if (call_model(c, model, ANSWER_EMBED) == NULL || !check_count(e, input) || !plan(e)) {
        return;
    }
    struct status status = make_job(e, input);
    if (failed(status)) {
        call_fail_status(c, e->key, status);
        return;
    }
    c->n_texts = e->n;
    e->requests[0] = &e->job.request;
    call_submit_requests(c, ANSWER_EMBED, e->requests, 1, finish);
}

void embedding_call_write(struct buf *out, const struct embedding_call *e, int64_t text)
{
    const float *v = e->vectors + text * e->plan.width;
    if (e->in_base64) { /* the machine's own bytes, which are little-endian */
        buf_putc(out, '"');
        base64_encode(out, v, (size_t)e->plan.width * sizeof *v);
        buf_putc(out, '"');
    } else {
        answer_json_append_vector(out, v, e->plan.width);
    }
}

static void write_tokens(struct buf *out, const struct embedding_call *e, int64_t text)
{
    const struct encoded_texts *texts = &e->job.input.texts;
    int64_t width = e->call->model->model.model->hidden_size;
    const float *rows = e->vectors + encoded_texts_get(texts, text)->row * width;
    for (int64_t i = 0; i < encoded_texts_length(texts, text); i++) {
        buf_putc(out, i == 0 ? '[' : ',');
        answer_json_append_vector(out, rows + i * width, width);
    }
    buf_putc(out, ']');
}

void embedding_call_write_model(struct buf *out, const struct embedding_call *e)
{
    json_t *name = json_string(e->call->model->name);
    char *quoted = name == NULL ? NULL : json_dumps(name, JSON_ENCODE_ANY);
    buf_puts(out, quoted == NULL ? "null" : quoted);
    free(quoted);
    json_decref(name);
}

void embedding_call_reply_list(struct embedding_call *e)
{
    struct buf body = {0};
    for (int64_t i = 0; i < e->n; i++) {
        buf_putc(&body, i == 0 ? '[' : ',');
        if (e->of_tokens) {
            write_tokens(&body, e, i);
        } else {
            embedding_call_write(&body, e, i);
        }
    }
    buf_putc(&body, ']');
    call_reply_text(e->call, 200, "application/json", &body);
}

/* ---- similarity ---- */

static void reply_similarity(struct embedding_call *e)
{
    json_t *list = json_array();
    for (int64_t i = 1; i < e->n; i++) {
        const float *a = e->vectors, *b = e->vectors + i * e->plan.width;
        double sum = 0;
        for (int64_t k = 0; k < e->plan.width; k++) {
            sum += (double)a[k] * b[k];
        }
        json_array_append_new(list, json_real(sum));
    }
    call_reply(e->call, list);
}

void embedding_call_compare(struct embedding_call *e, const json_t *inputs)
{
    struct call *c = e->call;
    json_t *source = json_object_get(inputs, "source_sentence"),
           *others = json_object_get(inputs, "sentences");
    if (!json_is_string(source) || !json_is_array(others)) {
        call_fail_value(
            c, "inputs",
            "\"inputs\" must be {\"source_sentence\": a string, \"sentences\": an array of strings}");
        return;
    }
    if (json_array_size(others) == 0) {
        call_fail(c, 400, "sentences", "\"sentences\" has no texts");
        return;
    }
    json_t *all = json_array();
    json_array_append(all, source);
    json_array_extend(all, others);
    e->options.normalize = EMBED_YES; /* so that a product is a cosine */
    e->answer = reply_similarity;
    embedding_call_start(e, NULL, all);
    json_decref(all);
}
