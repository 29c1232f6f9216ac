/* Tests of corpus/corpus: what each format reads, how it is recognised, what is refused, and that reading
 * goes on from any place and holds little. */
#include "fixture_store.h"

#include "corpus/corpus.h"
#include "corpus/corpus_pass.h"
#include "corpus/source_formats.h"
#include "text/utf8.h"

#include <sys/stat.h>

static void write_text(const char *name, const char *text)
{
    fixture_write(name, text, strlen(text));
}

static struct source_options options_of(const char *format, bool replace)
{
    struct source_options o = {.replace_invalid_utf8 = replace};
    EXPECT(source_formats_find(&o.format, format), "no format %s", format);
    return o;
}

static void print_document(struct buf *out, const struct document *d)
{
    if (d->fate != DOCUMENT_KEPT) {
        buf_printf(out, "(%s)", document_fate_names[d->fate]);
        return;
    }
    buf_puts(out, d->begins ? "<" : "");
    for (int64_t i = 0; i < d->n_paragraphs; i++) {
        struct paragraph p = document_paragraph(d, i);
        buf_append(out, p.text, p.n);
        buf_putc(out, '|');
    }
}

/* Reads to the end, or to an error. */
static struct status print_rest(struct buf *out, struct corpus *c)
{
    struct document d = {0};
    struct converter converter;
    bool end = false;
    struct status s = status_ok();
    converter_init(&converter, &c->options);
    while (!failed(s) && !end) {
        s = corpus_next(c, &d, &end);
        if (!failed(s) && !end) {
            EXPECT_OK(converter_run(&converter, &d));
            EXPECT((d.n_paragraphs > 0) == (d.fate == DOCUMENT_KEPT), "a document without text");
            print_document(out, &d);
        }
    }
    converter_fini(&converter);
    document_fini(&d);
    return s;
}

/* Everything of one input as text: "<" before a document, "|" behind a paragraph, "!message" for an error. */
static const char *read_input(const char *path, const char *format, bool replace,
                              struct source_counts *counts)
{
    static struct buf out;
    static struct status s;
    struct corpus c;
    buf_clear(&out);
    s = corpus_open(&c, &path, 1, options_of(format, replace));
    if (!failed(s)) {
        s = print_rest(&out, &c);
        EXPECT(failed(s) || corpus_done_bytes(&c) == c.files.total_bytes, "%llu of %llu bytes",
               (unsigned long long)corpus_done_bytes(&c), (unsigned long long)c.files.total_bytes);
        *counts = c.counts;
        corpus_close(&c);
    }
    if (failed(s)) {
        buf_printf(&out, "!%s", s.message);
    }
    return buf_text(&out);
}

static void expect_read(const char *text, const char *format, const char *wanted)
{
    struct source_counts counts;
    write_text("one", text);
    const char *found = read_input(fixture_path("one"), format, false, &counts);
    EXPECT(strcmp(found, wanted) == 0, "'%s' read as %s gives '%s', not '%s'", text, format, found, wanted);
}

static void expect_refused(const char *text, const char *format, const char *part)
{
    struct source_counts counts;
    write_text("one", text);
    const char *found = read_input(fixture_path("one"), format, false, &counts);
    const char *error = strchr(found, '!');
    EXPECT(error != NULL && strstr(error, part) != NULL, "'%s' gives '%s'", text, found);
}

static void text_joins_lines(void)
{
    expect_read("A b\nc d.\n\n\n  e \r\n\tf\n", "text", "<A b c d.|e f|");
    expect_read("a", "text", "<a|");
    expect_read("\xef\xbb\xbf\n a", "text", "<a|");
    expect_read("\n \n\t\n", "text", "");
    expect_read("\xef\xbb\xbf", "text", "");
}

static void lines_are_paragraphs(void)
{
    expect_read("A b\nc d.\n\n\n  e \r\nf\n \n", "lines", "<A b|c d.|<e|f|");
    expect_read("\n\na", "lines", "<a|");
}

