#include "nn/decoder/decoder_config.h"

struct status decoder_config_check(const struct decoder_constant *rows, size_t n, const json_t *object,
                                   const char *source)
{
    for (size_t i = 0; i < n; i++) {
        bool value = rows[i].wanted;
        if (!json_is_null(json_object_get(object, rows[i].key))) { /* null counts as absent */
            TRY(json_get_bool(object, source, rows[i].key, false, &value));
        }
        FAIL_IF(value != rows[i].wanted, STATUS_DATA, "%s: \"%s\" is %s: kiln has no decoder with %s", source,
                rows[i].key, value ? "true" : "false", rows[i].why);
    }
    return status_ok();
}

json_t *decoder_config_numbers(const struct decoder_config *c, const struct config_field *rows, int n,
                               json_t *more)
{
    json_t *root = json_object();
    bool complete = config_fields_put(root, c, rows, n) && json_object_update(root, more) == 0;
    json_decref(more);
    if (!complete) {
        json_decref(root);
        return NULL;
    }
    return root;
}

int64_t decoder_config_head_size(const struct decoder_config *c)
{
    return c->head_size > 0 ? c->head_size : c->hidden_size / c->n_heads;
}

static struct status same_numbers(const struct decoder_config *a, const struct decoder_config *b)
{
    return a->llama != NULL                         ? llama_config_same(a, b)
           : a->positions == LAYER_POSITIONS_ALIBI  ? bloom_config_same(a, b)
           : a->positions == LAYER_POSITIONS_ROTARY ? gpt_neox_config_same(a, b)
                                                    : gpt2_config_same(a, b);
}

struct status decoder_config_same_architecture(const struct decoder_config *a, const struct decoder_config *b)
{
    TRY(same_numbers(a, b));
    FAIL_IF(a->activation != b->activation || a->positions != b->positions, STATUS_DATA,
            "the activation or the positions differ");
    FAIL_IF(a->qkv_bias != b->qkv_bias || a->own_decoder != b->own_decoder || a->qk_norm != b->qk_norm,
            STATUS_DATA, "the biases, the decoder, or the norms of queries and keys differ");
    FAIL_IF(a->window != b->window, STATUS_DATA, "the windows of attention differ");
    FAIL_IF(a->is_parallel != b->is_parallel, STATUS_DATA, "the sublayers are wired otherwise");
    FAIL_IF(!decoder_rotary_same(&a->rotary, &b->rotary), STATUS_DATA, "the rotary positions differ");
    FAIL_IF(a->unturned.every != b->unturned.every || a->unturned.at != b->unturned.at, STATUS_DATA,
            "the layers without positions differ");
    return status_ok();
}
