#include "text/bpe_tokenizer.h"

#include "io/file.h"
#include "text/bpe_json.h"
#include "text/special_tokens.h"
#include "text/tokenizer_files.h"

#include <stdlib.h>
#include <string.h>

struct vocabulary {
    struct bpe bpe;
    struct buf files[2]; /* the bytes of the files */
};

static struct status scratch_init(void *scratch, const struct tokenizer *t)
{
    const struct vocabulary *v = t->vocabulary;
    return bpe_scratch_init(scratch, &v->bpe);
}

static void scratch_fini(void *scratch)
{
    bpe_scratch_fini(scratch);
}

static struct status encode(void *scratch, struct token_list *out, const char *text, size_t n,
                            enum tokenizer_place place)
{
    (void)place;
    return bpe_encode(scratch, out, text, n);
}

static struct status encode_ids(void *scratch, struct id_list *out, const char *text, size_t n,
                                enum tokenizer_place place)
{
    (void)place;
    return bpe_encode_ids(scratch, out, text, n);
}

static const char *piece(const struct tokenizer *t, int32_t id, size_t *n)
{
    const struct vocabulary *v = t->vocabulary;
    return bpe_merges_piece(&v->bpe.merges, id, n);
}

static void decode(const struct tokenizer *t, struct buf *out, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes;
        const char *bytes = piece(t, ids[i], &n_bytes);
        buf_append(out, bytes, n_bytes);
    }
}

static bool continues_word(const struct tokenizer *t, int32_t id)
{
    size_t n;
    const char *bytes = piece(t, id, &n);
    return n > 0 && bytes[0] != ' ';
}

/* The texts of GPT-2, then those of BLOOM; the mask is RoBERTa's. */
static const char *const special_names[SPECIAL_COUNT][2] = {
    [SPECIAL_PAD] = {"<pad>"},
    [SPECIAL_UNKNOWN] = {"<unk>"},
    [SPECIAL_MASK] = {"<mask>"},
    [SPECIAL_BEGIN] = {"<|endoftext|>", "<s>"},
    [SPECIAL_END] = {"<|endoftext|>", "</s>"},
};

static int32_t find(const struct tokenizer *t, const char *piece, size_t n)
{
    const struct vocabulary *v = t->vocabulary;
    return bpe_merges_id(&v->bpe.merges, piece, n);
}

/* RoBERTa's puts its special tokens around a text, as GPT-2's does not. */
static const char *class_of(const struct tokenizer *t)
{
    const struct vocabulary *v = t->vocabulary;
    if (v->bpe.settings_hash != 0) { /* only tokenizer.json says it all */
        return "PreTrainedTokenizerFast";
    }
    return v->bpe.pattern == BPE_BLOOM                                            ? "BloomTokenizerFast"
           : t->special[SPECIAL_CLASS] >= 0 && t->special[SPECIAL_SEPARATOR] >= 0 ? "RobertaTokenizerFast"
                                                                                  : "GPT2Tokenizer";
}

static json_t *config(const struct tokenizer *t, int64_t max_length)
{
    return json_pack("{s:s, s:b, s:I}", "tokenizer_class", class_of(t), "add_prefix_space", 0,
                     "model_max_length", (json_int_t)max_length);
}

static struct status documents(json_t **documents, const struct tokenizer *t)
{
    json_t *generation = json_object();
    special_tokens_put_ids(generation, t);
    *documents = json_pack("{s:o}", "generation_config.json", generation);
    return *documents != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for a tokenizer");
}

/* The pattern and the like, the pieces and the merges, whichever files they are in. */
static uint64_t hash(const struct tokenizer *t)
{
    const struct vocabulary *v = t->vocabulary;
    return bpe_merges_hash(&v->bpe.merges) + (uint64_t)v->bpe.pattern + v->bpe.settings_hash;
}

