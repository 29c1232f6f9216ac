#include "cmd/ask_passages.h"

#include "cmd/standard_streams.h"
#include "core/integers.h"
#include "core/log.h"
#include "core/progress.h"
#include "serve/answer_json.h"
#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A part of the text that is read: passages of a file that overlap, end to end. */
struct piece {
    size_t begin, end; /* bytes of the text */
    const char *file;  /* NULL: text `row` of the index */
    int64_t row, at;   /* characters of the file before it */
};

bool ask_passages_wanted(const struct ask_passages_flags *f)
{
    return f->contexts.n > 0 || f->n > 0 || f->model != NULL || f->retriever.index != NULL ||
           (f->context != NULL && file_is_directory(f->context));
}

/* ---- opening ---- */

static struct status embed_passages(struct ask_passages *p)
{
    enum { GROUP = 256 };
    struct text_bytes texts[GROUP];
    struct progress shown = progress_begin(true);
    int64_t width = p->retriever.texts.width;
    struct status s = status_ok();
    p->vectors = malloc((size_t)(p->n * width) * sizeof *p->vectors);
    FAIL_IF(p->vectors == NULL, STATUS_MEMORY, "out of memory for vectors of %lld passages", (long long)p->n);
    for (int64_t first = 0; first < p->n && !failed(s); first += GROUP) {
        int64_t n = int_smaller(GROUP, p->n - first);
        for (int64_t i = 0; i < n; i++) {
            const struct passage *one = passages_get(&p->files.passages, first + i);
            texts[i] = (struct text_bytes){one->text, one->n};
        }
        s = retriever_embed(&p->retriever, p->vectors + first * width, texts, (size_t)n, false);
        if (progress_due(&shown)) {
            progress_show(&shown, "vectors of passages: %lld of %lld", (long long)(first + n),
                          (long long)p->n);
        }
    }
    progress_end(&shown);
    return s;
}

static struct status open_files(struct ask_passages *p, struct session *s, const struct ask_options *o,
                                const struct ask_passages_flags *f)
{
    int64_t step = ask_window_step(s, o), room = 2 * step;
    if (p->by_vectors) {
        int64_t n_special = input_form_n_special(&p->retriever.session.frame.one);
        room = int_smaller(room, int_larger(step, p->retriever.texts.max_length - n_special));
    }
    bool one = f->contexts.n == 0;
    TRY(passage_files_open(&p->files, one ? &f->context : f->contexts.of, one ? 1 : f->contexts.n,
                           f->encoding));
    TRY(passage_files_cut(&p->files, &s->scratch, room, step));
    p->n = p->files.passages.n;
    return p->by_vectors ? embed_passages(p) : status_ok();
}

static void say(const struct ask_passages *p, const struct ask_passages_flags *f)
{
    if (p->n_read == p->n) {
        log_info("all %lld passages are read", (long long)p->n);
    } else {
        log_info("of %lld passages %s, the %lld are read that fit a question best by %s", (long long)p->n,
                 p->of_index ? "of the index" : "of the files", (long long)p->n_read,
                 p->by_vectors ? f->model : "their words (BM25); --retriever MODEL chooses by meaning");
    }
    if (p->retriever.n_cut > 0) {
        log_warning("%lld passages were longer than the %lld tokens that the retriever reads",
                    (long long)p->retriever.n_cut, (long long)p->retriever.texts.max_length);
    }
}

struct status ask_passages_open(struct ask_passages *p, struct session *s, const struct ask_options *o,
                                const struct session_flags *session, const struct ask_passages_flags *f)
{
    *p = (struct ask_passages){.by_vectors = f->model != NULL, .of_index = f->retriever.index != NULL};
    struct session_flags of_retriever = *session;
    of_retriever.model = f->model;
    of_retriever.given = (struct model_dir_given){0};
    struct status status =
        p->by_vectors ? retriever_open(&p->retriever, &of_retriever, &f->retriever) : status_ok();
    if (!failed(status) && p->of_index) {
        status = search_index_open(&p->index, f->retriever.index, &p->retriever.maker);
        p->n = p->index.n;
    } else if (!failed(status)) {
        status = open_files(p, s, o, f);
    }
    if (failed(status)) {
        ask_passages_close(p);
        return status;
    }
    p->n_read = int_smaller(f->n > 0 ? f->n : ASK_PASSAGES, p->n);
    say(p, f);
    return status_ok();
}

