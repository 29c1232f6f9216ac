/* Tests of corpus/documents: what each format reads, how it is recognised, and what is refused. */
#include "unit/fixture_store.h"

#include "corpus/documents.h"

#include <sys/stat.h>

static void write_text(const char *name, const char *text)
{
    fixture_write(name, text, strlen(text));
}

/* Everything of one input as text: "<" before a document, "|" behind a paragraph, "!message" for an error. */
static const char *read_input(const char *path, enum documents_format format, bool replace,
                              struct documents *counts)
{
    static struct buf out;
    static struct status s;
    struct documents d;
    buf_clear(&out);
    s = documents_open(&d, &path, 1, format, replace);
    bool end = false;
    while (!failed(s) && !end) {
        struct documents_text t;
        s = documents_next(&d, &t, &end);
        if (!failed(s) && !end) {
            buf_puts(&out, t.starts_document ? "<" : "");
            buf_append(&out, t.text, t.n);
            buf_putc(&out, '|');
        }
    }
    if (failed(s)) {
        buf_printf(&out, "!%s", s.message);
    } else {
        EXPECT(documents_done_bytes(&d) == d.total_bytes, "%llu of %llu bytes",
               (unsigned long long)documents_done_bytes(&d), (unsigned long long)d.total_bytes);
    }
    *counts = d;
    documents_close(&d);
    return buf_text(&out);
}

static void expect_read(const char *text, enum documents_format format, const char *wanted)
{
    struct documents counts;
    write_text("one", text);
    const char *found = read_input(fixture_path("one"), format, false, &counts);
    EXPECT(strcmp(found, wanted) == 0, "'%s' read as %s gives '%s', not '%s'", text,
           documents_format_name(format), found, wanted);
}

static void expect_refused(const char *text, enum documents_format format, const char *part)
{
    struct documents counts;
    write_text("one", text);
    const char *found = read_input(fixture_path("one"), format, false, &counts);
    const char *error = strchr(found, '!');
    EXPECT(error != NULL && strstr(error, part) != NULL, "'%s' gives '%s'", text, found);
}

static void text_joins_lines(void)
{
    expect_read("A b\nc d.\n\n\n  e \r\n\tf\n", DOCUMENTS_TEXT, "<A b c d.|e f|");
    expect_read("a", DOCUMENTS_TEXT, "<a|");
    expect_read("\xef\xbb\xbf\n a", DOCUMENTS_TEXT, "<a|");
    expect_read("\n \n\t\n", DOCUMENTS_TEXT, "");
    expect_read("\xef\xbb\xbf", DOCUMENTS_TEXT, "");
}

static void lines_are_paragraphs(void)
{
    expect_read("A b\nc d.\n\n\n  e \r\nf\n \n", DOCUMENTS_LINES, "<A b|c d.|<e|f|");
    expect_read("\n\na", DOCUMENTS_LINES, "<a|");
}

static void wiki_drops_titles(void)
{
    expect_read(
        "<doc id=\"1\" url=\"u\" title=\"T\">\nT\n\nOne.\nTwo.\n\n</doc>\n<doc id=\"2\">\nU\n</doc>\n<doc "
        "id=\"3\">\nV\nThree.\n</doc>\n",
        DOCUMENTS_WIKI, "<One.|Two.|<Three.|");
    expect_read("<doc id=\"1\">\n</doc>\n<doc id=\"2\">\nT\n1 < 2 <doc>\n</doc>", DOCUMENTS_WIKI,
                "<1 < 2 <doc>|");
    expect_refused("<doc id=\"1\">\nT\nOne.\n", DOCUMENTS_WIKI, "one ends inside a <doc>");
    expect_refused("<doc id=\"1\">\nT\n<doc id=\"2\">\n", DOCUMENTS_WIKI, "one line 3: <doc> inside");
    expect_refused("Hello.\n", DOCUMENTS_WIKI, "one line 1 is outside of <doc>");
}

