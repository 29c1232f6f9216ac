#include "corpus/wikitext_spans.h"

#include "core/array.h"

#include <stdlib.h>
#include <string.h>

/* Bytes at which the pass looks. */
static const bool is_mark[256] = {
    ['{'] = true, ['}'] = true, ['['] = true, [']'] = true, ['<'] = true, ['\n'] = true};

void wikitext_spans_fini(struct wikitext_spans *s)
{
    free(s->spans);
    *s = (struct wikitext_spans){0};
}

/* Appends `count` unclosed spans at markup[begin]; returns the index of the first. */
static size_t add_spans(struct wikitext_spans *s, size_t begin, size_t count)
{
    if (!ARRAY_RESERVE(s->spans, s->capacity, s->n_spans + count)) {
        s->no_memory = true;
        s->n_spans = 0;
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        s->spans[s->n_spans + i] =
            (struct wikitext_span){(uint32_t)begin, (uint32_t)begin, WIKITEXT_SPAN_UNCLOSED};
    }
    s->n_spans += count;
    return s->n_spans - count;
}

static void add_whole(struct wikitext_spans *s, size_t begin, size_t end, enum wikitext_span_kind kind)
{
    size_t i = add_spans(s, begin, 1);
    if (!s->no_memory) {
        s->spans[i] = (struct wikitext_span){(uint32_t)begin, (uint32_t)end, (uint32_t)kind};
        s->line = s->line == begin ? end : s->line;
    }
}

static void close_span(struct wikitext_spans *s, size_t span, size_t end, enum wikitext_span_kind kind)
{
    s->spans[span].end = (uint32_t)end;
    s->spans[span].kind = (uint32_t)kind;
    s->line = s->line == s->spans[span].begin ? end : s->line;
}

static void push(struct wikitext_spans *s, char mark, size_t begin, size_t n_spans)
{
    bool full = mark == '<' ? s->n_elements == WIKITEXT_DEPTH : s->n_open - s->n_elements == WIKITEXT_DEPTH;
    if (full) {
        s->too_deep |= mark != '<'; /* elements that are never closed are common, and their tags do no harm */
        return;
    }
    size_t span = add_spans(s, begin, n_spans);
    s->open[s->n_open++] = (struct wikitext_open){.mark = mark, .begin = (uint32_t)begin, .span = span};
    s->n_elements += mark == '<';
}

/* Closes everything from open[from] on, without an end. */
static void pop_to(struct wikitext_spans *s, int from)
{
    while (s->n_open > from) {
        s->n_open--;
        s->n_elements -= s->open[s->n_open].mark == '<';
        s->n_unclosed++;
    }
}

/* The innermost open mark of this kind, looking through `through` only; -1 if there is none. */
static int find_open(const struct wikitext_spans *s, char mark, const char *through)
{
    int i = s->n_open - 1;
    while (i >= 0 && s->open[i].mark != mark && strchr(through, s->open[i].mark) != NULL) {
        i--;
    }
    return i >= 0 && s->open[i].mark == mark ? i : -1;
}

static size_t run_length(const struct wikitext_spans *s, size_t at)
{
    size_t end = at + 1;
    while (end < s->n && s->markup[end] == s->markup[at]) {
        end++;
    }
    return end - at;
}

/* ---- braces ---- */

static size_t open_braces(struct wikitext_spans *s, size_t at)
{
    size_t n = run_length(s, at), end = at + n;
    bool variant = s->site->has_variants && at > 0 && s->markup[at - 1] == '-' && n == 1;
    if (variant) {
        push(s, '-', at - 1, 1);
    } else if (n == 1 && at == s->line && end < s->n && s->markup[end] == '|') {
        push(s, '|', at, 1);
    } else if (n > 2 * WIKITEXT_DEPTH) {
        s->too_deep = true;
    } else if (n > 1) {
        size_t n_spans = n / 2;
        push(s, '{', at, n_spans);
        struct wikitext_open *top = &s->open[s->n_open - 1];
        top->n = (uint32_t)n;
        top->span += n_spans; /* one past its last */
    }
    return end;
}

static void close_table(struct wikitext_spans *s, size_t end)
{
    int i = find_open(s, '|', "[<{-");
    if (i >= 0) {
        pop_to(s, i + 1);
        close_span(s, s->open[i].span, end, WIKITEXT_SPAN_TABLE);
        s->n_open--;
    }
}

