/* Pages made to take long, or much memory: the work on a page, counted in bytes that are looked at or moved,
 * is at most a small multiple of its length, and nesting is limited. */
#include "wikitext_fixture.h"

enum {
    TIMES = 100000,
    MOST_WORK = 9, /* a byte; 8.0 were measured, of {{convert}} in another template */
};

/* Markup is left out where its other half is missing. */
static void expect_no_marks(const char *text, const char *markup)
{
    static const char *const marks[] = {"{{", "[[", "]]", "}}", "{|", "<ref", "<!--", "<div", "</", "''"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        EXPECT(strstr(text, marks[i]) == NULL, "'%s...' leaves %s", markup, marks[i]);
    }
}

static void repeat(struct buf *page, const char *text, int times)
{
    for (int i = 0; i < times; i++) {
        buf_puts(page, text);
    }
}

static void convert_repeated(struct wikitext_fixture *f, const char *begin, const char *repeated,
                             const char *end)
{
    struct buf page = {0};
    buf_puts(&page, begin);
    repeat(&page, repeated, TIMES);
    buf_puts(&page, end);
    EXPECT_OK(buf_status(&page));
    const char *text = wikitext_fixture_convert(f, page.data, page.n);
    if (strncmp(begin, "{{chem", 6) != 0) { /* which joins single braces */
        expect_no_marks(text, repeated);
    }
    EXPECT(f->counts.n_work <= (int64_t)(MOST_WORK * page.n), "'%s': %.1f a byte", repeated,
           (double)f->counts.n_work / (double)page.n);
    buf_fini(&page);
}

/* Pieces of markup, over and over. */
static const char *const repeated[] = {
    "{{",
    "[[",
    "{|\n",
    "<div>",
    "<ref>",
    "<ref ",
    "<ref name=a>b",
    "<!--",
    "<!-- -->",
    "''",
    "'''''",
    "''a'''b",
    "{{a|",
    "[[a|",
    "&",
    "&amp;",
    "&#",
    "[http://a ",
    "[//a",
    "{{nowrap|",
    "{{{",
    "{{{a|",
    "(",
    "()",
    "-{",
    "<nowiki>",
    "</ref>",
    "}}",
    "]]",
    "__",
    "__A",
    "_",
    "[[a\n",
    "[[File:a|",
    "{{nowrap|[[a|",
    "[[a]",
    "[[a|[http:a",
    "{{a}",
    "<li>",
    "<small>",
    "<td>",
    "<ref/>",
    "<math>",
    "</nowiki>",
    "\n\n[[a",
    "\n ",
    "\n|}",
    "\n{|\n|}",
    "=",
    "==a==\n",
    "....",
    ", ",
    "( ;",
    " )",
    "<<",
    "\001",
    "{{convert|1|km}}",
    "{{val|1|e=",
    "{{#if:",
    "{{lang-fr|a}}",
    "[[a|b]]",
    "[[:a",
    "{{PAGENAME}} ",
    "|",
    "<a href=\"",
    "{{nowrap|a=b=c|}}",
    "{{chem|a|a|a|a|a|a}}",
    "\n* [[a",
    "'''''a''b'''''",
    "{{{{{",
    "}}}}}",
    "<ref>a</ref",
};

static void work_is_linear(struct wikitext_fixture *f)
{
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++) {
        convert_repeated(f, "", repeated[i], "");
        convert_repeated(f, "a ", repeated[i], " b");
        convert_repeated(f, "{{nowrap|", repeated[i], "}}");
        convert_repeated(f, "[[a|", repeated[i], "]]");
        convert_repeated(f, "{{chem|", repeated[i], "|a}}");
        convert_repeated(f, "<div>", repeated[i], "</div>");
    }
}

/* Templates in templates move their text once a level. */
static void deep_pages_are_dropped(struct wikitext_fixture *f)
{
    struct buf page = {0};
    static const struct {
        int depth;
        enum wikitext_outcome outcome;
    } cases[] = {
        {1, WIKITEXT_KEPT},
        {WIKITEXT_DEPTH / 2, WIKITEXT_KEPT},
        {WIKITEXT_DEPTH, WIKITEXT_TOO_MUCH_WORK},
        {WIKITEXT_DEPTH + 1, WIKITEXT_TOO_DEEP},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf_clear(&page);
        repeat(&page, "{{nowrap|", cases[i].depth);
        repeat(&page, "words ", TIMES);
        repeat(&page, "}}", cases[i].depth);
        wikitext_fixture_convert(f, page.data, page.n);
        EXPECT(f->counts.n_pages[cases[i].outcome] == 1, "%d deep", cases[i].depth);
    }
    buf_clear(&page);
    repeat(&page, "{", 3 * WIKITEXT_DEPTH);
    repeat(&page, "}", 3 * WIKITEXT_DEPTH);
    wikitext_fixture_convert(f, page.data, page.n);
    EXPECT(f->counts.n_pages[WIKITEXT_TOO_DEEP] == 1, "a run of braces");
    buf_fini(&page);
}

/* A page of a template that writes much more than it takes. */
static void text_that_multiplies_is_dropped(struct wikitext_fixture *f)
{
    char title[4000];
    struct buf page = {0};
    memset(title, 'a', sizeof title);
    repeat(&page, "{{PAGENAME}}", TIMES);
    document_clear(&f->document);
    f->counts = (struct wikitext_counts){0};
    EXPECT_OK(wikitext_convert(f->w, &f->document, &f->counts, title, sizeof title, page.data, page.n));
    EXPECT(f->counts.n_pages[WIKITEXT_TOO_MUCH_WORK] == 1 && f->document.n_paragraphs == 0, "multiplied");
    buf_fini(&page);
}

static void large_pages_are_dropped(struct wikitext_fixture *f)
{
    struct buf page = {0};
    char *text = buf_extend(&page, WIKITEXT_PAGE_BYTES + 1);
    EXPECT(text != NULL, "memory");
    memset(text, 'a', page.n);
    wikitext_fixture_convert(f, page.data, page.n - 1);
    EXPECT(f->counts.n_pages[WIKITEXT_KEPT] == 1, "the largest");
    wikitext_fixture_convert(f, page.data, page.n);
    EXPECT(f->counts.n_pages[WIKITEXT_TOO_LARGE] == 1 && f->document.n_paragraphs == 0, "one byte more");
    buf_fini(&page);
}

/* A page is the same whatever came before it. */
static void pages_leave_nothing_behind(struct wikitext_fixture *f)
{
    static const char markup[] = "''a {{nowrap|b}} <math>c</math> [[d|e]]";
    static const char *const before[] = {"{{nowrap|[[a|''b", "<div>[http://a b", "<ref>", "{|", ""};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        wikitext_fixture_convert(f, before[i], strlen(before[i]));
        const char *text = wikitext_fixture_convert(f, markup, strlen(markup));
        EXPECT(strcmp(text, "a b formula_1 e") == 0, "after '%s': '%s'", before[i], text);
    }
}

int main(void)
{
    struct wikitext_fixture f;
    wikitext_fixture_init(&f, "en", "File", "Category");
    work_is_linear(&f);
    deep_pages_are_dropped(&f);
    text_that_multiplies_is_dropped(&f);
    large_pages_are_dropped(&f);
    pages_leave_nothing_behind(&f);
    wikitext_fixture_fini(&f);
    return 0;
}
