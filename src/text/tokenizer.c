#include "text/tokenizer.h"

#include "core/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const special_names[SPECIAL_COUNT] = {
    [SPECIAL_PAD] = "padding", [SPECIAL_UNKNOWN] = "unknown",
    [SPECIAL_CLASS] = "class", [SPECIAL_SEPARATOR] = "separator",
    [SPECIAL_MASK] = "mask",   [SPECIAL_BEGIN] = "begin",
    [SPECIAL_END] = "end"};

/* Names and their hashes, a line each. */
struct hash_list {
    char text[TOKENIZER_MAX_FILES * 80];
    size_t n;
};

/* Names are short and files few, so their list fits and hashing cannot fail. */
static void list_hash(struct hash_list *list, const char *name, uint64_t hash)
{
    size_t room = sizeof list->text - list->n;
    size_t n = (size_t)snprintf(list->text + list->n, room, "%s %016" PRIx64 "\n", name, hash);
    CHECK(n < room, "a file of a vocabulary is called %s", name);
    list->n += n;
}

static uint64_t hash_files(const struct tokenizer_file *files, int n_files)
{
    struct hash_list list = {.n = 0};
    if (n_files == 1) {
        return hash_fnv1a(files[0].bytes, files[0].n);
    }
    for (int i = 0; i < n_files; i++) {
        list_hash(&list, files[i].name, hash_fnv1a(files[i].bytes, files[i].n));
    }
    return hash_fnv1a(list.text, list.n);
}

static uint64_t hash_of(const struct tokenizer *t)
{
    struct hash_list list = {.n = 0};
    if (t->kind->hash == NULL) {
        return hash_files(t->files, t->n_files);
    }
    if (t->added_file == NULL) {
        return t->kind->hash(t);
    }
    list_hash(&list, t->kind->name, t->kind->hash(t));
    list_hash(&list, "added", hash_fnv1a(t->added_file, strlen(t->added_file)));
    return hash_fnv1a(list.text, list.n);
}

void tokenizer_set_files(struct tokenizer *t, const struct tokenizer_file *files, int n_files)
{
    CHECK(n_files >= 1 && n_files <= TOKENIZER_MAX_FILES, "%d files of a vocabulary", n_files);
    for (int i = 0; i < n_files; i++) {
        t->files[i] = files[i];
    }
    t->n_files = n_files;
    t->hash = hash_of(t);
}

static int32_t n_own(const struct tokenizer *t)
{
    return t->n_own > 0 ? t->n_own : t->n;
}

static struct status add_specials(struct tokenizer *t)
{
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        if (t->special[i] >= 0 && t->special[i] < n_own(t)) {
            size_t n;
            const char *piece = t->kind->piece(t, t->special[i], &n);
            struct added_token token = {.id = t->special[i], .special = true};
            TRY(added_tokens_add(&t->added, piece, n, token, "the vocabulary"));
        }
    }
    return status_ok();
}

/* Tokens that a text may hold are a file of the vocabulary, and so in its hash. */
static struct status add_file(struct tokenizer *t)
{
    if (!added_tokens_has_ordinary(&t->added)) {
        return status_ok();
    }
    json_t *map = added_tokens_map(&t->added);
    t->added_file = map == NULL ? NULL : json_dumps(map, JSON_INDENT(2));
    json_decref(map);
    FAIL_IF(t->added_file == NULL, STATUS_MEMORY, "out of memory for added tokens");
    CHECK(t->n_files < TOKENIZER_MAX_FILES, "%d files of a vocabulary", t->n_files);
    struct tokenizer_file files[TOKENIZER_MAX_FILES];
    memcpy(files, t->files, sizeof files);
    files[t->n_files] = (struct tokenizer_file){"added_tokens.json", t->added_file, strlen(t->added_file)};
    tokenizer_set_files(t, files, t->n_files + 1);
    return status_ok();
}

void tokenizer_take_added(struct tokenizer *t, struct added_tokens *added)
{
    added_tokens_fini(&t->added);
    t->added = *added;
    *added = (struct added_tokens){0};
    t->n_own = n_own(t);
    t->n = t->added.end > t->n_own ? t->added.end : t->n_own;
}

struct status tokenizer_close_added(struct tokenizer *t)
{
    TRY(add_specials(t));
    added_tokens_close(&t->added);
    return add_file(t);
}

bool tokenizer_cut(struct tokenizer *t, int32_t n)
{
    if (n < n_own(t)) {
        return false;
    }
    added_tokens_cut(&t->added, n);
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        t->special[i] = t->special[i] < n ? t->special[i] : -1;
    }
    int n_ends = 0;
    for (int i = 0; i < t->n_ends; i++) {
        t->ends[n_ends] = t->ends[i];
        n_ends += t->ends[i] < n;
    }
    t->n_ends = n_ends;
    t->n_own = n_own(t);
    t->n = n;
    return true;
}