/* Closes two or three braces with `n` at markup[at]; returns how many. */
static size_t close_two_or_three(struct wikitext_spans *s, size_t at, size_t n)
{
    int i = find_open(s, '{', "[<|-");
    if (i < 0) {
        s->n_unclosed++;
        return n;
    }
    pop_to(s, i + 1);
    struct wikitext_open *top = &s->open[i];
    uint32_t taken = top->n > 2 && n > 2 ? 3 : 2;
    top->n -= taken;
    top->span--;
    s->spans[top->span].begin = top->begin + top->n;
    close_span(s, top->span, at + taken, taken == 3 ? WIKITEXT_SPAN_PARAMETER : WIKITEXT_SPAN_TEMPLATE);
    if (top->n < 2) {
        s->n_open--;
    }
    return taken;
}

static size_t close_braces(struct wikitext_spans *s, size_t at)
{
    size_t n = run_length(s, at), end = at + n;
    if (n == 1 && at > 0 && at - 1 == s->line && s->markup[at - 1] == '|') {
        close_table(s, end);
        return end;
    }
    int variant = end < s->n && s->markup[end] == '-' ? find_open(s, '-', "[<") : -1;
    if (variant >= 0) {
        pop_to(s, variant + 1);
        close_span(s, s->open[variant].span, end + 1, WIKITEXT_SPAN_VARIANT);
        s->n_open--;
        return end + 1;
    }
    while (n >= 2) {
        size_t taken = close_two_or_three(s, end - n, n);
        n -= taken;
    }
    return end;
}

/* ---- links ---- */

static size_t open_brackets(struct wikitext_spans *s, size_t at)
{
    size_t n = run_length(s, at);
    int link = find_open(s, '[', "<");
    if (n != 2 && link >= 0) {
        s->open[link].external = true; /* [[File:a|[http://b c]]]: the first bracket closes it */
    }
    if (n >= 2) {
        push(s, '[', at + n - 2, 1);
    }
    return at + n;
}

static size_t close_brackets(struct wikitext_spans *s, size_t at)
{
    size_t n = run_length(s, at), end = at + n;
    while (n > 0) {
        int link = find_open(s, '[', "<-");
        if (link < 0) {
            s->n_unclosed += n >= 2;
            return end;
        }
        if (s->open[link].external && n != 2) {
            s->open[link].external = false;
            n--;
        } else if (n >= 2) {
            pop_to(s, link + 1);
            n -= 2;
            close_span(s, s->open[link].span, end - n, WIKITEXT_SPAN_LINK);
            s->n_open--;
        } else {
            n--;
        }
    }
    return end;
}

/* ---- elements ---- */

static enum wikitext_span_kind kind_of(const struct wikitext_tag *tag)
{
    switch (tag->kind) {
    case WIKITEXT_TAG_FORMULA: return WIKITEXT_SPAN_FORMULA;
    case WIKITEXT_TAG_CODE: return WIKITEXT_SPAN_CODE;
    case WIKITEXT_TAG_NOWIKI: return WIKITEXT_SPAN_NOWIKI;
    default: return strncmp(tag->name, "ref", 3) == 0 ? WIKITEXT_SPAN_REF : WIKITEXT_SPAN_ELEMENT;
    }
}

/* An element whose content is not markup ends at the first end tag; without one its tag is none. */
static size_t add_raw(struct wikitext_spans *s, size_t at, const struct wikitext_tag *tag)
{
    if (tag->is_empty) {
        add_whole(s, at, at + tag->n, WIKITEXT_SPAN_ELEMENT);
        return at + tag->n;
    }
    size_t from = at + tag->n;
    while (!s->no_end[tag->index] && from < s->n) {
        const char *end = memchr(s->markup + from, '<', s->n - from);
        size_t end_bytes, found = end == NULL ? s->n : (size_t)(end - s->markup);
        s->n_work += (int64_t)(found - from);
        if (found < s->n && wikitext_tags_is_end(end, s->n - found, tag->name, &end_bytes)) {
            add_whole(s, at, found + end_bytes, kind_of(tag));
            return found + end_bytes;
        }
        from = found + 1;
    }
    s->no_end[tag->index] = true;
    s->n_unclosed++;
    return at + tag->n;
}

/* The innermost open element of this kind in the same template or table; -1 if there is none. */
static int find_element(const struct wikitext_spans *s, int tag)
{
    int i = s->n_open - 1;
    while (i >= 0 && (s->open[i].mark == '[' || (s->open[i].mark == '<' && s->open[i].tag != tag))) {
        i--;
    }
    return i >= 0 && s->open[i].mark == '<' ? i : -1;
}

static void close_element(struct wikitext_spans *s, int i, size_t end)
{
    pop_to(s, i + 1);
    close_span(s, s->open[i].span, end, WIKITEXT_SPAN_ELEMENT);
    s->n_open--;
    s->n_elements--;
}

