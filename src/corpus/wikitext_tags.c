#include "corpus/wikitext_tags.h"
#include "corpus/text_line.h"

#include "core/status.h"

#include <string.h>
#include <strings.h>

enum { NAME_BYTES = 20 }; /* "syntaxhighlight", "dynamicpagelist" */

struct element {
    char name[NAME_BYTES];
    unsigned char kind;
};

/* In the order of strcmp. */
static const struct element elements[] = {
    {"a", WIKITEXT_TAG_STRIP},
    {"abbr", WIKITEXT_TAG_STRIP},
    {"b", WIKITEXT_TAG_STRIP},
    {"bdi", WIKITEXT_TAG_STRIP},
    {"bdo", WIKITEXT_TAG_STRIP},
    {"big", WIKITEXT_TAG_STRIP},
    {"blockquote", WIKITEXT_TAG_BLOCK},
    {"br", WIKITEXT_TAG_SPACE},
    {"caption", WIKITEXT_TAG_ITEM},
    {"categorytree", WIKITEXT_TAG_RAW},
    {"ce", WIKITEXT_TAG_FORMULA},
    {"center", WIKITEXT_TAG_BLOCK},
    {"chem", WIKITEXT_TAG_FORMULA},
    {"cite", WIKITEXT_TAG_STRIP},
    {"code", WIKITEXT_TAG_CODE},
    {"data", WIKITEXT_TAG_STRIP},
    {"dd", WIKITEXT_TAG_ITEM},
    {"del", WIKITEXT_TAG_STRIP},
    {"dfn", WIKITEXT_TAG_STRIP},
    {"dir", WIKITEXT_TAG_DROP},
    {"div", WIKITEXT_TAG_DROP},
    {"dl", WIKITEXT_TAG_DROP},
    {"dt", WIKITEXT_TAG_ITEM},
    {"dynamicpagelist", WIKITEXT_TAG_RAW},
    {"em", WIKITEXT_TAG_STRIP},
    {"font", WIKITEXT_TAG_STRIP},
    {"form", WIKITEXT_TAG_DROP},
    {"gallery", WIKITEXT_TAG_RAW},
    {"graph", WIKITEXT_TAG_RAW},
    {"h1", WIKITEXT_TAG_BLOCK},
    {"h2", WIKITEXT_TAG_BLOCK},
    {"h3", WIKITEXT_TAG_BLOCK},
    {"h4", WIKITEXT_TAG_BLOCK},
    {"h5", WIKITEXT_TAG_BLOCK},
    {"h6", WIKITEXT_TAG_BLOCK},
    {"hiero", WIKITEXT_TAG_STRIP},
    {"hr", WIKITEXT_TAG_BLOCK},
    {"i", WIKITEXT_TAG_STRIP},
    {"imagemap", WIKITEXT_TAG_RAW},
    {"img", WIKITEXT_TAG_STRIP},
    {"includeonly", WIKITEXT_TAG_RAW},
    {"indicator", WIKITEXT_TAG_RAW},
    {"input", WIKITEXT_TAG_STRIP},
    {"inputbox", WIKITEXT_TAG_RAW},
    {"ins", WIKITEXT_TAG_STRIP},
    {"kbd", WIKITEXT_TAG_STRIP},
    {"langconvert", WIKITEXT_TAG_STRIP},
    {"li", WIKITEXT_TAG_ITEM},
    {"mapframe", WIKITEXT_TAG_RAW},
    {"maplink", WIKITEXT_TAG_RAW},
    {"mark", WIKITEXT_TAG_STRIP},
    {"math", WIKITEXT_TAG_FORMULA},
    {"menu", WIKITEXT_TAG_DROP},
    {"meta", WIKITEXT_TAG_STRIP},
    {"nobr", WIKITEXT_TAG_STRIP},
    {"noinclude", WIKITEXT_TAG_DROP},
    {"nowiki", WIKITEXT_TAG_NOWIKI},
    {"ol", WIKITEXT_TAG_DROP},
    {"onlyinclude", WIKITEXT_TAG_STRIP},
    {"option", WIKITEXT_TAG_ITEM},
    {"p", WIKITEXT_TAG_BLOCK},
    {"phonos", WIKITEXT_TAG_RAW},
    {"plaintext", WIKITEXT_TAG_STRIP},
    {"poem", WIKITEXT_TAG_BLOCK},
    {"pre", WIKITEXT_TAG_RAW},
    {"q", WIKITEXT_TAG_STRIP},
    {"rb", WIKITEXT_TAG_STRIP},
    {"ref", WIKITEXT_TAG_RAW},
    {"references", WIKITEXT_TAG_RAW},
    {"rp", WIKITEXT_TAG_INLINE},
    {"rt", WIKITEXT_TAG_INLINE},
    {"ruby", WIKITEXT_TAG_STRIP},
    {"s", WIKITEXT_TAG_STRIP},
    {"samp", WIKITEXT_TAG_STRIP},
    {"score", WIKITEXT_TAG_RAW},
    {"section", WIKITEXT_TAG_STRIP},
    {"select", WIKITEXT_TAG_DROP},
    {"small", WIKITEXT_TAG_INLINE},
    {"source", WIKITEXT_TAG_RAW},
    {"span", WIKITEXT_TAG_STRIP},
    {"strike", WIKITEXT_TAG_STRIP},
    {"strong", WIKITEXT_TAG_STRIP},
    {"sub", WIKITEXT_TAG_INLINE},
    {"sup", WIKITEXT_TAG_INLINE},
    {"syntaxhighlight", WIKITEXT_TAG_RAW},
    {"table", WIKITEXT_TAG_DROP},
    {"tbody", WIKITEXT_TAG_STRIP},
    {"td", WIKITEXT_TAG_ITEM},
    {"templatedata", WIKITEXT_TAG_RAW},
    {"templatestyles", WIKITEXT_TAG_STRIP},
    {"textarea", WIKITEXT_TAG_DROP},
    {"tfoot", WIKITEXT_TAG_STRIP},
    {"th", WIKITEXT_TAG_ITEM},
    {"thead", WIKITEXT_TAG_STRIP},
    {"time", WIKITEXT_TAG_STRIP},
    {"timeline", WIKITEXT_TAG_RAW},
    {"tr", WIKITEXT_TAG_ITEM},
    {"tt", WIKITEXT_TAG_STRIP},
    {"u", WIKITEXT_TAG_STRIP},
    {"ul", WIKITEXT_TAG_DROP},
    {"var", WIKITEXT_TAG_STRIP},
    {"wbr", WIKITEXT_TAG_STRIP},
};
enum { N_ELEMENTS = sizeof elements / sizeof *elements };
_Static_assert((int)N_ELEMENTS <= (int)WIKITEXT_N_TAGS_MAX, "callers have an array of them");

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static int find(const char name[NAME_BYTES])
{
    int low = 0, high = N_ELEMENTS;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = strcmp(elements[middle].name, name);
        if (order == 0) {
            return middle;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return -1;
}

/* Bytes from text to its first '>', which is before any '<'; 0 if it is not. */
static size_t find_end(const char *text, size_t n)
{
    for (size_t at = 1; at < n && text[at] != '<'; at++) {
        if (text[at] == '>') {
            return at + 1;
        }
    }
    return 0;
}

struct wikitext_tag wikitext_tags_read(const char *text, size_t n)
{
    struct wikitext_tag tag = {.index = -1};
    size_t at = 1;
    tag.closes = at < n && text[at] == '/';
    at += tag.closes;
    while (tag.closes && at < n && text[at] == ' ' && at < NAME_BYTES) {
        at++;
    }
    char name[NAME_BYTES] = "";
    size_t length = 0;
    while (at < n && length < NAME_BYTES - 1 && is_name(text[at])) {
        name[length++] = (char)(text[at] >= 'A' && text[at] <= 'Z' ? text[at] | 0x20 : text[at]);
        at++;
    }
    bool ends = at == n || (!is_name(text[at]) && text[at] != '-' && text[at] != '@' && text[at] != ':');
    tag.index = length > 0 && ends ? find(name) : -1;
    if (tag.index < 0) {
        return tag;
    }
    tag.kind = (enum wikitext_tag_kind)elements[tag.index].kind;
    tag.name = elements[tag.index].name;
    tag.n_name = at;
    tag.n = find_end(text, n);
    size_t last = tag.n == 0 ? 0 : tag.n - 2;
    while (last > at && text[last] == ' ') {
        last--;
    }
    tag.is_empty = tag.n > 0 && last >= at && text[last] == '/';
    return tag;
}

bool wikitext_tags_is_end(const char *text, size_t n, const char *name, size_t *tag_bytes)
{
    size_t length = strlen(name), at = 2;
    if (n < 2 || text[0] != '<' || text[1] != '/') {
        return false;
    }
    while (at < n && text[at] == ' ' && at < NAME_BYTES) {
        at++;
    }
    if (n - at <= length || strncasecmp(text + at, name, length) != 0) {
        return false;
    }
    at += length;
    while (at < n && text_line_is_one_of(text[at], " \t\n")) {
        at++;
    }
    *tag_bytes = at + 1;
    return at < n && text[at] == '>';
}
