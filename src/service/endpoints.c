#include "service/endpoints.h"

#include <stdio.h>
#include <string.h>

/* A line for each: two branches that add one do not meet. */
/* clang-format off */
static const struct endpoint *const tables[] = {
    operation_endpoints,
    page_endpoints,
    watch_endpoints,
    openai_endpoints,
    openai_completions_endpoints,
    openai_chat_endpoints,
    tgi_endpoints,
    ollama_endpoints,
    token_calls_endpoints,
    openai_embeddings_endpoints,
    tei_endpoints,
    rerank_endpoints,
    hub_endpoints,
    NULL,
};
/* clang-format on */

/* Whether the endpoint's path is this one, or with a slash at its end begins it. */
static bool is_path(const struct endpoint *e, const char *path)
{
    size_t n = strlen(e->path);
    return strcmp(e->path, path) == 0 ||
           (n > 1 && e->path[n - 1] == '/' && strncmp(e->path, path, n) == 0 && path[n] != '\0');
}

static bool is_method(const struct endpoint *e, const char *method)
{
    return strcmp(e->method, method) == 0 || (strcmp(e->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

static void allow(char allowed[64], const char *method)
{
    size_t n = strlen(allowed);
    if (strstr(allowed, method) == NULL) {
        snprintf(allowed + n, 64 - n, "%s%s", n == 0 ? "" : ", ", method);
    }
}

const struct endpoint *endpoint_find(const char *method, const char *path, char allowed[64])
{
    allowed[0] = '\0';
    for (int t = 0; tables[t] != NULL; t++) {
        for (const struct endpoint *e = tables[t]; e->path != NULL; e++) {
            if (is_path(e, path) && is_method(e, method)) {
                return e;
            }
            if (is_path(e, path)) {
                allow(allowed, e->method);
            }
        }
    }
    return NULL;
}

const struct dialect *dialect_of_path(const char *path)
{
    static const struct {
        const char *begin;
        const struct dialect *dialect;
    } dialects[] = {{"/v1/", &dialect_openai}, {"/api/", &dialect_ollama}, {"/models/", &dialect_hub}};
    char allowed[64];
    const struct endpoint *e = endpoint_find("POST", path, allowed);
    e = e == NULL ? endpoint_find("GET", path, allowed) : e;
    for (size_t i = 0; e == NULL && i < sizeof dialects / sizeof dialects[0]; i++) {
        if (strncmp(path, dialects[i].begin, strlen(dialects[i].begin)) == 0) {
            return dialects[i].dialect;
        }
    }
    return e == NULL ? &dialect_tei : e->dialect;
}
