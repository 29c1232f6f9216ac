#include "text/sentencepiece_json.h"

#include "core/hash.h"
#include "text/bpe_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *type_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    return type == NULL ? "" : type;
}

/* Whether a part of tokenizer.json, or a step of a Sequence, is of this type. */
static bool has_type(const json_t *part, const char *list, const char *type)
{
    const json_t *steps = json_object_get(part, list);
    for (size_t i = 0; i < json_array_size(steps); i++) {
        if (strcmp(type_of(json_array_get(steps, i)), type) == 0) {
            return true;
        }
    }
    return strcmp(type_of(part), type) == 0;
}

bool sentencepiece_json_is(const json_t *root)
{
    const json_t *model = json_object_get(root, "model"), *splits = json_object_get(root, "pre_tokenizer"),
                 *normalizer = json_object_get(root, "normalizer");
    bool is_bpe = strcmp(type_of(model), "BPE") == 0 && !has_type(splits, "pretokenizers", "ByteLevel");
    bool marks = has_type(splits, "pretokenizers", "Metaspace") ||
                 has_type(normalizer, "normalizers", "Replace") ||
                 has_type(normalizer, "normalizers", "Prepend");
    return strcmp(type_of(model), "Unigram") == 0 ||
           (is_bpe && (marks || json_is_true(json_object_get(model, "byte_fallback"))));
}

/* ---- pre_tokenizer ---- */

static struct status read_prefix(struct sentencepiece_cut *cut, const json_t *part, const char *source)
{
    bool prefix = true;
    const char *scheme = NULL;
    TRY(json_get_bool(part, source, "add_prefix_space", false, &prefix)); /* files before 2024 */
    TRY(json_get_string(part, source, "prepend_scheme", false, &scheme));
    scheme = scheme != NULL ? scheme : prefix ? "always" : "never";
    cut->prefix = strcmp(scheme, "always") == 0  ? SENTENCEPIECE_ALWAYS
                  : strcmp(scheme, "first") == 0 ? SENTENCEPIECE_FIRST
                                                 : SENTENCEPIECE_NEVER;
    FAIL_IF(cut->prefix == SENTENCEPIECE_NEVER && strcmp(scheme, "never") != 0, STATUS_DATA,
            "%s: \"prepend_scheme\" of Metaspace is '%.60s', but must be always, first or never", source,
            scheme);
    return status_ok();
}

static struct status read_metaspace(struct sentencepiece_cut *cut, const json_t *part, const char *source)
{
    const char *replacement = SENTENCEPIECE_SPACE;
    cut->marks_spaces = cut->before_spaces = true;
    TRY(json_get_bool(part, source, "split", false, &cut->before_spaces));
    TRY(json_get_string(part, source, "replacement", false, &replacement));
    FAIL_IF(strcmp(replacement, SENTENCEPIECE_SPACE) != 0, STATUS_DATA,
            "%s: Metaspace replaces spaces by '%.60s'; kiln knows only U+2581", source, replacement);
    return read_prefix(cut, part, source);
}

/* Gemma's splits by spaces of which its normalizer has left none. */
static bool is_idle(const struct normalizer *z, const json_t *part)
{
    const char *text = json_string_value(json_object_get(json_object_get(part, "pattern"), "String"));
    const struct normalizer_step *last = z->n == 0 ? NULL : &z->steps[z->n - 1];
    return strcmp(type_of(part), "Split") == 0 && text != NULL && strcmp(text, " ") == 0 && last != NULL &&
           last->kind == NORMALIZER_REPLACE && strcmp(last->wanted, " ") == 0 &&
           strchr(last->content, ' ') == NULL;
}

static struct status read_cut_step(struct sentencepiece *p, const json_t *part, bool is_last,
                                   const char *source)
{
    const char *type = type_of(part);
    if (strcmp(type, "WhitespaceSplit") == 0 && !is_last) {
        p->cut.at_white = true;
        return status_ok();
    }
    if (strcmp(type, "Metaspace") == 0 && is_last) {
        return read_metaspace(&p->cut, part, source);
    }
    return is_idle(&p->normalizer, part) && is_last
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s: the pre_tokenizer has the step '%.60s'; with these models kiln knows "
                              "Metaspace, and WhitespaceSplit in front of it",
                              source, type);
}

static struct status read_cut(struct sentencepiece *p, const json_t *part, const char *source)
{
    const json_t *steps = json_object_get(part, "pretokenizers");
    bool is_list = strcmp(type_of(part), "Sequence") == 0;
    size_t n = part == NULL || json_is_null(part) ? 0 : is_list ? json_array_size(steps) : 1;
    for (size_t i = 0; i < n; i++) {
        TRY(read_cut_step(p, is_list ? json_array_get(steps, i) : part, i + 1 == n, source));
    }
    return status_ok();
}

/* ---- model ---- */

