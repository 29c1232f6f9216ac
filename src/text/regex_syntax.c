#include "text/regex_syntax.h"

#include <string.h>

/* Unicode's White_Space, and all other characters, as the inside of a class. */
static const char spaces[] =
    "\\x09-\\x0D\\x20\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";
static const char others[] = "\\x00-\\x08\\x0E-\\x1F\\x21-\\x{84}\\x{86}-\\x{9F}\\x{A1}-\\x{167F}\\x{1681}-"
                             "\\x{1FFF}\\x{200B}-\\x{2027}"
                             "\\x{202A}-\\x{202E}\\x{2030}-\\x{205E}\\x{2060}-\\x{2FFF}\\x{3001}-\\x{10FFFF}";
static const char word[] = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
static const char hex_digits[] = "0-9A-Fa-f";

/* The pattern and the place in it that is read next. */
struct reader {
    const char *text;
    size_t n, at;
    bool in_class;
    const char *source;
};

static struct status refuse(const struct reader *r, const char *form)
{
    size_t n = r->n > 200 ? 200 : r->n;
    return status_error(STATUS_DATA,
                        "%s: kiln does not read the regular expression '%.*s': at byte %zu it has %s, which "
                        "could give other ids",
                        r->source, (int)n, r->text, r->at, form);
}

static char peek(const struct reader *r, size_t ahead)
{
    return r->at + ahead < r->n ? r->text[r->at + ahead] : '\0';
}

static void copy(struct reader *r, struct buf *out, size_t n)
{
    buf_append(out, r->text + r->at, n);
    r->at += n;
}

static void put_class(const struct reader *r, struct buf *out, const char *inside)
{
    buf_printf(out, r->in_class ? "%s" : "[%s]", inside);
}

/* \p{...}: one or two letters are a general category, longer words are a category or a script. */
static struct status read_property(struct reader *r, struct buf *out)
{
    static const char *const categories[][2] = {{"Letter", "L"},      {"Mark", "M"},   {"Number", "N"},
                                                {"Punctuation", "P"}, {"Symbol", "S"}, {"Separator", "Z"},
                                                {"Other", "C"}};
    const char *begin = r->text + r->at + 3;
    const char *end = peek(r, 2) == '{' ? memchr(begin, '}', r->n - r->at - 3) : NULL;
    if (end == NULL) {
        return refuse(r, "\\p without {...}");
    }
    int n = (int)(end - begin), skipped = n > 0 && *begin == '^';
    bool negated = (peek(r, 1) == 'P') != (skipped == 1);
    begin += skipped;
    n -= skipped;
    const char *name = NULL;
    for (size_t i = 0; i < sizeof categories / sizeof categories[0]; i++) {
        bool is = (int)strlen(categories[i][0]) == n && memcmp(categories[i][0], begin, (size_t)n) == 0;
        name = is ? categories[i][1] : name;
    }
    buf_printf(out, "\\%c{%s", negated ? 'P' : 'p', n > 2 && name == NULL ? "sc:" : "");
    buf_append(out, name != NULL ? name : begin, name != NULL ? 1 : (size_t)n);
    buf_putc(out, '}');
    r->at = (size_t)(end - r->text) + 1;
    return status_ok();
}

static struct status read_code_point(struct reader *r, struct buf *out)
{
    enum { DIGITS = 4 };
    size_t n = 0;
    while (n < DIGITS && peek(r, 2 + n) != '\0' && strchr("0123456789ABCDEFabcdef", peek(r, 2 + n)) != NULL) {
        n++;
    }
    if (n < DIGITS) {
        return refuse(r, "\\u without four digits");
    }
    buf_puts(out, "\\x{");
    r->at += 2;
    copy(r, out, n);
    buf_putc(out, '}');
    return status_ok();
}

/* A backslash and what it begins. */
static struct status read_escape(struct reader *r, struct buf *out)
{
    char c = peek(r, 1);
    switch (c) {
    case 's': put_class(r, out, spaces); break;
    case 'S': put_class(r, out, others); break;
    case 'w': put_class(r, out, word); break;
    case 'h': put_class(r, out, hex_digits); break;
    case 'v': buf_puts(out, "\\x0B"); break;
    case 'p':
    case 'P': return read_property(r, out);
    case 'u': return read_code_point(r, out);
    case 'd':
    case 'D':
    case 'r':
    case 'n':
    case 't':
    case 'f':
    case 'a':
    case 'e':
    case 'x': copy(r, out, 2); return status_ok();
    default:
        if (c == '\0' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) {
            return refuse(r, "an escape of another kind");
        }
        if ((unsigned char)c >= 0x80) { /* a character that needs none */
            r->at++;
            return status_ok();
        }
        copy(r, out, 2);
        return status_ok();
    }
    r->at += 2;
    return status_ok();
}

/* (?: and the like. */
static struct status read_group(struct reader *r, struct buf *out)
{
    static const char *const known[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:"};
    if (peek(r, 1) != '?') {
        copy(r, out, 1);
        return status_ok();
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t n = strlen(known[i]);
        if (n <= r->n - r->at && memcmp(known[i], r->text + r->at, n) == 0) {
            copy(r, out, n);
            return status_ok();
        }
    }
    return refuse(r, "a group of another kind");
}

/* {2,3}; a sign after it means something else to each. */
static struct status read_interval(struct reader *r, struct buf *out)
{
    size_t n = 1;
    while (r->at + n < r->n && strchr("0123456789,", r->text[r->at + n]) != NULL) {
        n++;
    }
    char after = peek(r, n + 1);
    if (peek(r, n) != '}' || n == 1 || peek(r, 1) == ',' || after == '+' || after == '?') {
        return refuse(r, "an interval of another kind");
    }
    copy(r, out, n + 1);
    return status_ok();
}

static struct status open_class(struct reader *r, struct buf *out)
{
    size_t n = peek(r, 1) == '^' ? 2 : 1;
    if (peek(r, n) == ']') {
        return refuse(r, "a class that begins with ]");
    }
    copy(r, out, n);
    r->in_class = true;
    return status_ok();
}

static struct status read_in_class(struct reader *r, struct buf *out)
{
    char c = peek(r, 0);
    if (c == '[' || (c == '&' && peek(r, 1) == '&')) {
        return refuse(r, "a class inside a class");
    }
    r->in_class = c != ']';
    copy(r, out, 1);
    return status_ok();
}

static struct status read_one(struct reader *r, struct buf *out)
{
    char c = peek(r, 0);
    if (c == '\\') {
        return read_escape(r, out);
    }
    if (r->in_class) {
        return read_in_class(r, out);
    }
    switch (c) {
    case '[': return open_class(r, out);
    case '(': return read_group(r, out);
    case '{': return read_interval(r, out);
    case '^':
    case '$': return refuse(r, "an anchor");
    default: copy(r, out, 1); return status_ok();
    }
}

struct status regex_syntax_translate(struct buf *out, const char *pattern, size_t n, const char *source)
{
    struct reader r = {.text = pattern, .n = n, .source = source};
    while (r.at < n) {
        TRY(read_one(&r, out));
    }
    return r.in_class ? refuse(&r, "a class without an end") : buf_status(out);
}

void regex_syntax_quote(struct buf *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool is_sign = text[i] != '\0' && strchr("\\^$.[|()?*+{}]-#", text[i]) != NULL;
        buf_append(out, "\\", is_sign);
        buf_putc(out, text[i]);
    }
}
