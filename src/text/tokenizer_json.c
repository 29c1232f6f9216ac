#include "text/tokenizer_json.h"

#include "text/basic_tokenizer.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

static struct status check_type(const json_t *root, const char *source, const char *key, const char *wanted)
{
    const char *type = "absent";
    const json_t *part = json_object_get(root, key);
    TRY(json_get_string(part, source, "type", false, &type));
    FAIL_IF(strcmp(type, wanted) != 0, STATUS_DATA, "%s: its %s is %.60s, but BERT's is %s", source, key,
            type, wanted);
    return status_ok();
}

static struct status check_flag(const json_t *object, const char *source, const char *key)
{
    bool value = true;
    TRY(json_get_bool(object, source, key, false, &value));
    FAIL_IF(!value, STATUS_DATA, "%s: the normalizer's \"%s\" is false; only true is supported", source, key);
    return status_ok();
}

static struct status parse_normalizer(struct tokenizer_json *t, const json_t *root, const char *source)
{
    const json_t *normalizer = json_object_get(root, "normalizer");
    TRY(check_type(root, source, "normalizer", "BertNormalizer"));
    TRY(check_type(root, source, "pre_tokenizer", "BertPreTokenizer"));
    TRY(check_flag(normalizer, source, "clean_text"));
    TRY(check_flag(normalizer, source, "handle_chinese_chars"));
    t->lower_case = true;
    TRY(json_get_bool(normalizer, source, "lowercase", false, &t->lower_case));
    const json_t *strip = json_object_get(normalizer, "strip_accents");
    FAIL_IF(json_is_boolean(strip) && json_is_true(strip) != t->lower_case, STATUS_DATA,
            "%s: the normalizer's \"strip_accents\" is %s and \"lowercase\" is %s; only both the same are "
            "supported",
            source, json_is_true(strip) ? "true" : "false", t->lower_case ? "true" : "false");
    return status_ok();
}

static struct status check_text(const json_t *object, const char *source, const char *key, const char *wanted)
{
    const char *value = wanted;
    TRY(json_get_string(object, source, key, false, &value));
    FAIL_IF(strcmp(value, wanted) != 0, STATUS_DATA, "%s: the model's \"%s\" is '%.60s', but BERT's is '%s'",
            source, key, value, wanted);
    return status_ok();
}

/* Files of 2020 have no "type" in the model. */
static struct status check_model(const json_t *model, const char *source)
{
    TRY(check_text(model, source, "type", "WordPiece"));
    TRY(check_text(model, source, "unk_token", "[UNK]"));
    TRY(check_text(model, source, "continuing_subword_prefix", "##"));
    int64_t max_chars = BASIC_WORD_MAX_CHARS;
    TRY(json_get_int(model, source, "max_input_chars_per_word", false, &max_chars));
    FAIL_IF(max_chars != BASIC_WORD_MAX_CHARS, STATUS_DATA,
            "%s: \"max_input_chars_per_word\" is %lld; only %d is supported", source, (long long)max_chars,
            BASIC_WORD_MAX_CHARS);
    return status_ok();
}

/* The pieces by id. */
struct piece_list {
    const char **pieces; /* [capacity]; NULL: none yet */
    size_t capacity;
};

/* A piece may occur again with the same id: added tokens repeat those of the model. */
static struct status put_piece(struct piece_list *l, const char *source, const char *piece, const json_t *id)
{
    json_int_t i = json_integer_value(id);
    FAIL_IF(!json_is_integer(id) || i < 0 || (uint64_t)i >= l->capacity, STATUS_DATA,
            "%s: the id of piece '%.60s' must be a whole number from 0 to %zu, one for each piece", source,
            piece, l->capacity - 1);
    FAIL_IF(l->pieces[i] != NULL && strcmp(l->pieces[i], piece) != 0, STATUS_DATA,
            "%s: the pieces '%.60s' and '%.60s' have the same id %lld", source, l->pieces[i], piece,
            (long long)i);
    FAIL_IF(strpbrk(piece, "\r\n") != NULL, STATUS_DATA, "%s: the piece of id %lld has a line break", source,
            (long long)i);
    FAIL_IF(i == 0 && utf8_mark_bytes(piece, strlen(piece)) > 0, STATUS_DATA,
            "%s: the piece of id 0 begins with a byte-order mark, so no text has it; take the mark out (the "
            "file was made from a vocab.txt that began with one)",
            source);
    l->pieces[i] = piece;
    return status_ok();
}

/* `ids` has those of all pieces so far; two added tokens with one text must have one id, as a piece has. */
static struct status put_added(struct piece_list *l, const char *source, json_t *ids, const json_t *token)
{
    const char *content = "";
    TRY(json_get_string(token, source, "content", true, &content));
    json_t *id = json_object_get(token, "id"), *other = json_object_get(ids, content);
    FAIL_IF(other != NULL && !json_equal(id, other), STATUS_DATA,
            "%s: the added token '%.60s' has the id %lld, but %lld elsewhere in the file", source, content,
            (long long)json_integer_value(id), (long long)json_integer_value(other));
    TRY(put_piece(l, source, content, id));
    return json_object_set(ids, content, id) == 0
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for %s", source);
}

static struct status put_all(struct piece_list *l, const char *source, const json_t *vocab,
                             const json_t *added)
{
    const char *piece;
    json_t *id, *ids = json_copy((json_t *)vocab);
    struct status s = status_ok();
    json_object_foreach((json_t *)vocab, piece, id)
    {
        s = failed(s) ? s : put_piece(l, source, piece, id);
    }
    for (size_t i = 0; !failed(s) && i < json_array_size(added); i++) {
        s = put_added(l, source, ids, json_array_get(added, i));
    }
    json_decref(ids);
    return s;
}

