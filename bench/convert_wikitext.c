/* convert_wikitext: converts pages for tools/compare_wikitext.py, and times that with a number of rounds over
 * all pages, of which the fastest counts.
 *
 * Standard input is lines: "language LANGUAGE", "namespace NUMBER NAME", "page BYTES TITLE", and behind the
 * last so many bytes of markup.  Standard output is the bytes of each page's text on a line, then the text, a
 * paragraph a line; with rounds, the rate. */
#include "core/clock.h"
#include "corpus/wikitext.h"

#include "test.h"

#include <inttypes.h>

enum { LINE_BYTES = 1024 };

static const char *const outcome_names[WIKITEXT_N_OUTCOMES] = {
    [WIKITEXT_KEPT] = "kept",
    [WIKITEXT_EMPTY] = "without prose",
    [WIKITEXT_TOO_LARGE] = "longer than 8 MiB",
    [WIKITEXT_TOO_DEEP] = "nested more than 40 deep",
    [WIKITEXT_TOO_MUCH_WORK] = "with templates that multiply its text",
};

struct page {
    char title[LINE_BYTES];
    char *markup; /* [n] */
    size_t n;
};

struct pages {
    struct wiki_site site;
    struct page *pages;
    size_t n;
};

static void read_page(struct pages *p, const char *line)
{
    struct page *grown = realloc(p->pages, (p->n + 1) * sizeof *grown);
    EXPECT(grown != NULL, "memory");
    p->pages = grown;
    struct page *page = &p->pages[p->n++];
    int title_at = 0;
    EXPECT(sscanf(line, "page %zu %n", &page->n, &title_at) == 1, "'%s'", line);
    snprintf(page->title, sizeof page->title, "%s", line + title_at);
    page->markup = malloc(page->n + 1);
    EXPECT(page->markup != NULL && fread(page->markup, 1, page->n, stdin) == page->n, "%zu bytes", page->n);
}

static void read_pages(struct pages *p)
{
    char line[LINE_BYTES];
    EXPECT_OK(wiki_site_init(&p->site));
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        int number, name_at = 0;
        if (strncmp(line, "language ", 9) == 0) {
            EXPECT_OK(wiki_site_set_language(&p->site, line + 9, strlen(line + 9)));
        } else if (sscanf(line, "namespace %d %n", &number, &name_at) == 1) {
            EXPECT_OK(wiki_site_add_namespace(&p->site, number, line + name_at, strlen(line + name_at)));
        } else {
            read_page(p, line);
        }
    }
}

static void convert_all(struct wikitext *w, struct pages *p, struct wikitext_counts *counts, bool print)
{
    struct document d = {0};
    for (size_t i = 0; i < p->n; i++) {
        struct page *page = &p->pages[i];
        document_clear(&d);
        EXPECT_OK(wikitext_convert(w, &d, counts, page->title, strlen(page->title), page->markup, page->n));
        if (print) {
            printf("%zu\n", d.text.n + (size_t)d.n_paragraphs);
            for (int64_t k = 0; k < d.n_paragraphs; k++) {
                struct paragraph text = document_paragraph(&d, k);
                printf("%.*s\n", (int)text.n, text.text);
            }
        }
    }
    document_fini(&d);
}

int main(int n_arguments, char **arguments)
{
    int rounds = n_arguments > 1 ? atoi(arguments[1]) : 0;
    struct pages p = {0};
    struct wikitext_counts counts = {0};
    read_pages(&p);
    struct wikitext *w = wikitext_create(&p.site);
    EXPECT(w != NULL, "memory");
    convert_all(w, &p, &counts, rounds == 0);
    double best_ns = 0;
    for (int i = 0; i < rounds; i++) {
        struct wikitext_counts again = {0};
        int64_t begin = clock_ns();
        convert_all(w, &p, &again, false);
        double ns = (double)(clock_ns() - begin);
        best_ns = i == 0 || ns < best_ns ? ns : best_ns;
    }
    if (rounds > 0) {
        printf("%.0f MB/s of markup\n", (double)counts.n_bytes * 1e3 / best_ns);
    }
    for (int i = 0; i < WIKITEXT_N_OUTCOMES; i++) {
        fprintf(stderr, "%s %" PRId64 ", ", outcome_names[i], counts.n_pages[i]);
    }
    fprintf(stderr,
            "work %.2f a byte, %" PRId64 " -> %" PRId64 " bytes, templates %" PRId64 " expanded %" PRId64
            " dropped, %" PRId64 " tables, %" PRId64 " refs, %" PRId64 " unclosed\n",
            (double)counts.n_work / (double)counts.n_bytes, counts.n_bytes, counts.n_text_bytes,
            counts.n_templates_expanded, counts.n_templates_dropped, counts.n_tables, counts.n_refs,
            counts.n_unclosed);
    for (size_t i = 0; i < p.n; i++) {
        free(p.pages[i].markup);
    }
    free(p.pages);
    wiki_site_fini(&p.site);
    wikitext_destroy(w);
    return 0;
}
