#include "model/megatron_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char embedding[] = "embedding.", layers[] = "layers.", final[] = "final.";

static const char *behind(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

int64_t megatron_names_module(const char *name, const char **rest)
{
    size_t digits = strspn(name, "0123456789");
    *rest = behind(name, MEGATRON_TIED);
    if (*rest != NULL) {
        return MEGATRON_EMBEDDING;
    }
    *rest = name + digits + 1;
    return digits > 0 && digits < 6 && name[digits] == '.' ? atoll(name) : 0;
}

bool megatron_names_put(char name[PARAM_NAME_BYTES], int64_t module, const char *rest, int64_t n_layers)
{
    int64_t layer = module - MEGATRON_FIRST_LAYER;
    int n = -1;
    if (module == MEGATRON_EMBEDDING) {
        n = snprintf(name, PARAM_NAME_BYTES, "%s%s", embedding, rest);
    } else if (module == n_layers + MEGATRON_BEHIND) {
        n = snprintf(name, PARAM_NAME_BYTES, "%s%s", final, rest);
    } else if (layer >= 0 && layer < n_layers) {
        n = snprintf(name, PARAM_NAME_BYTES, "%s%lld.%s", layers, (long long)layer, rest);
    }
    return n >= 0 && n < PARAM_NAME_BYTES;
}

int64_t megatron_names_split(const char *name, const char **rest, int64_t n_layers)
{
    char *end;
    if ((*rest = behind(name, embedding)) != NULL) {
        return MEGATRON_EMBEDDING;
    }
    if ((*rest = behind(name, final)) != NULL) {
        return n_layers + MEGATRON_BEHIND;
    }
    const char *number = behind(name, layers);
    CHECK(number != NULL, "%s is no tensor of Megatron-DeepSpeed's", name);
    int64_t layer = strtoll(number, &end, 10);
    *rest = end + 1;
    return MEGATRON_FIRST_LAYER + layer;
}

bool megatron_names_state(char name[PARAM_NAME_BYTES], const char *of, int64_t n_layers)
{
    const char *rest;
    int64_t module = megatron_names_split(of, &rest, n_layers);
    int n = module == MEGATRON_EMBEDDING
                ? snprintf(name, PARAM_NAME_BYTES, MEGATRON_TIED "%s", rest)
                : snprintf(name, PARAM_NAME_BYTES, "%lld.%s", (long long)module, rest);
    return n > 0 && n < PARAM_NAME_BYTES;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), n_end = strlen(end);
    return n >= n_end && strcmp(name + n - n_end, end) == 0;
}

enum megatron_cut megatron_names_cut(const char *name)
{
    static const struct {
        const char *end;
        enum megatron_cut cut;
    } rows[] = {
        {"word_embeddings.weight", MEGATRON_BY_ROW}, {".query_key_value.weight", MEGATRON_BY_ROW},
        {".query_key_value.bias", MEGATRON_BY_ROW},  {".dense_h_to_4h.weight", MEGATRON_BY_ROW},
        {".dense_h_to_4h.bias", MEGATRON_BY_ROW},    {"attention.dense.weight", MEGATRON_BY_COL},
        {".dense_4h_to_h.weight", MEGATRON_BY_COL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (ends_with(name, rows[i].end)) {
            return rows[i].cut;
        }
    }
    return MEGATRON_COPIED;
}
