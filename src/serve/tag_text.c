#include "serve/tag_text.h"

#include "core/integers.h"

/* The window to which a token belongs: each begins `room - stride` after the one before, and half of what two
 * have in common belongs to either. */
static int64_t window_of(const struct tag_text_job *j, int64_t token)
{
    int64_t w = (token - j->stride / 2) / (j->room - j->stride);
    return int_smaller(int_larger(w, 0), j->windows.n - 1);
}

const float *tag_text_logits(const struct tag_text_job *j, int64_t token)
{
    int64_t w = window_of(j, token), first = w * (j->room - j->stride);
    return class_logits_get(&j->logits, w) + (j->n_before + token - first) * j->logits.n_labels;
}

static struct status add_windows(struct tag_text_job *j)
{
    struct encoded_texts *w = &j->windows;
    struct token_range window = {0};
    int64_t n = (int64_t)j->tokens.n;
    for (int64_t i = 0; i < n; i++) {
        FAIL_IF(!id_list_append(&w->ids, j->tokens.tokens[i].id), STATUS_MEMORY,
                "out of memory for the tokens of a text");
    }
    while (encoded_texts_next_window(&window, n, j->room, j->room - j->stride)) {
        TRY(encoded_texts_add_tokens(w, window, NULL));
    }
    return n > 0 ? status_ok() : encoded_texts_add_tokens(w, window, NULL);
}

struct status tag_text_job_make(struct tag_text_job *j, const struct session *s,
                                struct tokenizer_scratch *scratch, const struct text_bytes *text,
                                int64_t stride)
{
    const struct input_form *form = &s->frame.one;
    int64_t room = s->max_length - input_form_n_special(form);
    *j = (struct tag_text_job){.labels = &s->model->labels,
                               .room = room,
                               .stride = stride < 0 ? room / 4 : stride,
                               .n_before = form->before.n};
    FAIL_IF(j->stride >= room, STATUS_USAGE, "a stride of %lld tokens is not less than the %lld of a window",
            (long long)j->stride, (long long)room);
    TRY(encoded_texts_init(&j->windows, s->tokenizer, s->max_length, "a text to label"));
    j->windows.of_tokens = true;
    TRY(tokenizer_encode(scratch, &j->tokens, text->bytes, text->n));
    TRY(add_windows(j));
    TRY(class_logits_init(&j->logits, &j->windows, j->labels->n));
    j->request = class_logits_request(&j->logits);
    return status_ok();
}

void tag_text_job_fini(struct tag_text_job *j)
{
    class_logits_fini(&j->logits);
    encoded_texts_fini(&j->windows);
    token_list_fini(&j->tokens);
}
