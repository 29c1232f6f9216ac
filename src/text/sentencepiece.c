#include "text/sentencepiece.h"

#include "text/unicode.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

void sentencepiece_fini(struct sentencepiece *p)
{
    bpe_fini(&p->bpe);
    unigram_fini(&p->unigram);
    normalizer_fini(&p->normalizer);
    charsmap_fini(&p->rules.charsmap);
    *p = (struct sentencepiece){0};
}

static bool is_space(const char *text, size_t n)
{
    return n >= SENTENCEPIECE_SPACE_BYTES &&
           memcmp(text, SENTENCEPIECE_SPACE, SENTENCEPIECE_SPACE_BYTES) == 0;
}

/* Whether a U+2581 stands after another character. */
static bool has_inner_space(const char *text, size_t n)
{
    size_t at = 0;
    while (is_space(text + at, n - at)) {
        at += SENTENCEPIECE_SPACE_BYTES;
    }
    return at < n &&
           normal_text_find(text + at, n - at, SENTENCEPIECE_SPACE, SENTENCEPIECE_SPACE_BYTES) != NULL;
}

struct status sentencepiece_set_unigram(struct sentencepiece *p, const double *scores, const bool *is_text,
                                        double least, const char *source)
{
    const struct bpe_merges *m = &p->bpe.merges;
    TRY(unigram_init(&p->unigram, m->n));
    for (int32_t id = 0; id < m->n; id++) {
        size_t n;
        int32_t before;
        const char *piece = bpe_merges_piece(m, id, &n);
        p->unigram.scores[id] = scores[id];
        if (n > 0 && (is_text == NULL || is_text[id])) {
            TRY(unigram_add(&p->unigram, &before, piece, n, id, source));
        }
    }
    p->unigram.unknown = p->bpe.unknown;
    p->unigram.unknown_score = least - SENTENCEPIECE_UNKNOWN_PENALTY;
    p->is_unigram = true;
    return status_ok();
}

void sentencepiece_close(struct sentencepiece *p)
{
    const struct bpe_merges *m = &p->bpe.merges;
    p->words_are_apart = bpe_merges_id(m, SENTENCEPIECE_SPACE, SENTENCEPIECE_SPACE_BYTES) >= 0;
    for (uint32_t i = 0; i < m->n_slots && p->words_are_apart; i++) {
        size_t n;
        const char *piece = m->slots[i].left < 0 ? NULL : bpe_merges_piece(m, m->slots[i].id, &n);
        p->words_are_apart = piece == NULL || !has_inner_space(piece, n);
    }
}

struct status sentencepiece_scratch_init(struct sentencepiece_scratch *s, const struct sentencepiece *p)
{
    *s = (struct sentencepiece_scratch){.model = p};
    struct status status = normalizer_scratch_init(&s->normalizer, &p->normalizer);
    if (!failed(status) && !p->is_unigram) {
        status = bpe_scratch_init(&s->bpe, &p->bpe);
    } else if (!failed(status) && !word_cache_init(&s->cache, WORD_CACHE_PIECE_BITS)) {
        status = status_error(STATUS_MEMORY, "out of memory for a tokenizer");
    }
    if (failed(status)) {
        sentencepiece_scratch_fini(s);
    }
    return status;
}

void sentencepiece_scratch_fini(struct sentencepiece_scratch *s)
{
    bpe_scratch_fini(&s->bpe);
    unigram_scratch_fini(&s->unigram);
    normalizer_scratch_fini(&s->normalizer);
    normal_text_fini(&s->word);
    normal_text_fini(&s->ruled);
    word_cache_fini(&s->cache);
    id_list_fini(&s->ids);
    *s = (struct sentencepiece_scratch){0};
}

/* ---- the pieces of a text without another cut ---- */

static struct status out_of_memory(size_t n)
{
    return status_error(STATUS_MEMORY, "out of memory for the tokens of a text of %zu bytes", n);
}

