#include "text/bpe_json.h"

#include "core/hash.h"
#include "text/gguf_pre.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* ---- merges.txt ---- */

static struct status read_line(struct bpe_merges *m, const char *line, size_t n, const char *source,
                               int64_t number)
{
    const char *space = memchr(line, ' ', n);
    size_t n_left = space == NULL ? 0 : (size_t)(space - line);
    FAIL_IF(n_left == 0 || n_left + 1 == n || memchr(space + 1, ' ', n - n_left - 1) != NULL, STATUS_DATA,
            "%s:%lld: a line must have two pieces with a space between them, but is '%.*s'", source,
            (long long)number, n > 60 ? 60 : (int)n, line);
    return bpe_merges_add(m, (struct text_bytes){line, n_left},
                          (struct text_bytes){space + 1, n - n_left - 1}, source, number);
}

struct status bpe_json_read_merges(struct bpe_merges *m, const char *text, size_t n, const char *source)
{
    static const char version[] = "#version";
    FAIL_IF(n == 0, STATUS_DATA, "%s is empty: merges.txt has at least a line", source);
    int64_t number = 0;
    for (size_t at = utf8_mark_bytes(text, n), end; at < n; at = end + 1) {
        const char *feed = memchr(text + at, '\n', n - at);
        end = feed == NULL ? n : (size_t)(feed - text);
        size_t length = end - at - (end > at && text[end - 1] == '\r');
        bool is_version = ++number == 1 && length >= sizeof version - 1 &&
                          memcmp(text + at, version, sizeof version - 1) == 0;
        if (length > 0 && !is_version) {
            TRY(read_line(m, text + at, length, source, number));
        }
    }
    return bpe_merges_check_end(m, source);
}

/* ---- tokenizer.json ---- */

bool bpe_json_is_bpe(const json_t *root)
{
    const json_t *model = json_object_get(root, "model");
    const char *type = json_string_value(json_object_get(model, "type"));
    /* files of 2020 do not say the type, but only this one has merges */
    return type == NULL ? json_object_get(model, "merges") != NULL : strcmp(type, "BPE") == 0;
}

static bool is_type(const json_t *part, const char *wanted)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    return type != NULL && strcmp(type, wanted) == 0;
}

/* "unk_token" and "fuse_unk" act on bytes that no piece has: here each byte has one. */
struct status bpe_json_check_neutral(const json_t *model, const char *source)
{
    static const char *const keys[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *value = json_object_get(model, keys[i]);
        bool is_neutral = value == NULL || json_is_null(value) || json_is_false(value) ||
                          (json_is_string(value) && json_string_length(value) == 0) ||
                          (json_is_number(value) && json_number_value(value) == 0);
        FAIL_IF(!is_neutral, STATUS_DATA,
                "%s: the model's \"%s\" is set; kiln does not support it and would give other ids", source,
                keys[i]);
    }
    return status_ok();
}

/* A single step that is one of the two patterns is the pattern. */
static struct status read_pre_tokenizer(struct bpe *bpe, const json_t *part, const char *source)
{
    TRY(pre_split_read(&bpe->split, part, source));
    enum pre_split_kind first = bpe->split.steps[0].kind;
    bool is_one = bpe->split.n == 1 && (first == PRE_SPLIT_GPT2 || first == PRE_SPLIT_BLOOM);
    bpe->pattern = !is_one ? BPE_SPLITS : first == PRE_SPLIT_GPT2 ? BPE_GPT2 : BPE_BLOOM;
    bpe->gguf_name = bpe->pattern != BPE_SPLITS ? bpe_pattern_gguf_name(bpe->pattern)
                                                : gguf_pre_name(part, bpe->ignores_merges);
    return status_ok();
}

static struct status read_normalizer(struct bpe *bpe, const json_t *part, const char *source)
{
    static const char *const names[] = {[UNICODE_NFC] = "NFC", [UNICODE_NFD] = "NFD"};
    const json_t *steps = json_object_get(part, "normalizers");
    part = is_type(part, "Sequence") && json_array_size(steps) == 1 ? json_array_get(steps, 0) : part;
    if (part == NULL || json_is_null(part) ||
        (is_type(part, "Sequence") && json_is_array(steps) && json_array_size(steps) == 0)) {
        return status_ok();
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (is_type(part, names[i])) {
            bpe->has_form = true;
            bpe->form = (enum unicode_form)i;
            return status_ok();
        }
    }
    const char *type = json_string_value(json_object_get(part, "type"));
    return status_error(STATUS_DATA, "%s: its normalizer is %.60s; of byte-level BPE kiln knows NFC and NFD",
                        source, type == NULL ? "of no type" : type);
}