static void wiki_drops_titles(void)
{
    expect_read(
        "<doc id=\"1\" url=\"u\" title=\"T\">\nT\n\nOne.\nTwo.\n\n</doc>\n<doc id=\"2\">\nU\n</doc>\n<doc "
        "id=\"3\">\nV\nThree.\n</doc>\n",
        "wiki", "<One.|Two.|<Three.|");
    expect_read("<doc id=\"1\">\n</doc>\n<doc id=\"2\">\nT\n1 < 2 <doc>\n</doc>", "wiki", "<1 < 2 <doc>|");
    /* a file that was cut, or joined from such files, is used as far as it goes */
    expect_read("<doc id=\"1\">\nT\nOne.\n", "wiki", "<One.|");
    expect_read("<doc id=\"1\">\nT\nOne.\n</doc>\n<doc id=\"2\">\n", "wiki", "<One.|");
    expect_read("<doc id=\"1\">\nT\nOne.\n<doc id=\"2\">\nU\nTwo.\n</doc>\n", "wiki", "<One.|<Two.|");
    expect_read("<doc id=\"1\">\nT\n<doc id=\"2\">\nU\nTwo.\n</doc>\n", "wiki", "<Two.|");
    expect_read("<doc id=\"1\">\n<doc id=\"2\">\nU\nTwo.\n</doc>\n", "wiki", "<Two.|");
    /* version 3 escapes, once, and a line that has a bare sign was written by another */
    expect_read("<doc id=\"1\">\nA &amp; B\nAT&amp;T: 5 &lt; 6 &gt; 4.\n&amp;amp; "
                "&amp;lt;\n&quot;it&#39;s&quot;\n</doc>\n",
                "wiki", "<AT&T: 5 < 6 > 4.|&amp; &lt;|\"it's\"|");
    expect_read(
        "<doc id=\"1\">\nT\n&#38;&#x26;&AMP;&apos;&#x0027;\n&lt;i&gt; caf&eacute;\n&lt;&#60\n</doc>\n",
        "wiki", "<&&&''|&lt;i&gt; caf&eacute;|&lt;&#60|");
    expect_read("<doc id=\"1\">\nT\n&lt; and <\n&amp; and & b\n&nbsp;\n&amp\n</doc>\n", "wiki",
                "<&lt; and <|&amp; and & b|&nbsp;|&amp|");
    expect_refused("Hello.\n", "wiki", "one line 1 is outside of <doc>");
    expect_refused("<doc id=\"1\">\n</doc>\nHello.\n", "wiki", "one line 3 is outside of <doc>");
}

static void lines_of_json_are_documents(void)
{
    expect_read("{\"id\": 1, \"text\": \"One.\\n\\n Two. \"}\n{\"text\": [\"Three.\", \"Four.\"]}\n", "auto",
                "<One.|Two.|<Three.|Four.|");
    expect_read("\n{\"text\": \"One.\"}\n{\"text\": \"\"}\n{\"body\": \"a\"}\n{\"text\": 1}\nnone\n", "json",
                "<One.|(without text)(without the field of the text (--text_field))(without the field of the "
                "text (--text_field))(malformed)");
    /* only what is read is judged */
    expect_read("{\"text\": \"a\", \"text\": \"b\"}\n", "json", "<b|");
    expect_read("{\"n\": NaN, \"text\": \"a\", \"m\": -Infinity, \"k\": 1e999}\n", "json", "<a|");
    expect_read("{\"hash\":12297829382473034411,\"text\":\"a\",\"e\":{}}", "auto", "<a|");
    expect_read("{\"m\": {\"a\": [1, {\"text\": \"no\\\"}\"}]}, \"t\\u0065xt\": \"a\"}", "json", "<a|");
    expect_read("{\"text\": \"a\\u0000b \\ud800c \\udc00 \\ud83d\\ude00 \\u00e9 \\t\\/\\\"\\\\\"}", "json",
                "<a\xef\xbf\xbd"
                "b \xef\xbf\xbd"
                "c \xef\xbf\xbd \xf0\x9f\x98\x80 \xc3\xa9 \t/\"\\|");
    expect_read(
        "{\"text\": \"a \\q\"}\n{\"text\": [\"b\", \"\\u00g0\"]}\n{\"id\": \"\\q\", \"text\": \"c\"}\n",
        "json", "(malformed)(malformed)<c|");
    expect_read("{\"text\": [1, \"a\", null, [\"no\"], \"b\"]}", "json", "<a|b|");
    expect_read("{\"text\": \"a\"\n{\"text\": \"a}\n{\"text\": \"a\"} b\n{\"text\" "
                "\"a\"}\n{\"text\":}\n{,}\n[\"a\"]\n",
                "json", "(malformed)(malformed)(malformed)(malformed)(malformed)(malformed)(malformed)");
    struct buf deep = {0};
    buf_puts(&deep, "{\"d\": ");
    for (int i = 0; i < 20000; i++) {
        buf_putc(&deep, i < 10000 ? '[' : ']');
    }
    buf_puts(&deep, ", \"text\": \"a\"}");
    expect_read(buf_text(&deep), "json", "<a|");
    buf_fini(&deep);
}

