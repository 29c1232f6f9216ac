#include "text/gguf_tokenizer.h"

#include "text/bpe_split.h"
#include "text/gguf_pieces.h"
#include "text/gguf_pre.h"
#include "text/special_tokens.h"
#include "text/tokenizer_open.h"

#include <stdlib.h>
#include <string.h>

/* ---- byte-level BPE, as a tokenizer.json ---- */

static const char *name_of(const void *self, int32_t id, size_t *n)
{
    const struct gguf_pieces *r = self;
    *n = r->pieces[id].n;
    return r->pieces[id].text;
}

/* The pieces by their texts; special ones are among them, as in the vocabularies of GPT-2 and BLOOM. */
static struct status make_vocabulary(json_t **vocabulary, const struct gguf_pieces *r)
{
    *vocabulary = json_object();
    for (int32_t i = 0; i < r->n; i++) {
        const struct gguf_piece *p = &r->pieces[i];
        bool is_first = json_object_getn(*vocabulary, p->text, p->n) == NULL;
        if (p->type == GGUF_TOKEN_UNUSED || p->type == GGUF_TOKEN_USER_DEFINED ||
            (p->type != GGUF_TOKEN_NORMAL && !is_first)) {
            continue;
        }
        FAIL_IF(!is_first, STATUS_DATA,
                "%s: token %d of " GGUF_TOKENIZER_TOKENS ", '%.*s', stands there twice", r->source, i,
                (int)(p->n > 60 ? 60 : p->n), p->text);
        if (json_object_setn_new(*vocabulary, p->text, p->n, json_integer(i)) != 0) {
            return gguf_pieces_no_memory(r);
        }
    }
    return status_ok();
}

static struct status make_merges(json_t **merges, const struct gguf_pieces *r)
{
    const struct gguf_pair *list;
    size_t n;
    *merges = json_array();
    TRY(gguf_pieces_list(&list, r, GGUF_TOKENIZER_MERGES, true, 0));
    FAIL_IF(list == NULL, STATUS_DATA, "%s has no list " GGUF_TOKENIZER_MERGES ", which byte-level BPE needs",
            r->source);
    struct span span = list->values;
    for (const char *text = gguf_next_text(&span, &n); text != NULL; text = gguf_next_text(&span, &n)) {
        FAIL_IF(json_array_append_new(*merges, json_stringn(text, n)) != 0, STATUS_DATA,
                "%s: entry %zu of " GGUF_TOKENIZER_MERGES " is no text in UTF-8", r->source,
                json_array_size(*merges));
    }
    return status_ok();
}

static struct status find_pre(const struct gguf_pre **row, const struct gguf_pieces *r)
{
    char *name;
    struct buf known = {0};
    TRY(gguf_pieces_text(&name, r, GGUF_TOKENIZER_PRE));
    *row = gguf_pre_find(name == NULL ? "default" : name);
    if (*row == NULL) {
        gguf_pre_list(&known);
    }
    struct status s =
        *row != NULL ? status_ok()
                     : status_error(STATUS_DATA, "%s: " GGUF_TOKENIZER_PRE " is \"%.40s\"; kiln reads: %s",
                                    r->source, name, buf_text(&known));
    buf_fini(&known);
    free(name);
    return s;
}

static json_t *make_processor(const struct gguf_pieces *r)
{
    struct input_frame f = gguf_pieces_frame(r);
    bool is_bare = f.one.n_first == 0;
    return is_bare ? json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 1,
                               "trim_offsets", 0, "use_regex", 1)
                   : input_frame_to_json(&f, name_of, r);
}

static struct status make_json(json_t **root, struct gguf_pieces *r)
{
    const struct gguf_pre *row;
    json_t *vocabulary = NULL, *merges = NULL;
    *root = NULL;
    TRY(find_pre(&row, r));
    TRY(gguf_pieces_read_frame(r, row->adds_begin));
    struct status s = make_vocabulary(&vocabulary, r);
    s = failed(s) ? s : make_merges(&merges, r);
    if (!failed(s)) {
        json_t *composed = row->is_composed ? json_pack("{s:s}", "type", "NFC") : json_null();
        *root = json_pack(
            "{s:s, s:n, s:n, s:o, s:o, s:o, s:o, s:{s:s, s:b, s:b, s:b}, s:{s:s, s:n, s:n, s:n, s:n, s:b, "
            "s:b, s:b, s:O, s:O}}",
            "version", "1.0", "truncation", "padding", "added_tokens", gguf_pieces_added(r), "normalizer",
            composed, "pre_tokenizer", gguf_pre_tokenizer(row), "post_processor", make_processor(r),
            "decoder", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 1, "model",
            "type", "BPE", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
            "fuse_unk", 0, "byte_fallback", 0, "ignore_merges", row->ignores_merges, "vocab", vocabulary,
            "merges", merges);
        s = *root == NULL ? gguf_pieces_no_memory(r) : s;
    }
    json_decref(vocabulary);
    json_decref(merges);
    return s;
}

