#include "corpus/wikitext_templates.h"

#include "corpus/text_line.h"
#include "corpus/wikitext_dates.h"
#include "corpus/wikitext_quantities.h"
#include "corpus/wikitext_units.h"
#include "corpus/wikitext_values.h"
#include "corpus/wikitext_words.h"

#include <string.h>

enum { NAME_BYTES = 64 }; /* of a row's name: longer ones are none */

/* ---- which template it is ---- */

static const struct wikitext_template *find(const char *name)
{
    int low = 0, high = wikitext_n_template_rows;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = strcmp(wikitext_template_rows[middle].name, name);
        if (order == 0) {
            return &wikitext_template_rows[middle];
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NULL;
}

/* Whether a row holds in other languages too: it writes no English words, and no sign that only English gives
 * this name. */
static bool is_of_any_language(const struct wikitext_template *row)
{
    switch (row->action) {
    case WIKITEXT_TEXT: return !((row->text[0] | 0x20) >= 'a' && (row->text[0] | 0x20) <= 'z');
    case WIKITEXT_PREFIX:
    case WIKITEXT_LITERALLY:
    case WIKITEXT_LABELS:
    case WIKITEXT_SHIP_CLASS:
    case WIKITEXT_DATE:
    case WIKITEXT_AS_OF:
    case WIKITEXT_OLD_STYLE: return false;
    default: return true;
    }
}

struct name {
    char text[NAME_BYTES + 1]; /* in lower case, with single spaces */
    size_t n;
    size_t begin, end; /* in markup, of what was read */
};

/* The name that markup[at..limit) begins with, up to a bar or a colon. */
static struct name read_name(const struct wikitext_emit *e, size_t at, size_t limit)
{
    struct name name = {.n = 0};
    while (at < limit && wikitext_values_is_blank(e->markup[at])) {
        at++;
    }
    name.begin = at;
    for (; at < limit && name.n < NAME_BYTES && !text_line_is_one_of(e->markup[at], "|:<[{"); at++) {
        char c = e->markup[at];
        bool space = wikitext_values_is_blank(c) || c == '_';
        if (!space || (name.n > 0 && name.text[name.n - 1] != ' ')) {
            name.text[name.n++] = (char)(space ? ' ' : c >= 'A' && c <= 'Z' ? c | 0x20 : c);
        }
    }
    name.end = at;
    while (name.n > 0 && name.text[name.n - 1] == ' ') {
        name.n--;
    }
    name.text[name.n] = '\0';
    return name;
}

static bool is_template_prefix(const struct wikitext_emit *e, const struct name *name, size_t limit)
{
    return strcmp(name->text, "subst") == 0 || strcmp(name->text, "safesubst") == 0 ||
           wiki_site_namespace(e->site, e->markup + name->begin, limit - name->begin) == WIKI_SITE_TEMPLATE;
}

void wikitext_templates_open(struct wikitext_emit *e, const struct wikitext_span *span)
{
    size_t limit = span->end - 2;
    struct name name = read_name(e, span->begin + 2, limit);
    if (name.end < limit && e->markup[name.end] == ':' && is_template_prefix(e, &name, limit)) {
        name = read_name(e, name.end + 1, limit);
    }
    size_t content = name.end;
    if (name.end < limit && e->markup[name.end] == ':' && name.n < NAME_BYTES) {
        name.text[name.n++] = ':';
        name.text[name.n] = '\0';
        content++;
    }
    bool known_language = strncmp(name.text, "lang-", 5) == 0;
    static const struct wikitext_template language = {"lang-", WIKITEXT_LANGUAGE, 0, NULL};
    const struct wikitext_template *row = find(name.text);
    row = row == NULL && known_language ? &language : row;
    row = row == NULL || wikitext_values_are_english(e) || is_of_any_language(row) ? row : NULL;
    e->counts->n_work += (int64_t)(content - span->begin);
    if (row == NULL) {
        e->counts->n_templates_dropped++;
        e->at = span->end;
        return;
    }
    e->counts->n_templates_expanded++;
    struct wikitext_frame *frame = wikitext_emit_push(e, span, content, 2);
    frame->template = row;
    frame->name = name.begin;
    frame->name_bytes = name.end - name.begin;
}

/* ---- what it stands for ---- */

static void put_text(struct wikitext_emit *e, const char *text)
{
    buf_puts(&e->scratch, text);
}

static void write_last(struct wikitext_emit *e)
{
    size_t first = e->frames[e->n_frames - 1].first_part;
    for (size_t i = e->n_parts - 1; i > first; i--) {
        if (e->parts[i].name_end == 0) {
            wikitext_values_put(e, wikitext_values_part(e, i, false));
            return;
        }
    }
}

static void write_joined(struct wikitext_emit *e, const char *between)
{
    size_t first = e->frames[e->n_frames - 1].first_part;
    for (size_t i = first + 1; i < e->n_parts; i++) {
        struct wikitext_value value = wikitext_values_part(e, i, false);
        if (e->parts[i].name_end == 0 && value.n > 0) {
            put_text(e, e->scratch.n > 0 ? between : "");
            wikitext_values_put(e, value);
        }
    }
}

static void write_if(struct wikitext_emit *e)
{
    bool is_true = wikitext_values_argument(e, 0).n > 0;
    wikitext_values_put(e, wikitext_values_argument(e, is_true ? 1 : 2));
}

/* 'l' and 'u': all letters; 'L' and 'U': the first.  Letters outside ASCII stay as they are. */
static void write_case(struct wikitext_emit *e, char how)
{
    wikitext_values_put(e, wikitext_values_argument(e, 0));
    size_t n = how == 'l' || how == 'u' ? e->scratch.n : e->scratch.n > 0;
    bool upper = how == 'u' || how == 'U';
    for (size_t i = 0; i < n; i++) {
        char *c = &e->scratch.data[i];
        bool letter = upper ? *c >= 'a' && *c <= 'z' : *c >= 'A' && *c <= 'Z';
        *c = (char)(letter ? *c ^ 0x20 : *c);
    }
}

static void write_number(struct wikitext_emit *e, int argument)
{
    struct wikitext_value value = wikitext_values_argument(e, argument);
    if (wikitext_values_are_english(e)) {
        wikitext_units_group(&e->scratch, value.text, value.n);
    } else { /* other languages group digits in other ways */
        wikitext_values_put(e, value);
    }
}

static void write_quote(struct wikitext_emit *e)
{
    struct wikitext_value value = wikitext_values_find(e, "1");
    value = value.n > 0 ? value : wikitext_values_find(e, "text");
    value = value.n > 0 ? value : wikitext_values_find(e, "quote");
    put_text(e, "\n");
    wikitext_values_put(e, value);
    put_text(e, "\n");
}

/* {{ill|Name|de|Name dort}}, and before 2016 {{ill|de|Name|Name dort}}. */
static void write_ill(struct wikitext_emit *e)
{
    struct wikitext_value label = wikitext_values_find(e, "lt");
    struct wikitext_value name = wikitext_values_argument(e, 1), second = wikitext_values_argument(e, 2);
    bool is_code = name.n == 2 && name.text[0] >= 'a' && name.text[0] <= 'z' && second.n > 3;
    name = is_code ? second : name;
    name = name.n > 0 ? name : wikitext_values_find(e, "en");
    wikitext_values_put(e, label.n > 0 ? label : name);
}

/* {{frac|1|2}} and {{frac|3|1|2}}; {{frac|2}} is a half. */
static void write_fraction(struct wikitext_emit *e)
{
    struct wikitext_value a = wikitext_values_argument(e, 1), b = wikitext_values_argument(e, 2),
                          c = wikitext_values_argument(e, 3);
    if (c.n > 0) {
        wikitext_values_put(e, a);
        put_text(e, " ");
        a = b;
        b = c;
    }
    if (a.n == 0) {
        return;
    }
    if (b.n == 0) {
        put_text(e, "1");
    } else {
        wikitext_values_put(e, a);
    }
    put_text(e, "/");
    wikitext_values_put(e, b.n == 0 ? a : b);
}

static void write_two(struct wikitext_emit *e, struct wikitext_value first, const char *between,
                      struct wikitext_value second, const char *after)
{
    wikitext_values_put(e, first);
    put_text(e, between);
    wikitext_values_put(e, second);
    put_text(e, after);
}

static void write_argument(struct wikitext_emit *e, const struct wikitext_template *row)
{
    struct wikitext_value value = wikitext_values_argument(e, row->number);
    static const char *const names[] = {"text", "content"};
    for (size_t i = 0; i < sizeof names / sizeof *names && value.n == 0; i++) {
        value = wikitext_values_find(e, names[i]);
    }
    put_text(e, row->text != NULL && value.n > 0 ? row->text : "");
    wikitext_values_put(e, value);
}

/* {{lang-fr|mot}} and {{langx|fr|mot}}. */
static void write_language(struct wikitext_emit *e, const struct wikitext_frame *frame)
{
    enum { PREFIX_BYTES = 5 }; /* "lang-" */
    if (frame->template->number == 0) {
        wikitext_words_language(e, e->markup + frame->name + PREFIX_BYTES, frame->name_bytes - PREFIX_BYTES,
                                1);
    } else {
        struct wikitext_value code = wikitext_values_argument(e, 1);
        wikitext_words_language(e, code.text, code.n, 2);
    }
}

/* Actions that write words; false for one of the others. */
static bool write_words(struct wikitext_emit *e, const struct wikitext_frame *frame)
{
    const struct wikitext_template *row = frame->template;
    switch (row->action) {
    case WIKITEXT_LANGUAGE: write_language(e, frame); return true;
    case WIKITEXT_NIHONGO: wikitext_words_nihongo(e, row->number == 2); return true;
    case WIKITEXT_LABELS: wikitext_words_labels(e, row->number == 2); return true;
    case WIKITEXT_SHIP: wikitext_words_ship(e, row->name, row->number); return true;
    case WIKITEXT_SHIP_CLASS: wikitext_words_ship_class(e); return true;
    case WIKITEXT_MUSIC: wikitext_words_music(e); return true;
    case WIKITEXT_DATE: wikitext_dates_date(e, row->number == 2); return true;
    case WIKITEXT_AS_OF: wikitext_dates_as_of(e); return true;
    case WIKITEXT_OLD_STYLE: wikitext_dates_old_style(e); return true;
    case WIKITEXT_CONVERT:
        wikitext_quantities_convert(e, row->number == 1 || !wikitext_values_are_english(e));
        return true;
    case WIKITEXT_VALUE: wikitext_quantities_value(e); return true;
    default: return false;
    }
}

static void write_title(struct wikitext_emit *e)
{
    for (size_t i = 0; i < e->title_bytes; i++) {
        buf_append(&e->scratch, &e->title[i], wikitext_emit_is_text(e->title[i]));
    }
}

/* Actions that write their arguments as they are, or nearly. */
static void write_arguments(struct wikitext_emit *e, const struct wikitext_template *row)
{
    switch (row->action) {
    case WIKITEXT_TEXT: put_text(e, row->text); break;
    case WIKITEXT_LAST: write_last(e); break;
    case WIKITEXT_JOIN: write_joined(e, row->text); break;
    case WIKITEXT_PAGE_NAME: write_title(e); break;
    case WIKITEXT_IF: write_if(e); break;
    case WIKITEXT_CASE: write_case(e, row->text[0]); break;
    case WIKITEXT_NUMBER: write_number(e, row->number); break;
    case WIKITEXT_QUOTE: write_quote(e); break;
    case WIKITEXT_ILL: write_ill(e); break;
    case WIKITEXT_SORTNAME:
        write_two(e, wikitext_values_argument(e, 1), " ", wikitext_values_argument(e, 2), "");
        break;
    case WIKITEXT_LITERALLY:
        write_two(e, (struct wikitext_value){"", 0}, "lit. '", wikitext_values_argument(e, 1), "'");
        break;
    case WIKITEXT_FRACTION: write_fraction(e); break;
    default: write_argument(e, row);
    }
}

void wikitext_templates_expand(struct wikitext_emit *e)
{
    const struct wikitext_frame *frame = &e->frames[e->n_frames - 1];
    if (!write_words(e, frame)) {
        write_arguments(e, frame->template);
    }
    wikitext_emit_replace(e);
}
