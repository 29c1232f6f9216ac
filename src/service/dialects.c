/* dialects: how the clients of each dialect see errors. */
#include "service/call.h"
#include "service/openai.h"

#include <string.h>

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
