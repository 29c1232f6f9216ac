#include "text/added_tokens.h"

#include "core/array.h"
#include "core/log.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ID = 1 << 30, MOST_BYTES = 1 << 12 };

void added_tokens_fini(struct added_tokens *l)
{
    buf_fini(&l->text);
    free(l->tokens);
    *l = (struct added_tokens){0};
}

const char *added_tokens_text(const struct added_tokens *l, const struct added_token *t)
{
    return l->text.data + t->at;
}

const struct added_token *added_tokens_of(const struct added_tokens *l, int32_t id)
{
    for (int i = 0; i < l->n; i++) {
        if (l->tokens[i].id == id) {
            return &l->tokens[i];
        }
    }
    return NULL;
}

const struct added_token *added_tokens_find_text(const struct added_tokens *l, const char *text, size_t n)
{
    for (int i = 0; i < l->n; i++) {
        if (l->tokens[i].n == n && memcmp(added_tokens_text(l, &l->tokens[i]), text, n) == 0) {
            return &l->tokens[i];
        }
    }
    return NULL;
}

static struct status grow(struct added_tokens *l)
{
    return ARRAY_RESERVE(l->tokens, l->capacity, l->n + 1)
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for %d added tokens", l->n + 1);
}

struct status added_tokens_add(struct added_tokens *l, const char *content, size_t n,
                               struct added_token token, const char *source)
{
    const struct added_token *there = added_tokens_find_text(l, content, n);
    if (there != NULL) {
        if (there->id != token.id) {
            log_warning(
                "%s: the added token '%.60s' has id %d here, but %d in another file, whose id is used",
                source, content, token.id, there->id);
        }
        return status_ok();
    }
    FAIL_IF(n == 0 || n > MOST_BYTES || token.id < 0 || token.id >= MOST_ID, STATUS_DATA,
            "%s: the added token '%.60s' has id %d; it must have 1 to %d bytes and an id of 0 or more",
            source, content, token.id, MOST_BYTES);
    TRY(grow(l));
    token.at = l->text.n;
    token.n = n;
    buf_append(&l->text, content, n);
    buf_putc(&l->text, '\0');
    l->tokens[l->n++] = token;
    l->end = token.id >= l->end ? token.id + 1 : l->end;
    return buf_status(&l->text);
}

static int longest_first(const void *a, const void *b)
{
    const struct added_token *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : (x->id > y->id) - (x->id < y->id);
}

static unsigned char upper(unsigned char c)
{
    return c >= 'a' && c <= 'z' ? (unsigned char)(c - 'a' + 'A') : c;
}

static unsigned char lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c - 'A' + 'a') : c;
}

void added_tokens_close(struct added_tokens *l)
{
    if (l->n > 0) {
        qsort(l->tokens, (size_t)l->n, sizeof l->tokens[0], longest_first);
    }
    for (int i = 0; i < l->n; i++) {
        unsigned char c = (unsigned char)added_tokens_text(l, &l->tokens[i])[0];
        l->first[upper(c)] = l->first[lower(c)] = true;
    }
}

void added_tokens_cut(struct added_tokens *l, int32_t end)
{
    int n = 0;
    for (int i = 0; i < l->n; i++) {
        l->tokens[n] = l->tokens[i];
        n += l->tokens[i].id < end;
    }
    l->n = n;
    l->end = l->end < end ? l->end : end;
}

/* ---- files ---- */

/* One token: an object, whose id stands in it or is its key. */
static struct status read_one(struct added_tokens *l, const json_t *o, int64_t id, const char *source)
{
    const char *content = "";
    struct added_token t = {.id = id >= 0 && id < MOST_ID ? (int32_t)id : -1};
    TRY(json_get_string(o, source, "content", true, &content));
    TRY(json_get_bool(o, source, "special", false, &t.special));
    t.normalized = !t.special;
    TRY(json_get_bool(o, source, "normalized", false, &t.normalized));
    TRY(json_get_bool(o, source, "single_word", false, &t.single_word));
    TRY(json_get_bool(o, source, "lstrip", false, &t.lstrip));
    TRY(json_get_bool(o, source, "rstrip", false, &t.rstrip));
    return added_tokens_add(l, content, strlen(content), t, source);
}