/* One more than the largest id.  Ids that no piece has are left where tokens were added after a padded
 * vocabulary, or a line of vocab.txt stood twice; but a file has not many of them. */
static size_t n_ids(const json_t *vocab, const json_t *added)
{
    size_t n = json_object_size(vocab) + json_array_size(added), most = 2 * n + 1024;
    json_int_t end = 0;
    const char *piece;
    json_t *id;
    json_object_foreach((json_t *)vocab, piece, id)
    {
        end = json_integer_value(id) >= end ? json_integer_value(id) + 1 : end;
    }
    for (size_t i = 0; i < json_array_size(added); i++) {
        json_int_t of_added = json_integer_value(json_object_get(json_array_get(added, i), "id"));
        end = of_added >= end ? of_added + 1 : end;
    }
    return (size_t)end < most ? (size_t)end : n;
}

static struct status parse_pieces(struct tokenizer_json *t, const char *source, const json_t *root)
{
    const json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab");
    const json_t *added = json_object_get(root, "added_tokens");
    struct piece_list l = {.capacity = n_ids(vocab, added)};
    FAIL_IF(!json_is_object(vocab) || l.capacity == 0, STATUS_DATA,
            "%s: the model's \"vocab\" must be an object from pieces to ids", source);
    l.pieces = calloc(l.capacity, sizeof *l.pieces);
    struct status s =
        l.pieces == NULL ? status_error(STATUS_MEMORY, "%s: out of memory for %zu pieces", source, l.capacity)
                         : put_all(&l, source, vocab, added);
    for (size_t i = 0; !failed(s) && i < l.capacity; i++) {
        buf_puts(&t->vocab, l.pieces[i] != NULL ? l.pieces[i] : "");
        buf_putc(&t->vocab, '\n');
    }
    free(l.pieces);
    return failed(s) ? s : buf_status(&t->vocab);
}

struct status tokenizer_json_parse(struct tokenizer_json *t, const char *text, size_t n, const char *source)
{
    json_t *root;
    *t = (struct tokenizer_json){0};
    TRY(json_parse(&root, text, n, source));
    struct status s = parse_normalizer(t, root, source);
    if (!failed(s)) {
        s = check_model(json_object_get(root, "model"), source);
    }
    if (!failed(s)) {
        s = parse_pieces(t, source, root);
    }
    if (!failed(s)) {
        s = added_tokens_read_json(&t->added, json_object_get(root, "added_tokens"), source);
    }
    if (!failed(s)) {
        s = input_frame_parse(&t->frame, json_object_get(root, "post_processor"), source);
    }
    json_decref(root);
    if (failed(s)) {
        tokenizer_json_fini(t);
    }
    return s;
}

void tokenizer_json_fini(struct tokenizer_json *t)
{
    buf_fini(&t->vocab);
    added_tokens_fini(&t->added);
}

/* [n pieces] to ids; NULL if memory runs out. */
static json_t *make_vocab(const struct vocab *v)
{
    json_t *object = json_object();
    for (int32_t id = 0; id < v->n; id++) {
        size_t n;
        const char *piece = vocab_piece(v, id, &n);
        if (json_object_setn_new(object, piece, n, json_integer(id)) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* All pieces of a file. */
struct named_pieces {
    const struct vocab *vocab;
    const struct added_tokens *added;
};

static const char *piece_of(const void *self, int32_t id, size_t *n)
{
    const struct named_pieces *p = self;
    const struct added_token *token = added_tokens_of(p->added, id);
    if (id < p->vocab->n) {
        return vocab_piece(p->vocab, id, n);
    }
    *n = token == NULL ? 0 : token->n;
    return token == NULL ? "" : added_tokens_text(p->added, token);
}

static json_t *make_post_processor(const struct vocab *v, const struct added_tokens *added,
                                   const struct input_frame *frame)
{
    const struct named_pieces pieces = {v, added};
    struct input_frame bert = input_frame_bert(v->cls, v->sep);
    if (frame->given) {
        return input_frame_to_json(frame, piece_of, &pieces);
    }
    return v->cls < 0 || v->sep < 0 ? json_null() : input_frame_to_json(&bert, piece_of, &pieces);
}

struct status tokenizer_json_make(json_t **root, const struct vocab *v, bool lower_case,
                                  const struct added_tokens *added, const struct input_frame *frame)
{
    if (memchr(v->text, '\0', v->text_bytes) != NULL) {
        *root = NULL;
        return status_error(STATUS_DATA, "a piece of the vocabulary has the character U+0000, which the keys "
                                         "of tokenizer.json cannot hold");
    }
    *root = json_pack("{s:s, s:n, s:n, s:o, s:{s:s, s:b, s:b, s:n, s:b}, s:{s:s}, s:o, s:{s:s, s:s, s:b}, "
                      "s:{s:s, s:s, s:s, s:i, s:o}}",
                      "version", "1.0", "truncation", "padding", "added_tokens", added_tokens_json(added),
                      "normalizer", "type", "BertNormalizer", "clean_text", 1, "handle_chinese_chars", 1,
                      "strip_accents", "lowercase", (int)lower_case, "pre_tokenizer", "type",
                      "BertPreTokenizer", "post_processor", make_post_processor(v, added, frame), "decoder",
                      "type", "WordPiece", "prefix", "##", "cleanup", 1, "model", "type", "WordPiece",
                      "unk_token", "[UNK]", "continuing_subword_prefix", "##", "max_input_chars_per_word",
                      BASIC_WORD_MAX_CHARS, "vocab", make_vocab(v));
    return *root == NULL ? status_error(STATUS_MEMORY, "out of memory for tokenizer.json") : status_ok();
}
