/* api_fill: kiln_fill of include/kiln/kiln.h. */
#include "api/api.h"
#include "serve/fill_mask.h"

#include <stdlib.h>
#include <string.h>

/* One block: the words, then their pieces. */
static struct status take_words(struct kiln_words *out, const struct tokenizer *t,
                                const struct fill_result *r)
{
    size_t n = (size_t)(r->n_masks * r->top_k), n_text = 1, n_piece; /* never an empty block */
    for (size_t i = 0; i < n; i++) {
        tokenizer_piece(t, r->candidates[i].id, &n_piece);
        n_text += n_piece + 1;
    }
    struct kiln_word *words = malloc(n * sizeof *words + n_text);
    FAIL_IF(words == NULL, STATUS_MEMORY, "out of memory for %zu words", n);
    char *text = (char *)(words + n);
    for (size_t i = 0; i < n; i++) {
        const struct fill_candidate *c = &r->candidates[i];
        const char *piece = tokenizer_piece(t, c->id, &n_piece);
        memcpy(text, piece, n_piece);
        text[n_piece] = '\0';
        words[i] = (struct kiln_word){.id = c->id, .piece = text, .probability = c->probability};
        text += n_piece + 1;
    }
    *out = (struct kiln_words){.words = words, .n_masks = r->n_masks, .top_k = r->top_k};
    return status_ok();
}

static struct status fill(struct kiln_session *session, struct kiln_words *words, const char *text, size_t n,
                          int64_t top_k)
{
    struct fill_result r;
    TRY(api_begin_task(session, KILN_FILL));
    TRY(api_check_text(&text, n, "text"));
    TRY(api_check_range("top_k", top_k, 1, INT32_MAX));
    struct status s = fill_mask(&session->session, text, n, top_k, &r);
    if (!failed(s)) {
        s = take_words(words, session->session.tokenizer, &r);
    }
    fill_result_fini(&r);
    return s;
}

struct kiln_status kiln_fill(struct kiln_session *session, struct kiln_words *words, const char *text,
                             size_t n, int64_t top_k)
{
    if (words == NULL) {
        return api_status(status_error(STATUS_USAGE, "words is NULL"));
    }
    *words = (struct kiln_words){0};
    return api_status(fill(session, words, text, n, top_k));
}

void kiln_words_free(struct kiln_words *words)
{
    if (words != NULL) {
        free(words->words);
        *words = (struct kiln_words){0};
    }
}
