/* api_embed: kiln_embed of include/kiln/kiln.h. */
#include "api/api.h"
#include "serve/embed.h"

#include <stdlib.h>

struct kiln_embed_options kiln_embed_defaults(void)
{
    return (struct kiln_embed_options){.pooling = KILN_MEAN, .normalize = true};
}

/* The texts in inner form, which the caller frees. */
static struct status take_texts(struct embed_text **out, const struct kiln_text *texts, size_t n)
{
    if (texts == NULL && n > 0) {
        return status_error(STATUS_USAGE, "texts is NULL, but has %zu", n);
    }
    struct embed_text *inner = n > SIZE_MAX / sizeof *inner - 1 ? NULL : malloc((n + 1) * sizeof *inner);
    if (inner == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for %zu texts", n);
    }
    struct status s = status_ok();
    for (size_t i = 0; i < n && !failed(s); i++) {
        inner[i] = (struct embed_text){texts[i].bytes, texts[i].n};
        s = api_check_text(&inner[i].bytes, texts[i].n, "a text");
    }
    if (failed(s)) {
        free(inner);
        return s;
    }
    *out = inner;
    return s;
}

static struct status run(struct kiln_session *session, struct kiln_vectors *out,
                         const struct embed_text *texts, size_t n, struct embed_options options)
{
    size_t width = (size_t)kiln_model_width(session->model);
    struct kiln_vectors v = {.n = (int64_t)n, .width = (int64_t)width};
    v.values =
        n > SIZE_MAX / sizeof *v.values / width - 1 ? NULL : malloc((n + 1) * width * sizeof *v.values);
    if (v.values == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for %zu vectors", n);
    }
    struct status s = embed_texts(&session->session, v.values, &v.n_cut, texts, n, options);
    if (failed(s)) {
        free(v.values);
        return s;
    }
    *out = v;
    return s;
}

static struct status embed(struct kiln_session *session, struct kiln_vectors *vectors,
                           const struct kiln_text *texts, size_t n, const struct kiln_embed_options *o)
{
    struct embed_text *inner = NULL;
    TRY(api_begin_task(session, KILN_EMBED));
    TRY(api_check_range("pooling", (int64_t)o->pooling, KILN_MEAN, KILN_CLS));
    TRY(take_texts(&inner, texts, n));
    struct embed_options options = {o->pooling == KILN_CLS ? EMBED_CLS : EMBED_MEAN, o->normalize};
    struct status s = run(session, vectors, inner, n, options);
    free(inner);
    return s;
}

struct kiln_status kiln_embed(struct kiln_session *session, struct kiln_vectors *vectors,
                              const struct kiln_text *texts, size_t n_texts,
                              const struct kiln_embed_options *options)
{
    struct kiln_embed_options defaults = kiln_embed_defaults();
    if (vectors == NULL) {
        return api_status(status_error(STATUS_USAGE, "vectors is NULL"));
    }
    *vectors = (struct kiln_vectors){0};
    return api_status(embed(session, vectors, texts, n_texts, options == NULL ? &defaults : options));
}

void kiln_vectors_free(struct kiln_vectors *vectors)
{
    if (vectors != NULL) {
        free(vectors->values);
        *vectors = (struct kiln_vectors){0};
    }
}
