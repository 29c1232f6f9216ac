/* wikitext_emit: the second pass over a page: writes its text, line for line, without the parts that are
 * dropped, and with the common templates expanded.  Links are in wikitext_links.c, templates in
 * wikitext_templates.c.
 *
 * The rule: markup is read once, from left to right; the spans of the first pass say where things end.  The
 * content of a link or an expanded template is written after the place where that began, and replaced at its
 * end.  Control characters cannot occur in the text, so some stand for marks that only the next pass can
 * resolve. */
#ifndef KILN_CORPUS_WIKITEXT_EMIT_H
#define KILN_CORPUS_WIKITEXT_EMIT_H

#include "corpus/wikitext_spans.h"

#include <string.h>

/* Control characters in the text that is written. */
enum wikitext_sign {
    WIKITEXT_SIGN_ITALIC = 1,  /* '' */
    WIKITEXT_SIGN_BOLD = 2,    /* ''' */
    WIKITEXT_SIGN_BOTH = 3,    /* ''''' */
    WIKITEXT_SIGN_INDENT = 4,  /* the line began with a space: text as it stands, which is dropped */
    WIKITEXT_SIGN_LITERAL = 5, /* the next character is text, whatever it looks like */
    WIKITEXT_SIGN_END,
};

/* A part of a link or template between bars, in the text that was written: [begin, end), after a name and '='
 * if name_end > 0. */
struct wikitext_part {
    size_t begin, name_end, end;
};

struct wikitext_template;

/* A link or template that is being read. */
struct wikitext_frame {
    enum wikitext_span_kind kind;
    size_t close, end;                        /* beginning and end of the closing marks, in markup */
    size_t text;                              /* beginning of the frame's text, in `text` of the pass */
    size_t first_part;                        /* index of its first part in `parts` */
    size_t target;                            /* a link's, in markup */
    bool has_bar;                             /* a link has a label */
    const struct wikitext_template *template; /* the template's entry in the table */
    size_t name, name_bytes;                  /* name of the template, in markup */
};

struct wikitext_emit {
    struct buf text;    /* text that was written so far */
    struct buf scratch; /* one expansion */
    struct wikitext_part *parts;
    size_t n_parts, parts_capacity;
    struct wikitext_template *templates; /* [n_templates] of wikitext_templates_index */
    size_t n_templates;
    struct wikitext_frame frames[WIKITEXT_DEPTH + 1];
    int n_frames;

    const struct wiki_site *site;
    struct wikitext_counts *counts;
    const char *title, *markup;
    size_t title_bytes, n, at;
    const struct wikitext_span *spans;
    size_t n_spans, span; /* the next one */
    int n_formulas, n_codes;
    bool external; /* inside a link of one bracket */
    bool too_much, too_deep, no_memory;
};

/* Frees the memory and clears *e.  Safe on a zeroed struct. */
void wikitext_emit_fini(struct wikitext_emit *e);

/* Writes e->text; sets too_deep or too_much, and stops, where counts->n_work reaches `most_work`.  Memory
 * stays from page to page.  STATUS_MEMORY. */
struct status wikitext_emit_page(struct wikitext_emit *e, struct wikitext_counts *counts,
                                 const struct wikitext_spans *spans, const char *title, size_t title_bytes,
                                 int64_t most_work);

/* ---- for links and templates ---- */

/* Opens a frame for the span, whose content begins at markup[content] and ends `mark_bytes` before its
 * end. */
struct wikitext_frame *wikitext_emit_push(struct wikitext_emit *e, const struct wikitext_span *span,
                                          size_t content, size_t mark_bytes);

/* Closes the top frame; its text becomes that of `scratch`. */
void wikitext_emit_replace(struct wikitext_emit *e);

/* Whether it is no control character; those stand for signs. */
bool wikitext_emit_is_text(char c);

/* Appends as buf_append does; without a call where the buffer has space, which is nearly always. */
static inline void wikitext_emit_append(struct buf *b, const char *text, size_t n)
{
    if (b->capacity - b->n > n && !b->failed) {
        memcpy(b->data + b->n, text, n);
        b->n += n;
        b->data[b->n] = '\0';
    } else {
        buf_append(b, text, n);
    }
}

/* wikitext_links.c */
void wikitext_links_open(struct wikitext_emit *e, const struct wikitext_span *span);
void wikitext_links_close(struct wikitext_emit *e);
bool wikitext_links_open_external(struct wikitext_emit *e); /* call it at '['; false: it is a bracket */
void wikitext_links_close_variant(struct wikitext_emit *e);

#endif