/* Appends a token of the bytes [begin, end) of a normalized text. */
static bool append(const struct sentencepiece_output *out, const struct normal_text *t, int32_t id,
                   size_t begin, size_t end)
{
    if (out->ids != NULL) {
        return id_list_append(out->ids, id);
    }
    struct token token = {id, normal_text_origin(t, begin), normal_text_origin(t, end)};
    return token_list_append(out->tokens, token);
}

static bool append_bytes(const struct sentencepiece_scratch *s, const struct sentencepiece_output *out,
                         const struct normal_text *t, size_t begin, size_t end)
{
    bool ok = true;
    for (size_t at = begin; at < end && ok; at++) {
        int32_t id = s->model->bpe.merges.byte[(unsigned char)t->bytes[at]];
        ok = append(out, t, id, at, at + 1);
    }
    return ok;
}

/* Unknown characters beside each other are one token, or those of their bytes. */
static struct status put_unigram(struct sentencepiece_scratch *s, const struct sentencepiece_output *out,
                                 const struct normal_text *t, size_t begin, size_t end)
{
    const struct bpe *b = &s->model->bpe;
    const struct unigram_scratch *u = &s->unigram;
    TRY(unigram_encode(&s->model->unigram, &s->unigram, t->bytes + begin, end - begin));
    for (size_t i = u->n_pieces; i > 0; i--) {
        struct unigram_piece piece = u->pieces[i - 1];
        while (piece.id == b->unknown && i > 1 && u->pieces[i - 2].id == b->unknown) {
            piece.end = u->pieces[--i - 1].end;
        }
        bool ok = piece.id == b->unknown &&
                          bpe_has_bytes(b, t->bytes + begin + piece.begin, piece.end - piece.begin)
                      ? append_bytes(s, out, t, begin + piece.begin, begin + piece.end)
                      : append(out, t, piece.id, begin + piece.begin, begin + piece.end);
        if (!ok) {
            return out_of_memory(end - begin);
        }
    }
    return status_ok();
}

/* The ids of a word, from the cache. */
static struct status put_cached(struct sentencepiece_scratch *s, struct id_list *out,
                                const struct normal_text *t, size_t begin, size_t end)
{
    size_t n = end - begin, n_ids;
    const char *word = t->bytes + begin;
    bool cached = n <= WORD_CACHE_LONG_BYTES && memchr(word, '\0', n) == NULL;
    const int32_t *ids = cached ? word_cache_find(&s->cache, word, n, &n_ids) : NULL;
    if (ids == NULL) {
        const struct sentencepiece_output own = {.ids = &s->ids};
        s->ids.n = 0;
        TRY(put_unigram(s, &own, t, begin, end));
        if (cached) {
            word_cache_add(&s->cache, word, n, s->ids.ids, s->ids.n);
        }
        ids = s->ids.ids;
        n_ids = s->ids.n;
    }
    for (size_t i = 0; i < n_ids; i++) {
        if (!id_list_append(out, ids[i])) {
            return out_of_memory(n);
        }
    }
    return status_ok();
}

static struct status put_piece(struct sentencepiece_scratch *s, const struct sentencepiece_output *out,
                               const struct normal_text *t, size_t begin, size_t end)
{
    if (s->model->is_unigram) {
        return out->ids == NULL ? put_unigram(s, out, t, begin, end) : put_cached(s, out->ids, t, begin, end);
    }
    return out->ids == NULL ? bpe_append_tokens(&s->bpe, out->tokens, t, begin, end)
                            : bpe_append_ids(&s->bpe, out->ids, t->bytes + begin, end - begin);
}

/* ---- cutting ---- */

/* The beginning of the next word after `at`: the next U+2581, or where pieces may cross between words the one
 * that ends a run of others. */