/* What decides ids besides pieces and merges; 0 for GPT-2 and BLOOM, whose pattern says it. */
static uint64_t hash_settings(const struct bpe *bpe, const json_t *root)
{
    uint64_t hash = 0;
    if (bpe->pattern == BPE_SPLITS) {
        char *text = json_dumps(json_object_get(root, "pre_tokenizer"), JSON_SORT_KEYS | JSON_COMPACT);
        hash = text == NULL ? 1 : hash_fnv1a(text, strlen(text));
        free(text);
    }
    return hash + (bpe->has_form ? 2 + (uint64_t)bpe->form : 0) * UINT64_C(0x9E3779B97F4A7C15) +
           (bpe->ignores_merges ? UINT64_C(0xD6E8FEB86659FD93) : 0);
}

/* Merges are pairs, or texts with a space between them in older files. */
struct status bpe_json_read_merge_list(struct bpe_merges *m, const json_t *merges, const char *source)
{
    FAIL_IF(!json_is_array(merges), STATUS_DATA, "%s: the model's \"merges\" must be a list", source);
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const json_t *merge = json_array_get(merges, i), *left = json_array_get(merge, 0),
                     *right = json_array_get(merge, 1);
        int64_t number = (int64_t)i + 1;
        if (json_is_string(merge)) {
            TRY(read_line(m, json_string_value(merge), json_string_length(merge), source, number));
        } else if (json_array_size(merge) == 2 && json_is_string(left) && json_is_string(right)) {
            TRY(bpe_merges_add(m, (struct text_bytes){json_string_value(left), json_string_length(left)},
                               (struct text_bytes){json_string_value(right), json_string_length(right)},
                               source, number));
        } else {
            return status_error(STATUS_DATA, "%s: entry %lld of \"merges\" is not two pieces", source,
                                (long long)number);
        }
    }
    return status_ok();
}

static struct status read_all(struct bpe *bpe, struct added_tokens *added, const json_t *root,
                              const char *source)
{
    const json_t *model = json_object_get(root, "model");
    TRY(bpe_json_check_neutral(model, source));
    FAIL_IF(json_is_true(json_object_get(model, "byte_fallback")), STATUS_DATA,
            "%s: the model's \"byte_fallback\" is set, but the pre_tokenizer is ByteLevel, which leaves it "
            "nothing to do",
            source);
    TRY(read_normalizer(bpe, json_object_get(root, "normalizer"), source));
    TRY(json_get_bool(model, source, "ignore_merges", false, &bpe->ignores_merges));
    TRY(read_pre_tokenizer(bpe, json_object_get(root, "pre_tokenizer"), source));
    bpe->settings_hash = hash_settings(bpe, root);
    TRY(bpe_merges_init(&bpe->merges, json_object_get(model, "vocab"), source));
    TRY(bpe_json_read_merge_list(&bpe->merges, json_object_get(model, "merges"), source));
    return added_tokens_read_json(added, json_object_get(root, "added_tokens"), source);
}

struct status bpe_json_read(struct bpe *bpe, struct added_tokens *added, const json_t *root,
                            const char *source)
{
    *bpe = (struct bpe){0};
    struct status s = read_all(bpe, added, root, source);
    if (failed(s)) {
        bpe_fini(bpe);
    }
    return s;
}

/* ---- writing tokenizer.json ---- */

/* ByteLevel, as a pre_tokenizer and as a decoder. */
static json_t *make_byte_level(bool splits)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1,
                     "use_regex", splits);
}

static json_t *make_pre_tokenizer(enum bpe_pattern pattern)
{
    if (pattern == BPE_GPT2) {
        return make_byte_level(true);
    }
    return json_pack("{s:s, s:[{s:s, s:{s:s}, s:s, s:b}, o]}", "type", "Sequence", "pretokenizers", "type",
                     "Split", "pattern", "Regex", bpe_pattern_regex(pattern), "behavior", "Isolated",
                     "invert", 0, make_byte_level(false));
}

static json_t *make_added(const json_t *pieces, const char *const *specials)
{
    json_t *added = json_array();
    for (; *specials != NULL; specials++) {
        json_array_append_new(added, json_pack("{s:O, s:s, s:b, s:b, s:b, s:b, s:b}", "id",
                                               json_object_get(pieces, *specials), "content", *specials,
                                               "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0,
                                               "special", 1));
    }
    return added;
}

json_t *bpe_json_make(json_t *pieces, json_t *merges, const char *const *specials, enum bpe_pattern pattern)
{
    return json_pack(
        "{s:s, s:n, s:n, s:o, s:n, s:o, s:n, s:o, s:{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:O, "
        "s:O}}",
        "version", "1.0", "truncation", "padding", "added_tokens", make_added(pieces, specials), "normalizer",
        "pre_tokenizer", make_pre_tokenizer(pattern), "post_processor", "decoder", make_byte_level(true),
        "model", "type", "BPE", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
        "fuse_unk", 0, "byte_fallback", 0, "ignore_merges", 0, "vocab", pieces, "merges", merges);
}