/* Opens a tokenizer.json, whose text is made of its values. */
static struct status open_root(struct tokenizer *t, struct added_tokens *added, const json_t *root,
                               const struct gguf_pieces *r)
{
    bool found;
    char *text = json_dumps(root, JSON_COMPACT);
    if (text == NULL) {
        return gguf_pieces_no_memory(r);
    }
    struct status s = tokenizer_open_json(t, added, &found, root, text, strlen(text), r->source);
    free(text);
    return s;
}

static struct status open_bpe(struct tokenizer *t, struct added_tokens *added, struct gguf_pieces *r)
{
    json_t *root;
    TRY(make_json(&root, r));
    struct status s = open_root(t, added, root, r);
    json_decref(root);
    return s;
}

/* ---- a tokenizer.json that the file holds ---- */

static struct status open_whole(struct tokenizer *t, struct added_tokens *added, bool *found,
                                const struct gguf_pieces *r)
{
    char *text;
    json_t *root;
    *found = false;
    TRY(gguf_pieces_text(&text, r, GGUF_TOKENIZER_JSON));
    if (text == NULL) {
        return status_ok();
    }
    struct status s = json_parse(&root, text, strlen(text), r->source);
    if (!failed(s)) {
        s = tokenizer_open_json(t, added, found, root, text, strlen(text), r->source);
        json_decref(root);
    }
    free(text);
    return s;
}

/* ---- all ---- */

static struct status open_kind(struct tokenizer *t, struct added_tokens *added, struct gguf_pieces *r)
{
    char *model;
    TRY(gguf_pieces_text(&model, r, GGUF_TOKENIZER_MODEL));
    const char *name = model == NULL ? "" : model;
    struct status s =
        strcmp(name, BPE_GGUF_MODEL) == 0 ? open_bpe(t, added, r)
        : strcmp(name, "llama") == 0      ? gguf_sentencepiece_open(t, added, r, false)
        : strcmp(name, "t5") == 0
            ? gguf_sentencepiece_open(t, added, r, true)
            : status_error(STATUS_DATA,
                           "%s: " GGUF_TOKENIZER_MODEL " is \"%.40s\"; kiln reads gpt2 (byte-level BPE), "
                           "llama and t5 (SentencePiece's BPE and unigram)",
                           r->source, name);
    free(model);
    return s;
}

static void add_end(struct tokenizer *t, int32_t id)
{
    bool is_new = id >= 0 && id < t->n && t->n_ends < TOKENIZER_MOST_ENDS;
    for (int i = 0; i < t->n_ends; i++) {
        is_new = is_new && t->ends[i] != id;
    }
    if (is_new) {
        t->ends[t->n_ends++] = id;
    }
}

static struct status complete(struct tokenizer *t, struct added_tokens *added, const struct gguf_pieces *r)
{
    tokenizer_take_added(t, added);
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        t->special[i] = r->special[i] >= 0 && r->special[i] < t->n ? r->special[i] : t->special[i];
    }
    add_end(t, r->special[SPECIAL_END]);
    add_end(t, r->turn_end);
    TRY(special_tokens_find(t, NULL));
    TRY(gguf_pieces_text(&t->chat_template, r, GGUF_TOKENIZER_TEMPLATE));
    return input_frame_check(&t->frame, t->n, r->source);
}

static struct status read_all(struct tokenizer *t, struct added_tokens *added, struct gguf_pieces *r)
{
    bool found;
    TRY(gguf_pieces_read(r));
    TRY(open_whole(t, added, &found, r));
    TRY(found ? status_ok() : open_kind(t, added, r));
    struct status s = complete(t, added, r);
    if (failed(s)) {
        tokenizer_fini(t);
    }
    return s;
}

struct status gguf_tokenizer_read(struct tokenizer *t, const struct gguf_file *f, const char *source)
{
    struct gguf_pieces r = {.f = f, .source = source};
    struct added_tokens added = {0};
    *t = (struct tokenizer){0};
    struct status s = read_all(t, &added, &r);
    added_tokens_fini(&added);
    gguf_pieces_fini(&r);
    return s;
}

struct status gguf_tokenizer_open(struct tokenizer *t, const char *path)
{
    struct gguf_file f;
    *t = (struct tokenizer){0};
    TRY(gguf_file_open_keys(&f, path));
    struct status s = gguf_tokenizer_read(t, &f, path);
    gguf_file_close(&f);
    return s;
}
