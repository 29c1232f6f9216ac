#include "service/endpoints.h"

#include "service/openai_generation.h"

#include <stdio.h>
#include <string.h>

/* ---- dialects ---- */

/* The type of an error of OpenAI's, by its status. */
static const char *openai_type(int status)
{
    return status == 401                    ? "authentication_error"
           : status == 403                  ? "permission_error"
           : status == 429                  ? "rate_limit_error"
           : status >= 400 && status <= 499 ? "invalid_request_error"
                                            : "server_error";
}

/* The codes that clients look for. */
static const char *openai_code(int status, const char *message, const char *param)
{
    bool is_model = param != NULL && status == 404;
    bool is_long = strncmp(message, OPENAI_TOO_LONG, strlen(OPENAI_TOO_LONG)) == 0;
    return is_model        ? "model_not_found"
           : status == 401 ? "invalid_api_key"
           : is_long       ? "context_length_exceeded"
                           : NULL;
}

static json_t *openai_error(int status, const char *message, const char *param)
{
    return json_pack("{s:{s:o, s:s, s:s?, s:s?}}", "error", "message", json_text(message), "type",
                     openai_type(status), "param", param, "code", openai_code(status, message, param));
}

/* text-embeddings-inference, router/src/lib.rs. */
static const char *tei_type(int status, const char *param)
{
    return status == 424                                     ? "Backend"
           : status == 429                                   ? "Overloaded"
           : status == 503                                   ? "Unhealthy"
           : status == 400 && param != NULL                  ? "Empty"
           : status == 400 || status == 413 || status == 422 ? "Validation"
           : status == 401 || status == 403                  ? "Unauthorized"
           : status == 404 || status == 405                  ? "NotFound"
                                                             : "Backend";
}

static json_t *tei_error(int status, const char *message, const char *param)
{
    return json_pack("{s:o, s:s}", "error", json_text(message), "error_type", tei_type(status, param));
}

/* {"error": "..."} */
static json_t *plain_error(int status, const char *message, const char *param)
{
    (void)status, (void)param;
    return json_pack("{s:o}", "error", json_text(message));
}

const struct dialect dialect_openai = {"openai", 400, 400, openai_error};
const struct dialect dialect_tei = {"tei", 422, 424, tei_error};
const struct dialect dialect_hub = {"hub", 400, 400, plain_error};
const struct dialect dialect_ollama = {"ollama", 400, 400, plain_error};

/* ---- endpoints ---- */

/* A line for each: two branches that add one do not meet. */
/* clang-format off */
static const struct endpoint *const tables[] = {
    operation_endpoints,
    page_endpoints,
    openai_endpoints,
    openai_completions_endpoints,
    openai_chat_endpoints,
    tgi_endpoints,
    ollama_endpoints,
    token_calls_endpoints,
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
