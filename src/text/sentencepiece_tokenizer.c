#include "text/sentencepiece_tokenizer.h"

#include "core/hash.h"
#include "text/sentencepiece.h"
#include "text/sentencepiece_json.h"
#include "text/sentencepiece_model.h"
#include "text/special_tokens.h"
#include "text/tokenizer_files.h"

#include <stdlib.h>
#include <string.h>

static const char json_name[] = "tokenizer.json", model_name[] = "tokenizer.model";

struct vocabulary {
    struct sentencepiece model;
    struct buf file;  /* the bytes of the file */
    bool is_protobuf; /* it is tokenizer.model */
};

static const struct sentencepiece *model_of(const struct tokenizer *t)
{
    const struct vocabulary *v = t->vocabulary;
    return &v->model;
}

static struct status scratch_init(void *scratch, const struct tokenizer *t)
{
    return sentencepiece_scratch_init(scratch, model_of(t));
}

static void scratch_fini(void *scratch)
{
    sentencepiece_scratch_fini(scratch);
}

static struct status encode(void *scratch, struct token_list *out, const char *text, size_t n,
                            enum tokenizer_place place)
{
    const struct sentencepiece_output to = {.tokens = out};
    return sentencepiece_encode(scratch, &to, text, n, place);
}

static struct status encode_ids(void *scratch, struct id_list *out, const char *text, size_t n,
                                enum tokenizer_place place)
{
    const struct sentencepiece_output to = {.ids = out};
    return sentencepiece_encode(scratch, &to, text, n, place);
}

static const char *piece(const struct tokenizer *t, int32_t id, size_t *n)
{
    return bpe_merges_piece(&model_of(t)->bpe.merges, id, n);
}

static int32_t find(const struct tokenizer *t, const char *text, size_t n)
{
    return bpe_merges_id(&model_of(t)->bpe.merges, text, n);
}

/* The value of a digit of a byte's token; -1: it is none. */
static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte for which a token such as <0x0A> stands; -1: it is no such token. */
static int byte_of(const struct bpe *b, int32_t id, const char *text, size_t n)
{
    if (!b->has_bytes || n != 6 || memcmp(text, "<0x", 3) != 0) {
        return -1;
    }
    int high = digit_of(text[3]), low = digit_of(text[4]);
    int byte = high < 0 || low < 0 ? -1 : 16 * high + low;
    return byte >= 0 && b->merges.byte[byte] == id ? byte : -1;
}

static void decode(const struct tokenizer *t, struct buf *out, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t n_text;
        const char *text = piece(t, ids[i], &n_text);
        int byte = byte_of(&model_of(t)->bpe, ids[i], text, n_text);
        if (byte >= 0) {
            buf_putc(out, (char)byte);
            continue;
        }
        while (n_text > 0) {
            const char *space =
                normal_text_find(text, n_text, SENTENCEPIECE_SPACE, SENTENCEPIECE_SPACE_BYTES);
            size_t n_here = space == NULL ? n_text : (size_t)(space - text);
            size_t n_space = space == NULL ? 0 : SENTENCEPIECE_SPACE_BYTES;
            buf_append(out, text, n_here);
            buf_append(out, " ", n_space > 0);
            text += n_here + n_space;
            n_text -= n_here + n_space;
        }
    }
}

static bool continues_word(const struct tokenizer *t, int32_t id)
{
    size_t n;
    const char *text = piece(t, id, &n);
    return n > 0 && (n < SENTENCEPIECE_SPACE_BYTES ||
                     memcmp(text, SENTENCEPIECE_SPACE, SENTENCEPIECE_SPACE_BYTES) != 0);
}

/* The texts of Llama and T5; then those of XLM-R. */
static const char *const special_names[SPECIAL_COUNT][2] = {
    [SPECIAL_PAD] = {"<pad>"}, [SPECIAL_UNKNOWN] = {"<unk>"}, [SPECIAL_MASK] = {"<mask>"},
    [SPECIAL_BEGIN] = {"<s>"}, [SPECIAL_END] = {"</s>"},
};

/* Only tokenizer.json says it all; `transformers` reads tokenizer.model by the class. */
static json_t *config(const struct tokenizer *t, int64_t max_length)
{
    const struct vocabulary *v = t->vocabulary;
    bool begins = t->frame.one.before.n > 0, ends = t->frame.one.after.n > 0;
    if (!v->is_protobuf) {
        return json_pack("{s:s, s:I}", "tokenizer_class", "PreTrainedTokenizerFast", "model_max_length",
                         (json_int_t)max_length);
    }
    return json_pack("{s:s, s:b, s:b, s:b, s:I}", "tokenizer_class",
                     v->model.is_unigram ? "T5Tokenizer" : "LlamaTokenizer", "add_bos_token", (int)begins,
                     "add_eos_token", (int)ends, "legacy", 0, "model_max_length", (json_int_t)max_length);
}

