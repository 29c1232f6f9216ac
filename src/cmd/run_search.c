/* kiln search: the texts of an index whose vectors are nearest to a query's, and what puts texts into it. */
#include "cmd/commands.h"
#include "cmd/passage_files.h"
#include "cmd/retriever.h"
#include "cmd/standard_streams.h"
#include "cmd/text_groups.h"
#include "core/integers.h"
#include "core/log.h"
#include "serve/answer_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct search_args {
    struct session_flags session;
    struct retriever_flags retriever;
    struct option_words input;
    const char *encoding;
    int64_t top_k;
    bool add, json;
};

#define AT(field) offsetof(struct search_args, field)

static const struct option options[] = {
    SESSION_FLAG_ROWS(AT(session), "a model of vectors (`kiln embed`): the one that made the index"),
    RETRIEVER_ROWS(AT(retriever)),
    OPTION_INT_ROW("top_k", AT(top_k), "10", 1, 10000, "number of texts for each query"),
    OPTION_FLAG_ROW("json", AT(json),
                    "print a JSON object for each query: query, and hits with index, score, text and what "
                    "else is known of it"),
    OPTION_GROUP_ROW("texts of the index"),
    OPTION_FLAG_ROW("add", AT(add),
                    "put the arguments, or the lines of standard input, or the files of --input into the "
                    "index, which is made if there is none"),
    OPTION_WORDS_ROW("input", AT(input), "PATH...",
                     "with --add, take these files, and those of these folders, in passages as long as the "
                     "model reads, a quarter of which they have in common"),
    OPTION_STRING_ROW("encoding", AT(encoding), NULL, "NAME",
                      "encoding of the files, such as latin-1; by default UTF-8"),
    {0},
};

struct searching {
    struct retriever r;
    struct search_index index;
    struct search_index_writer writer;
    const struct search_args *args;
    float *vectors; /* [TEXT_GROUP_TEXTS, width] */
};

/* ---- queries ---- */

/* "3", or the file and the character at which the text begins. */
static void print_hit(const json_t *hit)
{
    const char *file = json_string_value(json_object_get(hit, "file"));
    const json_t *at = json_object_get(hit, file == NULL ? "index" : "start");
    printf("%.4f\t%s%s%lld\t", json_real_value(json_object_get(hit, "score")), file == NULL ? "" : file,
           file == NULL ? "" : ":", (long long)json_integer_value(at));
    for (const char *c = json_string_value(json_object_get(hit, "text")); *c != '\0'; c++) {
        putchar(*c == '\t' || *c == '\n' || *c == '\r' ? ' ' : *c);
    }
    putchar('\n');
}

/* Prints hits, and takes them over. */
static struct status print(const struct searching *g, const struct text_bytes *query, json_t *hits)
{
    const json_t *hit;
    size_t i;
    if (g->args->json) {
        return standard_streams_put_json(
            json_pack("{s:o, s:o}", "query", answer_json_said(query->bytes, query->n), "hits", hits));
    }
    json_array_foreach(hits, i, hit)
    {
        print_hit(hit);
    }
    json_decref(hits);
    return status_ok();
}

/* The texts of hits [k] and what is known of them. */
static struct status read_hits(json_t **list, const struct searching *g, const struct vector_hit *hits,
                               int64_t k)
{
    struct status s = status_ok();
    *list = json_array();
    for (int64_t i = 0; i < k && !failed(s); i++) {
        json_t *text;
        s = search_index_text(&text, &g->index, hits[i].row);
        if (!failed(s)) {
            json_t *hit =
                json_pack("{s:I, s:f}", "index", (json_int_t)hits[i].row, "score", (double)hits[i].score);
            json_object_update(hit, text);
            json_array_append_new(*list, hit);
            json_decref(text);
        }
    }
    return s;
}

static struct status search_some(struct searching *g, const struct text_bytes *queries, size_t n)
{
    struct vector_hit *hits;
    int64_t k = int_smaller(g->args->top_k, g->index.n);
    struct status s = retriever_find(&g->r, &hits, k, queries, n, g->index.vectors.data, g->index.n);
    for (size_t i = 0; i < n && !failed(s); i++) {
        json_t *list;
        s = read_hits(&list, g, hits + (int64_t)i * k, k);
        if (failed(s)) {
            json_decref(list);
        } else {
            s = print(g, &queries[i], list);
        }
    }
    free(hits);
    return s;
}

static struct status search_group(void *self, const struct text_bytes *queries, size_t n)
{
    enum { AT_ONCE = 64 };
    for (size_t i = 0; i < n; i += AT_ONCE) {
        TRY(search_some(self, queries + i, n - i < AT_ONCE ? n - i : AT_ONCE));
    }
    return status_ok();
}

