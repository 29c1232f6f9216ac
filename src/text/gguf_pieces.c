#include "text/gguf_pieces.h"

#include "text/bpe_merges.h"
#include "text/gguf_tokenizer.h"
#include "text/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *gguf_tokenizer_special_key(enum special_token special)
{
    static const char *const keys[SPECIAL_COUNT] = {
        [SPECIAL_BEGIN] = "tokenizer.ggml.bos_token_id",
        [SPECIAL_END] = "tokenizer.ggml.eos_token_id",
        [SPECIAL_UNKNOWN] = "tokenizer.ggml.unknown_token_id",
        [SPECIAL_PAD] = "tokenizer.ggml.padding_token_id",
        [SPECIAL_SEPARATOR] = "tokenizer.ggml.seperator_token_id", /* llama.cpp's spelling */
        [SPECIAL_MASK] = "tokenizer.ggml.mask_token_id",
    };
    return keys[special];
}

/* ---- single values ---- */

/* A text that the caller free()s; NULL: the file has none. */
struct status gguf_pieces_text(char **text, const struct gguf_pieces *r, const char *key)
{
    const struct gguf_pair *p = gguf_file_find(r->f, key);
    json_t *value = p == NULL ? NULL : gguf_pair_to_json(p);
    *text = json_is_string(value) ? strdup(json_string_value(value)) : NULL;
    bool is_text = json_is_string(value);
    json_decref(value);
    FAIL_IF(p != NULL && !is_text, STATUS_DATA, "%s: %s must be a text in UTF-8", r->source, key);
    FAIL_IF(is_text && *text == NULL, STATUS_MEMORY, "out of memory for %s", r->source);
    return status_ok();
}

struct status gguf_pieces_bool(bool *value, const struct gguf_pieces *r, const char *key)
{
    const struct gguf_pair *p = gguf_file_find(r->f, key);
    FAIL_IF(p != NULL && (p->is_list || p->type != GGUF_VALUE_BOOL), STATUS_DATA,
            "%s: %s must be true or false", r->source, key);
    *value = p == NULL ? *value : p->values.data[0] != 0;
    return status_ok();
}

/* The id of a token; -1: the file has none. */
static struct status read_id(int32_t *id, const struct gguf_pieces *r, const char *key)
{
    const struct gguf_pair *p = key == NULL ? NULL : gguf_file_find(r->f, key);
    double value = p == NULL || p->is_list ? -1 : gguf_pair_number(p, 0);
    bool is_id = value >= 0 && value < r->n && value == floor(value);
    FAIL_IF(p != NULL && !is_id, STATUS_DATA, "%s: %s is %g, but the file has the tokens 0 to %d", r->source,
            key, value, r->n - 1);
    *id = is_id ? (int32_t)value : -1;
    return status_ok();
}

static struct status read_specials(struct gguf_pieces *r)
{
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        TRY(read_id(&r->special[i], r, gguf_tokenizer_special_key((enum special_token)i)));
    }
    return read_id(&r->turn_end, r, GGUF_TOKENIZER_TURN_END);
}

/* ---- the tokens ---- */

struct status gguf_pieces_list(const struct gguf_pair **list, const struct gguf_pieces *r, const char *key,
                               bool is_text, uint64_t n)
{
    *list = gguf_file_find(r->f, key);
    const struct gguf_pair *p = *list;
    FAIL_IF(p != NULL && (!p->is_list || (p->type == GGUF_VALUE_TEXT) != is_text || (n > 0 && p->n != n)),
            STATUS_DATA, "%s: %s must be a list of %s, one for each of the tokens", r->source, key,
            is_text ? "texts" : "numbers");
    return status_ok();
}

