#include "text/wordpiece.h"

#include "text/tokenizer_config.h"
#include "text/tokenizer_files.h"
#include "text/tokenizer_json.h"

#include <stdlib.h>

static struct status scratch_init(void *scratch, const struct tokenizer *t)
{
    return wordpiece_scratch_init(scratch, t->vocabulary, t->lower_case);
}

static void scratch_fini(void *scratch)
{
    wordpiece_scratch_fini(scratch);
}

static struct status encode(void *scratch, struct token_list *out, const char *text, size_t n,
                            enum tokenizer_place place)
{
    (void)place;
    return wordpiece_encode(scratch, out, text, n);
}

static struct status encode_ids(void *scratch, struct id_list *out, const char *text, size_t n,
                                enum tokenizer_place place)
{
    (void)place;
    return wordpiece_encode_ids(scratch, out, text, n);
}

static void decode(const struct tokenizer *t, struct buf *out, const int32_t *ids, size_t n)
{
    wordpiece_decode(t->vocabulary, out, ids, n);
}

static const char *piece(const struct tokenizer *t, int32_t id, size_t *n)
{
    return vocab_piece(t->vocabulary, id, n);
}

static bool continues_word(const struct tokenizer *t, int32_t id)
{
    size_t n;
    const char *text = vocab_piece(t->vocabulary, id, &n);
    return vocab_continues(text, n);
}

static int32_t find(const struct tokenizer *t, const char *piece, size_t n)
{
    return vocab_find(t->vocabulary, piece, n);
}

static json_t *config(const struct tokenizer *t, int64_t max_length)
{
    struct tokenizer_config c = {.lower_case = t->lower_case, .model_max_length = max_length};
    return tokenizer_config_to_json(&c);
}

static struct status documents(json_t **documents, const struct tokenizer *t)
{
    json_t *tokenizer;
    TRY(tokenizer_json_make(&tokenizer, t->vocabulary, t->lower_case, &t->added, &t->frame));
    *documents = json_pack("{s:o}", "tokenizer.json", tokenizer);
    return status_ok();
}

static void destroy(void *vocabulary)
{
    if (vocabulary != NULL) {
        vocab_fini(vocabulary);
        free(vocabulary);
    }
}

static const char vocabulary_name[] = "vocab.txt";

static const char *const file_names[] = {vocabulary_name,  TOKENIZER_CONFIG_NAME, "special_tokens_map.json",
                                         "tokenizer.json", "added_tokens.json",   NULL};

const struct tokenizer_kind wordpiece_tokenizer_kind = {
    .name = "WordPiece",
    .frame = input_frame_bert,
    .file_names = file_names,
    .has_letter_case = true,
    .scratch_bytes = sizeof(struct wordpiece_scratch),
    .scratch_init = scratch_init,
    .scratch_fini = scratch_fini,
    .encode = encode,
    .encode_ids = encode_ids,
    .decode = decode,
    .piece = piece,
    .find = find,
    .continues_word = continues_word,
    .config = config,
    .documents = documents,
    .destroy = destroy,
};

/* Takes ownership of the vocabulary, which is on the heap, unless it failed to open. */
static struct status take(struct tokenizer *t, struct vocab *v, struct status opened, bool lower_case)
{
    *t = (struct tokenizer){0};
    if (failed(opened)) {
        free(v);
        return opened;
    }
    *t = (struct tokenizer){.kind = &wordpiece_tokenizer_kind,
                            .n = v->n,
                            .special = {[SPECIAL_PAD] = v->pad,
                                        [SPECIAL_UNKNOWN] = v->unk,
                                        [SPECIAL_CLASS] = v->cls,
                                        [SPECIAL_SEPARATOR] = v->sep,
                                        [SPECIAL_MASK] = v->mask,
                                        [SPECIAL_BEGIN] = -1,
                                        [SPECIAL_END] = -1},
                            .lower_case = lower_case,
                            .vocabulary = v};
    tokenizer_set_files(t, &(struct tokenizer_file){vocabulary_name, v->text, v->text_bytes}, 1);
    return status_ok();
}

static struct status allocate(struct vocab **v, const char *source)
{
    *v = malloc(sizeof **v);
    return *v != NULL ? status_ok()
                      : status_error(STATUS_MEMORY, "out of memory for the vocabulary %s", source);
}

struct status wordpiece_tokenizer_open(struct tokenizer *t, const char *path, bool lower_case)
{
    struct vocab *v;
    *t = (struct tokenizer){0};
    TRY(allocate(&v, path));
    return take(t, v, vocab_open(v, path), lower_case);
}

struct status wordpiece_tokenizer_init(struct tokenizer *t, const char *text, size_t n, const char *source,
                                       bool lower_case)
{
    struct vocab *v;
    *t = (struct tokenizer){0};
    TRY(allocate(&v, source));
    return take(t, v, vocab_init(v, text, n, source), lower_case);
}

void wordpiece_tokenizer_init_unknown(struct tokenizer *t, bool lower_case)
{
    *t = (struct tokenizer){.kind = &wordpiece_tokenizer_kind, .lower_case = lower_case};
    memset(t->special, -1, sizeof t->special);
    t->special[SPECIAL_PAD] = 0;
    tokenizer_set_files(t, &(struct tokenizer_file){vocabulary_name, "", 0}, 1);
}