#define HEAD "<mediawiki xmlns=\"x\" xml:lang=\"en\">\n  <siteinfo>\n    <base>b</base>\n  </siteinfo>\n"
#define PAGE(ns, more, text)                                                                                 \
    "  <page>\n    <title>T</title>\n    <ns>" ns "</ns>\n    <id>7</id>\n" more                             \
    "    <revision>\n      <id>8</id>\n      <text bytes=\"1\" xml:space=\"preserve\">" text                 \
    "</text>\n    </revision>\n  </page>\n"

static void pages_of_a_dump_are_documents(void)
{
    expect_read(HEAD PAGE("0", "", "One &amp; two.\n\nThree.") PAGE("1", "", "Talk.")
                    PAGE("0", "", "Four.") "</mediawiki>\n",
                "auto", "<One & two.|Three.|(in another namespace than articles)<Four.|");
    expect_read(HEAD PAGE("0", "    <redirect title=\"U\" />\n", "#REDIRECT [[U]]")
                    PAGE("0", "", "#redirect [[U]]"),
                "auto", "(redirects)(redirects)");
    expect_read(HEAD PAGE("0", "", "&nope; one.") PAGE("0", "", "Two.") "  <page>\n    <title>U", "auto",
                "(malformed)<Two.|(cut by the end of a file or a damaged part)");
    expect_read("<page><ns>0</ns><revision><model>json</model><text>{}</text></revision></page>\n"
                "<page><revision><text>One.</text></revision></page>",
                "dump", "(of another content model than wikitext)<One.|");
    expect_refused("<page></page><page></page>", "dump", "give each <page> a line");
    expect_read("of a page\n</text>\n" PAGE("0", "", "One."), "dump", "<One.|");
    expect_read("<!DOCTYPE a [<!ENTITY b \"c\">]>\n" HEAD PAGE("0", "", "&b;") PAGE("0", "", "One."), "dump",
                "(malformed)<One.|");
}

static void formats_are_recognised(void)
{
    expect_read("\n<doc id=\"1\">\nT\nOne.\n</doc>\n", "auto", "<One.|");
    expect_read("One.\nTwo.\n\nThree!\nFour\xe2\x80\x9d\n", "auto", "<One.|Two.|<Three!|Four\xe2\x80\x9d|");
    expect_read("One line of\nwrapped prose,\nwhich ends.\n\nAnd goes\non.\n", "auto",
                "<One line of wrapped prose, which ends.|And goes on.|");
    expect_read("One.\n\nTwo.\n\nThree.\n", "auto", "<One.|Two.|Three.|");
    const struct source_format *f;
    EXPECT(source_formats_find(&f, "wiki") && f == &wiki_source && source_formats_index(f) == 2, "wiki");
    EXPECT(source_formats_find(&f, "auto") && f == NULL && !source_formats_find(&f, "html"), "names");
}

static void expect_no_text(const char *bytes, size_t n, const char *part)
{
    struct source_counts counts;
    fixture_write("one", bytes, n);
    for (int replace = 0; replace < 2; replace++) {
        const char *found = read_input(fixture_path("one"), "auto", replace, &counts);
        EXPECT(found[0] == '!' && strstr(found, part) != NULL && strstr(found, "not plain text") != NULL,
               "'%s', not '%s'", found, part);
    }
}

