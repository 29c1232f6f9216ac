#include "http/http_gate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* RFC 9110 section 5.6.2, and what a host's name and an IPv6 address are made of. */
static const char token_marks[] = "!#$%&'*+-.^_`|~";
static const char host_marks[] = "-._~";
static const char address_marks[] = ":.";

static const struct http_refusal let_in = {0};

__attribute__((format(printf, 2, 3))) static struct http_refusal refuse(int status, const char *format, ...)
{
    struct http_refusal r = {.status = status};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r.message, sizeof r.message, format, arguments);
    va_end(arguments);
    return r;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alphanumeric(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* How many bytes from text on are letters, digits or of `marks`. */
static size_t span(const char *text, const char *marks)
{
    size_t n = 0;
    while (is_alphanumeric(text[n]) || (text[n] != '\0' && strchr(marks, text[n]) != NULL)) {
        n++;
    }
    return n;
}

static bool is_token(const char *text)
{
    return text[0] != '\0' && text[span(text, token_marks)] == '\0';
}

/* Visible characters of any encoding, blanks and tabs (RFC 9110 section 5.5). */
static bool is_value(const char *text)
{
    for (; *text != '\0'; text++) {
        if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f) {
            return false;
        }
    }
    return true;
}

static int count_fields(const struct http_head *h, const char *name)
{
    int n = 0;
    for (int i = 0; i < h->n_fields; i++) {
        n += strcasecmp(h->fields[i].name, name) == 0;
    }
    return n;
}

const char *http_head_find(const struct http_head *h, const char *name)
{
    for (int i = 0; i < h->n_fields; i++) {
        if (strcasecmp(h->fields[i].name, name) == 0) {
            return h->fields[i].value;
        }
    }
    return NULL;
}

/* ---- the head ---- */

/* "host", "host:port", "[address of IPv6]" with or without a port. */
static bool is_authority(const char *text)
{
    size_t n = span(text, host_marks);
    if (text[0] == '[') {
        n = 1 + span(text + 1, address_marks);
        if (n == 1 || text[n++] != ']') {
            return false;
        }
    }
    if (n == 0 || text[n] == '\0') {
        return n > 0;
    }
    return text[n] == ':' && strspn(text + n + 1, "0123456789") == strlen(text + n + 1) &&
           strlen(text + n + 1) <= 5 && atoi(text + n + 1) <= 65535;
}

static struct http_refusal read_fields(const struct http_head *h)
{
    for (int i = 0; i < h->n_fields; i++) {
        if (!is_token(h->fields[i].name)) {
            return refuse(400, "the name of a header is not one");
        }
        if (!is_value(h->fields[i].value)) {
            return refuse(400, "the header %.64s has a control character", h->fields[i].name);
        }
    }
    return let_in;
}

/* Finds the end of the body: RFC 9112 section 6. Both ways to say it, or one of them twice, are refused, and
 * so is a Content-Length that is anything but digits. */
static struct http_refusal read_length(struct http_head *h)
{
    const char *length = http_head_find(h, "Content-Length"),
               *coding = http_head_find(h, "Transfer-Encoding");
    h->body_bytes = 0;
    if (count_fields(h, "Content-Length") + count_fields(h, "Transfer-Encoding") > 1) {
        return refuse(400, "the length of the body is given twice, by Content-Length or Transfer-Encoding");
    }
    if (coding != NULL) {
        size_t n = strlen(coding);
        bool has_more =
            n > 9 && strchr(", \t", coding[n - 8]) != NULL && strcasecmp(coding + n - 7, "chunked") == 0;
        h->body_bytes = -1;
        return strcmp(h->version, "HTTP/1.0") == 0  ? refuse(400, "HTTP/1.0 has no Transfer-Encoding")
               : strcasecmp(coding, "chunked") == 0 ? let_in
               : has_more ? refuse(501, "a Transfer-Encoding other than chunked is not known here")
                          : refuse(400, "the Transfer-Encoding is not 'chunked'");
    }
    if (length != NULL) {
        size_t n = strlen(length);
        if (n == 0 || strspn(length, "0123456789") != n || (length[0] == '0' && n > 1)) {
            return refuse(400, "the Content-Length is no number");
        }
        h->body_bytes = n > 18 ? INT64_MAX : strtoll(length, NULL, 10);
    }
    return let_in;
}

