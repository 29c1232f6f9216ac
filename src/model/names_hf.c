#include "model/names_hf.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *prefix;
    const char *pattern;
} parts[] = {
    [NAMES_EMBEDDINGS] = {"bert.embeddings.", "bert.embeddings.*"},
    [NAMES_ENCODER] = {"bert.encoder.", "bert.encoder.*"},
    [NAMES_POOLER] = {"bert.pooler.", "bert.pooler.*"},
    [NAMES_MLM] = {"cls.predictions.", "cls.predictions.*"},
    [NAMES_NSP] = {"cls.seq_relationship.", "cls.seq_relationship.*"},
    [NAMES_QA] = {"qa_outputs.", "qa_outputs.*"},
    [NAMES_CLASSIFIER] = {"classifier.", "classifier.*"},
    [NAMES_BUFFER] = {NULL, "buffers"},
    [NAMES_OTHER] = {NULL, "others"},
};

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static const char *without_wrappers(const char *name)
{
    static const char *const wrappers[] = {"module.", "_orig_mod."};
    for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0];) {
        bool wrapped = begins_with(name, wrappers[i]);
        name += wrapped ? strlen(wrappers[i]) : 0;
        i = wrapped ? 0 : i + 1;
    }
    return name;
}

static bool is_of_bare_encoder(const char *name)
{
    return begins_with(name, "embeddings.") || begins_with(name, "encoder.") || begins_with(name, "pooler.");
}

/* ".dense_act." to ".dense.": NVIDIA's layer with its activation inside. */
static void drop_act(char *name)
{
    static const char fused[] = ".dense_act.";
    char *at = strstr(name, fused);
    if (at != NULL) {
        const char *rest = at + sizeof fused - 2; /* the second point */
        memmove(at + strlen(".dense"), rest, strlen(rest) + 1);
    }
}

static void replace_end(char *name, const char *old, const char *new)
{
    size_t n = strlen(name), n_old = strlen(old);
    if (n >= n_old && strcmp(name + n - n_old, old) == 0 && n - n_old + strlen(new) < PARAM_NAME_BYTES) {
        memcpy(name + n - n_old, new, strlen(new) + 1);
    }
}

static bool take_tied(char *name)
{
    static const char *const tied[][2] = {
        {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
        {"cls.predictions.decoder.bias", "cls.predictions.bias"},
    };
    for (size_t i = 0; i < sizeof tied / sizeof tied[0]; i++) {
        if (strcmp(name, tied[i][0]) == 0) {
            memcpy(name, tied[i][1], strlen(tied[i][1]) + 1);
            return true;
        }
    }
    return false;
}

enum names_part names_hf_part(const char *name)
{
    if (strcmp(name, "bert.embeddings.position_ids") == 0 ||
        strcmp(name, "bert.embeddings.token_type_ids") == 0) {
        return NAMES_BUFFER;
    }
    for (int p = 0; p < NAMES_N_PARTS; p++) {
        if (parts[p].prefix != NULL && begins_with(name, parts[p].prefix)) {
            return (enum names_part)p;
        }
    }
    return NAMES_OTHER;
}

const char *names_hf_pattern(enum names_part part)
{
    return parts[part].pattern;
}

struct names_hf names_hf_canonical(const char *name)
{
    struct names_hf r = {.part = NAMES_OTHER};
    name = without_wrappers(name);
    int n = snprintf(r.name, sizeof r.name, "%s%s", is_of_bare_encoder(name) ? "bert." : "", name);
    if (n < 0 || n >= (int)sizeof r.name) {
        return r;
    }
    replace_end(r.name, "LayerNorm.gamma", "LayerNorm.weight");
    replace_end(r.name, "LayerNorm.beta", "LayerNorm.bias");
    drop_act(r.name);
    r.tied = take_tied(r.name);
    r.part = names_hf_part(r.name);
    return r;
}
