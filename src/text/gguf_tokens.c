#include "text/gguf_tokens.h"

#include "io/protobuf.h"
#include "text/bpe_tokenizer.h"
#include "text/gguf_tokenizer.h"
#include "text/sentencepiece_tokenizer.h"

#include <stdlib.h>
#include <string.h>

/* ---- byte-level BPE ---- */

/* A piece as the vocabulary's file writes it; tokens that were added are texts. */
static void put_piece(struct gguf_writer *w, const struct tokenizer *t, int32_t id, struct buf *room)
{
    size_t n;
    const char *bytes = tokenizer_piece(t, id, &n);
    buf_clear(room);
    if (n == 0) { /* no token has the id; llama.cpp wants a text of its own for each */
        buf_printf(room, "[PAD%d]", (int)id);
    } else if (added_tokens_of(&t->added, id) == NULL) {
        bpe_merges_write(room, bytes, n);
    } else {
        buf_append(room, bytes, n);
    }
    gguf_put_list_text(w, buf_text(room), room->n);
}

static enum gguf_token type_of(const struct tokenizer *t, int32_t id)
{
    size_t n;
    const struct added_token *added = added_tokens_of(&t->added, id);
    (void)tokenizer_piece(t, id, &n);
    return n == 0           ? GGUF_TOKEN_UNUSED
           : added == NULL  ? GGUF_TOKEN_NORMAL
           : added->special ? GGUF_TOKEN_CONTROL
                            : GGUF_TOKEN_USER_DEFINED;
}

static void put_pieces(struct gguf_writer *w, const struct tokenizer *t, struct buf *room)
{
    gguf_put_list(w, GGUF_TOKENIZER_TOKENS, GGUF_VALUE_TEXT, (uint64_t)t->n);
    for (int32_t id = 0; id < t->n; id++) {
        put_piece(w, t, id, room);
    }
    gguf_put_list(w, GGUF_TOKENIZER_TYPES, GGUF_VALUE_I32, (uint64_t)t->n);
    for (int32_t id = 0; id < t->n; id++) {
        gguf_put_list_i32(w, (int32_t)type_of(t, id));
    }
}

static void put_side(const struct bpe_merges *m, int32_t id, struct buf *room)
{
    size_t n;
    const char *bytes = bpe_merges_piece(m, id, &n);
    bpe_merges_write(room, bytes, n);
}

static void put_merges(struct gguf_writer *w, const struct bpe_merges *m,
                       const struct bpe_merge *const *by_rank, struct buf *room)
{
    gguf_put_list(w, GGUF_TOKENIZER_MERGES, GGUF_VALUE_TEXT, (uint64_t)m->n_merges);
    for (int32_t i = 0; i < m->n_merges; i++) {
        buf_clear(room);
        put_side(m, by_rank[i]->left, room);
        buf_putc(room, ' ');
        put_side(m, by_rank[i]->right, room);
        gguf_put_list_text(w, buf_text(room), room->n);
    }
}

static struct status put_bpe(struct gguf_writer *w, const struct tokenizer *t)
{
    const struct bpe *bpe = bpe_tokenizer_view(t);
    FAIL_IF(bpe->gguf_name == NULL, STATUS_UNAVAILABLE,
            "llama.cpp has no name for the pre_tokenizer of this tokenizer that kiln knows, so kiln writes "
            "no GGUF");
    const struct bpe_merge **by_rank = bpe_merges_by_rank(&bpe->merges);
    struct buf room = {0};
    FAIL_IF(by_rank == NULL, STATUS_MEMORY, "out of memory for the merges of a tokenizer");
    gguf_put_text(w, GGUF_TOKENIZER_MODEL, BPE_GGUF_MODEL);
    gguf_put_text(w, GGUF_TOKENIZER_PRE, bpe->gguf_name);
    put_pieces(w, t, &room);
    put_merges(w, &bpe->merges, by_rank, &room);
    free((void *)by_rank);
    struct status s = buf_status(&room);
    buf_fini(&room);
    return s;
}

/* ---- SentencePiece's BPE ---- */

/* What llama.cpp finds pieces by: of two neighbours it merges those whose piece has the highest score. */
struct facts {
    float score;
    enum gguf_token type;
};

static struct status refuse(const char *why)
{
    return status_error(
        STATUS_UNAVAILABLE,
        "kiln writes GGUF with SentencePiece's BPE as llama.cpp computes it, but this tokenizer %s", why);
}

