/* api_tokenize: kiln_tokenize, kiln_model_tokenize and kiln_decode of include/kiln/kiln.h. */
#include "api/api.h"

#include <stdlib.h>

static struct status take_tokens(struct kiln_tokens *out, const struct token_list *list)
{
    out->tokens = calloc(list->n + 1, sizeof *out->tokens);
    FAIL_IF(out->tokens == NULL, STATUS_MEMORY, "out of memory for %zu tokens", list->n);
    for (size_t i = 0; i < list->n; i++) {
        const struct token *t = &list->tokens[i];
        out->tokens[i] = (struct kiln_token){t->id, t->start, t->end};
    }
    out->n = list->n;
    return status_ok();
}

static struct status encode(struct tokenizer_scratch *scratch, struct kiln_tokens *tokens, const char *text,
                            size_t n)
{
    struct token_list list = {0};
    TRY(api_check_text(&text, n, "text"));
    struct status s = tokenizer_encode(scratch, &list, text, n);
    if (!failed(s)) {
        s = take_tokens(tokens, &list);
    }
    token_list_fini(&list);
    return s;
}

static struct status tokenize(struct kiln_session *session, struct kiln_tokens *tokens, const char *text,
                              size_t n)
{
    TRY(api_begin(session));
    return encode(&session->session.scratch, tokens, text, n);
}

struct kiln_status kiln_tokenize(struct kiln_session *session, struct kiln_tokens *tokens, const char *text,
                                 size_t n)
{
    if (tokens == NULL) {
        return api_status(status_error(STATUS_USAGE, "tokens is NULL"));
    }
    *tokens = (struct kiln_tokens){0};
    return api_status(tokenize(session, tokens, text, n));
}

struct kiln_status kiln_model_tokenize(struct kiln_model *model, struct kiln_tokens *tokens, const char *text,
                                       size_t n)
{
    if (tokens == NULL) {
        return api_status(status_error(STATUS_USAGE, "tokens is NULL"));
    }
    *tokens = (struct kiln_tokens){0};
    if (model == NULL) {
        return api_status(status_error(STATUS_USAGE, "model is NULL"));
    }
    pthread_mutex_lock(&model->tokenizing);
    struct status s = encode(&model->weights.scratch, tokens, text, n);
    pthread_mutex_unlock(&model->tokenizing);
    return api_status(s);
}

void kiln_tokens_free(struct kiln_tokens *tokens)
{
    if (tokens != NULL) {
        free(tokens->tokens);
        *tokens = (struct kiln_tokens){0};
    }
}

static struct status decode(struct kiln_string *out, const struct tokenizer *t, const int32_t *ids, size_t n,
                            bool skip_special)
{
    struct buf text = {0};
    struct id_list kept = {0};
    struct status s = status_ok();
    for (size_t i = 0; i < n && !failed(s); i++) {
        bool is_id = ids[i] >= 0 && ids[i] < t->n;
        if (!is_id || !skip_special || !tokenizer_is_special(t, ids[i])) {
            s = id_list_append(&kept, ids[i]) ? status_ok()
                                              : status_error(STATUS_MEMORY, "out of memory for %zu ids", n);
        }
    }
    s = failed(s) ? s : tokenizer_decode_text(t, &text, kept.ids, kept.n);
    buf_putc(&text, '\0'); /* so that an empty text has a NUL, too */
    s = failed(s) ? s : buf_status(&text);
    id_list_fini(&kept);
    if (failed(s)) {
        buf_fini(&text);
        return s;
    }
    *out = (struct kiln_string){.bytes = text.data, .n = text.n - 1};
    return s;
}

struct kiln_status kiln_decode(const struct kiln_model *model, struct kiln_string *text, const int32_t *ids,
                               size_t n, bool skip_special)
{
    if (text == NULL) {
        return api_status(status_error(STATUS_USAGE, "text is NULL"));
    }
    *text = (struct kiln_string){0};
    if (model == NULL || (ids == NULL && n > 0)) {
        return api_status(status_error(STATUS_USAGE, "%s is NULL", model == NULL ? "model" : "ids"));
    }
    return api_status(decode(text, model->weights.tokenizer, ids, n, skip_special));
}

void kiln_string_free(struct kiln_string *text)
{
    if (text != NULL) {
        free((char *)text->bytes);
        *text = (struct kiln_string){0};
    }
}