static struct http_refusal read_host(struct http_head *h)
{
    int n = count_fields(h, "Host");
    const char *host = http_head_find(h, "Host");
    if (n > 1 || (n == 0 && strcmp(h->version, "HTTP/1.0") != 0)) {
        return refuse(400, n > 1 ? "more than one Host" : "no Host");
    }
    h->authority = host != NULL ? host : "";
    return host != NULL && !is_authority(host) ? refuse(400, "the Host is not one, such as name:8080")
                                               : let_in;
}

static int hex_value(char c)
{
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes from[0..n) once; returns where the text ends.  NULL: an escape is wrong, or hides a NUL. */
static char *decode(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = from[i];
        if (c == '%') {
            int high = n - i > 2 ? hex_value(from[i + 1]) : -1, low = high >= 0 ? hex_value(from[i + 2]) : -1;
            if (low < 0 || high * 16 + low == 0) {
                return NULL;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return to;
}

/* The target: "/path?query", the same behind "http://host", or "*" of OPTIONS (RFC 9112 section 3.2). */
static struct http_refusal read_target(struct http_head *h, char *room)
{
    const char *target = h->target;
    for (const char *p = target; *p != '\0'; p++) {
        if (*p <= ' ' || *p > '~' || *p == '#') {
            return refuse(400, "the request's target has a character that must be escaped");
        }
    }
    size_t scheme = strncasecmp(target, "http://", 7) == 0    ? 7
                    : strncasecmp(target, "https://", 8) == 0 ? 8
                                                              : 0;
    size_t host = scheme > 0 ? strcspn(target + scheme, "/?") : 0;
    const char *rest = target + scheme + host;
    size_t n = strcspn(rest, "?");
    bool is_star = strcmp(target, "*") == 0 && strcmp(h->method, "OPTIONS") == 0;
    if (!is_star && rest[0] != '/' && (scheme == 0 || (rest[0] != '\0' && rest[0] != '?'))) {
        return refuse(400, "the request's target is no path");
    }
    char *end = n > 0 ? decode(room, rest, n) : decode(room, "/", 1);
    if (end == NULL) {
        return refuse(400, "the path has a %% without two hexadecimal digits, or %%00");
    }
    h->path = room;
    h->query = rest[n] == '?' ? rest + n + 1 : "";
    if (scheme > 0) {
        h->authority = memcpy(end + 1, target + scheme, host);
        end[1 + host] = '\0';
        if (!is_authority(h->authority)) {
            return refuse(400, "the host of the request's target is not one");
        }
    }
    return let_in;
}

static struct http_refusal read_method(const struct http_head *h)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(h->method, known[i]) == 0) {
            return let_in;
        }
    }
    return is_token(h->method) ? refuse(501, "the method %.32s is not known here", h->method)
                               : refuse(400, "the method is not one");
}

static struct http_refusal read_expectation(const struct http_head *h)
{
    const char *expect = http_head_find(h, "Expect");
    return expect != NULL && strcmp(h->version, "HTTP/1.0") != 0 && strcasecmp(expect, "100-continue") != 0
               ? refuse(417, "the only Expect that is known here is 100-continue")
               : let_in;
}

struct http_refusal http_head_read(struct http_head *h, char *room)
{
    h->path = h->query = h->authority = "";
    struct http_refusal r =
        strncmp(h->version, "HTTP/1.", 7) != 0 || !is_digit(h->version[7]) || h->version[8] != '\0'
            ? refuse(400, "the version of HTTP is not one")
            : read_fields(h);
    r = r.status == 0 ? read_length(h) : r;
    r = r.status == 0 ? read_host(h) : r;
    r = r.status == 0 ? read_method(h) : r;
    r = r.status == 0 ? read_target(h, room) : r;
    return r.status == 0 ? read_expectation(h) : r;
}

/* ---- who may ask ---- */

static bool is_loopback_name(const char *host, size_t n)
{
    static const char *const names[] = {"localhost", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (n == strlen(names[i]) && strncasecmp(host, names[i], n) == 0) {
            return true;
        }
    }
    return strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == n;
}

