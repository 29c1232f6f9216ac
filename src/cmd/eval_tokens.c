#define _GNU_SOURCE /* getline */
#include "cmd/eval_tokens.h"

#include "cmd/standard_streams.h"
#include "data/text_ids.h"
#include "text/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Texts that are computed together: enough for sorting by length to pay. */
enum { GROUP_TEXTS = 512 };

struct scoring {
    const struct eval_tokens *e;
    struct likelihood l;
    struct buf bytes;            /* bytes of the group's texts, end to end */
    size_t lengths[GROUP_TEXTS]; /* [l.n] */
    int64_t n_before;            /* texts of the groups before */
    struct token_list tokens;    /* scratch: the tokens of a text, with their places */
    struct buf out;
};

/* ---- the lines of a text ---- */

/* A field has no tabs and no ends of lines, and is UTF-8 even where a token ends within a character. */
static void put_field(struct buf *out, const char *text, size_t n)
{
    size_t from = out->n;
    struct buf plain = {0};
    utf8_repair(&plain, text, n);
    for (size_t i = 0; i < plain.n; i++) {
        char c = plain.data[i];
        buf_puts(out, c == '\t' ? "\\t" : c == '\n' ? "\\n" : c == '\r' ? "\\r" : "");
        if (c != '\t' && c != '\n' && c != '\r') {
            buf_putc(out, c);
        }
    }
    out->failed |= plain.failed;
    buf_fini(&plain);
    if (out->n == from) {
        buf_puts(out, "NA"); /* a token of no text, which a table cannot show */
    }
}

