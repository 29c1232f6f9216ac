#include "corpus/wikitext_emit.h"

#include "core/array.h"
#include "corpus/html_entities.h"
#include "corpus/wikitext_templates.h"

#include <stdlib.h>
#include <string.h>

/* Bytes at which the pass looks: control characters, and marks; bars and equals signs matter in frames
 * only. */
enum { PLAIN, MARK, FRAME_MARK };
static const unsigned char byte_kind[256] = {
    [0] = MARK,         [1] = MARK,         [2] = MARK,    [3] = MARK,    [4] = MARK,    [5] = MARK,
    [6] = MARK,         [7] = MARK,         [8] = MARK,    ['\t'] = MARK, ['\n'] = MARK, [11] = MARK,
    [12] = MARK,        [13] = MARK,        [14] = MARK,   [15] = MARK,   [16] = MARK,   [17] = MARK,
    [18] = MARK,        [19] = MARK,        [20] = MARK,   [21] = MARK,   [22] = MARK,   [23] = MARK,
    [24] = MARK,        [25] = MARK,        [26] = MARK,   [27] = MARK,   [28] = MARK,   [29] = MARK,
    [30] = MARK,        [31] = MARK,        ['{'] = MARK,  ['}'] = MARK,  ['['] = MARK,  [']'] = MARK,
    ['<'] = MARK,       ['&'] = MARK,       ['\''] = MARK, ['_'] = MARK,  [127] = MARK,  ['-'] = FRAME_MARK,
    ['|'] = FRAME_MARK, ['='] = FRAME_MARK,
};

void wikitext_emit_fini(struct wikitext_emit *e)
{
    buf_fini(&e->text);
    buf_fini(&e->scratch);
    free(e->parts);
    free(e->templates);
    *e = (struct wikitext_emit){0};
}

bool wikitext_emit_is_text(char c)
{
    return (unsigned char)c >= ' ' && c != 127;
}

/* The end of the markup being read: the close of the frame, or the end of the page. */
static size_t read_limit(const struct wikitext_emit *e)
{
    return e->n_frames > 0 ? e->frames[e->n_frames - 1].close : e->n;
}

/* ---- frames ---- */

static void begin_part(struct wikitext_emit *e)
{
    if (!ARRAY_RESERVE(e->parts, e->parts_capacity, e->n_parts + 1)) {
        e->no_memory = true;
        return;
    }
    e->parts[e->n_parts++] = (struct wikitext_part){e->text.n, 0, e->text.n};
}

struct wikitext_frame *wikitext_emit_push(struct wikitext_emit *e, const struct wikitext_span *span,
                                          size_t content, size_t mark_bytes)
{
    if (e->n_frames == WIKITEXT_DEPTH) { /* {{{{{{ is one run of braces and many spans */
        e->too_deep = true;
        e->n_frames--;
    }
    struct wikitext_frame *frame = &e->frames[e->n_frames++];
    *frame = (struct wikitext_frame){
        .kind = (enum wikitext_span_kind)span->kind,
        .close = span->end - mark_bytes,
        .end = span->end,
        .text = e->text.n,
        .first_part = e->n_parts,
    };
    begin_part(e);
    e->at = content < frame->close ? content : frame->close;
    return frame;
}

void wikitext_emit_replace(struct wikitext_emit *e)
{
    struct wikitext_frame *frame = &e->frames[--e->n_frames];
    e->counts->n_work += (int64_t)(e->text.n - frame->text + e->scratch.n);
    e->text.n = frame->text;
    e->n_parts = frame->first_part;
    e->at = frame->end;
    buf_append(&e->text, e->scratch.data, e->scratch.n);
    buf_clear(&e->scratch);
}

/* {{{name|what it is without a value}}} */
static void close_parameter(struct wikitext_emit *e, const struct wikitext_frame *frame)
{
    if (e->n_parts - frame->first_part > 1) {
        const struct wikitext_part *part = &e->parts[frame->first_part + 1];
        buf_append(&e->scratch, e->text.data + part->begin, part->end - part->begin);
    }
    wikitext_emit_replace(e);
}

