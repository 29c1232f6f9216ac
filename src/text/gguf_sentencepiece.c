/* SentencePiece's models in a GGUF file, as a tokenizer.model: its pieces, and the rules of
 * its normalizer. */
#include "io/protobuf.h"
#include "text/gguf_pieces.h"
#include "text/gguf_tokenizer.h"
#include "text/sentencepiece_tokenizer.h"

enum {
    MODEL_UNIGRAM = 1,
    MODEL_BPE = 2
}; /* of sentencepiece_model.proto, as its types of pieces are GGUF's */

static void put_piece(struct buf *out, const struct gguf_piece *p)
{
    struct buf piece = {0};
    /* what a user has added is found in a text before; what is unused is in none */
    bool is_apart = p->type == GGUF_TOKEN_USER_DEFINED || p->type == GGUF_TOKEN_UNUSED;
    protobuf_put_bytes(&piece, 1, p->text, p->n);
    protobuf_put_float(&piece, 2, p->score);
    protobuf_put_int(&piece, 3, is_apart ? GGUF_TOKEN_CONTROL : p->type);
    protobuf_put_message(out, 1, &piece);
    buf_fini(&piece);
}

static void put_trainer(struct buf *out, const struct gguf_pieces *r, int model)
{
    struct buf part = {0};
    bool has_bytes = false;
    int32_t unknown = r->special[SPECIAL_UNKNOWN];
    for (int32_t i = r->n - 1; i >= 0; i--) {
        has_bytes = has_bytes || r->pieces[i].type == GGUF_TOKEN_BYTE;
        unknown = r->special[SPECIAL_UNKNOWN] < 0 && r->pieces[i].type == GGUF_TOKEN_UNKNOWN ? i : unknown;
    }
    protobuf_put_int(&part, 3, model);
    protobuf_put_int(&part, 35, has_bytes);
    protobuf_put_int(&part, 40, unknown < 0 ? 0 : unknown);
    protobuf_put_int(&part, 41, r->special[SPECIAL_BEGIN]);
    protobuf_put_int(&part, 42, r->special[SPECIAL_END]);
    protobuf_put_int(&part, 43, r->special[SPECIAL_PAD]);
    protobuf_put_message(out, 2, &part);
    buf_fini(&part);
}

static struct status put_normalizer(struct buf *out, const struct gguf_pieces *r)
{
    struct buf part = {0};
    bool adds_space = true, drops = false;
    const struct gguf_pair *map = gguf_file_find(r->f, "tokenizer.ggml.precompiled_charsmap");
    TRY(gguf_pieces_bool(&adds_space, r, GGUF_TOKENIZER_SPACE));
    TRY(gguf_pieces_bool(&drops, r, "tokenizer.ggml.remove_extra_whitespaces"));
    FAIL_IF(map != NULL && (!map->is_list || gguf_value_bytes(map->type) != 1), STATUS_DATA,
            "%s: tokenizer.ggml.precompiled_charsmap must be a list of bytes", r->source);
    if (map != NULL && map->n > 0) {
        protobuf_put_bytes(&part, 2, map->values.data, map->values.n);
    }
    protobuf_put_int(&part, 3, adds_space);
    protobuf_put_int(&part, 4, drops);
    protobuf_put_int(&part, 5, 1);
    protobuf_put_message(out, 3, &part);
    buf_fini(&part);
    return status_ok();
}

static struct status list_added(struct added_tokens *added, const struct gguf_pieces *r)
{
    json_t *list = gguf_pieces_added(r);
    if (list == NULL) {
        return gguf_pieces_no_memory(r);
    }
    struct status s = added_tokens_read_json(added, list, r->source);
    json_decref(list);
    return s;
}

struct status gguf_sentencepiece_open(struct tokenizer *t, struct added_tokens *added, struct gguf_pieces *r,
                                      bool is_unigram)
{
    struct buf out = {0};
    TRY(gguf_pieces_read_frame(r, !is_unigram));
    r->adds_end = r->adds_end || (is_unigram && gguf_file_find(r->f, GGUF_TOKENIZER_ENDS) == NULL);
    TRY(list_added(added, r));
    for (int32_t i = 0; i < r->n; i++) {
        put_piece(&out, &r->pieces[i]);
    }
    put_trainer(&out, r, is_unigram ? MODEL_UNIGRAM : MODEL_BPE);
    struct status s = put_normalizer(&out, r);
    s = failed(s) ? s : buf_status(&out);
    s = failed(s) ? s : sentencepiece_tokenizer_kind.open_bytes(t, out.data, out.n, r->source);
    buf_fini(&out);
    t->frame = failed(s) ? t->frame : gguf_pieces_frame(r);
    return s;
}