bool tokenizer_spells_special(const struct tokenizer *t, struct added_match *match, const char *text,
                              size_t n)
{
    size_t from = 0;
    while (added_tokens_find(&t->added, match, text, n, from, true, t->lower_case)) {
        if (match->token->special) {
            return true;
        }
        from = match->at + match->n;
    }
    return false;
}

void tokenizer_fini(struct tokenizer *t)
{
    if (t->kind != NULL) {
        t->kind->destroy(t->vocabulary);
    }
    free(t->chat_template);
    added_tokens_fini(&t->added);
    free(t->added_file);
    *t = (struct tokenizer){0};
}

struct status tokenizer_set_lower_case(struct tokenizer *t, bool lower_case)
{
    FAIL_IF(lower_case && !t->kind->has_letter_case, STATUS_USAGE,
            "a %s tokenizer keeps the case of text; leave out --do_lower_case", t->kind->name);
    t->lower_case = lower_case;
    return status_ok();
}

struct status tokenizer_require(const struct tokenizer *t, unsigned wanted, const char *what)
{
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        FAIL_IF((wanted >> i & 1) != 0 && t->special[i] < 0, STATUS_DATA,
                "the vocabulary of this %s tokenizer has no %s token, which %s needs; use a vocabulary that "
                "has one",
                t->kind->name, special_names[i], what);
    }
    return status_ok();
}

/* The frame of a tokenizer whose files give none: of a decoder, a tokenizer.json without post_processor adds
 * nothing. */
static struct status usual_frame(struct input_frame *f, const struct tokenizer *t, const char *what)
{
    if (t->kind->decodes_bytes && t->special[SPECIAL_CLASS] < 0 && t->special[SPECIAL_SEPARATOR] < 0) {
        *f = input_frame_bare();
        return status_ok();
    }
    *f = t->kind->frame(t->special[SPECIAL_CLASS], t->special[SPECIAL_SEPARATOR]);
    return tokenizer_require(t, 1U << SPECIAL_CLASS | 1U << SPECIAL_SEPARATOR, what);
}

struct status tokenizer_frame(struct input_frame *f, const struct tokenizer *t, const char *what)
{
    *f = t->frame;
    TRY(f->given ? status_ok() : usual_frame(f, t, what));
    if (t->has_one_segment) {
        input_form_join(&f->one);
        input_form_join(&f->pair);
    }
    return status_ok();
}

int32_t tokenizer_tail_id(const struct tokenizer *t)
{
    return t->special[SPECIAL_PAD] >= 0 ? t->special[SPECIAL_PAD] : 0;
}

const char *tokenizer_piece(const struct tokenizer *t, int32_t id, size_t *n)
{
    CHECK(id >= 0 && id < t->n, "id %d of a vocabulary of %d", id, t->n);
    if (id < n_own(t)) {
        return t->kind->piece(t, id, n);
    }
    const struct added_token *added = added_tokens_of(&t->added, id);
    *n = added == NULL ? 0 : added->n;
    return added == NULL ? "" : added_tokens_text(&t->added, added);
}

int32_t tokenizer_find(const struct tokenizer *t, const char *text, size_t n)
{
    const struct added_token *added = added_tokens_find_text(&t->added, text, n);
    return added != NULL ? added->id : t->kind->find(t, text, n);
}

bool tokenizer_ends(const struct tokenizer *t, int32_t id)
{
    int i = 0;
    while (i < t->n_ends && t->ends[i] != id) {
        i++;
    }
    return i < t->n_ends;
}

bool tokenizer_is_special(const struct tokenizer *t, int32_t id)
{
    const struct added_token *added = added_tokens_of(&t->added, id);
    bool is_special = added != NULL && added->special;
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        is_special = is_special || t->special[i] == id;
    }
    return is_special;
}

bool tokenizer_continues_word(const struct tokenizer *t, int32_t id)
{
    CHECK(id >= 0 && id < t->n, "id %d of a vocabulary of %d", id, t->n);
    return id < n_own(t) && t->kind->continues_word(t, id);
}

struct status tokenizer_decode(const struct tokenizer *t, struct buf *out, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        FAIL_IF(ids[i] < 0 || ids[i] >= t->n, STATUS_DATA,
                "token %zu has the id %d, but the vocabulary has %d pieces", i, ids[i], t->n);
    }
    for (size_t begin = 0, end = 0; begin < n; begin = end) {
        while (end < n && ids[end] < n_own(t)) {
            end++;
        }
        if (begin > 0 && !t->kind->decodes_bytes) {
            buf_putc(out, ' ');
        }
        if (end > begin) {
            t->kind->decode(t, out, ids + begin, end - begin);
            continue;
        }
        size_t n_bytes;
        const char *piece = tokenizer_piece(t, ids[end++], &n_bytes);
        buf_append(out, piece, n_bytes);
    }
    return buf_status(out);
}

