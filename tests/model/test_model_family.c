/* The table of families: a configuration finds its row, each row is whole, and the names of tensors are read
 * by the row alone: shown with a family that kiln does not have. */
#include "model/bert/bert_family.h"
#include "model/names_hf.h"

#include "test.h"

static void test_find(void)
{
    static const char *const known[] = {"{\"model_type\": \"bert\"}", "{\"model_type\": \"bert_pre_ln\"}",
                                        "{}", "{\"model_type\": null}"};
    static const char *const unknown[] = {"{\"model_type\": \"unheard\"}", "{\"model_type\": 3}"};
    const struct model_family *family;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        json_t *config;
        EXPECT_OK(json_parse(&config, known[i], strlen(known[i]), "config"));
        EXPECT_OK(model_family_find(&family, config, "config"));
        EXPECT(family == &bert_family, "%s", known[i]);
        json_decref(config);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        json_t *config;
        EXPECT_OK(json_parse(&config, unknown[i], strlen(unknown[i]), "config"));
        EXPECT_ERROR(model_family_find(&family, config, "config"), STATUS_DATA, "model_type");
        json_decref(config);
    }
}

static void test_rows(void)
{
    size_t n = 0;
    for (; model_families[n] != NULL; n++) {
        const struct model_family *f = model_families[n];
        EXPECT(f->model_types[0] != NULL && f->config_bytes > 0, "%s has no configuration", f->name);
        EXPECT(names_hf_part(f, f->words) == NAMES_EMBEDDINGS, "%s: %s", f->name, f->words);
        EXPECT(strncmp(f->words, f->root, strlen(f->root)) == 0, "%s: %s", f->name, f->root);
        for (size_t i = 0; f->tied != NULL && f->tied[i][0] != NULL; i++) {
            EXPECT(names_hf_part(f, f->tied[i][1]) != NAMES_OTHER, "%s: %s is tied to nothing", f->name,
                   f->tied[i][0]);
        }
        for (const char *const *b = f->buffers; b != NULL && *b != NULL; b++) {
            EXPECT(names_hf_part(f, *b) == NAMES_BUFFER, "%s: %s", f->name, *b);
        }
    }
    EXPECT(n >= 1, "no family");
}

static const char *const other_bare[] = {"h.", "wte.", NULL};
static const char *const other_buffers[] = {"transformer.h.0.attn.bias", NULL};
static const char *const other_tied[][2] = {{"lm_head.weight", "transformer.wte.weight"}, {NULL, NULL}};
static const struct model_family_rename other_renames[] = {{".g", ".weight", true, true, false},
                                                           {".w.", ".longer.", false, false, false},
                                                           {NULL, NULL, false, false, false}};
static const char *const other_states[] = {"momentum", NULL};
static const struct model_family other = {
    .root = "transformer.",
    .bare = other_bare,
    .renames = other_renames,
    .tied = other_tied,
    .buffers = other_buffers,
    .states = other_states,
    .parts = {[NAMES_EMBEDDINGS] = "transformer.wte.", [NAMES_ENCODER] = "transformer.h."}};

static void expect_name(const char *from, const char *to, enum names_part part, bool tied)
{
    struct names_hf r = names_hf_canonical(&other, from);
    EXPECT(strcmp(r.name, to) == 0 && r.part == part && r.tied == tied, "%s became %s, part %d, tied %d",
           from, r.name, r.part, r.tied);
}

static void test_another_family(void)
{
    expect_name("wte.weight", "transformer.wte.weight", NAMES_EMBEDDINGS, false);
    expect_name("module.h.3.ln_1.g", "transformer.h.3.ln_1.weight", NAMES_ENCODER, false);
    expect_name("h.3.w.bias", "transformer.h.3.longer.bias", NAMES_ENCODER, false);
    expect_name("lm_head.weight", "transformer.wte.weight", NAMES_EMBEDDINGS, true);
    expect_name("h.0.attn.bias", "transformer.h.0.attn.bias", NAMES_BUFFER, false);
    expect_name("h/0/attn/g/momentum_1", "transformer.h.0.attn.g.momentum_1", NAMES_STATE, false);
    EXPECT(names_hf_canonical(&other, "h.3.ln_1.g").order.transposed &&
               !names_hf_canonical(&other, "h.3.w.bias").order.transposed,
           "transposed");
    expect_name("bert.pooler.dense.weight", "bert.pooler.dense.weight", NAMES_OTHER, false);
    char longest[PARAM_NAME_BYTES]; /* a name that would grow past the limit stays */
    memset(longest, 'x', sizeof longest);
    memcpy(longest + sizeof longest - 4, ".w.", 4);
    expect_name(longest, longest, NAMES_OTHER, false);
}

int main(void)
{
    test_find();
    test_rows();
    test_another_family();
    return 0;
}
