#include "text/chat_template.h"

#include "core/buf.h"

#include <string.h>

/* The texts of a list of parts. */
static struct status join_parts(json_t **joined, const json_t *parts, size_t i)
{
    struct buf text = {0};
    struct status s = status_ok();
    size_t k;
    const json_t *part;
    json_array_foreach(parts, k, part)
    {
        const char *type = json_string_value(json_object_get(part, "type"));
        const json_t *said = json_object_get(part, "text");
        if (type == NULL || strcmp(type, "text") != 0 || !json_is_string(said)) {
            s = status_error(STATUS_DATA,
                             "messages[%zu].content has a part that is not {\"type\": \"text\", \"text\": "
                             "...}: kiln reads texts alone",
                             i);
            break;
        }
        buf_append(&text, "\n", k > 0);
        buf_append(&text, json_string_value(said), json_string_length(said));
    }
    *joined = json_stringn(buf_text(&text), text.n);
    buf_fini(&text);
    return s;
}

/* Appends what a template sees of a message. */
static struct status read_message(json_t *to, const json_t *message, size_t i)
{
    static const char *const refused[] = {"tool_calls", "function_call", "audio"};
    const json_t *role = json_object_get(message, "role"), *content = json_object_get(message, "content");
    const json_t *name = json_object_get(message, "name");
    for (size_t k = 0; k < sizeof refused / sizeof refused[0]; k++) {
        const json_t *value = json_object_get(message, refused[k]);
        FAIL_IF(value != NULL && !json_is_null(value), STATUS_DATA,
                "messages[%zu].%s is not supported: kiln calls no tools and reads texts alone", i,
                refused[k]);
    }
    FAIL_IF(!json_is_string(role), STATUS_DATA,
            "messages[%zu] must be an object with a role, which is a string", i);
    FAIL_IF(!json_is_string(content) && !json_is_array(content), STATUS_DATA,
            "messages[%zu].content must be a string or an array of parts", i);
    json_t *text = json_incref((json_t *)content);
    if (json_is_array(content)) {
        json_decref(text);
        TRY(join_parts(&text, content, i));
    }
    json_t *read = json_pack("{s:O, s:o}", "role", role, "content", text);
    if (json_is_string(name)) {
        json_object_set(read, "name", (json_t *)name);
    }
    json_array_append_new(to, read);
    return status_ok();
}

struct status chat_messages_read(json_t **out, const json_t *messages)
{
    struct status s = status_ok();
    *out = NULL;
    FAIL_IF(!json_is_array(messages) || json_array_size(messages) == 0, STATUS_DATA,
            "messages must be an array of at least one message");
    *out = json_array();
    for (size_t i = 0; i < json_array_size(messages) && !failed(s); i++) {
        s = read_message(*out, json_array_get(messages, i), i);
    }
    if (failed(s)) {
        json_decref(*out);
        *out = NULL;
    }
    return s;
}

bool chat_messages_answers(const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    return role != NULL && strcmp(role, "assistant") == 0;
}