static bool only_marks_spaces(const struct normalizer *z)
{
    for (int i = 0; i < z->n; i++) {
        const struct normalizer_step *step = &z->steps[i];
        bool marks = step->kind == NORMALIZER_REPLACE && strcmp(step->wanted, " ") == 0;
        bool prepends = step->kind == NORMALIZER_PREPEND;
        if ((!marks && !prepends) || strcmp(step->content, SENTENCEPIECE_SPACE) != 0) {
            return false;
        }
    }
    return true;
}

static struct status check_rules(const struct sentencepiece *p)
{
    bool drops = p->rules.given && p->rules.drops_spaces, maps = p->rules.given && p->rules.has_charsmap;
    if (p->is_unigram || !p->bpe.has_bytes) {
        return refuse(p->is_unigram ? "is a unigram" : "has no pieces for bytes");
    }
    return drops || maps || p->cut.at_white || !only_marks_spaces(&p->normalizer)
               ? refuse("changes text in other ways than by marking its spaces")
               : status_ok();
}

/* The pieces of a tokenizer.model have their scores and types in the file, which was checked. */
static void take_file(struct facts *facts, const struct tokenizer *t)
{
    struct span file = bytes_span(t->files[0].bytes, t->files[0].n);
    struct protobuf_field f, of_piece;
    for (int32_t id = 0; id < t->n && protobuf_read(&f, &file);) {
        bool is_piece = f.number == 1 && f.type == PROTOBUF_BYTES;
        while (is_piece && protobuf_read(&of_piece, &f.bytes)) {
            uint32_t bits = (uint32_t)of_piece.value;
            if (of_piece.number == 2) {
                memcpy(&facts[id].score, &bits, sizeof bits);
            } else if (of_piece.number == 3) {
                facts[id].type = (enum gguf_token)of_piece.value;
            }
        }
        id += is_piece;
    }
}

/* All merges that SentencePiece would do are in the list, for it has none: any two pieces whose text
 * together is one. */
static bool has_all_merges(const struct bpe_merges *m, const struct facts *facts, int32_t id)
{
    size_t n;
    const char *text = bpe_merges_piece(m, id, &n);
    for (size_t at = 1; at < n; at++) {
        int32_t left = bpe_merges_id(m, text, at), right = bpe_merges_id(m, text + at, n - at);
        if (left >= 0 && right >= 0 && facts[left].type == GGUF_TOKEN_NORMAL &&
            facts[right].type == GGUF_TOKEN_NORMAL && bpe_merges_find(m, left, right) == NULL) {
            return false;
        }
    }
    return true;
}

/* The list of merges of a tokenizer.json as scores of pieces, the earlier the higher: it must name the
 * merges of a piece one after the other. */
static struct status take_merges(struct facts *facts, const struct bpe_merges *m)
{
    const struct bpe_merge **by_rank = bpe_merges_by_rank(m);
    bool in_order = true, is_whole = true;
    int32_t last = -1, n = 0;
    FAIL_IF(by_rank == NULL, STATUS_MEMORY, "out of memory for the merges of a tokenizer");
    for (int32_t i = 0; i < m->n_merges; i++) {
        int32_t id = by_rank[i]->id;
        in_order = in_order && (id == last || facts[id].score == 0);
        n += id != last;
        facts[id].score = (float)-n;
        last = id;
    }
    for (int32_t id = 0; id < m->n && is_whole; id++) {
        is_whole = facts[id].type != GGUF_TOKEN_NORMAL || has_all_merges(m, facts, id);
    }
    free((void *)by_rank);
    return in_order && is_whole ? status_ok() : refuse("has merges that follow from no scores of its pieces");
}

static struct status find_facts(struct facts *facts, const struct tokenizer *t)
{
    const struct sentencepiece *p = sentencepiece_tokenizer_view(t);
    for (int32_t id = 0; id < t->n; id++) {
        facts[id].type = id == p->bpe.unknown ? GGUF_TOKEN_UNKNOWN : type_of(t, id);
    }
    for (int b = 0; b < 256; b++) {
        if (p->bpe.merges.byte[b] >= 0) {
            facts[p->bpe.merges.byte[b]].type = GGUF_TOKEN_BYTE;
        }
    }
    if (sentencepiece_tokenizer_is_model(t)) {
        take_file(facts, t);
        return status_ok();
    }
    return take_merges(facts, &p->bpe.merges);
}

