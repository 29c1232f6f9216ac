#include "cmd/retriever.h"

#include "core/log.h"

#include <stddef.h>
#include <stdlib.h>

const struct option retriever_flags[] = {
    OPTION_STRING_ROW(
        "index", offsetof(struct retriever_flags, index), NULL, "FILE",
        "the index of `kiln search`: vectors in FILE, an array of numpy, and texts in FILE.jsonl"),
    OPTION_CHOICE_ROW("pooling", offsetof(struct retriever_flags, pooling), NULL,
                      "cls|max|mean|mean_sqrt_len_tokens|weightedmean|lasttoken",
                      "combine the vectors of tokens in this way, instead of what the model's files say"),
    OPTION_TEXT_ROW("query_prompt", offsetof(struct retriever_flags, query_prompt),
                    "put this before a query; by default the model's prompt \"query\", if it has one"),
    OPTION_TEXT_ROW("text_prompt", offsetof(struct retriever_flags, text_prompt),
                    "put this before a text; by default the model's prompt \"document\", \"passage\" or "
                    "\"corpus\", if it has one"),
    {0},
};

/* The first of these prompts that the model has, as SentenceTransformer.encode_query and encode_document
 * choose it; NULL: its default. */
static const char *prompt_of(const struct session *s, const char *const *names)
{
    const json_t *prompts = json_object_get(s->sentence->config, "prompts");
    while (*names != NULL && json_object_get(prompts, *names) == NULL) {
        names++;
    }
    return *names;
}

static struct status plan(struct embed_plan *p, struct session *s, const struct retriever_flags *f,
                          const char *prompt, const char *const *names)
{
    const struct embed_options o = {
        .has_pooling = f->pooling == NULL ? EMBED_AS_MODEL : EMBED_YES,
        .pooling = f->pooling == NULL ? SENTENCE_MEAN : sentence_pooling_find(f->pooling),
        .normalize = EMBED_YES,
        .prompt = prompt,
        .prompt_name = prompt == NULL ? prompt_of(s, names) : NULL,
    };
    return embed_plan_make(p, s, &o);
}

struct status retriever_open(struct retriever *r, const struct session_flags *session,
                             const struct retriever_flags *f)
{
    static const char *const of_queries[] = {"query", NULL}, *const of_texts[] = {"document", "passage",
                                                                                  "corpus", NULL};
    *r = (struct retriever){0};
    TRY(session_flags_open(&r->session, session, ANSWER_EMBED));
    struct status s = plan(&r->texts, &r->session, f, f->text_prompt, of_texts);
    s = failed(s) ? s : plan(&r->queries, &r->session, f, f->query_prompt, of_queries);
    if (!failed(s)) {
        embed_plan_describe(&r->description, &r->texts);
        s = buf_status(&r->description);
    }
    s = failed(s) ? s : search_index_maker_of(&r->maker, &r->session, &r->texts, buf_text(&r->description));
    if (failed(s)) {
        retriever_close(r);
    }
    return s;
}

void retriever_close(struct retriever *r)
{
    buf_fini(&r->description);
    session_close(&r->session);
    *r = (struct retriever){0};
}

struct status retriever_embed(struct retriever *r, float *vectors, const struct text_bytes *texts, size_t n,
                              bool are_queries)
{
    int64_t n_cut = 0;
    struct status s =
        embed_texts(&r->session, vectors, &n_cut, texts, n, are_queries ? &r->queries : &r->texts);
    r->n_cut += n_cut;
    return s;
}

struct status retriever_find(struct retriever *r, struct vector_hit **hits, int64_t k,
                             const struct text_bytes *queries, size_t n_queries, const float *rows, int64_t n)
{
    float *vectors = malloc(n_queries * (size_t)r->texts.width * sizeof *vectors);
    *hits = calloc(n_queries * (size_t)k + 1, sizeof **hits);
    struct status s = vectors == NULL || *hits == NULL
                          ? status_error(STATUS_MEMORY, "out of memory for a search")
                          : retriever_embed(r, vectors, queries, n_queries, true);
    s = failed(s) ? s : vector_search(*hits, k, vectors, (int64_t)n_queries, rows, n, r->texts.width);
    free(vectors);
    return s;
}