static void close_frame(struct wikitext_emit *e)
{
    struct wikitext_frame *frame = &e->frames[e->n_frames - 1];
    if (e->no_memory) {
        return;
    }
    e->parts[e->n_parts - 1].end = e->text.n;
    switch (frame->kind) {
    case WIKITEXT_SPAN_TEMPLATE: wikitext_templates_expand(e); break;
    case WIKITEXT_SPAN_PARAMETER: close_parameter(e, frame); break;
    case WIKITEXT_SPAN_VARIANT: wikitext_links_close_variant(e); break;
    default: wikitext_links_close(e);
    }
}

static void take_frame_mark(struct wikitext_emit *e, char mark)
{
    struct wikitext_frame *frame = e->n_frames > 0 ? &e->frames[e->n_frames - 1] : NULL;
    if (mark == '|' && frame != NULL && frame->kind == WIKITEXT_SPAN_LINK) {
        e->text.n = frame->text; /* the label is after the last bar */
        frame->has_bar = true;
    } else if (mark == '|' && frame != NULL) {
        e->parts[e->n_parts - 1].end = e->text.n;
        begin_part(e);
    } else {
        if (mark == '=' && frame != NULL && e->parts[e->n_parts - 1].name_end == 0) {
            e->parts[e->n_parts - 1].name_end = e->text.n + 1; /* after the sign */
        }
        buf_putc(&e->text, mark);
    }
    e->at++;
}

/* ---- characters ---- */

/* The character that markup[at..limit) stands for, through one more reference: &amp;nbsp; is a space too. */
static size_t decode(struct buf *out, const char *text, size_t n)
{
    char first[HTML_ENTITY_TEXT_BYTES], second[HTML_ENTITY_TEXT_BYTES];
    size_t bytes, more_bytes;
    size_t taken = html_entities_decode(first, &bytes, text, n);
    if (taken == 0) {
        return 0;
    }
    if (bytes == 1 && first[0] == '&') {
        char again[HTML_ENTITY_NAME_BYTES + 2];
        size_t left = n - taken < sizeof again - 1 ? n - taken : sizeof again - 1;
        again[0] = '&';
        memcpy(again + 1, text + taken, left);
        size_t more = html_entities_decode(second, &more_bytes, again, left + 1);
        if (more > 0) {
            memcpy(first, second, more_bytes);
            bytes = more_bytes;
            taken += more - 1;
        }
    }
    bool space = bytes == 1 && (first[0] == '\n' || first[0] == '\t' || first[0] == '\r');
    buf_append(out, space ? " " : first, bytes);
    return taken;
}

static void take_entity(struct wikitext_emit *e)
{
    size_t taken = decode(&e->text, e->markup + e->at, read_limit(e) - e->at);
    if (taken == 0) {
        buf_putc(&e->text, '&');
        taken = 1;
    }
    e->at += taken;
}

static size_t run_length(const struct wikitext_emit *e)
{
    size_t end = e->at + 1, limit = read_limit(e);
    while (end < limit && e->markup[end] == e->markup[e->at]) {
        end++;
    }
    return end - e->at;
}

/* Two to five apostrophes are marks; of four and of more than five one is text. */
static void take_quotes(struct wikitext_emit *e)
{
    size_t n = run_length(e);
    e->at += n;
    buf_append(&e->text, "'", n == 1 || n == 4 || n > 5);
    if (n > 1) {
        buf_putc(&e->text, n == 2 ? WIKITEXT_SIGN_ITALIC : n < 5 ? WIKITEXT_SIGN_BOLD : WIKITEXT_SIGN_BOTH);
    }
}