void ask_passages_close(struct ask_passages *p)
{
    free(p->vectors);
    search_index_close(&p->index);
    passage_files_close(&p->files);
    retriever_close(&p->retriever);
    buf_fini(&p->text);
    buf_fini(&p->pieces);
    json_decref(p->lines);
    *p = (struct ask_passages){0};
}

/* ---- what is read for a question ---- */

static int by_number(const void *a, const void *b)
{
    const struct vector_hit *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

static int by_score(const void *a, const void *b)
{
    const struct vector_hit *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score) : by_number(a, b);
}

/* Scores all passages by their words, the best first. */
static struct status find_by_words(struct ask_passages *p, struct vector_hit **hits, struct session *s,
                                   const char *question)
{
    double *scores = malloc((size_t)p->n * sizeof *scores);
    *hits = calloc((size_t)p->n, sizeof **hits);
    struct status status = scores == NULL || *hits == NULL
                               ? status_error(STATUS_MEMORY, "out of memory for %lld scores", (long long)p->n)
                               : passages_score(&p->files.passages, scores, &s->scratch, question);
    for (int64_t i = 0; i < p->n && !failed(status); i++) {
        (*hits)[i] = (struct vector_hit){i, (float)scores[i]};
    }
    free(scores);
    if (!failed(status)) {
        qsort(*hits, (size_t)p->n, sizeof **hits, by_score);
    }
    return status;
}

/* Appends a passage, or what it has more than the one before. */
static void add_passage(struct ask_passages *p, const struct passage *one, int64_t row)
{
    struct piece *last = p->pieces.n == 0 ? NULL : (struct piece *)(void *)(p->pieces.data + p->pieces.n) - 1;
    int64_t end =
        last == NULL ? 0 : last->at + utf8_count(p->text.data + last->begin, last->end - last->begin);
    if (last != NULL && one->file != NULL && last->file != NULL && strcmp(one->file, last->file) == 0 &&
        one->at >= last->at && one->at <= end) {
        size_t skipped = 0;
        uint32_t c;
        for (int64_t at = one->at; at < end && skipped < one->n; at++) {
            skipped += (size_t)utf8_decode(&c, one->text + skipped, one->n - skipped);
        }
        buf_append(&p->text, one->text + skipped, one->n - skipped);
        last->end = p->text.n;
        return;
    }
    buf_puts(&p->text, last == NULL ? "" : "\n");
    struct piece piece = {.begin = p->text.n, .file = one->file, .row = row, .at = one->at};
    buf_append(&p->text, one->text, one->n);
    piece.end = p->text.n;
    buf_append(&p->pieces, &piece, sizeof piece);
}

static struct status add_row(struct ask_passages *p, int64_t row)
{
    if (!p->of_index) {
        add_passage(p, passages_get(&p->files.passages, row), row);
        return status_ok();
    }
    json_t *line;
    TRY(search_index_text(&line, &p->index, row));
    json_array_append_new(p->lines, line);
    const json_t *text = json_object_get(line, "text");
    const struct passage one = {.file = json_string_value(json_object_get(line, "file")),
                                .at = json_integer_value(json_object_get(line, "start")),
                                .text = json_string_value(text),
                                .n = json_string_length(text)};
    add_passage(p, &one, row);
    return status_ok();
}

/* Makes the text that is read for a question, in the order of the passages. */
static struct status choose(struct ask_passages *p, struct session *s, const char *question)
{
    struct vector_hit *hits = NULL;
    const float *rows = p->of_index ? p->index.vectors.data : p->vectors;
    const struct text_bytes query = {question, strlen(question)};
    struct status status = p->by_vectors
                               ? retriever_find(&p->retriever, &hits, p->n_read, &query, 1, rows, p->n)
                               : find_by_words(p, &hits, s, question);
    buf_clear(&p->text);
    buf_clear(&p->pieces);
    json_decref(p->lines);
    p->lines = json_array();
    if (!failed(status)) {
        qsort(hits, (size_t)p->n_read, sizeof *hits, by_number);
    }
    for (int64_t i = 0; i < p->n_read && !failed(status); i++) {
        status = add_row(p, hits[i].row);
    }
    free(hits);
    TRY(status);
    TRY(buf_status(&p->pieces));
    return buf_status(&p->text);
}