static struct status documents(json_t **documents, const struct tokenizer *t)
{
    json_t *generation = json_object();
    special_tokens_put_ids(generation, t);
    *documents = json_pack("{s:o}", "generation_config.json", generation);
    return *documents != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for a tokenizer");
}

static uint64_t hash(const struct tokenizer *t)
{
    return bpe_merges_hash(&model_of(t)->bpe.merges) + model_of(t)->settings_hash;
}

static void destroy(void *vocabulary)
{
    struct vocabulary *v = vocabulary;
    if (v != NULL) {
        sentencepiece_fini(&v->model);
        buf_fini(&v->file);
        free(v);
    }
}

static struct status allocate(struct tokenizer *t)
{
    struct vocabulary *v = calloc(1, sizeof *v);
    *t = (struct tokenizer){.kind = &sentencepiece_tokenizer_kind, .vocabulary = v, .parses_special = true};
    return v != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for a vocabulary");
}

/* Completes a tokenizer whose vocabulary was read; or ends it. */
static struct status complete(struct tokenizer *t, struct status s, const char *name)
{
    struct vocabulary *v = t->vocabulary;
    s = failed(s) ? s : buf_status(&v->file);
    if (failed(s)) {
        tokenizer_fini(t);
        return s;
    }
    t->n = v->model.bpe.merges.n;
    t->adds_space = v->model.adds_space;
    memset(t->special, -1, sizeof t->special);
    tokenizer_set_files(t, &(struct tokenizer_file){name, v->file.data, v->file.n}, 1);
    return status_ok();
}

static struct status open_json(struct tokenizer *t, struct added_tokens *added, const json_t *root,
                               const char *text, size_t n, const char *source)
{
    TRY(allocate(t));
    struct vocabulary *v = t->vocabulary;
    buf_append(&v->file, text, n);
    return complete(t, sentencepiece_json_read(&v->model, added, root, source), json_name);
}

/* A begin token stands in front of a text, as LlamaTokenizer puts it where no file says; unigram's is T5's,
 * which puts an end behind. */
static struct input_frame frame_of(const struct sentencepiece_specials *specials, bool is_unigram)
{
    struct input_frame f = input_frame_bare();
    int32_t begin = is_unigram ? -1 : specials->begin, end = is_unigram ? specials->end : -1;
    f.given = true;
    if (begin >= 0) {
        f.one.before = f.pair.before = (struct input_specials){1, {begin}};
    }
    if (end >= 0) {
        f.one.after = f.pair.between = f.pair.after = (struct input_specials){1, {end}};
    }
    f.one.n_first = (begin >= 0) + (end >= 0);
    f.pair.n_first = (begin >= 0) + 2 * (end >= 0);
    return f;
}

static struct status open_model(struct tokenizer *t, const void *bytes, size_t n, const char *source)
{
    struct sentencepiece_specials specials = {0};
    TRY(allocate(t));
    struct vocabulary *v = t->vocabulary;
    v->is_protobuf = true;
    buf_append(&v->file, n == 0 ? "" : bytes, n);
    TRY(complete(t, sentencepiece_model_read(&v->model, &specials, bytes, n, source), model_name));
    t->special[SPECIAL_UNKNOWN] = specials.unknown;
    t->special[SPECIAL_BEGIN] = specials.begin;
    t->special[SPECIAL_END] = specials.end;
    t->special[SPECIAL_PAD] = specials.pad;
    t->frame = frame_of(&specials, v->model.is_unigram);
    return status_ok();
}

static const char *const file_names[] = {json_name,
                                         model_name,
                                         TOKENIZER_CONFIG_NAME,
                                         "special_tokens_map.json",
                                         "added_tokens.json",
                                         "generation_config.json",
                                         NULL};

const struct tokenizer_kind sentencepiece_tokenizer_kind = {
    .name = "SentencePiece",
    .file_names = file_names,
    .is_json = sentencepiece_json_is,
    .open_json = open_json,
    .file_name = model_name,
    .open_bytes = open_model,
    .decodes_bytes = true,
    .frame = input_frame_roberta,
    .special_names = special_names,
    .scratch_bytes = sizeof(struct sentencepiece_scratch),
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
    .hash = hash,
    .destroy = destroy,
};

const struct sentencepiece *sentencepiece_tokenizer_view(const struct tokenizer *t)
{
    return t->kind == &sentencepiece_tokenizer_kind ? model_of(t) : NULL;
}

bool sentencepiece_tokenizer_is_model(const struct tokenizer *t)
{
    const struct vocabulary *v = t->vocabulary;
    return t->kind == &sentencepiece_tokenizer_kind && v->is_protobuf;
}