struct status tokenizer_decode_text(const struct tokenizer *t, struct buf *out, const int32_t *ids, size_t n)
{
    size_t begin = out->n;
    TRY(tokenizer_decode(t, out, ids, n));
    if (t->adds_space && out->n > begin && out->data[begin] == ' ' && ids[0] < n_own(t)) {
        memmove(out->data + begin, out->data + begin + 1, out->n - begin); /* with the NUL */
        out->n--;
    }
    return status_ok();
}

struct status tokenizer_scratch_init(struct tokenizer_scratch *s, const struct tokenizer *t)
{
    *s = (struct tokenizer_scratch){.tokenizer = t};
    FAIL_IF(t->n == 0, STATUS_DATA, "the model has no vocabulary, so kiln cannot encode text");
    s->own = malloc(t->kind->scratch_bytes);
    FAIL_IF(s->own == NULL, STATUS_MEMORY, "out of memory for a tokenizer");
    struct status made = t->kind->scratch_init(s->own, t);
    if (failed(made)) {
        free(s->own);
        s->own = NULL;
    }
    return made;
}

void tokenizer_scratch_fini(struct tokenizer_scratch *s)
{
    if (s->own != NULL) {
        s->tokenizer->kind->scratch_fini(s->own);
    }
    free(s->own);
    *s = (struct tokenizer_scratch){0};
}

static bool finds_added(const struct tokenizer *t)
{
    return t->parses_special || t->added_file != NULL;
}

/* text[begin..end) by the kind, whose places in it become those in the text. */
static struct status encode_part(struct tokenizer_scratch *s, struct token_list *out, const char *text,
                                 size_t begin, size_t end)
{
    size_t first = out->n;
    TRY(s->tokenizer->kind->encode(s->own, out, text + begin, end - begin,
                                   begin == 0 ? TOKENIZER_AT_START : TOKENIZER_AFTER_TOKEN));
    for (size_t i = first; i < out->n; i++) {
        out->tokens[i].start += begin;
        out->tokens[i].end += begin;
    }
    return status_ok();
}

static struct status out_of_memory(size_t n)
{
    return status_error(STATUS_MEMORY, "out of memory for the tokens of a text of %zu bytes", n);
}

struct status tokenizer_encode(struct tokenizer_scratch *s, struct token_list *out, const char *text,
                               size_t n)
{
    const struct tokenizer *t = s->tokenizer;
    struct added_match m;
    size_t at = 0;
    while (finds_added(t) &&
           added_tokens_find(&t->added, &m, text, n, at, t->parses_special, t->lower_case)) {
        TRY(encode_part(s, out, text, at, m.at));
        at = m.at + m.n;
        if (!token_list_append(out, (struct token){m.token->id, m.at, at})) {
            return out_of_memory(n);
        }
    }
    return encode_part(s, out, text, at, n);
}

static struct status encode_ids(struct tokenizer_scratch *s, struct id_list *out, const char *text, size_t n,
                                enum tokenizer_place place)
{
    const struct tokenizer *t = s->tokenizer;
    struct added_match m;
    size_t at = 0;
    while (finds_added(t) &&
           added_tokens_find(&t->added, &m, text, n, at, t->parses_special, t->lower_case)) {
        TRY(t->kind->encode_ids(s->own, out, text + at, m.at - at, place));
        place = TOKENIZER_AFTER_TOKEN;
        at = m.at + m.n;
        if (!id_list_append(out, m.token->id)) {
            return out_of_memory(n);
        }
    }
    return t->kind->encode_ids(s->own, out, text + at, n - at, place);
}

struct status tokenizer_encode_ids(struct tokenizer_scratch *s, struct id_list *out, const char *text,
                                   size_t n)
{
    return encode_ids(s, out, text, n, TOKENIZER_AT_START);
}

struct status tokenizer_encode_rest(struct tokenizer_scratch *s, struct id_list *out, const char *text,
                                    size_t n)
{
    return encode_ids(s, out, text, n, TOKENIZER_WITHIN);
}

struct status tokenizer_encode_word(struct tokenizer_scratch *s, struct id_list *out, const char *word,
                                    size_t n)
{
    if (!s->tokenizer->kind->decodes_bytes || s->tokenizer->adds_space) {
        return tokenizer_encode_ids(s, out, word, n);
    }
    struct buf spaced = {0};
    buf_append(&spaced, " ", 1);
    buf_append(&spaced, word, n);
    struct status status = buf_status(&spaced);
    status = failed(status) ? status : tokenizer_encode_ids(s, out, spaced.data, spaced.n);
    buf_fini(&spaced);
    return status;
}

struct status tokenizer_encode_document(struct tokenizer_scratch *s, struct id_list *out, const char *text,
                                        size_t n)
{
    TRY(input_specials_append(out, &s->tokenizer->frame.one.before));
    return tokenizer_encode_ids(s, out, text, n);
}