static size_t add_nesting(struct wikitext_spans *s, size_t at, const struct wikitext_tag *tag)
{
    size_t end = at + tag->n;
    if (tag->closes) {
        int i = find_element(s, tag->index);
        if (i >= 0) {
            close_element(s, i, end);
        }
        return end;
    }
    if (tag->is_empty) {
        add_whole(s, at, end, WIKITEXT_SPAN_ELEMENT);
        return end;
    }
    const struct wikitext_open *top = s->n_open > 0 ? &s->open[s->n_open - 1] : NULL;
    if (tag->kind == WIKITEXT_TAG_ITEM && top != NULL && top->mark == '<' && top->tag == tag->index) {
        close_element(s, s->n_open - 1, at);
    }
    int before = s->n_open;
    push(s, '<', at, 1);
    if (s->n_open > before) {
        s->open[before].tag = tag->index;
        s->open[before].n = tag->kind == WIKITEXT_TAG_INLINE;
    }
    return end;
}

static size_t add_tag(struct wikitext_spans *s, size_t at)
{
    const char *text = s->markup + at;
    size_t left = s->n - at;
    if (left >= 4 && memcmp(text, "<!--", 4) == 0) {
        const char *end = text + 4;
        while ((end = memchr(end, '>', left - (size_t)(end - text))) != NULL &&
               (end - text < 6 || end[-1] != '-' || end[-2] != '-')) {
            end++;
        }
        size_t bytes =
            end == NULL ? left : (size_t)(end - text) + 1; /* one that is not closed hides the rest */
        s->n_work += (int64_t)bytes;
        add_whole(s, at, at + bytes, WIKITEXT_SPAN_COMMENT);
        return at + bytes;
    }
    struct wikitext_tag tag = wikitext_tags_read(text, left);
    s->n_work += (int64_t)tag.n;
    switch (tag.n == 0 ? WIKITEXT_TAG_NONE : tag.kind) {
    case WIKITEXT_TAG_RAW:
    case WIKITEXT_TAG_FORMULA:
    case WIKITEXT_TAG_CODE:
    case WIKITEXT_TAG_NOWIKI: return tag.closes ? at + tag.n : add_raw(s, at, &tag);
    case WIKITEXT_TAG_DROP:
    case WIKITEXT_TAG_ITEM:
    case WIKITEXT_TAG_INLINE: return add_nesting(s, at, &tag);
    default: return at + 1;
    }
}

/* ---- lines ---- */

/* A blank line: links and inline elements do not continue after it. */
static void end_paragraph(struct wikitext_spans *s)
{
    while (s->n_open > 0) {
        const struct wikitext_open *top = &s->open[s->n_open - 1];
        const char *target = s->markup + top->begin + 2;
        bool ends = top->mark == '['
                        ? wiki_site_namespace(s->site, target, s->n - top->begin - 2) != WIKI_SITE_FILE
                        : top->mark == '<' && top->n == 1;
        if (!ends) {
            break;
        }
        pop_to(s, s->n_open - 1);
    }
}

static size_t begin_line(struct wikitext_spans *s, size_t at)
{
    int link = find_open(s, '[', "<");
    if (link >= 0) {
        s->open[link].external = false;
    }
    size_t next = at + 1;
    while (next < s->n && (s->markup[next] == ' ' || s->markup[next] == ':' || s->markup[next] == '\t')) {
        next++;
    }
    if (next < s->n && s->markup[next] == '\n') {
        end_paragraph(s);
    }
    s->line = next;
    return next;
}

static size_t take_mark(struct wikitext_spans *s, size_t at)
{
    switch (s->markup[at]) {
    case '{': return open_braces(s, at);
    case '}': return close_braces(s, at);
    case '[': return open_brackets(s, at);
    case ']': return close_brackets(s, at);
    case '<': return add_tag(s, at);
    default: return begin_line(s, at);
    }
}

struct status wikitext_spans_find(struct wikitext_spans *s, const struct wiki_site *site, const char *markup,
                                  size_t n)
{
    struct wikitext_span *spans = s->spans;
    size_t capacity = s->capacity;
    *s =
        (struct wikitext_spans){.spans = spans, .capacity = capacity, .site = site, .markup = markup, .n = n};
    size_t at = 0;
    while (at < n && !s->too_deep && !s->no_memory) {
        while (at < n && !is_mark[(unsigned char)markup[at]]) {
            at++;
        }
        if (at < n) {
            at = take_mark(s, at);
        }
    }
    s->n_work += (int64_t)at;
    pop_to(s, 0);
    return s->no_memory ? status_error(STATUS_MEMORY, "out of memory for the marks of a page of %zu bytes", n)
                        : status_ok();
}
