/* api_embed: kiln_embed of include/kiln/kiln.h. */
#include "api/api.h"
#include "serve/embed.h"

#include <stdlib.h>

_Static_assert((int)KILN_CLS == SENTENCE_CLS + 1 && (int)KILN_MAX == SENTENCE_MAX + 1 &&
                   (int)KILN_MEAN == SENTENCE_MEAN + 1 &&
                   (int)KILN_MEAN_SQRT_LEN == SENTENCE_MEAN_SQRT_LEN + 1 &&
                   (int)KILN_WEIGHTED_MEAN == SENTENCE_WEIGHTED_MEAN + 1 &&
                   (int)KILN_LAST_TOKEN == SENTENCE_LAST_TOKEN + 1,
               "public poolings are those of serve/sentence_model.h, after one more");
_Static_assert((int)KILN_MODEL_LENGTH == EMBED_AS_MODEL && (int)KILN_LENGTH_1 == EMBED_YES &&
                   (int)KILN_LENGTH_FREE == EMBED_NO,
               "public lengths are the choices of serve/embed.h");

void kiln_embed_options_init(struct kiln_embed_options *options, size_t size)
{
    const struct kiln_embed_options defaults = {.pooling = KILN_MODEL_POOLING, .length = KILN_MODEL_LENGTH};
    api_init_options(options, size, &defaults, sizeof defaults);
}

static struct status run(struct kiln_session *session, struct kiln_vectors *out,
                         const struct text_bytes *texts, size_t n, const struct embed_plan *plan)
{
    size_t width = (size_t)plan->width;
    struct kiln_vectors v = {.n = (int64_t)n, .width = (int64_t)width};
    v.values =
        n > SIZE_MAX / sizeof *v.values / width - 1 ? NULL : malloc((n + 1) * width * sizeof *v.values);
    FAIL_IF(v.values == NULL, STATUS_MEMORY, "out of memory for %zu vectors", n);
    struct status s = embed_texts(&session->session, v.values, &v.n_cut, texts, n, plan);
    if (failed(s)) {
        free(v.values);
        return s;
    }
    *out = v;
    return s;
}

static struct status embed(struct kiln_session *session, struct kiln_vectors *vectors,
                           const struct kiln_text *texts, size_t n, const struct kiln_embed_options *given)
{
    struct text_bytes *inner = NULL;
    struct embed_plan plan;
    struct kiln_embed_options o = kiln_embed_defaults();
    TRY(api_begin_task(session, KILN_EMBED));
    TRY(api_take_options(&o, sizeof o, given));
    TRY(api_check_range("pooling", (int64_t)o.pooling, KILN_MODEL_POOLING, KILN_LAST_TOKEN));
    TRY(api_check_range("length", (int64_t)o.length, KILN_MODEL_LENGTH, KILN_LENGTH_FREE));
    TRY(api_check_range("max_tokens", o.max_tokens, 0, INT32_MAX));
    TRY(embed_plan_make(&plan, &session->session,
                        &(struct embed_options){
                            .has_pooling = o.pooling == KILN_MODEL_POOLING ? EMBED_AS_MODEL : EMBED_YES,
                            .pooling = o.pooling == KILN_MODEL_POOLING
                                           ? SENTENCE_MEAN
                                           : (enum sentence_pooling)(o.pooling - 1),
                            .normalize = (enum embed_choice)o.length,
                            .prompt = o.prompt,
                            .prompt_name = o.prompt_name,
                            .max_length = o.max_tokens,
                        }));
    TRY(api_take_texts(&inner, texts, n, "texts"));
    struct status s = run(session, vectors, inner, n, &plan);
    free(inner);
    return s;
}

struct kiln_status kiln_embed(struct kiln_session *session, struct kiln_vectors *vectors,
                              const struct kiln_text *texts, size_t n_texts,
                              const struct kiln_embed_options *options)
{
    if (vectors == NULL) {
        return api_status(status_error(STATUS_USAGE, "vectors is NULL"));
    }
    *vectors = (struct kiln_vectors){0};
    return api_status(embed(session, vectors, texts, n_texts, options));
}

void kiln_vectors_free(struct kiln_vectors *vectors)
{
    if (vectors != NULL) {
        free(vectors->values);
        *vectors = (struct kiln_vectors){0};
    }
}