static void formats_are_recognised(void)
{
    expect_read("\n<doc id=\"1\">\nT\nOne.\n</doc>\n", DOCUMENTS_AUTO, "<One.|");
    expect_read("One.\nTwo.\n\nThree!\nFour\xe2\x80\x9d\n", DOCUMENTS_AUTO,
                "<One.|Two.|<Three!|Four\xe2\x80\x9d|");
    expect_read("One line of\nwrapped prose,\nwhich ends.\n\nAnd goes\non.\n", DOCUMENTS_AUTO,
                "<One line of wrapped prose, which ends.|And goes on.|");
    expect_read("One.\n\nTwo.\n\nThree.\n", DOCUMENTS_AUTO, "<One.|Two.|Three.|");
    enum documents_format f;
    EXPECT(documents_find_format("wiki", &f) && f == DOCUMENTS_WIKI && !documents_find_format("html", &f),
           "names");
}

static void expect_no_text(const char *bytes, size_t n, const char *part)
{
    struct documents counts;
    fixture_write("one", bytes, n);
    for (int replace = 0; replace < 2; replace++) {
        const char *found = read_input(fixture_path("one"), DOCUMENTS_AUTO, replace, &counts);
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
    EXPECT_NO_TEXT("BZh91AY&SY", "a bzip2 file, not plain text: unpack it first (bunzip2)");
    EXPECT_NO_TEXT("\x1f\x8b\x08", "a gzip file");
    EXPECT_NO_TEXT("\xfd"
                   "7zXZ\0",
                   "an xz file");
    EXPECT_NO_TEXT("PK\x03\x04", "a zip archive");
    EXPECT_NO_TEXT("\x89HDF\r\n\x1a\n", "an HDF5 file");
    EXPECT_NO_TEXT("%PDF-1.7\n", "a PDF file");
    EXPECT_NO_TEXT("\xff\xfe"
                   "a\0b\0",
                   "UTF-16");
    EXPECT_NO_TEXT("a\0b\0c\0", "binary data");
    EXPECT_NO_TEXT("\x01\0\0\0\x02\0\0\0\x61\0\0\0", "binary data");
    static const char *const readable[][2] = {
        {"{\"id\": \"1\", \"text\": \"One.\"}\n{\"id\": \"2\"}\n", "JSON, whole or in lines"},
        {"\xef\xbb\xbf\n[ {\n \"a\\\"b\" : 1}]", "JSON, whole or in lines"},
        {"<mediawiki xmlns=\"x\">\n  <siteinfo>\n", "a MediaWiki dump"},
        {"<?xml version=\"1.0\"?>\n<mediawiki>", "a MediaWiki dump"},
        {"e]]\n</text>\n<page>\n<revision>\n<text bytes=\"1\" xml:space=\"preserve\">a", "a MediaWiki dump"},
        {"<?xml version=\"1.0\"?>\n<TEI>", "XML"},
        {"\n<!DOCTYPE HTML>\n", "HTML"},
    };
    for (size_t i = 0; i < sizeof readable / sizeof readable[0]; i++) {
        expect_no_text(readable[i][0], strlen(readable[i][0]), readable[i][1]);
        expect_refused(readable[i][0], DOCUMENTS_WIKI, readable[i][1]);
    }
    expect_read("{\"a\": 1}\n", DOCUMENTS_TEXT, "<{\"a\": 1}|"); /* where the user says so */
    expect_read("<html>\n", DOCUMENTS_LINES, "<<html>|");
    static const char *const prose[] = {"{Aside} he said.",
                                        "[1] \"A note\": so.",
                                        "{\"Quoted\"} in braces.",
                                        "<b>Bold</b> of <mediawiki>.",
                                        "BZhang came.",
                                        "PAR1 is it.",
                                        "PK\n3"};
    for (size_t i = 0; i < sizeof prose / sizeof prose[0]; i++) {
        struct documents counts;
        write_text("one", prose[i]);
        const char *found = read_input(fixture_path("one"), DOCUMENTS_AUTO, false, &counts);
        EXPECT(found[0] == '<', "'%s' gives '%s'", prose[i], found);
    }
}

static void counts_are_kept(void)
{
    struct documents counts;
    write_text("one", "<doc id=\"1\">\nT\n</doc>\n<doc id=\"2\">\nT\nOne.\nTwo.\n</doc>\n");
    read_input(fixture_path("one"), DOCUMENTS_AUTO, false, &counts);
    EXPECT(counts.n_documents == 1 && counts.n_empty_documents == 1 &&
               counts.n_by_format[DOCUMENTS_WIKI] == 1,
           "%lld documents, %lld empty", (long long)counts.n_documents, (long long)counts.n_empty_documents);
    write_text("one", "a\n\n\n\nb\n\n");
    read_input(fixture_path("one"), DOCUMENTS_LINES, false, &counts);
    EXPECT(counts.n_documents == 2 && counts.n_empty_documents == 0, "blank lines are no empty documents");
    write_text("one", " \n");
    read_input(fixture_path("one"), DOCUMENTS_LINES, false, &counts);
    EXPECT(counts.n_documents == 0 && counts.n_empty_documents == 1, "a file of white space is one");
}

static void invalid_utf8_is_named_or_replaced(void)
{
    struct documents counts;
    expect_refused("abc\nd\xff"
                   "e",
                   DOCUMENTS_TEXT, "one is not UTF-8: byte 5 is 0xff");
    expect_refused("\xff\xfe"
                   "a",
                   DOCUMENTS_AUTO, "UTF-16");
    write_text("one", "abc\nd\xff"
                      "e\xe2\x82\n\xc0\xaf");
    const char *found = read_input(fixture_path("one"), DOCUMENTS_LINES, true, &counts);
    EXPECT(strcmp(found, "<abc|d\xef\xbf\xbd"
                         "e\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd|") == 0 &&
               counts.n_replaced == 4,
           "'%s', %lld replaced", found, (long long)counts.n_replaced);
}

static void directories_are_walked_in_order(void)
{
    struct documents counts;
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
    const char *found = read_input(fixture_path("tree"), DOCUMENTS_AUTO, false, &counts);
    EXPECT(strcmp(found, "<1|<2|<3|<4|<5|") == 0 && counts.n_empty_documents == 1, "'%s'", found);
    found = read_input(fixture_path("tree/empty"), DOCUMENTS_AUTO, false, &counts);
    EXPECT(strstr(found, "tree/empty has no files") != NULL, "'%s'", found);
    found = read_input(fixture_path("tree/void"), DOCUMENTS_AUTO, false, &counts);
    EXPECT(strstr(found, "tree/void is empty") != NULL, "'%s'", found);
    found = read_input(fixture_path("tree/none"), DOCUMENTS_AUTO, false, &counts);
    EXPECT(strstr(found, "tree/none: No such file") != NULL, "'%s'", found);
    found = read_input("/dev/null", DOCUMENTS_AUTO, false, &counts);
    EXPECT(strstr(found, "neither a file nor a directory") != NULL, "'%s'", found);
    EXPECT(symlink(".", fixture_path("tree/empty/loop")) == 0, "symlink");
    found = read_input(fixture_path("tree/empty"), DOCUMENTS_AUTO, false, &counts);
    EXPECT(found[0] == '!', "a loop of links gives '%s'", found);
}

int main(void)
{
    text_joins_lines();
    lines_are_paragraphs();
    wiki_drops_titles();
    formats_are_recognised();
    what_is_no_text_is_named();
    counts_are_kept();
    invalid_utf8_is_named_or_replaced();
    directories_are_walked_in_order();
    fixture_remove();
    return 0;
}