static struct status search(struct searching *g, int n_queries, const char *const *queries)
{
    TRY(search_index_open(&g->index, g->args->retriever.index, &g->r.maker));
    struct status s = text_groups_answer(n_queries, queries, search_group, g);
    s = failed(s) ? s : file_map_check(&g->index.vectors.map, g->index.path);
    search_index_close(&g->index);
    return s;
}

/* ---- texts ---- */

static struct status add(struct searching *g, const struct text_bytes *texts, const struct passage *passages,
                         size_t n)
{
    struct buf lines = {0};
    struct status s = retriever_embed(&g->r, g->vectors, texts, n, false);
    for (size_t i = 0; i < n && !failed(s); i++) {
        json_t *line = json_pack("{s:o}", "text", answer_json_said(texts[i].bytes, texts[i].n));
        if (line != NULL && passages != NULL) {
            json_object_set_new(line, "file", json_text(passages[i].file));
            json_object_set_new(line, "start", json_integer(passages[i].at));
        }
        s = json_append_line(&lines, line, 0);
    }
    s = failed(s) ? s : search_index_put(&g->writer, &lines, g->vectors, (int64_t)n);
    buf_fini(&lines);
    return s;
}

static struct status add_group(void *self, const struct text_bytes *texts, size_t n)
{
    return add(self, texts, NULL, n);
}

static struct status add_passages(struct searching *g, const struct passages *p)
{
    struct text_bytes texts[TEXT_GROUP_TEXTS];
    for (int64_t first = 0; first < p->n; first += TEXT_GROUP_TEXTS) {
        size_t n = (size_t)int_smaller(TEXT_GROUP_TEXTS, p->n - first);
        for (size_t i = 0; i < n; i++) {
            const struct passage *one = passages_get(p, first + (int64_t)i);
            texts[i] = (struct text_bytes){one->text, one->n};
        }
        TRY(add(g, texts, passages_get(p, first), n));
    }
    return status_ok();
}

static struct status add_files(struct searching *g)
{
    const struct search_args *a = g->args;
    struct passage_files files;
    int64_t room = g->r.texts.max_length - input_form_n_special(&g->r.session.frame.one);
    TRY(passage_files_open(&files, a->input.of, a->input.n, a->encoding));
    struct status s = passage_files_cut(&files, &g->r.session.scratch, room, room - room / 4);
    s = failed(s) ? s : add_passages(g, &files.passages);
    s = failed(s) ? s : passage_files_check(&files);
    passage_files_close(&files);
    return s;
}

static struct status add_all(struct searching *g, int n_texts, const char *const *texts)
{
    TRY(search_index_writer_open(&g->writer, g->args->retriever.index, &g->r.maker));
    int64_t n_before = g->writer.rows.n;
    g->vectors = malloc((size_t)(TEXT_GROUP_TEXTS * g->r.texts.width) * sizeof *g->vectors);
    struct status s = g->vectors == NULL     ? status_error(STATUS_MEMORY, "out of memory for vectors")
                      : g->args->input.n > 0 ? add_files(g)
                                             : text_groups_answer(n_texts, texts, add_group, g);
    log_info("%s: %lld texts more, %lld in all", g->args->retriever.index,
             (long long)(g->writer.rows.n - n_before), (long long)g->writer.rows.n);
    struct status closed = search_index_writer_close(&g->writer);
    free(g->vectors);
    return failed(s) ? s : closed;
}

/* ---- the command ---- */

static struct status check(const struct search_args *a, int n_positional)
{
    FAIL_IF(a->retriever.index == NULL, STATUS_USAGE, "kiln search needs --index FILE");
    FAIL_IF(a->input.n > 0 && (!a->add || n_positional > 0), STATUS_USAGE,
            "--input gives files to --add, in place of texts as arguments");
    return status_ok();
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    struct searching g = {.args = args};
    TRY(check(g.args, n_positional));
    if (g.args->session.common.dry_run) {
        return session_flags_plan(&g.args->session, ANSWER_EMBED);
    }
    TRY(retriever_open(&g.r, &g.args->session, &g.args->retriever));
    struct status s =
        g.args->add ? add_all(&g, n_positional, positional) : search(&g, n_positional, positional);
    if (!failed(s)) {
        text_groups_warn_cut(g.r.n_cut, g.r.texts.max_length);
    }
    retriever_close(&g.r);
    return s;
}

const struct command command_search = {
    .name = "search",
    .summary = "find texts by meaning, in an index of vectors",
    .details =
        "Queries are arguments, or lines of standard input; with --add they are texts for the index.  A text "
        "that is found becomes a line with tabs: the cosine, its number from 0 or its file and the character "
        "at which it begins there, and the text. The search is exact: it reads every vector.  An index knows "
        "its model, and refuses another.  Texts can be added at any time; an interruption loses those of its "
        "last group only, and never leaves one that looks complete.",
    .positional_usage = "[QUERY...]",
    .max_positional = 1000,
    .options = options,
    .args_bytes = sizeof(struct search_args),
    .run = run,
};
