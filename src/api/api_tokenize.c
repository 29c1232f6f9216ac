/* api_tokenize: kiln_tokenize of include/kiln/kiln.h. */
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

static struct status tokenize(struct kiln_session *session, struct kiln_tokens *tokens, const char *text,
                              size_t n)
{
    struct token_list list = {0};
    TRY(api_begin(session));
    TRY(api_check_text(&text, n, "text"));
    struct status s = tokenizer_encode(&session->session.scratch, &list, text, n);
    if (!failed(s)) {
        s = take_tokens(tokens, &list);
    }
    token_list_fini(&list);
    return s;
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

void kiln_tokens_free(struct kiln_tokens *tokens)
{
    if (tokens != NULL) {
        free(tokens->tokens);
        *tokens = (struct kiln_tokens){0};
    }
}
