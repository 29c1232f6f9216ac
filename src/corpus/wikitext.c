#include "corpus/wikitext.h"

#include "corpus/wikitext_emit.h"
#include "corpus/wikitext_lines.h"

#include <stdlib.h>

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
    TRY(wikitext_lines_add(out, buf_text(&w->emit.text), w->emit.text.n));
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