struct status added_tokens_read_json(struct added_tokens *l, const json_t *added, const char *source)
{
    for (size_t i = 0; i < json_array_size(added); i++) {
        int64_t id = -1;
        TRY(json_get_int(json_array_get(added, i), source, "id", true, &id));
        TRY(read_one(l, json_array_get(added, i), id, source));
    }
    return status_ok();
}

struct status added_tokens_read_decoder(struct added_tokens *l, const json_t *decoder, const char *source)
{
    const char *id;
    json_t *o;
    json_object_foreach((json_t *)decoder, id, o)
    {
        TRY(read_one(l, o, strtoll(id, NULL, 10), source));
    }
    return status_ok();
}

struct status added_tokens_read_map(struct added_tokens *l, const json_t *ids, const char *source)
{
    const char *content;
    json_t *id;
    json_object_foreach((json_t *)ids, content, id)
    {
        json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
        struct added_token t = {.id = value >= 0 && value < MOST_ID ? (int32_t)value : -1,
                                .normalized = true};
        TRY(added_tokens_add(l, content, strlen(content), t, source));
    }
    return status_ok();
}

/* The caller json_decref's it. */
static json_t *object_of(const struct added_tokens *l, const struct added_token *t, bool with_id)
{
    json_t *o = with_id ? json_pack("{s:i}", "id", t->id) : json_object();
    json_t *rest = json_pack("{s:s%, s:b, s:b, s:b, s:b, s:b}", "content", added_tokens_text(l, t), t->n,
                             "single_word", t->single_word, "lstrip", t->lstrip, "rstrip", t->rstrip,
                             "normalized", t->normalized, "special", t->special);
    json_object_update(o, rest);
    json_decref(rest);
    return o;
}

/* The next token after `id` in the order of ids; NULL: there is none. */
static const struct added_token *after(const struct added_tokens *l, int32_t id)
{
    const struct added_token *next = NULL;
    for (int i = 0; i < l->n; i++) {
        const struct added_token *t = &l->tokens[i];
        next = t->id > id && (next == NULL || t->id < next->id) ? t : next;
    }
    return next;
}

json_t *added_tokens_json(const struct added_tokens *l)
{
    json_t *list = json_array();
    for (const struct added_token *t = after(l, -1); t != NULL; t = after(l, t->id)) {
        json_array_append_new(list, object_of(l, t, true));
    }
    return list;
}

json_t *added_tokens_decoder(const struct added_tokens *l)
{
    json_t *decoder = json_object();
    for (const struct added_token *t = after(l, -1); t != NULL; t = after(l, t->id)) {
        char id[16];
        snprintf(id, sizeof id, "%d", t->id);
        json_object_set_new(decoder, id, object_of(l, t, false));
    }
    return decoder;
}

json_t *added_tokens_map(const struct added_tokens *l)
{
    json_t *map = json_object();
    for (const struct added_token *t = after(l, -1); t != NULL; t = after(l, t->id)) {
        if (!t->special) {
            json_object_setn_new(map, added_tokens_text(l, t), t->n, json_integer(t->id));
        }
    }
    return map;
}

bool added_tokens_has_ordinary(const struct added_tokens *l)
{
    for (int i = 0; i < l->n; i++) {
        if (!l->tokens[i].special) {
            return true;
        }
    }
    return false;
}

/* ---- matching ---- */

static bool equals(const char *token, const char *text, size_t n, bool folds)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char a = (unsigned char)token[i], b = (unsigned char)text[i];
        if (a != b && !(folds && lower(a) == lower(b))) {
            return false;
        }
    }
    return true;
}

static bool is_word_byte(unsigned char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c >= 0x80;
}

