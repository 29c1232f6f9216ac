#include "corpus/wikitext.h"

#include "corpus/text_line.h"
#include "corpus/wikitext_emit.h"
#include "text/letter_case.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* ---- the third pass: lines become paragraphs ----
 *
 * Titles of sections, items of lists, indented lines and what is left of tables are dropped; blanks, dots and
 * quotes are put in order.  A line is a paragraph, as in WikiExtractor, whose function `compact` this is. */

static const char NBSP[] = "\302\240"; /* U+00A0 */

/* Bytes at which the pass looks.  A blank, a dot or a comma with nothing peculiar around it is plain. */
enum { PLAIN, BLANK, POINT, SPECIAL };
static const unsigned char byte_kind[256] = {
    [WIKITEXT_SIGN_ITALIC] = SPECIAL,
    [WIKITEXT_SIGN_BOLD] = SPECIAL,
    [WIKITEXT_SIGN_BOTH] = SPECIAL,
    [WIKITEXT_SIGN_INDENT] = SPECIAL,
    [WIKITEXT_SIGN_LITERAL] = SPECIAL,
    ['('] = SPECIAL,
    [')'] = SPECIAL,
    ['<'] = SPECIAL,
    ['>'] = SPECIAL,
    [0xC2] = SPECIAL,
    [' '] = BLANK,
    ['.'] = POINT,
    [','] = POINT,
};

static const char *skip_plain(const char *begin, const char *end)
{
    for (const char *at = begin; at < end; at++) {
        unsigned char kind = byte_kind[(unsigned char)*at];
        if (kind == PLAIN) {
            continue;
        }
        if (kind == SPECIAL || at == begin || at + 1 == end) {
            return at;
        }
        unsigned char next = byte_kind[(unsigned char)at[1]], before = byte_kind[(unsigned char)at[-1]];
        bool plain = kind == BLANK ? next == PLAIN : before == PLAIN && next <= BLANK;
        if (!plain) {
            return at;
        }
    }
    return end;
}

/* A line on its way to a paragraph. */
struct line {
    struct buf *out;
    size_t begin; /* beginning of the paragraph, in out */
    const char *at, *end;
    bool italic;  /* between '' and '' */
    bool by_five; /* italic that began as ''''' */
    size_t quote; /* offset of its quotation mark in out; SIZE_MAX: none was written */
};

static size_t written(const struct line *l)
{
    return l->out->n - l->begin;
}

static char last(const struct line *l)
{
    return (char)(written(l) == 0 ? ' ' : l->out->data[l->out->n - 1]);
}

static void put_space(struct line *l)
{
    buf_append(l->out, " ", last(l) != ' ');
}

/* ---- quotes ---- */

/* Takes back a quotation mark that was opened, and one of two blanks around it. */
static void remove_quote(struct line *l)
{
    if (l->quote == SIZE_MAX || l->out->failed) {
        return;
    }
    char *quote = l->out->data + l->quote;
    size_t behind = l->out->n - l->quote - 1;
    bool blanks = behind > 0 && quote[1] == ' ' && (l->quote == l->begin || quote[-1] == ' ');
    size_t n = blanks ? 2 : 1;
    memmove(quote, quote + n, behind + 1 - n);
    l->out->n -= n;
}

/* '' is a quotation mark, unless there is one already: ''"a"'' is "a". */
static void take_italic(struct line *l, bool five)
{
    if (!l->italic) {
        bool quoted = l->at < l->end && *l->at == '"';
        l->quote = quoted ? SIZE_MAX : l->out->n;
        buf_append(l->out, "\"", !quoted);
        l->italic = true;
        l->by_five = five;
        return;
    }
    bool empty = l->quote != SIZE_MAX && l->quote + 1 == l->out->n;
    if (empty || (five && l->by_five)) { /* '''''a''''' is a */
        remove_quote(l);
    } else {
        buf_append(l->out, "\"", l->quote != SIZE_MAX);
    }
    l->italic = false;
}

/* ---- punctuation ---- */

static size_t run_length(const struct line *l)
{
    const char *end = l->at + 1;
    while (end < l->end && *end == *l->at) {
        end++;
    }
    return (size_t)(end - l->at);
}

/* Whether nothing, a blank or a line end is at `at`. */
static bool ends_word(const char *at, const char *end)
{
    return at >= end || *at == ' ' || *at == '\n';
}