static void put_facts(struct gguf_writer *w, const struct tokenizer *t, const struct facts *facts)
{
    gguf_put_list(w, GGUF_TOKENIZER_TOKENS, GGUF_VALUE_TEXT, (uint64_t)t->n);
    for (int32_t id = 0; id < t->n; id++) {
        char unused[32];
        size_t n;
        const char *text = tokenizer_piece(t, id, &n);
        snprintf(unused, sizeof unused, "[PAD%d]", (int)id);
        gguf_put_list_text(w, n == 0 ? unused : text, n == 0 ? strlen(unused) : n);
    }
    gguf_put_list(w, GGUF_TOKENIZER_SCORES, GGUF_VALUE_F32, (uint64_t)t->n);
    for (int32_t id = 0; id < t->n; id++) {
        gguf_put_list_f32(w, facts[id].score);
    }
    gguf_put_list(w, GGUF_TOKENIZER_TYPES, GGUF_VALUE_I32, (uint64_t)t->n);
    for (int32_t id = 0; id < t->n; id++) {
        gguf_put_list_i32(w, (int32_t)facts[id].type);
    }
}

static struct status put_sentencepiece(struct gguf_writer *w, const struct tokenizer *t)
{
    const struct sentencepiece *p = sentencepiece_tokenizer_view(t);
    TRY(check_rules(p));
    struct facts *facts = calloc((size_t)t->n + 1, sizeof *facts);
    FAIL_IF(facts == NULL, STATUS_MEMORY, "out of memory for the scores of a tokenizer");
    struct status s = find_facts(facts, t);
    if (!failed(s)) {
        gguf_put_text(w, GGUF_TOKENIZER_MODEL, "llama");
        gguf_put_text(w, GGUF_TOKENIZER_PRE, "default");
        put_facts(w, t, facts);
        gguf_put_bool(w, GGUF_TOKENIZER_SPACE, p->adds_space);
    }
    free(facts);
    return s;
}

/* ---- what both have ---- */

/* Whether special tokens stand first or last around a text. */
static bool has_special(const struct input_specials *s, int32_t id)
{
    return s->n > 0 && id >= 0 && s->ids[0] == id;
}

/* The end of a turn, where it is not that of a document. */
static void put_turn_end(struct gguf_writer *w, const struct tokenizer *t)
{
    int i = 0;
    while (i < t->n_ends && t->ends[i] == t->special[SPECIAL_END]) {
        i++;
    }
    if (i < t->n_ends) {
        gguf_put_u32(w, GGUF_TOKENIZER_TURN_END, (uint32_t)t->ends[i]);
    }
}

static void put_specials(struct gguf_writer *w, const struct tokenizer *t)
{
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        const char *key = gguf_tokenizer_special_key((enum special_token)i);
        if (key != NULL && t->special[i] >= 0) {
            gguf_put_u32(w, key, (uint32_t)t->special[i]);
        }
    }
    put_turn_end(w, t);
    gguf_put_bool(w, GGUF_TOKENIZER_BEGINS, has_special(&t->frame.one.before, t->special[SPECIAL_BEGIN]));
    gguf_put_bool(w, GGUF_TOKENIZER_ENDS, has_special(&t->frame.one.after, t->special[SPECIAL_END]));
}

/* A tokenizer.json says more than the other keys, such as a normalizer; llama.cpp leaves it alone. */
static void put_json(struct gguf_writer *w, const struct tokenizer *t)
{
    const struct tokenizer_file *file = &t->files[0];
    if (t->n_files > 0 && strcmp(file->name, "tokenizer.json") == 0 &&
        memchr(file->bytes, '\0', file->n) == NULL) {
        gguf_put_bytes(w, GGUF_TOKENIZER_JSON, file->bytes, file->n);
    }
}

struct status gguf_tokens_put(struct gguf_writer *w, const struct tokenizer *t)
{
    bool is_bpe = bpe_tokenizer_view(t) != NULL;
    FAIL_IF(!is_bpe && sentencepiece_tokenizer_view(t) == NULL, STATUS_UNAVAILABLE,
            "kiln writes GGUF with byte-level BPE and with SentencePiece's, not with %s", t->kind->name);
    TRY(is_bpe ? put_bpe(w, t) : put_sentencepiece(w, t));
    put_specials(w, t);
    if (t->chat_template != NULL) {
        gguf_put_text(w, GGUF_TOKENIZER_TEMPLATE, t->chat_template);
    }
    put_json(w, t);
    return status_ok();
}