/* How many bytes of an authority come before its port. */
static size_t host_bytes(const char *authority)
{
    return authority[0] == '[' ? strcspn(authority, "]") + 1 : strcspn(authority, ":");
}

static bool is_known_host(const struct http_gate *g, const char *authority)
{
    size_t n = host_bytes(authority);
    for (int i = 0; i < g->n_hosts; i++) {
        size_t known = host_bytes(g->hosts[i]);
        bool any_port = g->hosts[i][known] == '\0';
        if (known == n && strncasecmp(authority, g->hosts[i], n) == 0 &&
            (any_port || strcmp(authority + n, g->hosts[i] + n) == 0)) {
            return true;
        }
    }
    return authority[0] == '\0' || (g->n_hosts == 0 && (!g->is_loopback || is_loopback_name(authority, n)));
}

/* The server's own pages: "http://" or, behind a proxy, "https://", and the authority. */
static bool is_own_origin(const struct http_head *h, const char *origin)
{
    const char *colon = strstr(origin, "://");
    size_t scheme = colon != NULL ? (size_t)(colon - origin) : 0;
    return ((scheme == 4 && strncmp(origin, "http", 4) == 0) ||
            (scheme == 5 && strncmp(origin, "https", 5) == 0)) &&
           strcasecmp(colon + 3, h->authority) == 0;
}

const char *http_gate_origin(const struct http_gate *g, const struct http_head *h)
{
    const char *origin = http_head_find(h, "Origin");
    for (int i = 0; origin != NULL && i < g->n_origins; i++) {
        if (strcmp(g->origins[i], "*") == 0 || strcasecmp(g->origins[i], origin) == 0) {
            return origin;
        }
    }
    return NULL;
}

/* In a time that says nothing of where the texts differ. */
static bool is_same_key(const char *key, const char *sent, size_t n_sent)
{
    size_t n = strlen(key);
    unsigned differs = n != n_sent;
    for (size_t i = 0; i < n_sent; i++) {
        differs |= (unsigned char)sent[i] ^ (n > 0 ? (unsigned char)key[i % n] : 1u);
    }
    return differs == 0;
}

static bool has_key(const struct http_gate *g, const struct http_head *h)
{
    const char *sent = http_head_find(h, "Authorization");
    if (sent != NULL && strncasecmp(sent, "Bearer ", 7) == 0) {
        sent += 7 + strspn(sent + 7, " ");
    } else {
        sent = http_head_find(h, "X-Api-Key");
    }
    bool has = false;
    for (int i = 0; sent != NULL && i < g->n_keys; i++) {
        has = is_same_key(g->keys[i], sent, strlen(sent)) || has;
    }
    return has;
}

/* application/json, with or without parameters. */
static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    size_t n = sizeof json - 1;
    return type != NULL && strncasecmp(type, json, n) == 0 && strchr("; \t", type[n]) != NULL;
}

struct http_refusal http_gate_check(const struct http_gate *g, const struct http_head *h, bool is_open)
{
    const char *origin = http_head_find(h, "Origin");
    if (!is_known_host(g, h->authority)) {
        return refuse(403, "the server is not called '%.64s'; its owner can add the name", h->authority);
    }
    if (origin != NULL && !is_own_origin(h, origin) && http_gate_origin(g, h) == NULL) {
        return refuse(403, "pages of '%.64s' may not ask this server; its owner can add the origin", origin);
    }
    if (strcmp(h->method, "OPTIONS") == 0) {
        return let_in;
    }
    if (g->n_keys > 0 && !is_open && !has_key(g, h)) {
        return refuse(401, "a key must be sent, as 'Authorization: Bearer KEY' or 'X-Api-Key: KEY'");
    }
    if (strcmp(h->method, "POST") == 0 && !is_json(http_head_find(h, "Content-Type"))) {
        return refuse(415, "the Content-Type must be application/json");
    }
    if (h->body_bytes > 0 && (uint64_t)h->body_bytes > g->max_body_bytes) {
        return refuse(413, "the body has %lld bytes, the limit is %zu", (long long)h->body_bytes,
                      g->max_body_bytes);
    }
    return let_in;
}