static struct status read_list(struct gguf_pieces *r)
{
    const struct gguf_pair *texts, *scores, *types;
    TRY(gguf_pieces_list(&texts, r, GGUF_TOKENIZER_TOKENS, true, 0));
    FAIL_IF(texts == NULL || texts->n == 0 || texts->n > BPE_MOST_PIECES, STATUS_DATA,
            "%s has no list " GGUF_TOKENIZER_TOKENS " of up to %d tokens, so its tokenizer is not known",
            r->source, BPE_MOST_PIECES);
    TRY(gguf_pieces_list(&scores, r, GGUF_TOKENIZER_SCORES, false, texts->n));
    TRY(gguf_pieces_list(&types, r, GGUF_TOKENIZER_TYPES, false, texts->n));
    struct span span = texts->values;
    r->n = (int32_t)texts->n;
    r->pieces = calloc(texts->n, sizeof *r->pieces);
    FAIL_IF(r->pieces == NULL, STATUS_MEMORY, "out of memory for the tokens of %s", r->source);
    for (int32_t i = 0; i < r->n; i++) {
        struct gguf_piece *p = &r->pieces[i];
        p->text = gguf_next_text(&span, &p->n);
        FAIL_IF(utf8_find_invalid(p->text, p->n) < p->n || memchr(p->text, '\0', p->n) != NULL, STATUS_DATA,
                "%s: token %d of " GGUF_TOKENIZER_TOKENS " is no text in UTF-8", r->source, i);
        double type = types == NULL ? GGUF_TOKEN_NORMAL : gguf_pair_number(types, (uint64_t)i);
        p->score = scores == NULL ? 0 : (float)gguf_pair_number(scores, (uint64_t)i);
        FAIL_IF(!(type >= GGUF_TOKEN_NORMAL && type <= GGUF_TOKEN_BYTE), STATUS_DATA,
                "%s: token %d of " GGUF_TOKENIZER_TYPES " is %g, but llama.cpp has the types 1 to 6",
                r->source, i, type);
        p->type = (int)type;
    }
    return status_ok();
}

/* Files without a list of types have special tokens by their ids alone. */
static void mark_specials(struct gguf_pieces *r)
{
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        if (r->special[i] >= 0 && r->pieces[r->special[i]].type == GGUF_TOKEN_NORMAL) {
            r->pieces[r->special[i]].type = GGUF_TOKEN_CONTROL;
        }
    }
}

static bool is_added(const struct gguf_piece *p)
{
    return p->type == GGUF_TOKEN_CONTROL || p->type == GGUF_TOKEN_USER_DEFINED ||
           p->type == GGUF_TOKEN_UNKNOWN;
}

/* "added_tokens" of tokenizer.json; NULL without memory. */
json_t *gguf_pieces_added(const struct gguf_pieces *r)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < r->n; i++) {
        const struct gguf_piece *p = &r->pieces[i];
        if (is_added(p) &&
            json_array_append_new(list, json_pack("{s:i, s:s%, s:b, s:b, s:b, s:b, s:b}", "id", i, "content",
                                                  p->text, p->n, "single_word", 0, "lstrip", 0, "rstrip", 0,
                                                  "normalized", 0, "special",
                                                  p->type != GGUF_TOKEN_USER_DEFINED)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* ---- the tokens around a text ---- */

struct input_frame gguf_pieces_frame(const struct gguf_pieces *r)
{
    struct input_frame f = input_frame_bare();
    f.given = true;
    if (r->adds_begin && r->special[SPECIAL_BEGIN] >= 0) {
        f.one.before = f.pair.before = (struct input_specials){1, {r->special[SPECIAL_BEGIN]}};
    }
    if (r->adds_end && r->special[SPECIAL_END] >= 0) {
        f.one.after = f.pair.between = f.pair.after = (struct input_specials){1, {r->special[SPECIAL_END]}};
    }
    f.one.n_first = f.one.before.n + f.one.after.n;
    f.pair.n_first = f.pair.before.n + f.pair.between.n + f.pair.after.n;
    return f;
}

struct status gguf_pieces_read_frame(struct gguf_pieces *r, bool begins)
{
    r->adds_begin = begins;
    TRY(gguf_pieces_bool(&r->adds_begin, r, GGUF_TOKENIZER_BEGINS));
    return gguf_pieces_bool(&r->adds_end, r, GGUF_TOKENIZER_ENDS);
}

struct status gguf_pieces_no_memory(const struct gguf_pieces *r)
{
    return status_error(STATUS_MEMORY, "out of memory for the tokenizer of %s", r->source);
}

struct status gguf_pieces_read(struct gguf_pieces *r)
{
    TRY(read_list(r));
    TRY(read_specials(r));
    if (gguf_file_find(r->f, GGUF_TOKENIZER_TYPES) == NULL) {
        mark_specials(r);
    }
    return status_ok();
}

void gguf_pieces_fini(struct gguf_pieces *r)
{
    free(r->pieces);
    *r = (struct gguf_pieces){0};
}
