#include "text/gguf_pre.h"

#include "text/bpe_split.h"

#include <string.h>

/* Of GPT-2 and BLOOM, whose expressions are bpe_split.h's; a digit, which is a step of its own kind. */
static const char gpt2[] = "gpt-2", bloom[] = "bloom", digit[] = "\\p{N}";

#define CONTRACTIONS   "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define OTHERS(more)   "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n" more "]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define WORDS(numbers) CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers OTHERS("")
#define UPPER          "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER          "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(end, numbers)                                                                                  \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" end "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" end       \
    "|" numbers OTHERS("/")

static const struct gguf_pre rows[] = {
    {.names = {"gpt-2", "mpt", "olmo", "phi-2", "jais", "trillion", "mellum", "gigachat", "a.x-4.0",
               "exaone4"},
     .steps = {gpt2}},
    {.names = {"bloom", "gpt3-finnish", "poro-chat"}, .steps = {bloom}},
    {.names = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"},
     .steps = {digit, gpt2}},
    {.names = {"qwen2", "deepseek-r1-qwen", "megrez"}, .steps = {WORDS("\\p{N}")}, .is_composed = true},
    {.names = {"stablelm2", "hunyuan"}, .steps = {WORDS("\\p{N}")}},
    {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"},
     .steps = {WORDS("\\p{N}{1,3}")},
     .ignores_merges = true,
     .adds_begin = true},
    {.names = {"dbrx", "smaug-bpe", "chatglm-bpe"}, .steps = {WORDS("\\p{N}{1,3}")}},
    {.names = {"tekken"}, .steps = {CASED("", "\\p{N}")}, .ignores_merges = true, .adds_begin = true},
    {.names = {"gpt-4o", "llama4"}, .steps = {CASED(CONTRACTIONS "?", "\\p{N}{1,3}")}},
    {.names = {"default"},
     .steps = {"[\\p{P}\\$\\+<=>\\^~\\|]+",
               "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)", "\\p{N}+",
               "[0-9][0-9][0-9]"}},
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

static bool has_name(const struct gguf_pre *row, const char *name)
{
    int i = 0;
    while (row->names[i] != NULL && strcmp(row->names[i], name) != 0) {
        i++;
    }
    return row->names[i] != NULL;
}

const struct gguf_pre *gguf_pre_find(const char *name)
{
    int i = 0;
    while (i < N_ROWS && !has_name(&rows[i], name)) {
        i++;
    }
    return i < N_ROWS ? &rows[i] : NULL;
}

void gguf_pre_list(struct buf *out)
{
    for (int i = 0; i < N_ROWS; i++) {
        for (int k = 0; rows[i].names[k] != NULL; k++) {
            buf_printf(out, "%s%s", i + k > 0 ? ", " : "", rows[i].names[k]);
        }
    }
}

/* ---- as steps of tokenizer.json ---- */

static json_t *byte_level(bool splits)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1,
                     "use_regex", splits);
}

static json_t *split_step(const char *step)
{
    if (step == digit) {
        return json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", 1);
    }
    return json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex",
                     step == bloom ? bpe_pattern_regex(BPE_BLOOM) : step, "behavior", "Isolated", "invert",
                     0);
}

json_t *gguf_pre_tokenizer(const struct gguf_pre *row)
{
    json_t *list = json_array();
    bool splits = false;
    for (int i = 0; i < GGUF_PRE_MOST_STEPS && row->steps[i] != NULL; i++) {
        splits = row->steps[i] == gpt2;
        if (!splits && json_array_append_new(list, split_step(row->steps[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    if (json_array_size(list) == 0) {
        json_decref(list);
        return byte_level(splits);
    }
    json_array_append_new(list, byte_level(splits));
    return json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", list);
}

/* Whether two steps cut alike; where ByteLevel stands, it is the last of both. */
static bool is_same_step(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"type", "pattern", "behavior", "invert", "individual_digits"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *x = json_object_get(a, keys[i]), *y = json_object_get(b, keys[i]);
        if (!json_equal(x, y) && !(x == NULL && y == NULL)) {
            return false;
        }
    }
    bool a_splits = !json_is_false(json_object_get(a, "use_regex"));
    return a_splits == !json_is_false(json_object_get(b, "use_regex"));
}

static const json_t *step_at(const json_t *pre_tokenizer, size_t i, size_t *n)
{
    const json_t *steps = json_object_get(pre_tokenizer, "pretokenizers");
    *n = steps == NULL ? 1 : json_array_size(steps);
    return steps == NULL ? pre_tokenizer : json_array_get(steps, i);
}

static bool is_same(const json_t *a, const json_t *b)
{
    size_t n_a, n_b, i = 0;
    (void)step_at(a, 0, &n_a);
    (void)step_at(b, 0, &n_b);
    while (n_a == n_b && i < n_a && is_same_step(step_at(a, i, &n_a), step_at(b, i, &n_b))) {
        i++;
    }
    return n_a == n_b && i == n_a;
}

const char *gguf_pre_name(const json_t *pre_tokenizer, bool ignores_merges)
{
    const char *name = NULL;
    for (int i = 0; i < N_ROWS && name == NULL; i++) {
        json_t *of_row = gguf_pre_tokenizer(&rows[i]);
        bool is_it =
            of_row != NULL && rows[i].ignores_merges == ignores_merges && is_same(of_row, pre_tokenizer);
        name = is_it ? rows[i].names[0] : NULL;
        json_decref(of_row);
    }
    return name;
}
