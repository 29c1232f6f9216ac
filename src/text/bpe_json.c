#include "text/bpe_json.h"

#include "text/utf8.h"

#include <string.h>

/* The regular expressions of bpe_split.h as tokenizer.json writes them. */
static const char gpt2_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
static const char bloom_pattern[] = " ?[^(\\s|[.,!?…。，、।۔،])]+";

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
static struct status check_neutral(const json_t *model, const char *source)
{
    static const char *const keys[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                                       "byte_fallback", "ignore_merges"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *value = json_object_get(model, keys[i]);
        bool is_neutral = value == NULL || json_is_null(value) || json_is_false(value) ||
                          (json_is_string(value) && json_string_length(value) == 0) ||
                          (json_is_number(value) && json_number_value(value) == 0);
        FAIL_IF(!is_neutral, STATUS_DATA,
                "%s: the model's \"%s\" is set; kiln's byte-level BPE does not support it and would give "
                "other ids",
                source, keys[i]);
    }
    return status_ok();
}

/* ByteLevel, which also splits by GPT-2's pattern unless "use_regex" is false. */
static struct status read_byte_level(bool *splits, const json_t *part, const char *source)
{
    bool prefix = false;
    *splits = true;
    TRY(json_get_bool(part, source, "add_prefix_space", false, &prefix));
    TRY(json_get_bool(part, source, "use_regex", false, splits));
    return prefix ? status_error(STATUS_DATA,
                                 "%s: \"add_prefix_space\" is true, but kiln supports only false: it puts no "
                                 "space before a text",
                                 source)
                  : status_ok();
}

static struct status read_split(enum bpe_pattern *pattern, const json_t *part, const char *source)
{
    const char *regex = "", *behavior = "";
    bool invert = false;
    TRY(json_get_string(json_object_get(part, "pattern"), source, "Regex", true, &regex));
    TRY(json_get_string(part, source, "behavior", true, &behavior));
    TRY(json_get_bool(part, source, "invert", false, &invert));
    bool is_gpt2 = strcmp(regex, gpt2_pattern) == 0;
    *pattern = is_gpt2 ? BPE_GPT2 : BPE_BLOOM;
    FAIL_IF(invert || strcmp(behavior, "Isolated") != 0 || (!is_gpt2 && strcmp(regex, bloom_pattern) != 0),
            STATUS_DATA,
            "%s: the pre_tokenizer splits by '%.200s', but kiln knows only the patterns of GPT-2 and BLOOM, "
            "with the behavior Isolated",
            source, regex);
    return status_ok();
}

static struct status refuse_splitting(const char *source)
{
    return status_error(STATUS_DATA,
                        "%s: the pre_tokenizer must be ByteLevel, or a Sequence of Split and ByteLevel with "
                        "\"use_regex\": false",
                        source);
}

static struct status read_pre_tokenizer(enum bpe_pattern *pattern, const json_t *part, const char *source)
{
    bool splits;
    *pattern = BPE_GPT2;
    if (is_type(part, "ByteLevel")) {
        TRY(read_byte_level(&splits, part, source));
        return splits ? status_ok() : refuse_splitting(source);
    }
    const json_t *steps = json_object_get(part, "pretokenizers");
    const json_t *split = json_array_get(steps, 0), *bytes = json_array_get(steps, 1);
    if (!is_type(part, "Sequence") || json_array_size(steps) != 2 || !is_type(split, "Split") ||
        !is_type(bytes, "ByteLevel")) {
        return refuse_splitting(source);
    }
    TRY(read_split(pattern, split, source));
    TRY(read_byte_level(&splits, bytes, source));
    return splits ? refuse_splitting(source) : status_ok();
}

/* Merges are pairs, or texts with a space between them in older files. */
static struct status read_merge_list(struct bpe_merges *m, const json_t *merges, const char *source)
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

struct status bpe_json_read(struct bpe *bpe, struct added_tokens *added, const json_t *root,
                            const char *source)
{
    const json_t *model = json_object_get(root, "model"), *normalizer = json_object_get(root, "normalizer");
    *bpe = (struct bpe){0};
    FAIL_IF(normalizer != NULL && !json_is_null(normalizer), STATUS_DATA,
            "%s has a normalizer, which would change the text; kiln supports byte-level BPE only without one",
            source);
    TRY(check_neutral(model, source));
    TRY(read_pre_tokenizer(&bpe->pattern, json_object_get(root, "pre_tokenizer"), source));
    TRY(bpe_merges_init(&bpe->merges, json_object_get(model, "vocab"), source));
    struct status s = read_merge_list(&bpe->merges, json_object_get(model, "merges"), source);
    s = failed(s) ? s : added_tokens_read_json(added, json_object_get(root, "added_tokens"), source);
    if (failed(s)) {
        bpe_merges_fini(&bpe->merges);
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
                     "Split", "pattern", "Regex", bloom_pattern, "behavior", "Isolated", "invert", 0,
                     make_byte_level(false));
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