static void destroy(void *vocabulary)
{
    struct vocabulary *v = vocabulary;
    if (v != NULL) {
        bpe_fini(&v->bpe);
        buf_fini(&v->files[0]);
        buf_fini(&v->files[1]);
        free(v);
    }
}

static const char vocab_name[] = "vocab.json", merges_name[] = "merges.txt", json_name[] = "tokenizer.json";

static const char *const file_names[] = {vocab_name,
                                         merges_name,
                                         json_name,
                                         TOKENIZER_CONFIG_NAME,
                                         "special_tokens_map.json",
                                         "added_tokens.json",
                                         "generation_config.json",
                                         NULL};

const struct tokenizer_kind bpe_tokenizer_kind = {
    .name = "byte-level BPE",
    .is_json = bpe_json_is_bpe,
    .open_json = bpe_tokenizer_init,
    .file_names = file_names,
    .decodes_bytes = true,
    .frame = input_frame_roberta,
    .special_names = special_names,
    .scratch_bytes = sizeof(struct bpe_scratch),
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

static struct status allocate(struct tokenizer *t)
{
    struct vocabulary *v = calloc(1, sizeof *v);
    *t = (struct tokenizer){.kind = &bpe_tokenizer_kind, .vocabulary = v, .parses_special = true};
    return v != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for a vocabulary");
}

/* Completes a tokenizer whose vocabulary was read, and its files; or ends it. */
static struct status complete(struct tokenizer *t, struct status s, const char *const names[2], int n_files)
{
    struct vocabulary *v = t->vocabulary;
    struct tokenizer_file files[2];
    for (int i = 0; i < n_files; i++) {
        s = failed(s) ? s : buf_status(&v->files[i]);
        files[i] = (struct tokenizer_file){names[i], v->files[i].data, v->files[i].n};
    }
    if (failed(s)) {
        tokenizer_fini(t);
        return s;
    }
    t->n = v->bpe.merges.n;
    memset(t->special, -1, sizeof t->special);
    tokenizer_set_files(t, files, n_files);
    return status_ok();
}

static struct status read_file(struct buf *bytes, const char *path)
{
    struct file_map map;
    TRY(file_map_open(&map, path));
    buf_append(bytes, map.n == 0 ? "" : (const char *)map.data, map.n);
    file_map_close(&map);
    return buf_status(bytes);
}

static struct status read_files(struct vocabulary *v, const char *vocab_path, const char *merges_path)
{
    json_t *pieces;
    TRY(read_file(&v->files[0], vocab_path));
    TRY(read_file(&v->files[1], merges_path));
    TRY(json_parse(&pieces, buf_text(&v->files[0]), v->files[0].n, vocab_path));
    struct status s = bpe_merges_init(&v->bpe.merges, pieces, vocab_path);
    json_decref(pieces);
    TRY(s);
    v->bpe.gguf_name = bpe_pattern_gguf_name(v->bpe.pattern);
    return bpe_json_read_merges(&v->bpe.merges, buf_text(&v->files[1]), v->files[1].n, merges_path);
}

struct status bpe_tokenizer_open(struct tokenizer *t, const char *vocab_path, const char *merges_path)
{
    TRY(allocate(t));
    return complete(t, read_files(t->vocabulary, vocab_path, merges_path),
                    (const char *const[2]){vocab_name, merges_name}, 2);
}

struct status bpe_tokenizer_init(struct tokenizer *t, struct added_tokens *added, const json_t *root,
                                 const char *text, size_t n, const char *source)
{
    TRY(allocate(t));
    struct vocabulary *v = t->vocabulary;
    struct status s = bpe_json_read(&v->bpe, added, root, source);
    buf_append(&v->files[0], text, n);
    return complete(t, s, (const char *const[2]){json_name}, 1);
}

const struct bpe *bpe_tokenizer_view(const struct tokenizer *t)
{
    const struct vocabulary *v = t->vocabulary;
    return t->kind == &bpe_tokenizer_kind ? &v->bpe : NULL;
}
