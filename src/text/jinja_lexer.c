#include "text/jinja_lexer.h"

#include "core/array.h"
#include "text/jinja_text.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

void jinja_lexer_fini(struct jinja_lexer *l)
{
    for (int i = 0; i < l->n; i++) {
        json_decref(l->tokens[i].value);
    }
    free(l->tokens);
    buf_fini(&l->source);
    *l = (struct jinja_lexer){0};
}

static struct status fail(const struct jinja_lexer *l, const char *what)
{
    return status_error(STATUS_DATA, "line %d: %s", l->line, what);
}

static bool starts(const struct jinja_lexer *l, const char *with)
{
    size_t n = strlen(with);
    return l->source.n - l->at >= n && memcmp(l->source.data + l->at, with, n) == 0;
}

static char here(const struct jinja_lexer *l)
{
    return l->at < l->source.n ? l->source.data[l->at] : '\0';
}

static void skip(struct jinja_lexer *l, size_t n)
{
    for (; n > 0; n--) {
        l->line += l->source.data[l->at++] == '\n';
    }
}

/* Appends a token of the next n bytes and moves past them. */
static struct status push(struct jinja_lexer *l, enum jinja_token_kind kind, size_t n, json_t *value)
{
    if (!ARRAY_RESERVE(l->tokens, l->capacity, l->n + 1)) {
        json_decref(value);
        return status_error(STATUS_MEMORY, "out of memory for a template");
    }
    l->tokens[l->n++] = (struct jinja_token){kind, l->line, buf_text(&l->source) + l->at, n, value};
    skip(l, n);
    return status_ok();
}

/* ---- outside of tags ---- */

/* Copies a text with "\n" as the line end; one line end after the last line is left out. */
static struct status normalize(struct buf *to, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool is_first_of_two = text[i] == '\r' && i + 1 < n && text[i + 1] == '\n';
        if (!is_first_of_two) {
            buf_putc(to, text[i] == '\r' ? '\n' : text[i]);
        }
    }
    to->n -= to->n > 0 && to->data[to->n - 1] == '\n';
    return buf_status(to);
}

/* The number of bytes to the next "{{", "{%" or "{#", or to the end. */
static size_t text_bytes_to_tag(const struct jinja_lexer *l)
{
    const char *text = buf_text(&l->source);
    for (size_t at = l->at; at + 1 < l->source.n; at++) {
        if (text[at] == '{' && (text[at + 1] == '{' || text[at + 1] == '%' || text[at + 1] == '#')) {
            return at - l->at;
        }
    }
    return l->source.n - l->at;
}

/* The number of bytes that are kept of the text before a tag: "-" removes the white space before it, and
 * without "+" a tag that is no print removes that of its line. */
static size_t text_bytes_kept(const struct jinja_lexer *l, size_t n)
{
    const char *text = buf_text(&l->source) + l->at, *tag = text + n;
    size_t left = l->source.n - l->at - n, n_space = jinja_text_right(text, n, NULL, 0);
    char sign = left > 2 ? tag[2] : '\0';
    if (left < 2 || n_space == 0) {
        return n;
    }
    if (sign == '-') {
        return n - n_space;
    }
    size_t begin = n;
    while (begin > 0 && text[begin - 1] != '\n') {
        begin--;
    }
    bool is_alone = n - begin <= n_space && (begin > 0 || l->begins_line);
    return sign != '+' && tag[1] != '{' && is_alone ? begin : n;
}

/* Skips the end of a tag, of `n` bytes after its sign: "-" removes the white space after it, and without "+"
 * a tag that is no print removes the end of the line. */
static void skip_end(struct jinja_lexer *l, char sign, size_t n, bool takes_line)
{
    skip(l, n);
    if (sign == '-') {
        skip(l, jinja_text_left(buf_text(&l->source) + l->at, l->source.n - l->at, NULL, 0));
    } else if (sign != '+' && takes_line && here(l) == '\n') {
        skip(l, 1);
    }
    l->begins_line = buf_text(&l->source)[l->at - 1] == '\n';
}

