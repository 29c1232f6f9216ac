#include "corpus/wikitext_templates.h"

#include "corpus/text_line.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 64 }; /* longest name of a row; no template has a longer one */

/* ---- which template it is ---- */

static int compare(const void *left, const void *right)
{
    const struct wikitext_value *a = &((const struct wikitext_template *)left)->name;
    const struct wikitext_value *b = &((const struct wikitext_template *)right)->name;
    int order = memcmp(a->text, b->text, a->n < b->n ? a->n : b->n);
    return order != 0 ? order : (a->n > b->n) - (a->n < b->n);
}

bool wikitext_templates_index(struct wikitext_emit *e)
{
    enum { MOST = 1024 };
    e->templates = malloc(MOST * sizeof *e->templates);
    if (e->templates == NULL) {
        return false;
    }
    e->n_templates = 0;
    for (const struct wikitext_template_row *row = wikitext_template_rows; row->names != NULL; row++) {
        const char *names = row->names;
        struct wikitext_template t = {.row = row};
        while (wikitext_values_entry(&names, &t.name, &t.text)) {
            CHECK(e->n_templates < MOST, "more than %d templates", MOST);
            e->templates[e->n_templates++] = t;
        }
    }
    qsort(e->templates, e->n_templates, sizeof *e->templates, compare);
    return true;
}

static const struct wikitext_template *find(const struct wikitext_emit *e, const char *name, size_t n)
{
    const struct wikitext_template key = {.name = {name, n}};
    return bsearch(&key, e->templates, e->n_templates, sizeof *e->templates, compare);
}

struct name {
    char text[NAME_BYTES + 1]; /* name in lower case, with single spaces */
    size_t n;
    size_t begin, end; /* where it was read in markup */
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
    const struct wikitext_template *t = find(e, name.text, name.n);
    if (t == NULL && strncmp(name.text, "lang-", 5) == 0) {
        t = find(e, name.text, 5);
    }
    t = t == NULL || wikitext_values_are_english(e) || !t->row->english ? t : NULL;
    e->counts->n_work += (int64_t)(content - span->begin);
    if (t == NULL) {
        e->counts->n_templates_dropped++;
        e->at = span->end;
        return;
    }
    e->counts->n_templates_expanded++;
    struct wikitext_frame *frame = wikitext_emit_push(e, span, content, 2);
    frame->template = t;
    frame->name = name.begin;
    frame->name_bytes = name.end - name.begin;
}

/* ---- what it stands for ---- */

/* Appends the text between braces; returns its end.  `given`: whether there is any. */
static const char *write_field(struct wikitext_emit *e, const struct wikitext_template *t, const char *field,
                               bool *given)
{
    char flag = field[0];
    field += flag == '#' || flag == ',';
    struct wikitext_value value = field[0] == '}' ? t->text : wikitext_values_find(e, field);
    if (flag == '#' || (flag == ',' && wikitext_values_are_english(e))) {
        wikitext_quantities_group(&e->scratch, value.text, value.n);
    } else { /* other languages group digits in other ways */
        wikitext_values_put(e, value);
    }
    *given = value.n > 0;
    return field + strcspn(field, "}");
}

void wikitext_templates_write(struct wikitext_emit *e, const struct wikitext_template *t, const char *pattern)
{
    struct buf *out = &e->scratch;
    size_t mark = 0;
    bool all = true, given;
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at == '{') {
            at = write_field(e, t, at + 1, &given);
            all = all && given;
        } else if (*at == '<') {
            mark = out->n;
            all = true;
            if (at[1] == ';') {
                buf_puts(out, out->n > 0 ? "; " : "");
                at++;
            }
        } else if (*at == '>') {
            out->n = all ? out->n : mark;
        } else if (*at != '~') {
            buf_putc(out, *at);
        } else if (out->n > 0) {
            return;
        }
    }
}

void wikitext_templates_expand(struct wikitext_emit *e)
{
    const struct wikitext_template *t = e->frames[e->n_frames - 1].template;
    if (t->row->write != NULL) {
        t->row->write(e, t);
    } else {
        wikitext_templates_write(e, t, t->row->pattern);
    }
    wikitext_emit_replace(e);
}