static void what_is_no_text_is_named(void)
{
    char tar[512] = "a.txt";
    memcpy(tar + 257, "ustar", 5);
    expect_no_text(tar, sizeof tar, "one is a tar archive");
#define EXPECT_NO_TEXT(bytes, part) expect_no_text(bytes, sizeof bytes - 1, part)
    EXPECT_NO_TEXT("\x04\x22\x4d\x18\0", "an lz4 file");
    EXPECT_NO_TEXT("PK\x03\x04", "a zip archive");
    EXPECT_NO_TEXT("\x89HDF\r\n\x1a\n", "an HDF5 file");
    EXPECT_NO_TEXT("%PDF-1.7\n", "a PDF file");
    EXPECT_NO_TEXT("\xff\xfe"
                   "a\0b\0",
                   "UTF-16");
    EXPECT_NO_TEXT("a\0b\0c\0", "binary data");
    EXPECT_NO_TEXT("\x01\0\0\0\x02\0\0\0\x61\0\0\0", "binary data");
    static const char *const readable[][2] = {
        {"\xef\xbb\xbf\n[ {\n \"a\\\"b\" : 1}]", "JSON, but not in lines"},
        {"<?xml version=\"1.0\"?>\n<TEI>", "XML"},
        {"\n<!DOCTYPE HTML>\n", "HTML"},
    };
    for (size_t i = 0; i < sizeof readable / sizeof readable[0]; i++) {
        expect_no_text(readable[i][0], strlen(readable[i][0]), readable[i][1]);
        expect_refused(readable[i][0], "wiki", readable[i][1]);
    }
    expect_read("{\"a\": 1}\n", "text", "<{\"a\": 1}|"); /* where the user says so */
    expect_read("<html>\n", "lines", "<<html>|");
    static const char *const prose[] = {"{Aside} he said.",
                                        "[1] \"A note\": so.",
                                        "{\"Quoted\"} in braces.",
                                        "<b>Bold</b> of <mediawiki>.",
                                        "BZhang came.",
                                        "PAR1 is it.",
                                        "PK\n3"};
    for (size_t i = 0; i < sizeof prose / sizeof prose[0]; i++) {
        struct source_counts counts;
        write_text("one", prose[i]);
        const char *found = read_input(fixture_path("one"), "auto", false, &counts);
        EXPECT(found[0] == '<', "'%s' gives '%s'", prose[i], found);
    }
}

static void counts_are_kept(void)
{
    struct source_counts counts;
    write_text("one", "<doc id=\"1\">\nT\n</doc>\n<doc id=\"2\">\nT\nOne.\nTwo.\n</doc>\n");
    read_input(fixture_path("one"), "auto", false, &counts);
    EXPECT(counts.n_documents == 1 && counts.n_empty_documents == 1 &&
               counts.n_by_format[source_formats_index(&wiki_source)] == 1,
           "%lld documents, %lld empty", (long long)counts.n_documents, (long long)counts.n_empty_documents);
    write_text("one", "a\n\n\n\nb\n\n");
    read_input(fixture_path("one"), "lines", false, &counts);
    EXPECT(counts.n_documents == 2 && counts.n_empty_documents == 0, "blank lines are no empty documents");
    write_text("one", " \n");
    read_input(fixture_path("one"), "lines", false, &counts);
    EXPECT(counts.n_documents == 0 && counts.n_empty_documents == 1, "a file of white space is one");
}

static void invalid_utf8_is_named_or_replaced(void)
{
    struct source_counts counts;
    expect_refused("abc\nd\xff"
                   "e",
                   "text", "one is not UTF-8: byte 5 is 0xff");
    expect_refused("\xff\xfe"
                   "a",
                   "auto", "UTF-16");
    write_text("one", "abc\nd\xff"
                      "e\xe2\x82\n\xc0\xaf");
    const char *found = read_input(fixture_path("one"), "lines", true, &counts);
    EXPECT(strcmp(found, "<abc|d\xef\xbf\xbd"
                         "e\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd|") == 0 &&
               counts.n_replaced == 4,
           "'%s', %lld replaced", found, (long long)counts.n_replaced);
    static const char *const raw[] = {HEAD PAGE("0", "", "d\xff."), "{\"text\": \"d\xff.\"}\n"};
    static const char *const formats[] = {"dump", "json"};
    for (size_t i = 0; i < sizeof raw / sizeof raw[0]; i++) {
        write_text("one", raw[i]);
        found = read_input(fixture_path("one"), formats[i], true, &counts);
        EXPECT(strcmp(found, "<d\xef\xbf\xbd.|") == 0 && counts.n_replaced == 1, "'%s' gives '%s'", raw[i],
               found);
    }
}

