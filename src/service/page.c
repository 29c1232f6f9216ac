/* page: the page of a server for people, at `GET /`.  Its files lie in the program and ask for nothing from
 * elsewhere: the policy that goes with them forbids it (Content Security Policy Level 3).  They need no key;
 * what they ask for does. */
#include "core/hash.h"
#include "service/endpoints.h"

#include <string.h>

/* Files embedded by cmake/embed.cmake; charts look and react to the pointer as in a run's report. */
extern const char page_html[], page_css[], page_svg[], page_js[], page_tasks_js[], page_watch_js[];
extern const char chart_css[], chart_js[];

static const char script_type[] = "text/javascript; charset=utf-8", style_type[] = "text/css; charset=utf-8";

/* The files besides the page itself. */
#define FILES(X)                                                                                             \
    X("/page.css", style_type, page_css)                                                                     \
    X("/chart.css", style_type, chart_css)                                                                   \
    X("/page.svg", "image/svg+xml", page_svg)                                                                \
    X("/page.js", script_type, page_js)                                                                      \
    X("/page_tasks.js", script_type, page_tasks_js)                                                          \
    X("/page_watch.js", script_type, page_watch_js)                                                          \
    X("/chart.js", script_type, chart_js)
#define FILE_ROW(PATH, TYPE, TEXT)     {PATH, TYPE, TEXT},
#define ENDPOINT_ROW(PATH, TYPE, TEXT) {"GET", PATH, &dialect_hub, answer_file, .is_open = true},

static const struct page_file {
    const char *path, *type, *text;
} files[] = {{"/", "text/html; charset=utf-8", page_html}, FILES(FILE_ROW)};

static const struct page_file *find_file(const char *path)
{
    size_t i = 0;
    while (strcmp(files[i].path, path) != 0) {
        i++; /* each path has an endpoint below */
    }
    return &files[i];
}

/* A browser keeps a file, and asks each time whether it is still that of this program. */
static void answer_file(struct call *c)
{
    const struct page_file *f = find_file(http_path(c->x));
    const char *known = http_header(c->x, "If-None-Match");
    struct buf body = {0};
    char tag[32];
    snprintf(tag, sizeof tag, "\"%016llx\"", (unsigned long long)hash_fnv1a(f->text, strlen(f->text)));
    http_add_header(c->x, "ETag", tag);
    http_add_header(c->x, "Cache-Control", "no-cache");
    http_add_header(c->x, "Vary", "Accept");
    http_add_header(c->x, "Content-Security-Policy",
                    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
    http_add_header(c->x, "X-Content-Type-Options", "nosniff");
    http_add_header(c->x, "Referrer-Policy", "no-referrer");
    if (known != NULL && strstr(known, tag) != NULL) {
        http_reply(c->x, 304, NULL, NULL);
    } else {
        buf_puts(&body, f->text);
        call_reply_text(c, 200, f->type, &body);
    }
}

/* A browser names text/html; what asks whether the server lives does not. */
static void answer_root(struct call *c)
{
    const char *accepted = http_header(c->x, "Accept");
    if (accepted != NULL && strstr(accepted, "text/html") != NULL) {
        answer_file(c);
    } else {
        tei_answer_health(c);
    }
}

const struct endpoint page_endpoints[] = {{"GET", "/", &dialect_hub, answer_root, .is_open = true},
                                          FILES(ENDPOINT_ROW){0}};
