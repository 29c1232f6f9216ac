/* kiln rerank: texts in the order in which they answer a query, by a classifier of one label that reads
 * the query and each text as a pair (Nogueira & Cho 2019, arXiv:1901.04085). */
#include "cmd/commands.h"
#include "cmd/session_flags.h"
#include "cmd/standard_streams.h"
#include "cmd/text_groups.h"
#include "serve/classify_texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rerank_args {
    struct session_flags session;
    int64_t top_n;
    bool json;
};

static const struct option options[] = {
    SESSION_FLAG_ROWS(offsetof(struct rerank_args, session),
                      "a reranker (cross-encoder): a classifier of one label, in a directory as "
                      "sentence-transformers or `transformers` write it"),
    OPTION_INT_ROW("top_n", offsetof(struct rerank_args, top_n), "0", 0, 1e12,
                   "print the best N texts; 0: no limit"),
    OPTION_FLAG_ROW(
        "json", offsetof(struct rerank_args, json),
        "print a JSON array: index, score and text of each, as text-embeddings-inference answers"),
    {0},
};

/* Texts so far. */
struct ranking {
    struct session session;
    struct text_bytes query;
    struct buf texts;  /* each ended by a NUL */
    struct buf starts; /* size_t: where each begins */
    struct buf ranked; /* struct class_reading: the label is a text's number, the score its logit */
    int64_t n, n_cut;
};

static struct status add_texts(struct ranking *r, const struct classify_job *j,
                               const struct text_bytes *texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct class_reading one = {.label = r->n++,
                                          .score = class_logits_get(&j->logits, (int64_t)i)[0]};
        buf_append(&r->starts, &r->texts.n, sizeof r->texts.n);
        buf_append(&r->texts, texts[i].bytes, texts[i].n);
        buf_putc(&r->texts, '\0');
        buf_append(&r->ranked, &one, sizeof one);
    }
    TRY(buf_status(&r->starts));
    TRY(buf_status(&r->ranked));
    return buf_status(&r->texts);
}

static struct status rate_group(void *self, const struct text_bytes *texts, size_t n)
{
    struct ranking *r = self;
    struct classify_job j;
    struct text_bytes *queries = calloc(n, sizeof *queries);
    FAIL_IF(queries == NULL, STATUS_MEMORY, "out of memory for %zu texts", n);
    for (size_t i = 0; i < n; i++) {
        queries[i] = r->query;
    }
    struct status s =
        classify_job_make(&j, &r->session, &r->session.scratch, queries, texts, n, TEXT_CUT_END);
    s = failed(s) ? s : packer_answer(&r->session.packer, &j.request);
    s = failed(s) ? s : add_texts(r, &j, texts, n);
    r->n_cut += j.texts.n_cut;
    classify_job_fini(&j);
    free(queries);
    return s;
}

/* Sorts by logit, since a sigmoid makes large ones equal. */
static struct status print(const struct ranking *r, const struct rerank_args *a)
{
    struct class_reading *ranked = (void *)r->ranked.data;
    const size_t *starts = (const void *)r->starts.data;
    int64_t n = a->top_n > 0 && a->top_n < r->n ? a->top_n : r->n;
    json_t *list = json_array();
    class_logits_sort(ranked, (size_t)r->n);
    for (int64_t i = 0; i < n; i++) {
        const char *text = buf_text(&r->texts) + starts[ranked[i].label];
        double score = sentence_activation_of(r->session.scores.activation, ranked[i].score);
        if (a->json) {
            json_array_append_new(list, json_pack("{s:I, s:f, s:o}", "index", (json_int_t)ranked[i].label,
                                                  "score", score, "text", json_text(text)));
        } else {
            printf("%.4f\t%s\n", score, text);
        }
    }
    if (a->json) {
        return standard_streams_put_json(list);
    }
    json_decref(list);
    return standard_streams_flush();
}

static struct status rank(struct ranking *r, const struct rerank_args *a, int n_texts,
                          const char *const *texts)
{
    int64_t n_labels = r->session.model->labels.n;
    FAIL_IF(n_labels != 1, STATUS_USAGE, "%s does not rank texts: it has %lld labels, and a reranker has one",
            a->session.model, (long long)n_labels);
    TRY(text_groups_answer(n_texts, texts, rate_group, r));
    text_groups_warn_cut(r->n_cut, r->session.max_length);
    return print(r, a);
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct rerank_args *a = args;
    if (a->session.common.dry_run) {
        return session_flags_plan(&a->session, ANSWER_CLASSIFY);
    }
    FAIL_IF(n_positional == 0, STATUS_USAGE,
            "kiln rerank needs a query, and texts or lines of standard input");
    TRY(standard_streams_check_argument(positional[0], 1));
    struct ranking r = {.query = {positional[0], strlen(positional[0])}};
    TRY(session_flags_open(&r.session, &a->session, ANSWER_CLASSIFY));
    struct status s = rank(&r, a, n_positional - 1, positional + 1);
    buf_fini(&r.texts);
    buf_fini(&r.starts);
    buf_fini(&r.ranked);
    session_close(&r.session);
    return s;
}

const struct command command_rerank = {
    .name = "rerank",
    .summary = "sort texts by how well they answer a query",
    .details =
        "The query is the first argument; texts are the others, or lines of standard input. Each becomes a "
        "line, the best first: its score, as sentence-transformers' CrossEncoder.predict gives it, and the "
        "text.",
    .positional_usage = "QUERY [TEXT...]",
    .max_positional = 1001,
    .options = options,
    .args_bytes = sizeof(struct rerank_args),
    .run = run,
};