static void directories_are_walked_in_order(void)
{
    struct source_counts counts;
    EXPECT(mkdir(fixture_path("tree"), 0777) == 0 && mkdir(fixture_path("tree/b"), 0777) == 0 &&
               mkdir(fixture_path("tree/empty"), 0777) == 0,
           "mkdir");
    write_text("tree/c", "5");
    write_text("tree/b/z", "3");
    write_text("tree/b/y", "2");
    write_text("tree/a", "1");
    write_text("tree/b.txt", "4");
    write_text("tree/.hidden", "0");
    write_text("tree/void", "");
    const char *found = read_input(fixture_path("tree"), "auto", false, &counts);
    EXPECT(strcmp(found, "<1|<2|<3|<4|<5|") == 0 && counts.n_empty_documents == 1, "'%s'", found);
    found = read_input(fixture_path("tree/empty"), "auto", false, &counts);
    EXPECT(strstr(found, "tree/empty has no files") != NULL, "'%s'", found);
    found = read_input(fixture_path("tree/void"), "auto", false, &counts);
    EXPECT(strstr(found, "tree/void is empty") != NULL, "'%s'", found);
    found = read_input(fixture_path("tree/none"), "auto", false, &counts);
    EXPECT(strstr(found, "tree/none: No such file") != NULL, "'%s'", found);
    found = read_input("/dev/null", "auto", false, &counts);
    EXPECT(strstr(found, "neither a file nor a directory") != NULL, "'%s'", found);
    EXPECT(symlink(".", fixture_path("tree/empty/loop")) == 0, "symlink");
    found = read_input(fixture_path("tree/empty"), "auto", false, &counts);
    EXPECT(found[0] == '!', "a loop of links gives '%s'", found);
}

static void wiki_articles_have_names(void)
{
    static const char text[] =
        "<doc id=\"12\" url=\"u\" title=\"T\">\nA title\n\nOne.\n</doc>\n<doc id=\"13\">\nEmpty\n</doc>\n"
        "<doc id=x>\nB \xff\nTwo.\n</doc>\n";
    struct corpus c;
    struct document d = {0};
    bool end;
    write_text("one", text);
    const char *path = fixture_path("one");
    EXPECT_OK(corpus_open(&c, &path, 1, options_of("wiki", true)));
    EXPECT_OK(corpus_next(&c, &d, &end));
    EXPECT(!end && strcmp(buf_text(&d.id), "12") == 0 && strcmp(buf_text(&d.title), "A title") == 0,
           "'%s', '%s'", buf_text(&d.id), buf_text(&d.title));
    EXPECT_OK(corpus_next(&c, &d, &end));
    EXPECT(!end && d.id.n == 0 && strcmp(buf_text(&d.title), "B \xef\xbf\xbd") == 0, "'%s', '%s'",
           buf_text(&d.id), buf_text(&d.title));
    EXPECT_OK(corpus_next(&c, &d, &end));
    EXPECT(end, "a third article");
    document_fini(&d);
    corpus_close(&c);
}

/* Lines of `unit` up to at least n bytes. */
static struct buf repeat(const char *unit, size_t n)
{
    struct buf out = {0};
    while (out.n < n) {
        buf_puts(&out, unit);
    }
    EXPECT_OK(buf_status(&out));
    return out;
}

