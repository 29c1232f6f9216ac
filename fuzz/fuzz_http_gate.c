/* fuzz_http_gate: any bytes as the head of a request.  Input: lines; the first is method, target and version
 * between blanks, the others are fields, name and value with a colon between.  What is let in has one host of
 * the server's, one length of its body, a path that begins with a slash, and a key. */
#include "core/status.h"
#include "http/http_gate.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MOST_FIELDS = 64 };

static const char *const hosts[] = {"kiln.example", "other.example:8080"};
static const char *const origins[] = {"https://page.example"};
static const char *const keys[] = {"secret", "another"};

/* Cuts text at the first `separator`; returns what is behind it, "" if there is none. */
static char *cut(char *text, char separator)
{
    char *end = strchr(text, separator);
    if (end == NULL) {
        return text + strlen(text);
    }
    *end = '\0';
    return end + 1;
}

static int count(const struct http_head *h, const char *name)
{
    int found = 0;
    for (int i = 0; i < h->n_fields; i++) {
        found += strcasecmp(h->fields[i].name, name) == 0;
    }
    return found;
}

static void check_head(const struct http_head *h)
{
    CHECK(h->path[0] == '/' || (strcmp(h->path, "*") == 0 && strcmp(h->method, "OPTIONS") == 0), "the path");
    CHECK(strlen(h->path) <= strlen(h->target) + 1, "a path longer than its target");
    CHECK(count(h, "Host") + (strcmp(h->version, "HTTP/1.0") == 0) >= 1 && count(h, "Host") <= 1, "hosts");
    CHECK(count(h, "Content-Length") + count(h, "Transfer-Encoding") <= 1, "two lengths");
    CHECK((h->body_bytes < 0) == (count(h, "Transfer-Encoding") == 1), "chunked");
    CHECK(h->body_bytes <= 0 || count(h, "Content-Length") == 1, "a body without a length");
    CHECK(strpbrk(h->authority, "/@ ,?#") == NULL, "the authority");
    for (int i = 0; i < h->n_fields; i++) {
        CHECK(strpbrk(h->fields[i].name, " \t:") == NULL && h->fields[i].name[0] != '\0', "a name");
        CHECK(strpbrk(h->fields[i].value, "\r\n") == NULL, "a value of several lines");
    }
}

static void check_admitted(const struct http_gate *g, const struct http_head *h)
{
    const char *origin = http_head_find(h, "Origin"), *key = http_head_find(h, "X-Api-Key");
    const char *bearer = http_head_find(h, "Authorization");
    bool is_host = h->authority[0] == '\0' || strncasecmp(h->authority, hosts[0], strlen(hosts[0])) == 0 ||
                   strcasecmp(h->authority, hosts[1]) == 0;
    CHECK(is_host, "another host");
    CHECK(origin == NULL || http_gate_origin(g, h) != NULL ||
              strcasecmp(strstr(origin, "://") + 3, h->authority) == 0,
          "another origin");
    if (strcmp(h->method, "OPTIONS") != 0) {
        CHECK((key != NULL && (strcmp(key, keys[0]) == 0 || strcmp(key, keys[1]) == 0)) ||
                  (bearer != NULL && (strstr(bearer, keys[0]) != NULL || strstr(bearer, keys[1]) != NULL)),
              "no key");
        CHECK(h->body_bytes <= (int64_t)g->max_body_bytes, "a body over the limit");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct http_field fields[MOST_FIELDS];
    struct http_gate gate = {hosts, 2, false, origins, 1, keys, 2, 1000};
    char *text = malloc(n + 1);
    CHECK(text != NULL, "memory");
    memcpy(text, data, n);
    text[n] = '\0';
    struct http_head h = {.method = text, .fields = fields};
    char *rest = cut(text, '\n'), *target = cut(text, ' ');
    h.target = target;
    h.version = cut(target, ' ');
    for (; rest[0] != '\0' && h.n_fields < MOST_FIELDS; h.n_fields++) {
        char *name = rest;
        rest = cut(rest, '\n');
        fields[h.n_fields] = (struct http_field){.name = name, .value = cut(name, ':')};
    }
    char *room = malloc(strlen(h.target) + 3);
    CHECK(room != NULL, "memory");
    if (http_head_read(&h, room).status == 0) {
        check_head(&h);
        if (http_gate_check(&gate, &h, false).status == 0) {
            check_admitted(&gate, &h);
        }
    }
    free(room);
    free(text);
    return 0;
}