static struct status read_bpe(struct sentencepiece *p, const json_t *model, const char *source)
{
    struct bpe *b = &p->bpe;
    const char *unknown = NULL;
    const json_t *text = json_object_get(model, "unk_token");
    TRY(json_get_bool(model, source, "fuse_unk", false, &b->fuses_unknown));
    TRY(json_get_bool(model, source, "byte_fallback", false, &b->has_bytes));
    TRY(json_get_bool(model, source, "ignore_merges", false, &b->ignores_merges));
    TRY(bpe_json_check_neutral(model, source));
    TRY(bpe_merges_init_plain(&b->merges, json_object_get(model, "vocab"), source));
    TRY(bpe_json_read_merge_list(&b->merges, json_object_get(model, "merges"), source));
    unknown = json_string_value(text);
    b->unknown = unknown == NULL ? -1 : bpe_merges_id(&b->merges, unknown, strlen(unknown));
    FAIL_IF(unknown != NULL && b->unknown < 0, STATUS_DATA,
            "%s: the model's \"unk_token\" is '%.60s', which is no piece of the vocabulary", source, unknown);
    return status_ok();
}

/* {piece: id}; of a piece that is listed twice the later id counts.  The caller json_decref's it. */
static struct status list_pieces(json_t **pieces, const json_t *list, const char *source)
{
    *pieces = json_object();
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i), *text = json_array_get(entry, 0),
                     *score = json_array_get(entry, 1);
        bool is_entry = json_array_size(entry) == 2 && json_is_string(text) && json_is_number(score) &&
                        isfinite(json_number_value(score));
        if (!is_entry ||
            json_object_set_new(*pieces, json_string_value(text), json_integer((json_int_t)i)) != 0) {
            json_decref(*pieces);
            *pieces = NULL;
            return status_error(STATUS_DATA, "%s: entry %zu of \"vocab\" is not a piece and a number", source,
                                i);
        }
    }
    return status_ok();
}

static struct status read_scores(struct sentencepiece *p, const json_t *list, const char *source)
{
    size_t n = json_array_size(list);
    double least = INFINITY, *scores = calloc(n + 1, sizeof *scores);
    FAIL_IF(scores == NULL, STATUS_MEMORY, "out of memory for the vocabulary %s", source);
    for (size_t i = 0; i < n; i++) {
        scores[i] = json_number_value(json_array_get(json_array_get(list, i), 1));
        least = scores[i] < least ? scores[i] : least;
    }
    struct status s = sentencepiece_set_unigram(p, scores, NULL, least, source);
    free(scores);
    return s;
}

static struct status read_unigram(struct sentencepiece *p, const json_t *model, const char *source)
{
    const json_t *list = json_object_get(model, "vocab");
    json_t *pieces;
    int64_t unknown = -1;
    FAIL_IF(!json_is_array(list) || json_array_size(list) == 0, STATUS_DATA,
            "%s: the model's \"vocab\" must be a list of pieces and numbers", source);
    TRY(json_get_bool(model, source, "byte_fallback", false, &p->bpe.has_bytes));
    TRY(json_get_int(model, source, "unk_id", true, &unknown));
    FAIL_IF(unknown < 0 || (uint64_t)unknown >= json_array_size(list), STATUS_DATA,
            "%s: the model's \"unk_id\" is %lld, but the vocabulary has %zu pieces", source,
            (long long)unknown, json_array_size(list));
    TRY(list_pieces(&pieces, list, source));
    struct status s = bpe_merges_init_plain(&p->bpe.merges, pieces, source);
    json_decref(pieces);
    TRY(s);
    p->bpe.unknown = (int32_t)unknown;
    return read_scores(p, list, source);
}

/* ---- all ---- */

static void hash_part(uint64_t *hash, const json_t *part)
{
    char *text = json_dumps(part, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);
    *hash = *hash * UINT64_C(0x100000001B3) + (text == NULL ? 1 : hash_fnv1a(text, strlen(text)));
    free(text);
}

static uint64_t hash_settings(const json_t *root)
{
    static const char *const keys[] = {"type",     "unk_id",        "unk_token",
                                       "fuse_unk", "byte_fallback", "ignore_merges"};
    uint64_t hash = 0;
    const json_t *model = json_object_get(root, "model");
    hash_part(&hash, json_object_get(root, "normalizer"));
    hash_part(&hash, json_object_get(root, "pre_tokenizer"));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        hash_part(&hash, json_object_get(model, keys[i]));
    }
    if (json_is_array(json_object_get(model, "vocab"))) { /* the scores */
        hash_part(&hash, json_object_get(model, "vocab"));
    }
    return hash;
}

static bool prepends(const struct normalizer *z)
{
    int i = 0;
    while (i < z->n && z->steps[i].kind != NORMALIZER_PREPEND) {
        i++;
    }
    return i < z->n;
}

static struct status read_all(struct sentencepiece *p, struct added_tokens *added, const json_t *root,
                              const char *source)
{
    const json_t *model = json_object_get(root, "model");
    TRY(normalizer_read(&p->normalizer, json_object_get(root, "normalizer"), source));
    TRY(read_cut(p, json_object_get(root, "pre_tokenizer"), source));
    TRY(strcmp(type_of(model), "Unigram") == 0 ? read_unigram(p, model, source) : read_bpe(p, model, source));
    p->adds_space = p->cut.prefix != SENTENCEPIECE_NEVER || prepends(&p->normalizer);
    p->settings_hash = hash_settings(root);
    sentencepiece_close(p);
    return added_tokens_read_json(added, json_object_get(root, "added_tokens"), source);
}

struct status sentencepiece_json_read(struct sentencepiece *p, struct added_tokens *added, const json_t *root,
                                      const char *source)
{
    *p = (struct sentencepiece){0};
    struct status s = read_all(p, added, root, source);
    if (failed(s)) {
        sentencepiece_fini(p);
    }
    return s;
}