static size_t next_space(const struct normal_text *t, size_t at, bool each)
{
    size_t from = at;
    while (from < t->n && is_space(t->bytes + from, t->n - from)) {
        from += SENTENCEPIECE_SPACE_BYTES;
        if (each) {
            break;
        }
    }
    const char *found = from < t->n ? normal_text_find(t->bytes + from, t->n - from, SENTENCEPIECE_SPACE,
                                                       SENTENCEPIECE_SPACE_BYTES)
                                    : NULL;
    return found == NULL ? t->n : (size_t)(found - t->bytes);
}

/* A text with its spaces marked. */
static struct status put_marked(struct sentencepiece_scratch *s, const struct sentencepiece_output *out,
                                const struct normal_text *t)
{
    const struct sentencepiece *p = s->model;
    bool cuts = p->cut.before_spaces || (!p->is_unigram && p->words_are_apart);
    for (size_t at = 0, end; at < t->n; at = end) {
        end = cuts ? next_space(t, at, p->cut.before_spaces) : t->n;
        TRY(put_piece(s, out, t, at, end));
    }
    return status_ok();
}

/* Marks the spaces of [begin, end) and puts one in front, as Metaspace does. */
static struct status put_word(struct sentencepiece_scratch *s, const struct sentencepiece_output *out,
                              const struct normal_text *t, size_t begin, size_t end, bool prefixed)
{
    struct normal_text *word = &s->word;
    bool is_marked = end > begin && (t->bytes[begin] == ' ' || is_space(t->bytes + begin, end - begin));
    normal_text_clear(word, out->tokens != NULL);
    if (prefixed && !is_marked) {
        normal_text_put(word, SENTENCEPIECE_SPACE, SENTENCEPIECE_SPACE_BYTES, normal_text_origin(t, begin));
    }
    while (begin < end) {
        const char *space = memchr(t->bytes + begin, ' ', end - begin);
        size_t n = space == NULL ? end - begin : (size_t)(space - t->bytes) - begin;
        normal_text_copy(word, t, begin, n);
        begin += n;
        if (space != NULL) {
            normal_text_put(word, SENTENCEPIECE_SPACE, SENTENCEPIECE_SPACE_BYTES,
                            normal_text_origin(t, begin));
            begin++;
        }
    }
    normal_text_end(word, normal_text_origin(t, end));
    TRY(normal_text_status(word));
    return put_marked(s, out, word);
}

/* The end of the white space, or of what is none, from `at` on. */
static size_t end_of_run(const struct normal_text *t, size_t at, bool white)
{
    while (at < t->n) {
        uint32_t c;
        size_t length = (size_t)utf8_decode(&c, t->bytes + at, t->n - at);
        if (unicode_is_white(c) != white) {
            break;
        }
        at += length;
    }
    return at;
}

static bool has_prefix(const struct sentencepiece_cut *cut, enum tokenizer_place place, bool is_first)
{
    return (cut->prefix == SENTENCEPIECE_ALWAYS && (place != TOKENIZER_WITHIN || cut->at_white)) ||
           (cut->prefix == SENTENCEPIECE_FIRST && place == TOKENIZER_AT_START && is_first);
}

static struct status put_cut(struct sentencepiece_scratch *s, const struct sentencepiece_output *out,
                             const struct normal_text *t, enum tokenizer_place place)
{
    const struct sentencepiece_cut *cut = &s->model->cut;
    if (!cut->at_white) {
        bool prefixed = has_prefix(cut, place, true);
        return t->n == 0           ? status_ok()
               : cut->marks_spaces ? put_word(s, out, t, 0, t->n, prefixed)
                                   : put_marked(s, out, t);
    }
    for (size_t at = end_of_run(t, 0, true), end; at < t->n; at = end_of_run(t, end, true)) {
        end = end_of_run(t, at, false);
        TRY(put_word(s, out, t, at, end, has_prefix(cut, place, at == 0)));
    }
    return status_ok();
}

/* ---- SentencePiece's own normalizer ---- */