static struct status skip_comment(struct jinja_lexer *l)
{
    skip(l, 2);
    skip(l, here(l) == '-' || here(l) == '+');
    const char *text = buf_text(&l->source) + l->at;
    size_t left = l->source.n - l->at, n = jinja_text_find(text, left, "#}", 2);
    if (n == left) {
        return fail(l, "a comment has no end");
    }
    char sign = n > 0 ? text[n - 1] : '\0';
    skip(l, n);
    skip_end(l, sign, 2, true);
    return status_ok();
}

/* ---- in tags ---- */

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct status read_number(struct jinja_lexer *l)
{
    int64_t value = 0;
    size_t n = 0;
    const char *text = l->source.data + l->at;
    for (; l->at + n < l->source.n && (is_digit(text[n]) || text[n] == '_'); n++) {
        if (text[n] != '_' && (__builtin_mul_overflow(value, 10, &value) ||
                               __builtin_add_overflow(value, text[n] - '0', &value))) {
            return fail(l, "a number is too large");
        }
    }
    bool goes_on = l->at + n < l->source.n && (is_name(text[n]) || text[n] == '.');
    json_t *number = goes_on ? NULL : json_integer(value);
    return goes_on ? fail(l, "numbers that are not whole are not read by kiln")
                   : push(l, JINJA_TOKEN_VALUE, n, number);
}

/* Reads `digits` hexadecimal digits after \x, \u or \U. */
static bool read_code(struct buf *to, const char *text, size_t n, size_t digits)
{
    uint32_t c = 0;
    char bytes[UTF8_MAX_BYTES];
    if (n < digits) {
        return false;
    }
    for (size_t i = 0; i < digits; i++) {
        char d = text[i];
        int digit = is_digit(d)            ? d - '0'
                    : d >= 'a' && d <= 'f' ? d - 'a' + 10
                    : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                           : -1;
        if (digit < 0) {
            return false;
        }
        c = c << 4 | (uint32_t)digit;
    }
    if (c == 0 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
        return false;
    }
    buf_append(to, bytes, (size_t)utf8_write(bytes, c));
    return true;
}

/* Reads Python's escape at text, after the backslash; returns its bytes, or 0 for an escape that kiln does
 * not read. */
static size_t read_escape(struct buf *to, const char *text, size_t n)
{
    static const char letters[] = "\\'\"abfnrtv", meant[] = "\\'\"\a\b\f\n\r\t\v";
    const char *letter = strchr(letters, text[0]);
    size_t digits = text[0] == 'x' ? 2 : text[0] == 'u' ? 4 : text[0] == 'U' ? 8 : 0;
    if (text[0] == '\n') {
        return 1;
    }
    if (letter != NULL) {
        buf_putc(to, meant[letter - letters]);
        return 1;
    }
    if (digits > 0) {
        return read_code(to, text + 1, n - 1, digits) ? 1 + digits : 0;
    }
    if (is_digit(text[0]) || text[0] == 'N' || (unsigned char)text[0] >= 0x80) {
        return 0;
    }
    buf_putc(to, '\\'); /* no escape: both stay */
    buf_putc(to, text[0]);
    return 1;
}

static struct status read_string(struct jinja_lexer *l)
{
    const char *text = l->source.data + l->at;
    size_t left = l->source.n - l->at, n = 1;
    struct buf value = {0};
    while (n < left && text[n] != text[0]) {
        if (text[n] != '\\') {
            buf_putc(&value, text[n++]);
            continue;
        }
        size_t bytes = n + 1 < left ? read_escape(&value, text + n + 1, left - n - 1) : 0;
        if (bytes == 0) {
            buf_fini(&value);
            return fail(l, "a string has an escape that is not read by kiln");
        }
        n += 1 + bytes;
    }
    json_t *string = n < left ? json_stringn(buf_text(&value), value.n) : NULL;
    bool ok = string != NULL && !value.failed;
    buf_fini(&value);
    if (n < left && ok) {
        return push(l, JINJA_TOKEN_VALUE, n + 1, string);
    }
    json_decref(string);
    return n < left ? status_error(STATUS_MEMORY, "out of memory for a template")
                    : fail(l, "a string has no end");
}