/* A place behind each piece leads to what came behind it, in a corpus that is opened anew. */
static void expect_places(const char *input, const char *format, int64_t min_pieces)
{
    struct corpus c, other;
    struct document d = {0};
    struct buf whole = {0}, before = {0};
    int64_t n_pieces = 0;
    EXPECT_OK(corpus_open(&c, &input, 1, options_of(format, false)));
    EXPECT_OK(print_rest(&whole, &c));
    EXPECT_OK(corpus_seek(&c, (struct corpus_place){0}));
    for (bool end = false; !end; n_pieces++) {
        struct corpus_place place = corpus_place(&c);
        struct buf rest = {0};
        EXPECT_OK(corpus_open(&other, &input, 1, options_of(format, false)));
        EXPECT_OK(corpus_seek(&other, place));
        EXPECT(corpus_done_bytes(&other) == corpus_done_bytes(&c), "bytes done");
        EXPECT_OK(print_rest(&rest, &other));
        EXPECT(before.n + rest.n == whole.n &&
                   memcmp(buf_text(&whole) + before.n, buf_text(&rest), rest.n) == 0,
               "%s: piece %lld of %s: '%.80s'", format, (long long)n_pieces, input, buf_text(&rest));
        buf_fini(&rest);
        corpus_close(&other);
        EXPECT_OK(corpus_next(&c, &d, &end));
        if (!end) {
            EXPECT(d.text.n < DOCUMENT_BYTES + 100, "a piece of %zu bytes", d.text.n);
            print_document(&before, &d);
        }
    }
    EXPECT(n_pieces > min_pieces, "%lld pieces", (long long)n_pieces);
    buf_fini(&whole);
    buf_fini(&before);
    document_fini(&d);
    corpus_close(&c);
}

static void reading_goes_on_from_any_place(void)
{
    EXPECT(mkdir(fixture_path("places"), 0777) == 0, "mkdir");
    write_text("places/1", "\xef\xbb\xbfOne.\nTwo.\n\n\nThree.\nFour.\n");
    write_text("places/2", "");
    write_text(
        "places/3",
        "<doc id=\"1\">\nT\nOne.\n</doc>\n<doc id=\"2\">\nU\n</doc>\n<doc id=\"3\">\nV\nTwo.\n</doc>\n");
    write_text("places/4", "Wrapped\nprose.\n\n  \n");
    expect_places(fixture_path("places"), "auto", 5);
    struct buf text = repeat("A line of 20 bytes.\nAnd\n\n", 3 * DOCUMENT_BYTES + 1000);
    write_text("long", buf_text(&text));
    expect_places(fixture_path("long"), "text", 3);
    buf_fini(&text);
    text = repeat("A line of 20 bytes.\nAnd\n", 3 * DOCUMENT_BYTES + 1000);
    write_text("long", buf_text(&text));
    expect_places(fixture_path("long"), "lines", 3);
    struct source_counts counts;
    read_input(fixture_path("long"), "lines", false, &counts);
    EXPECT(counts.n_documents == 1 && counts.n_empty_documents == 0, "%lld documents",
           (long long)counts.n_documents);
    buf_fini(&text);

    const char *path = fixture_path("long");
    struct corpus c;
    EXPECT_OK(corpus_open(&c, &path, 1, options_of("lines", false)));
    struct corpus_place place = {.in_file.text.offset = 4 * DOCUMENT_BYTES};
    EXPECT_ERROR(corpus_seek(&c, place), STATUS_DATA, "the file has changed");
    place.file = 2;
    EXPECT_ERROR(corpus_seek(&c, place), STATUS_DATA, "1 files");
    corpus_close(&c);
}

