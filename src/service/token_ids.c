#include "service/token_ids.h"

static bool read_id(struct call *c, int32_t *id, const struct served_model *m, const json_t *value,
                    const char *name, size_t i)
{
    int32_t n_pieces = m->model.tokenizer->n;
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value)) {
        call_fail_value(c, name, "%s[%zu] must be an integer, the id of a token", name, i);
        return false;
    }
    if (number < 0 || number >= n_pieces) {
        call_fail_value(c, name,
                        "%s[%zu] is the id %lld, but the vocabulary of %s has the ids 0 to %d: these are ids "
                        "of another model's tokenizer; send texts (langchain's OpenAIEmbeddings does with "
                        "check_embedding_ctx_length=False)",
                        name, i, (long long)number, m->name, n_pieces - 1);
        return false;
    }
    *id = (int32_t)number;
    return true;
}

bool token_ids_read(struct call *c, struct id_list *to, const struct served_model *m, const json_t *ids,
                    const char *name)
{
    for (size_t i = 0; i < json_array_size(ids); i++) {
        int32_t id;
        if (!read_id(c, &id, m, json_array_get(ids, i), name, i)) {
            return false;
        }
        if (!id_list_append(to, id)) {
            call_fail_status(c, NULL, status_error(STATUS_MEMORY, "out of memory for ids"));
            return false;
        }
    }
    return true;
}