static struct status read_operator(struct jinja_lexer *l, int *depth)
{
    static const char *const longer[] = {"==", "!=", "<=", ">=", "**", "//"};
    static const char single[] = "+-*/%~<>=.,:|()[]{}";
    char c = here(l);
    for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) {
        if (starts(l, longer[i])) {
            return push(l, JINJA_TOKEN_OPERATOR, 2, NULL);
        }
    }
    FAIL_IF(c == '\0' || strchr(single, c) == NULL, STATUS_DATA,
            "line %d: the character '%c' is none of an expression", l->line, c >= ' ' && c <= '~' ? c : '?');
    *depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    return push(l, JINJA_TOKEN_OPERATOR, 1, NULL);
}

/* The bytes of the end of this tag with its sign; 0: it does not end here. */
static size_t end_bytes(const struct jinja_lexer *l, bool is_print)
{
    const char *const ends[2][3] = {{"%}", "-%}", "+%}"}, {"}}", "-}}", "}}"}};
    for (int i = 0; i < 3; i++) {
        if (starts(l, ends[is_print][i])) {
            return strlen(ends[is_print][i]);
        }
    }
    return 0;
}

/* Reads a tag to its end, which brackets hide: "}}" may end two dicts. */
static struct status read_tag(struct jinja_lexer *l, bool is_print)
{
    int depth = 0;
    size_t n;
    TRY(push(l, is_print ? JINJA_TOKEN_PRINT_BEGIN : JINJA_TOKEN_TAG_BEGIN, 2, NULL));
    skip(l, here(l) == '-' || here(l) == '+');
    for (;;) {
        skip(l, jinja_text_left(buf_text(&l->source) + l->at, l->source.n - l->at, NULL, 0));
        if (l->at == l->source.n) {
            return fail(l, "a tag has no end");
        }
        char c = here(l);
        if (depth <= 0 && (n = end_bytes(l, is_print)) > 0) {
            break;
        }
        if (is_digit(c)) {
            TRY(read_number(l));
        } else if (is_name(c)) {
            size_t length = 1;
            while (l->at + length < l->source.n && is_name(l->source.data[l->at + length])) {
                length++;
            }
            TRY(push(l, JINJA_TOKEN_NAME, length, NULL));
        } else {
            TRY(c == '\'' || c == '"' ? read_string(l) : read_operator(l, &depth));
        }
    }
    char sign = n == 3 ? here(l) : '\0';
    TRY(push(l, is_print ? JINJA_TOKEN_PRINT_END : JINJA_TOKEN_TAG_END, n - 2, NULL));
    skip_end(l, sign, 2, !is_print);
    return status_ok();
}

struct status jinja_lexer_read(struct jinja_lexer *l, const char *text, size_t n)
{
    *l = (struct jinja_lexer){.line = 1, .begins_line = true};
    if (utf8_find_invalid(text, n) < n || memchr(text, '\0', n) != NULL) {
        return fail(l, "it is no text in UTF-8");
    }
    TRY(normalize(&l->source, text, n));
    while (l->at < l->source.n) {
        size_t bytes = text_bytes_to_tag(l), kept = text_bytes_kept(l, bytes);
        if (kept > 0) {
            TRY(push(l, JINJA_TOKEN_TEXT, kept, NULL));
        }
        skip(l, bytes - kept);
        if (starts(l, "{#")) {
            TRY(skip_comment(l));
        } else if (l->at < l->source.n) {
            TRY(read_tag(l, starts(l, "{{")));
        }
    }
    return push(l, JINJA_TOKEN_END, 0, NULL);
}