/* __NOTOC__, in any language: capitals, or letters outside ASCII. */
static void take_underscore(struct wikitext_emit *e)
{
    enum { LONGEST = 80 };
    const char *text = e->markup + e->at;
    size_t left = read_limit(e) - e->at, limit = left < LONGEST ? left : LONGEST, end = 2;
    if (left < 5 || text[1] != '_') {
        buf_putc(&e->text, '_');
        e->at++;
        return;
    }
    while (end < limit && ((text[end] >= 'A' && text[end] <= 'Z') || (unsigned char)text[end] >= 0x80 ||
                           (text[end] == '_' && end + 1 < limit && text[end + 1] != '_'))) {
        end++;
    }
    if (end > 2 && end + 1 < left && memcmp(text + end, "__", 2) == 0) {
        e->at += end + 2;
        return;
    }
    size_t n = run_length(e);
    buf_append(&e->text, text, n);
    e->at += n;
}

static void take_control(struct wikitext_emit *e, char c)
{
    e->at++;
    if (c == '\t') {
        buf_putc(&e->text, ' ');
    } else if (c == '\n') {
        buf_putc(&e->text, '\n');
        e->external = false;
        if (e->at < e->n && e->markup[e->at] == ' ' && e->n_frames == 0) {
            buf_putc(&e->text, WIKITEXT_SIGN_INDENT);
        }
    }
}

/* ---- spans ---- */

/* The closed span that begins where the pass is; NULL if there is none. */
static const struct wikitext_span *find_span(struct wikitext_emit *e)
{
    while (e->span < e->n_spans &&
           (e->spans[e->span].begin < e->at || e->spans[e->span].kind == WIKITEXT_SPAN_UNCLOSED)) {
        e->span++;
    }
    return e->span < e->n_spans && e->spans[e->span].begin == e->at ? &e->spans[e->span] : NULL;
}

/* The text of <nowiki>, in which only references to characters are markup. */
static void write_nowiki(struct wikitext_emit *e, const struct wikitext_span *span)
{
    const char *begin = memchr(e->markup + span->begin, '>', span->end - span->begin);
    const char *end = e->markup + span->end;
    while (end > begin && *end != '<') {
        end--;
    }
    buf_putc(&e->text, WIKITEXT_SIGN_LITERAL);
    for (const char *at = begin + 1; at < end;) {
        size_t taken = *at == '&' ? decode(&e->text, at, (size_t)(end - at)) : 0;
        bool blank = *at == '\n' || *at == '\t';
        if (taken == 0 && (blank || wikitext_emit_is_text(*at))) {
            buf_putc(&e->text, (char)(blank ? ' ' : *at));
        }
        at += taken == 0 ? 1 : taken;
    }
}

static void take_span(struct wikitext_emit *e, const struct wikitext_span *span)
{
    struct wikitext_counts *counts = e->counts;
    e->span++;
    switch (span->kind) {
    case WIKITEXT_SPAN_TEMPLATE: wikitext_templates_open(e, span); return;
    case WIKITEXT_SPAN_PARAMETER: wikitext_emit_push(e, span, span->begin + 3, 3); return;
    case WIKITEXT_SPAN_LINK: wikitext_links_open(e, span); return;
    case WIKITEXT_SPAN_VARIANT: wikitext_emit_push(e, span, span->begin + 2, 2); return;
    case WIKITEXT_SPAN_TABLE: counts->n_tables++; break;
    case WIKITEXT_SPAN_REF: counts->n_refs++; break;
    case WIKITEXT_SPAN_FORMULA: buf_printf(&e->text, "formula_%d", ++e->n_formulas); break;
    case WIKITEXT_SPAN_CODE: buf_printf(&e->text, "codice_%d", ++e->n_codes); break;
    case WIKITEXT_SPAN_NOWIKI: write_nowiki(e, span); break;
    default: break;
    }
    e->at = span->end;
}

/* ---- marks without a span ---- */

/* A tag that is not part of a span: its content stays, or it has no other half. */
static void take_tag(struct wikitext_emit *e)
{
    const char *text = e->markup + e->at;
    struct wikitext_tag tag = wikitext_tags_read(text, read_limit(e) - e->at);
    if (tag.kind == WIKITEXT_TAG_NONE) {
        bool end_tag = e->n - e->at > 1 && text[1] == '/';
        buf_append(&e->text, "<", !end_tag); /* </, of whatever, says nothing */
        e->at += end_tag ? 2 : 1;
        return;
    }
    if (tag.kind == WIKITEXT_TAG_BLOCK || tag.kind == WIKITEXT_TAG_SPACE) {
        buf_putc(&e->text, tag.kind == WIKITEXT_TAG_BLOCK ? '\n' : ' ');
    }
    e->at += tag.n == 0 ? tag.n_name : tag.n;
}