/* NA, as R reads it: the token is not predicted. */
static void put_surprisal(const struct scoring *s, struct buf *out, double nats)
{
    if (isnan(nats)) {
        buf_puts(out, "\tNA\n");
    } else {
        buf_printf(out, "\t%.6f\n", s->e->bits ? nats / log(2) : nats);
    }
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Words are what blanks separate.  A token belongs to the last word that begins before the token ends: a
 * blank before a word is a part of its first token. */
struct word_cursor {
    const char *text;
    size_t n, at;
    int64_t number;    /* of the last word that began before `at`, from 1; 0: none */
    size_t begin, end; /* its place */
};

static void move_to(struct word_cursor *w, size_t end)
{
    for (; w->at < end || (w->at < w->n && w->number == 0); w->at++) {
        if (!is_blank(w->text[w->at]) && (w->at == 0 || is_blank(w->text[w->at - 1]))) {
            w->number++;
            w->begin = w->end = w->at;
            while (w->end < w->n && !is_blank(w->text[w->end])) {
                w->end++;
            }
        }
    }
}

static void put_tokens(struct scoring *s, int64_t sentence, const char *text, size_t n, const double *losses)
{
    struct word_cursor w = {.text = text, .n = n};
    for (size_t i = 0; i < s->tokens.n; i++) {
        const struct token *t = &s->tokens.tokens[i];
        move_to(&w, t->end);
        buf_printf(&s->out, "%lld\t%lld\t%zu\t", (long long)sentence, (long long)w.number, i + 1);
        put_field(&s->out, text + t->start, t->end - t->start);
        put_surprisal(s, &s->out, losses[i]);
    }
}

static void put_words(struct scoring *s, int64_t sentence, const char *text, size_t n, const double *losses)
{
    struct word_cursor w = {.text = text, .n = n};
    for (size_t i = 0, end; i < s->tokens.n; i = end) {
        double sum = losses[i];
        move_to(&w, s->tokens.tokens[i].end);
        struct word_cursor next = w;
        for (end = i + 1; end < s->tokens.n; end++) {
            move_to(&next, s->tokens.tokens[end].end);
            if (next.number != w.number) {
                break;
            }
            sum += losses[end];
        }
        buf_printf(&s->out, "%lld\t%lld\t%zu\t", (long long)sentence, (long long)w.number, end - i);
        put_field(&s->out, text + w.begin, w.end - w.begin);
        put_surprisal(s, &s->out, sum);
    }
}

static struct status put_text(struct scoring *s, int64_t i, const char *text, size_t n)
{
    int64_t sentence = s->n_before + i + 1;
    const double *losses = likelihood_losses(&s->l, i);
    if (s->e->unit == EVAL_SENTENCES) {
        buf_printf(&s->out, "%lld\t%lld\t", (long long)sentence, (long long)likelihood_tokens(&s->l, i));
        put_field(&s->out, text, n);
        put_surprisal(s, &s->out, -likelihood_get(&s->l, i));
        return buf_status(&s->out);
    }
    s->tokens.n = 0;
    TRY(tokenizer_encode(&s->e->session->scratch, &s->tokens, text, n));
    (s->e->unit == EVAL_TOKENS ? put_tokens : put_words)(s, sentence, text, n, losses);
    return buf_status(&s->out);
}

static struct status put_group(struct scoring *s)
{
    size_t at = 0;
    for (int64_t i = 0; i < s->l.n; i++) {
        TRY(put_text(s, i, buf_text(&s->bytes) + at, s->lengths[i]));
        at += s->lengths[i];
    }
    return s->e->prints ? standard_streams_put(&s->out) : status_ok();
}

/* ---- texts ---- */

static struct status begin_group(struct scoring *s)
{
    buf_clear(&s->bytes);
    TRY(likelihood_init(&s->l, s->e->session, s->e->masking));
    return s->e->begins ? likelihood_begin_texts(&s->l) : status_ok();
}

static struct status score_group(struct scoring *s)
{
    struct packer *p = &s->e->session->packer;
    TRY(likelihood_make(&s->l));
    TRY(packer_explain(p, packer_answer(p, &s->l.request)));
    TRY(put_group(s));
    s->n_before += s->l.n;
    likelihood_fini(&s->l);
    return begin_group(s);
}

static struct status add_text(void *self, const char *text, size_t n)
{
    struct scoring *s = self;
    TRY(likelihood_add(&s->l, &s->e->session->scratch, text, n));
    s->lengths[s->l.n - 1] = n;
    buf_append(&s->bytes, text, n);
    TRY(buf_status(&s->bytes));
    return s->l.n == GROUP_TEXTS ? score_group(s) : status_ok();
}

static struct status add_input(struct scoring *s)
{
    char *line = NULL;
    size_t capacity = 0;
    struct status status = status_ok();
    int64_t number = 1;
    for (ssize_t n; !failed(status) && (n = getline(&line, &capacity, stdin)) >= 0; number++) {
        size_t length = utf8_without_end(line, (size_t)n);
        status = standard_streams_check_line(line, length, number);
        if (!failed(status) && length > 0) {
            status = status_context(add_text(s, line, length), "line %lld", (long long)number);
        }
    }
    free(line);
    return failed(status) ? status : standard_streams_check_input();
}

static struct status score_all(struct scoring *s, const struct input_paths *paths)
{
    static const char *const heads[] = {[EVAL_TOKENS] = "sentence\tword\ttoken\ttext\tsurprisal\n",
                                        [EVAL_WORDS] = "sentence\tword\ttokens\ttext\tsurprisal\n",
                                        [EVAL_SENTENCES] = "sentence\ttokens\ttext\tsurprisal\n"};
    TRY(begin_group(s));
    buf_puts(&s->out, heads[s->e->unit]);
    if (paths->n == 0) {
        TRY(add_input(s));
    }
    for (int i = 0; i < paths->n; i++) {
        TRY(text_ids_each_line(paths->paths[i], add_text, s));
    }
    return score_group(s);
}

struct status eval_tokens_run(const struct eval_tokens *e, const struct input_paths *paths)
{
    struct scoring *s = calloc(1, sizeof *s);
    FAIL_IF(s == NULL, STATUS_MEMORY, "out of memory for texts");
    s->e = e;
    struct status status = score_all(s, paths);
    likelihood_fini(&s->l);
    token_list_fini(&s->tokens);
    buf_fini(&s->bytes);
    buf_fini(&s->out);
    free(s);
    return status;
}