/* ---- the answers ---- */

/* The piece that a byte of the text is of. */
static const struct piece *piece_of(const struct ask_passages *p, size_t byte)
{
    const struct piece *piece = (const void *)p->pieces.data;
    while (byte >= piece->end) {
        piece++;
    }
    return piece;
}

/* The first top_k answers that are in one piece, with their places in files. */
static json_t *placed(const struct ask_passages *p, json_t *answers, const struct ask_result *r,
                      int64_t top_k)
{
    json_t *list = json_array();
    for (int64_t k = 0; k < r->n && (int64_t)json_array_size(list) < top_k; k++) {
        json_t *one = json_array_get(answers, (size_t)k);
        const struct ask_answer *a = &r->answers[k];
        const struct piece *piece = a->start < 0 ? NULL : piece_of(p, (size_t)a->start);
        if (piece != NULL && (size_t)a->end > piece->end) {
            continue;
        }
        json_object_del(one, "start"); /* bytes of what was read */
        json_object_del(one, "end");
        if (piece != NULL) {
            const char *text = p->text.data;
            int64_t start = piece->at + utf8_count(text + piece->begin, (size_t)a->start - piece->begin);
            int64_t n = utf8_count(text + a->start, (size_t)(a->end - a->start));
            json_object_set_new(one, "start_char", json_integer(start));
            json_object_set_new(one, "end_char", json_integer(start + n));
            json_object_set_new(one, piece->file == NULL ? "index" : "file",
                                piece->file == NULL ? json_integer(piece->row) : json_text(piece->file));
        }
        json_array_append(list, one);
    }
    return list;
}

static void print(const json_t *answers)
{
    const json_t *one;
    size_t i;
    json_array_foreach(answers, i, one)
    {
        const json_t *file = json_object_get(one, "file"), *row = json_object_get(one, "index");
        printf("%.4f  ", json_real_value(json_object_get(one, "probability")));
        if (file == NULL && row == NULL) {
            puts("(no answer)");
            continue;
        }
        printf("%s  [", json_string_value(json_object_get(one, "text")));
        if (file != NULL) {
            printf("%s", json_string_value(file));
        } else {
            printf("text %lld", (long long)json_integer_value(row));
        }
        printf(", characters %lld to %lld]\n",
               (long long)json_integer_value(json_object_get(one, "start_char")),
               (long long)json_integer_value(json_object_get(one, "end_char")));
    }
}

/* Prints the answers, and takes them over. */
static struct status put(const struct ask_passages *p, const char *question, json_t *answers, bool json)
{
    const char *by = p->n_read == p->n ? "all" : p->by_vectors ? "vectors" : "words";
    if (json) {
        return standard_streams_put_json(
            json_pack("{s:o, s:o, s:{s:I, s:I, s:s}}", "question", json_text(question), "answers", answers,
                      "passages", "read", (json_int_t)p->n_read, "of", (json_int_t)p->n, "by", by));
    }
    print(answers);
    json_decref(answers);
    return status_ok();
}

struct status ask_passages_answer(struct ask_passages *p, struct session *s, const char *question,
                                  const struct ask_options *o, bool json)
{
    enum { MORE = 8 }; /* some answers may reach from one piece into the next */
    struct ask_options wanted = *o;
    struct ask_result r;
    wanted.top_k += MORE;
    TRY(choose(p, s, question));
    struct status status = ask_question(s, question, buf_text(&p->text), p->text.n, &wanted, &r);
    progress_end(o->progress);
    if (!failed(status)) {
        json_t *all = answer_json_ask(question, buf_text(&p->text), &r);
        status = put(p, question, placed(p, json_object_get(all, "answers"), &r, o->top_k), json);
        json_decref(all);
    }
    ask_result_fini(&r);
    return status;
}
