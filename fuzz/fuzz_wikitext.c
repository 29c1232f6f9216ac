/* fuzz_wikitext: any markup, made well-formed UTF-8, in three languages.  What comes out is trimmed, valid
 * UTF-8 without line ends or control characters, costs a limited amount of work, and is the same again after
 * another page. Input: one byte for the language, the rest is a page. */
#include "corpus/text_reader.h"
#include "corpus/wikitext.h"
#include "text/utf8.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { N_SITES = 3 };

static struct wikitext *make(struct wiki_site *site, const char *language, const char *file)
{
    CHECK(!failed(wiki_site_init(site)), "site");
    CHECK(!failed(wiki_site_set_language(site, language, strlen(language))), "language");
    CHECK(!failed(wiki_site_add_namespace(site, WIKI_SITE_FILE, file, strlen(file))), "namespace");
    struct wikitext *w = wikitext_create(site);
    CHECK(w != NULL, "memory");
    return w;
}

static void check_paragraph(struct paragraph p)
{
    CHECK(p.n > 0 && utf8_find_invalid(p.text, p.n) == p.n, "paragraph");
    CHECK(p.text[0] != ' ' && p.text[p.n - 1] != ' ', "trimmed");
    for (size_t i = 0; i < p.n; i++) {
        CHECK((unsigned char)p.text[i] >= ' ' && p.text[i] != 127, "control character %d", p.text[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct wiki_site sites[N_SITES];
    static struct wikitext *converters[N_SITES];
    static struct buf markup;
    static struct document first, second;
    if (converters[0] == NULL) {
        converters[0] = make(&sites[0], "en", "File");
        converters[1] = make(&sites[1], "de", "Datei");
        converters[2] = make(&sites[2], "zh", "File");
    }
    if (n == 0) {
        return 0;
    }
    struct wikitext *w = converters[data[0] % N_SITES];
    struct wikitext_counts counts = {0}, again = {0};
    buf_clear(&markup);
    utf8_repair(&markup, (const char *)data + 1, n - 1);
    document_clear(&first);
    document_clear(&second);
    CHECK(!failed(wikitext_convert(w, &first, &counts, "A title", 7, buf_text(&markup), markup.n)), "memory");
    CHECK(!failed(wikitext_convert(w, &second, &again, "A title", 7, buf_text(&markup), markup.n)), "memory");
    CHECK(memcmp(&counts, &again, sizeof counts) == 0, "counts");
    CHECK(first.text.n == second.text.n &&
              memcmp(buf_text(&first.text), buf_text(&second.text), first.text.n) == 0,
          "the same page again");
    CHECK(counts.n_work <= WIKITEXT_WORK_FREE + (WIKITEXT_WORK_PER_BYTE + 2) * (int64_t)(markup.n + 1),
          "work");
    for (int64_t i = 0; i < first.n_paragraphs; i++) {
        check_paragraph(document_paragraph(&first, i));
    }
    return 0;
}