/* Braces and brackets that belong to nothing: pairs are left out, single ones are text. */
static void take_bracket(struct wikitext_emit *e, char mark)
{
    size_t n = run_length(e), begin = e->at;
    if (e->span < e->n_spans && e->spans[e->span].begin > begin && e->spans[e->span].begin - begin < n) {
        n = e->spans[e->span].begin - begin; /* [ [[ */
    }
    e->at += n;
    if (mark == '[') { /* the last may begin a link of one bracket */
        e->at--;
        if (wikitext_links_open_external(e)) {
            return;
        }
        e->at++;
    } else if (mark == ']' && e->external) {
        e->external = false;
        return;
    }
    bool table = mark == '{' && e->at < e->n && e->markup[e->at] == '|';
    if (n == 1 && !table) {
        buf_putc(&e->text, mark);
    }
}

static void take_mark(struct wikitext_emit *e)
{
    char mark = e->markup[e->at];
    if (e->n_frames > 0 && e->at >= read_limit(e)) {
        close_frame(e);
        return;
    }
    const struct wikitext_span *span =
        mark == '{' || mark == '[' || mark == '<' || mark == '-' ? find_span(e) : NULL;
    if (span != NULL) {
        take_span(e, span);
        return;
    }
    switch (mark) {
    case '<': take_tag(e); break;
    case '{':
    case '}':
    case '[':
    case ']': take_bracket(e, mark); break;
    case '&': take_entity(e); break;
    case '\'': take_quotes(e); break;
    case '_': take_underscore(e); break;
    case '|':
    case '=':
    case '-': take_frame_mark(e, mark); break;
    default: take_control(e, mark);
    }
}

struct status wikitext_emit_page(struct wikitext_emit *e, struct wikitext_counts *counts,
                                 const struct wikitext_spans *spans, const char *title, size_t title_bytes,
                                 int64_t most_work)
{
    e->site = spans->site;
    e->counts = counts;
    e->title = title;
    e->title_bytes = title_bytes;
    e->markup = spans->markup;
    e->n = spans->n;
    e->spans = spans->spans;
    e->n_spans = spans->n_spans;
    e->n_parts = e->span = e->at = 0;
    e->n_frames = e->n_formulas = e->n_codes = 0;
    e->external = e->too_much = e->too_deep = false;
    e->no_memory = e->templates == NULL && !wikitext_templates_index(e);
    buf_clear(&e->text);
    buf_clear(&e->scratch);
    if (buf_extend(&e->text, e->n) != NULL) { /* most pages need no more */
        buf_clear(&e->text);
    }
    if (e->n > 0 && e->markup[0] == ' ') {
        buf_putc(&e->text, WIKITEXT_SIGN_INDENT);
    }
    while (e->at < e->n && !e->no_memory && !e->too_deep) {
        size_t begin = e->at, at = begin;
        unsigned char most = e->n_frames > 0 || e->site->has_variants ? FRAME_MARK : MARK;
        while (at < e->n && (byte_kind[(unsigned char)e->markup[at]] == PLAIN ||
                             byte_kind[(unsigned char)e->markup[at]] > most)) {
            at++;
        }
        wikitext_emit_append(&e->text, e->markup + begin, at - begin);
        e->at = at;
        if (at < e->n) {
            take_mark(e);
        }
        counts->n_work += (int64_t)(e->at > begin ? e->at - begin : 1);
        if (counts->n_work > most_work) {
            e->too_much = true;
            break;
        }
    }
    FAIL_IF(e->no_memory, STATUS_MEMORY, "out of memory for the templates of a page of %zu bytes", e->n);
    return buf_status(&e->text);
}