static void take_dots(struct line *l)
{
    size_t n = run_length(l);
    bool detached = last(l) == ' ' && written(l) > 0 && ends_word(l->at + 1, l->end); /* a word was dropped */
    if (n == 1 && (detached || last(l) == ',')) {
        l->out->n--;
    }
    buf_append(l->out, "....", n > 3 ? 3 : n);
    l->at += n;
}

static void take_comma(struct line *l)
{
    if (last(l) == ' ' && written(l) > 0 && ends_word(l->at + 1, l->end)) {
        l->out->n--;
    }
    buf_append(l->out, ",", last(l) != ',' && last(l) != '(');
    l->at++;
}

/* Behind '(' what a dropped template left: "( ; born", "()". */
static void take_opening(struct line *l)
{
    const char *next = l->at + 1;
    while (next < l->end &&
           (*next == ' ' || *next == ',' || *next == ';' ||
            (*next > 0 && *next < WIKITEXT_SIGN_INDENT && next + 1 < l->end && next[1] == ' '))) {
        next++;
    }
    if (next < l->end && *next == ')') {
        if (last(l) == ' ' && written(l) > 0) {
            l->out->n--;
        }
        l->at = next + 1;
        return;
    }
    buf_putc(l->out, '(');
    l->at = next;
}

static void take_closing(struct line *l)
{
    while (written(l) > 0 && (last(l) == ' ' || last(l) == ';' || last(l) == ',')) {
        l->out->n--;
    }
    buf_putc(l->out, ')');
    l->at++;
}

static void take_angle(struct line *l)
{
    bool two = l->at + 1 < l->end && l->at[1] == *l->at;
    if (two) {
        buf_puts(l->out, *l->at == '<' ? "\302\253" : "\302\273");
    } else {
        buf_putc(l->out, *l->at);
    }
    l->at += two ? 2 : 1;
}

static void take_special(struct line *l)
{
    char c = *l->at;
    switch (c) {
    case WIKITEXT_SIGN_ITALIC:
    case WIKITEXT_SIGN_BOTH:
        l->at++;
        take_italic(l, c == WIKITEXT_SIGN_BOTH);
        break;
    case ' ':
        put_space(l);
        l->at++;
        break;
    case '.': take_dots(l); break;
    case ',': take_comma(l); break;
    case '(': take_opening(l); break;
    case ')': take_closing(l); break;
    case '<':
    case '>': take_angle(l); break;
    case (char)0xC2:
        if (l->end - l->at > 1 && l->at[1] == NBSP[1]) {
            put_space(l);
            l->at += 2;
        } else {
            buf_putc(l->out, c);
            l->at++;
        }
        break;
    default: /* the other signs */ l->at++;
    }
}

/* ---- lines ---- */

static bool is_sign(char c)
{
    return c > 0 && c < WIKITEXT_SIGN_END;
}

/* Whether there are two equals signs in a row. */
static bool has_two(const char *text, size_t n)
{
    const char *at = text, *end = text + n;
    while (at < end) {
        at = memchr(at, '=', (size_t)(end - at));
        if (at == NULL || (++at < end && *at == '=')) {
            return at != NULL;
        }
    }
    return false;
}

/* == Title ==, and = Title = too. */
static bool is_title(const char *text, size_t n)
{
    while (n > 0 && (text[n - 1] == ' ' || is_sign(text[n - 1]))) {
        n--;
    }
    if (n < 3 || text[0] != '=') {
        return false;
    }
    return text[n - 1] == '=' || (text[1] == '=' && has_two(text + 2, n - 2));
}

/* Whether a line as it was written is no prose, by what it begins with. */
static bool is_dropped(const char *text, size_t n)
{
    size_t at = 0;
    while (at < n && (text[at] == ' ' || (is_sign(text[at]) && text[at] != WIKITEXT_SIGN_LITERAL))) {
        if (text[at++] == WIKITEXT_SIGN_INDENT) {
            return true;
        }
    }
    if (at == n) {
        return true;
    }
    return text[at] == '=' ? is_title(text + at, n - at) : text_line_is_one_of(text[at], "*#;:{|");
}

/* Whether there is a letter or a digit in it. */
static bool has_word(const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        uint32_t c;
        at += (size_t)utf8_decode(&c, text + at, n - at);
        if (letter_case_is_word(c)) {
            return true;
        }
    }
    return false;
}