/* What the beginning of a text becomes, and its bytes. */
static struct charsmap_match next_ruled(const struct sentencepiece_rules *r, const struct normal_text *t,
                                        size_t at)
{
    struct charsmap_match m = {.n = 0};
    uint32_t c;
    if (r->has_charsmap) {
        m = charsmap_find(&r->charsmap, t->bytes + at, t->n - at, true);
    }
    if (m.n == 0) {
        m.n = m.n_text = (size_t)utf8_decode(&c, t->bytes + at, t->n - at);
        m.text = t->bytes + at;
        if (utf8_find_invalid(m.text, m.n) < m.n) {
            m = (struct charsmap_match){1, "\xEF\xBF\xBD", 3};
        }
    }
    return m;
}

static bool is_blank(const struct charsmap_match *m)
{
    return m->n_text == 1 && m->text[0] == ' ';
}

/* Appends what m became, its spaces marked; at the beginning of a run only, where they are dropped. */
static void put_ruled(struct normal_text *out, const struct charsmap_match *m, bool after_space,
                      size_t origin)
{
    size_t i = 0;
    while (after_space && i < m->n_text && m->text[i] == ' ') {
        i++;
    }
    for (; i < m->n_text; i++) {
        bool is_blank_here = m->text[i] == ' ';
        normal_text_put(out, is_blank_here ? SENTENCEPIECE_SPACE : m->text + i,
                        is_blank_here ? SENTENCEPIECE_SPACE_BYTES : 1, origin);
    }
}

static void drop_last_spaces(struct normal_text *t)
{
    while (t->n >= SENTENCEPIECE_SPACE_BYTES && is_space(t->bytes + t->n - SENTENCEPIECE_SPACE_BYTES, 3)) {
        t->n -= SENTENCEPIECE_SPACE_BYTES;
    }
}

static struct status apply_rules(struct sentencepiece_scratch *s, struct normal_text *t,
                                 enum tokenizer_place place, bool keeps_origins)
{
    const struct sentencepiece_rules *r = &s->model->rules;
    struct normal_text *out = &s->ruled;
    struct charsmap_match m;
    size_t at = 0, n_text = t->n;
    normal_text_clear(out, keeps_origins);
    while (r->drops_spaces && at < n_text && place != TOKENIZER_WITHIN) {
        m = next_ruled(r, t, at);
        if (!is_blank(&m)) {
            break;
        }
        at += m.n;
    }
    if (at < n_text && s->model->cut.prefix == SENTENCEPIECE_ALWAYS && place != TOKENIZER_WITHIN) {
        normal_text_put(out, SENTENCEPIECE_SPACE, SENTENCEPIECE_SPACE_BYTES, normal_text_origin(t, at));
    }
    bool after_space = r->drops_spaces;
    for (; at < n_text; at += m.n) {
        size_t before = out->n;
        m = next_ruled(r, t, at);
        put_ruled(out, &m, after_space, normal_text_origin(t, at));
        if (out->n > before) {
            after_space = r->drops_spaces && m.text[m.n_text - 1] == ' ';
        }
    }
    if (r->drops_spaces) {
        drop_last_spaces(out);
    }
    normal_text_end(out, normal_text_origin(t, n_text));
    *t = *out;
    return normal_text_status(out);
}

struct status sentencepiece_encode(struct sentencepiece_scratch *s, const struct sentencepiece_output *out,
                                   const char *text, size_t n, enum tokenizer_place place)
{
    struct normal_text t = {.bytes = (char *)text, .n = n};
    bool keeps = out->tokens != NULL, prepends = place != TOKENIZER_WITHIN;
    if (n == 0) {
        return status_ok();
    }
    if (s->model->rules.given) {
        TRY(apply_rules(s, &t, place, keeps));
        return put_marked(s, out, &t);
    }
    TRY(normalizer_apply(&s->model->normalizer, &s->normalizer, &t, prepends, keeps));
    return put_cut(s, out, &t, place);
}