static bool stands_alone(const char *text, size_t n, size_t at, size_t length)
{
    return (at == 0 || !is_word_byte((unsigned char)text[at - 1])) &&
           (at + length == n || !is_word_byte((unsigned char)text[at + length]));
}

/* The beginning of the white space that ends at `at`; and the end of the white space that begins there. */
static size_t begin_of_white(const char *text, size_t from, size_t at)
{
    while (at > from) {
        uint32_t c;
        size_t before = at - 1;
        while (before > from && ((unsigned char)text[before] & 0xC0) == 0x80) {
            before--;
        }
        bool is_whole = before + (size_t)utf8_decode(&c, text + before, at - before) == at;
        if (!is_whole || !unicode_is_white(c)) {
            break;
        }
        at = before;
    }
    return at;
}

static size_t end_of_white(const char *text, size_t n, size_t at)
{
    uint32_t c;
    for (size_t length; at < n; at += length) {
        length = (size_t)utf8_decode(&c, text + at, n - at);
        if (!unicode_is_white(c)) {
            break;
        }
    }
    return at;
}

/* A match, with the white space that the token takes. */
static struct added_match match_at(const struct added_token *t, const char *text, size_t n, size_t from,
                                   size_t at)
{
    size_t begin = t->lstrip ? begin_of_white(text, from, at) : at;
    size_t end = t->rstrip ? end_of_white(text, n, at + t->n) : at + t->n;
    return (struct added_match){begin, end - begin, t};
}

/* What tokens are looked for, and how. */
struct search {
    const struct added_tokens *l;
    const char *text;
    size_t from;
    bool special, folds, not_normalized;
};

/* The longest token at a place of text[0..n), or NULL. */
static const struct added_token *token_at(const struct search *s, size_t n, size_t at)
{
    for (int i = 0; s->l->first[(unsigned char)s->text[at]] && i < s->l->n; i++) {
        const struct added_token *t = &s->l->tokens[i];
        if ((!t->special || s->special) && !(s->not_normalized && t->normalized) && t->n <= n - at &&
            equals(added_tokens_text(s->l, t), s->text + at, t->n, s->folds && t->normalized) &&
            (!t->single_word || stands_alone(s->text, n, at, t->n))) {
            return t;
        }
    }
    return NULL;
}

/* The leftmost token, of text[0..n). */
static bool find_first(const struct search *s, struct added_match *match, size_t n, size_t from)
{
    for (size_t at = from; at < n; at++) {
        const struct added_token *t = token_at(s, n, at);
        if (t != NULL) {
            *match = match_at(t, s->text, n, s->from, at);
            return true;
        }
    }
    return false;
}

/* Tokens that are not normalized are cut out of a text before others are looked for: one that overlaps
 * `first`, or whose white space does. */
static bool find_before(const struct search *s, struct added_match *before, const struct added_match *first,
                        size_t n)
{
    enum { MOST_WHITE = 256 };
    struct search exact = *s;
    size_t end = first->at + first->n, limit = end + MOST_WHITE < n ? end + MOST_WHITE : n;
    size_t behind = end_of_white(s->text, limit, end);
    exact.not_normalized = true;
    for (size_t at = first->at; at < n && at <= behind; at = at + 1 >= end && at < behind ? behind : at + 1) {
        const struct added_token *t = token_at(&exact, n, at);
        if (t != NULL) {
            *before = match_at(t, s->text, n, s->from, at);
            return before->at < end;
        }
    }
    return false;
}

bool added_tokens_find(const struct added_tokens *l, struct added_match *match, const char *text, size_t n,
                       size_t from, bool special, bool folds)
{
    const struct search s = {l, text, from, special, folds, false};
    struct added_match before;
    if (l->n == 0 || !find_first(&s, match, n, from)) {
        return false;
    }
    if (match->token->normalized && find_before(&s, &before, match, n) &&
        !find_first(&s, match, before.at, match->at)) {
        *match = before;
    }
    return true;
}