/* Whether a finished paragraph is none: the rests of tables, and remarks. */
static bool is_rest(const char *text, size_t n)
{
    return n == 0 || text[n - 1] == '}' || (text[0] == '(' && text[n - 1] == ')') || !has_word(text, n);
}

static struct status add_line(struct document *out, const char *text, size_t n)
{
    struct line l = {.out = &out->text, .begin = out->text.n, .at = text, .end = text + n, .quote = SIZE_MAX};
    if (is_dropped(text, n)) {
        return status_ok();
    }
    while (l.at < l.end) {
        const char *begin = l.at;
        l.at = skip_plain(begin, l.end);
        wikitext_emit_append(l.out, begin, (size_t)(l.at - begin));
        if (l.at < l.end) {
            take_special(&l);
        }
    }
    if (l.italic) {
        remove_quote(&l);
    }
    while (written(&l) > 0 && text_line_is_one_of(last(&l), " \t\v\f\r")) {
        l.out->n--;
    }
    TRY(buf_status(l.out));
    if (written(&l) == 0 || is_rest(l.out->data + l.begin, written(&l))) {
        l.out->n = l.begin;
        return status_ok();
    }
    return document_end_paragraph(out);
}

/* Appends the paragraphs of text[0..n), which wikitext_emit wrote, to the document. */
static struct status add_lines(struct document *out, const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t length = end == NULL ? n - at : (size_t)(end - text) - at;
        TRY(add_line(out, text + at, length));
        at += length + 1;
    }
    return status_ok();
}

/* ---- pages ---- */

struct wikitext {
    const struct wiki_site *site;
    struct wikitext_spans spans;
    struct wikitext_emit emit;
};

struct wikitext *wikitext_create(const struct wiki_site *site)
{
    struct wikitext *w = calloc(1, sizeof *w);
    if (w != NULL) {
        w->site = site;
    }
    return w;
}

void wikitext_destroy(struct wikitext *w)
{
    if (w != NULL) {
        wikitext_spans_fini(&w->spans);
        wikitext_emit_fini(&w->emit);
        free(w);
    }
}

/* The passes; *outcome says whether there is text to take. */
static struct status convert(struct wikitext *w, struct document *out, struct wikitext_counts *counts,
                             const struct paragraph *title, const struct paragraph *markup,
                             enum wikitext_outcome *outcome)
{
    *outcome = WIKITEXT_TOO_LARGE;
    if (markup->n > WIKITEXT_PAGE_BYTES) {
        return status_ok();
    }
    int64_t most_work = counts->n_work + WIKITEXT_WORK_FREE + (int64_t)markup->n * WIKITEXT_WORK_PER_BYTE;
    TRY(wikitext_spans_find(&w->spans, w->site, markup->text, markup->n));
    counts->n_work += w->spans.n_work;
    counts->n_unclosed += w->spans.n_unclosed;
    *outcome = WIKITEXT_TOO_DEEP;
    if (w->spans.too_deep) {
        return status_ok();
    }
    TRY(wikitext_emit_page(&w->emit, counts, &w->spans, title->text, title->n, most_work));
    if (w->emit.too_deep) {
        return status_ok();
    }
    *outcome = WIKITEXT_TOO_MUCH_WORK;
    if (w->emit.too_much) {
        return status_ok();
    }
    int64_t n_before = out->n_paragraphs;
    counts->n_work += (int64_t)w->emit.text.n;
    TRY(add_lines(out, buf_text(&w->emit.text), w->emit.text.n));
    *outcome = out->n_paragraphs > n_before ? WIKITEXT_KEPT : WIKITEXT_EMPTY;
    return status_ok();
}

struct status wikitext_convert(struct wikitext *w, struct document *out, struct wikitext_counts *counts,
                               const char *title, size_t title_bytes, const char *markup, size_t n)
{
    struct paragraph name = {title, title_bytes}, text = {markup, n};
    int64_t n_paragraphs = out->n_paragraphs;
    size_t n_bytes = out->text.n;
    enum wikitext_outcome outcome;
    TRY(convert(w, out, counts, &name, &text, &outcome));
    counts->n_pages[outcome]++;
    counts->n_bytes += (int64_t)n;
    counts->n_paragraphs += out->n_paragraphs - n_paragraphs;
    counts->n_text_bytes += (int64_t)(out->text.n - n_bytes);
    return status_ok();
}