/* Characters of two, three and four bytes at every offset to the end of the first block. */
static void characters_may_lie_across_blocks(void)
{
    struct source_counts counts;
    for (size_t shift = 0; shift < 9; shift++) {
        struct buf text = repeat("a", TEXT_READER_BLOCK_BYTES - 9 + shift);
        buf_puts(&text, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 b\n");
        struct buf wanted = {0};
        buf_printf(&wanted, "<%.*s|", (int)text.n - 1, buf_text(&text));
        fixture_write("one", text.data, text.n);
        const char *found = read_input(fixture_path("one"), "lines", false, &counts);
        EXPECT(strcmp(found, buf_text(&wanted)) == 0, "shift %zu: '...%s'", shift,
               found + (strlen(found) > 30 ? strlen(found) - 30 : 0));
        fixture_write("one", text.data, text.n - 4); /* the last character loses its last byte */
        found = read_input(fixture_path("one"), "lines", false, &counts);
        char part[64];
        snprintf(part, sizeof part, "is not UTF-8: byte %zu is 0xf0", text.n - 7);
        EXPECT(strstr(found, part) != NULL, "shift %zu: not '%s'", shift, part);
        buf_fini(&wanted);
        buf_fini(&text);
    }
}

/* Longer than a reader holds: cut behind white space, or before a character; counted; and nothing is lost. */
static void long_lines_are_cut(void)
{
    struct source_counts counts;
    struct buf text = repeat("0123456789abcde ", 2 * TEXT_READER_LINE_BYTES + 100);
    fixture_write("one", text.data, text.n);
    static const char *const formats[] = {"lines", "text"};
    for (int k = 0; k < 2; k++) {
        const char *found = read_input(fixture_path("one"), formats[k], false, &counts);
        EXPECT(counts.n_cut == 2 && counts.n_documents == 1 && found[0] == '<', "%lld cuts: '%.80s'",
               (long long)counts.n_cut, found);
        EXPECT(strlen(found) == text.n + 1 && strchr(found, '|') == found + TEXT_READER_LINE_BYTES &&
                   strncmp(strchr(found, '|') + 1, "0123", 4) == 0,
               "%zu bytes of %zu", strlen(found), text.n);
    }
    buf_fini(&text);
    text = (struct buf){0};
    buf_puts(&text, "x");
    while (text.n < TEXT_READER_LINE_BYTES + 10) {
        buf_puts(&text, "\xe2\x82\xac");
    }
    fixture_write("one", text.data, text.n);
    const char *found = read_input(fixture_path("one"), "lines", false, &counts);
    EXPECT(counts.n_cut == 1 && strlen(found) == text.n + 3 &&
               utf8_find_invalid(found, strlen(found)) == strlen(found),
           "%lld cuts, %zu bytes", (long long)counts.n_cut, strlen(found));
    buf_fini(&text);
    /* lines of ordinary length that make an endless paragraph */
    text = repeat("A line of 20 bytes.\n", DOCUMENT_PARAGRAPH_BYTES + 1000);
    fixture_write("one", text.data, text.n);
    found = read_input(fixture_path("one"), "text", false, &counts);
    EXPECT(counts.n_cut == 1 && strlen(found) == text.n + 1, "%lld cuts, %zu bytes", (long long)counts.n_cut,
           strlen(found));
    buf_fini(&text);
}

/* A file that loses bytes, between the listing and the opening or between two blocks, is an error with its
 * name. */
static void cut_files_are_noticed(void)
{
    struct buf text = repeat("A line of 20 bytes.\n", 4 * TEXT_READER_BLOCK_BYTES);
    static const off_t sizes[] = {0, 10, TEXT_READER_BLOCK_BYTES + 10, 4 * TEXT_READER_BLOCK_BYTES - 1};
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        bool is_open = i % 2 == 1;
        struct corpus c;
        struct buf out = {0};
        fixture_write("one", text.data, text.n);
        const char *path = fixture_path("one");
        EXPECT_OK(corpus_open(&c, &path, 1, options_of("lines", false)));
        if (is_open) {
            EXPECT_OK(corpus_seek(&c, (struct corpus_place){.in_file.text = {20, {.offset = 19}, 1}}));
        }
        EXPECT(truncate(path, sizes[i / 2]) == 0, "truncate");
        EXPECT_ERROR(print_rest(&out, &c), STATUS_IO, "while it was read");
        buf_fini(&out);
        corpus_close(&c);
    }
    buf_fini(&text);
}

int main(void)
{
    text_joins_lines();
    lines_are_paragraphs();
    wiki_drops_titles();
    wiki_articles_have_names();
    lines_of_json_are_documents();
    pages_of_a_dump_are_documents();
    formats_are_recognised();
    what_is_no_text_is_named();
    counts_are_kept();
    invalid_utf8_is_named_or_replaced();
    directories_are_walked_in_order();
    reading_goes_on_from_any_place();
    characters_may_lie_across_blocks();
    long_lines_are_cut();
    cut_files_are_noticed();
    fixture_remove();
    return 0;
}
