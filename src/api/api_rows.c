/* api_rows: kiln_embed_tokens and kiln_tag_tokens of include/kiln/kiln.h. */
#include "api/api.h"
#include "serve/embed.h"
#include "serve/tag_text.h"

#include <stdlib.h>
#include <string.h>

/* Takes the rows of n tokens; the tokens too, unless they are NULL. */
static struct status take_rows(struct kiln_rows *out, int64_t n, int64_t width, const struct token *tokens)
{
    *out = (struct kiln_rows){.n = n, .width = width};
    out->values = calloc((size_t)n + 1, (size_t)width * sizeof *out->values);
    out->tokens = tokens == NULL ? NULL : calloc((size_t)n + 1, sizeof *out->tokens);
    if (out->values == NULL || (tokens != NULL && out->tokens == NULL)) {
        kiln_rows_free(out);
        return status_error(STATUS_MEMORY, "out of memory for the numbers of %lld tokens", (long long)n);
    }
    for (int64_t i = 0; tokens != NULL && i < n; i++) {
        out->tokens[i] = (struct kiln_token){tokens[i].id, tokens[i].start, tokens[i].end};
    }
    return status_ok();
}

static struct status embed_tokens(struct kiln_session *session, struct kiln_rows *rows, const char *text,
                                  size_t n)
{
    struct session *s = &session->session;
    struct embed_plan plan;
    struct embed_input input;
    struct embed_job j = {0};
    TRY(embed_plan_make(&plan, s, &(struct embed_options){.prompt = ""}));
    struct status status = embed_input_init(&input, s, &s->scratch, &plan, 1);
    status = failed(status) ? status : embed_input_add(&input, &s->scratch, &(struct text_bytes){text, n});
    status = failed(status) ? status : take_rows(rows, input.texts.n_rows, s->model->hidden_size, NULL);
    if (failed(status)) {
        embed_input_fini(&input);
        return status;
    }
    status = embed_job_make_of(&j, s, rows->values, &input, true);
    status = failed(status) ? status : packer_answer(&s->packer, &j.request);
    embed_job_fini(&j);
    if (failed(status)) {
        kiln_rows_free(rows);
    }
    return status;
}

static struct status tag_tokens(struct kiln_session *session, struct kiln_rows *rows, const char *text,
                                size_t n)
{
    struct session *s = &session->session;
    struct tag_text_job j;
    struct status status = tag_text_job_make(&j, s, &s->scratch, &(struct text_bytes){text, n}, -1);
    status = failed(status) ? status : packer_answer(&s->packer, &j.request);
    status = failed(status) ? status : take_rows(rows, (int64_t)j.tokens.n, j.labels->n, j.tokens.tokens);
    for (int64_t i = 0; !failed(status) && i < rows->n; i++) {
        memcpy(rows->values + i * rows->width, tag_text_logits(&j, i),
               (size_t)rows->width * sizeof *rows->values);
    }
    tag_text_job_fini(&j);
    return status;
}

static struct status rows_of(struct kiln_session *session, struct kiln_rows *rows, const char *text, size_t n,
                             enum kiln_task task)
{
    FAIL_IF(rows == NULL, STATUS_USAGE, "rows is NULL");
    *rows = (struct kiln_rows){0};
    TRY(api_begin_task(session, task));
    TRY(api_check_text(&text, n, "text"));
    return task == KILN_TAG ? tag_tokens(session, rows, text, n) : embed_tokens(session, rows, text, n);
}

struct kiln_status kiln_embed_tokens(struct kiln_session *session, struct kiln_rows *rows, const char *text,
                                     size_t n)
{
    return api_status(rows_of(session, rows, text, n, KILN_EMBED));
}

struct kiln_status kiln_tag_tokens(struct kiln_session *session, struct kiln_rows *rows, const char *text,
                                   size_t n)
{
    return api_status(rows_of(session, rows, text, n, KILN_TAG));
}

void kiln_rows_free(struct kiln_rows *rows)
{
    if (rows != NULL) {
        free(rows->values);
        free(rows->tokens);
        *rows = (struct kiln_rows){0};
    }
}
