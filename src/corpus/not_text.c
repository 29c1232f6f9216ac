#define _GNU_SOURCE /* memmem */
#include "corpus/not_text.h"

#include "text/utf8.h"

#include <string.h>

#define UNPACK(command) "unpack it first (" command ")"

/* First bytes: file(1)'s magic, and each format's own specification. */
static const struct signature {
    size_t at;
    const char *bytes;
    size_t n;
    struct not_text is;
} signatures[] = {
#define STARTS(bytes, name, advice)                                                                          \
    {                                                                                                        \
        0, bytes, sizeof bytes - 1,                                                                          \
        {                                                                                                    \
            name, advice, false                                                                              \
        }                                                                                                    \
    }
    {4, "1AY&SY", 6, {"a bzip2 file", UNPACK("bunzip2"), false}}, /* after "BZh" and a digit */
    STARTS("\x1f\x8b", "a gzip file", UNPACK("gunzip")),
    STARTS("\xfd"
           "7zXZ",
           "an xz file", UNPACK("unxz")),
    STARTS("\x28\xb5\x2f\xfd", "a zstd file", UNPACK("unzstd")),
    STARTS("\x04\x22\x4d\x18", "an lz4 file", UNPACK("unlz4")),
    STARTS("7z\xbc\xaf\x27\x1c", "a 7-Zip archive", UNPACK("7z x")),
    STARTS("PK\x03\x04", "a zip archive, or a document or model in one",
           "unpack it, or save it as plain text, first"),
    {257, "ustar", 5, {"a tar archive", UNPACK("tar xf"), false}},
    STARTS("\x89HDF", "an HDF5 file", "give HDF5 samples to `kiln pretrain --input_dir` as they are"),
    STARTS("MMIDIDX\0", "the index of a token store", "give a token store to `kiln pretrain --input_dir`"),
    STARTS(
        "PAR1\x15", "a Parquet file",
        "write its column of text as lines of JSON first (duckdb -c \"COPY (SELECT text FROM 'x.parquet') TO "
        "'x.jsonl'\")"),
    STARTS("%PDF-", "a PDF file", "take its text out first (pdftotext)"),
    STARTS("\xff\xfe", "UTF-16",
           "convert it first (iconv -f UTF-16 -t UTF-8), or give --encoding utf-16 to a command that has it"),
    STARTS("\xfe\xff", "UTF-16",
           "convert it first (iconv -f UTF-16 -t UTF-8), or give --encoding utf-16 to a command that has it"),
};

static const struct not_text
    mediawiki = {"a MediaWiki dump (XML)", "read it with --input_format dump, or auto", true},
    xml = {"XML", "take its text out first", true}, html = {"HTML", "take its text out first", true},
    json = {"JSON, but not in lines",
            "write each object to a line of its own first (jq -c '.[]'), with its text in a field \"text\"",
            true},
    binary = {"binary data", "give plain text in UTF-8", false};

static bool contains(const char *text, size_t n, const char *part)
{
    return memmem(text, n, part, strlen(part)) != NULL;
}

static bool starts_with(const char *text, size_t n, const char *prefix, bool any_case)
{
    size_t k = strlen(prefix);
    return n >= k && (any_case ? strncasecmp(text, prefix, k) : memcmp(text, prefix, k)) == 0;
}

/* White space of ASCII, as isspace has it in every locale. */
static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static size_t skip_space(const char *text, size_t n, size_t at)
{
    while (at < n && is_space(text[at])) {
        at++;
    }
    return at;
}

/* {"key": ... or [{"key": ..., with any white space between: prose does not begin like this. */
static bool is_json(const char *text, size_t n)
{
    size_t at = skip_space(text, n, 0);
    if (at < n && text[at] == '[') {
        at = skip_space(text, n, at + 1);
    }
    if (at == n || text[at] != '{') {
        return false;
    }
    at = skip_space(text, n, at + 1);
    if (at == n || text[at] != '"') {
        return false;
    }
    for (at++; at < n && text[at] != '"'; at++) {
        at += text[at] == '\\';
    }
    at = at < n ? skip_space(text, n, at + 1) : n;
    return at < n && text[at] == ':';
}

static const struct not_text *find_markup(const char *text, size_t n)
{
    enum { PROLOGUE = 1024 }; /* beginning in which an XML file names its first element */
    size_t at = skip_space(text, n, 0);
    text += at;
    n -= at;
    bool is_xml = starts_with(text, n, "<?xml", false);
    bool is_piece = contains(text, n, "<revision>\n") && contains(text, n, " xml:space=\"preserve\"");
    if (starts_with(text, n, "<mediawiki", false) || is_piece ||
        (is_xml && contains(text, n < PROLOGUE ? n : PROLOGUE, "<mediawiki"))) {
        return &mediawiki;
    }
    if (starts_with(text, n, "<!doctype html", true) || starts_with(text, n, "<html", true)) {
        return &html;
    }
    return is_xml ? &xml : NULL;
}

const struct not_text *not_text_find(const char *text, size_t n)
{
    n = n < NOT_TEXT_LOOK_BYTES ? n : NOT_TEXT_LOOK_BYTES;
    if (n == 0) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof signatures / sizeof signatures[0]; i++) {
        const struct signature *s = &signatures[i];
        if (n >= s->at + s->n && memcmp(text + s->at, s->bytes, s->n) == 0) {
            return &s->is;
        }
    }
    size_t mark = utf8_mark_bytes(text, n);
    text += mark;
    n -= mark;
    return is_json(text, n) ? &json : find_markup(text, n);
}

/* One in 32 bytes: text has next to none, compressed data and numbers have more than one in ten. */
const struct not_text *not_text_find_binary(const char *text, size_t n)
{
    size_t n_control = 0;
    n = n < NOT_TEXT_LOOK_BYTES ? n : NOT_TEXT_LOOK_BYTES;
    for (size_t i = 0; i < n; i++) {
        n_control += (unsigned char)text[i] < ' ' && !is_space(text[i]);
    }
    return n_control > 1 + n / 32 ? &binary : NULL;
}

struct status not_text_refuse(const struct not_text *found, const char *path, const char *more)
{
    return status_error(STATUS_DATA, "%s is %s, not plain text: %s%s", path, found->name, found->advice,
                        more);
}
