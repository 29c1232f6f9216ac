#include "text/sentencepiece_model.h"

#include "core/array.h"
#include "core/bytes.h"
#include "core/hash.h"
#include "text/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The types of a piece in the file. */
enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER_DEFINED, TYPE_UNUSED, TYPE_BYTE };
enum { MODEL_UNIGRAM = 1, MODEL_BPE };

struct piece {
    const unsigned char *text; /* [n] borrowed from the file */
    size_t n;
    float score;
    uint64_t type;
};

/* The file as it is read. */
struct reader {
    struct piece *pieces; /* [n] */
    size_t n, capacity;
    uint64_t model_type;
    bool has_bytes, is_suffix, adds_prefix, drops_spaces, escapes_spaces;
    const unsigned char *charsmap; /* [n_charsmap] borrowed */
    size_t n_charsmap;
    struct sentencepiece_specials specials;
    bool has_trainer, has_normalizer; /* these parts, which follow the pieces, are there */
    const char *source;
};

/* ---- the message ---- */

/* A field: its number, and its value: a number, 4 or 8 bytes, or bytes. */
struct field {
    uint64_t number, value;
    int wire; /* 0: a number, 1: 8 bytes, 2: bytes, 5: 4 bytes */
    struct span bytes;
};

static struct status refuse_cut(const char *source)
{
    return status_error(STATUS_DATA, "%s is no tokenizer.model of SentencePiece, or is cut short or damaged",
                        source);
}

/* The next field of a message; false: there is none, or the span has failed. */
static bool next_field(struct field *f, struct span *s)
{
    if (s->failed || bytes_left(s) == 0) {
        return false;
    }
    uint64_t key = bytes_read_varint(s);
    *f = (struct field){.number = key >> 3, .wire = (int)(key & 7)};
    switch (f->wire) {
    case 0: f->value = bytes_read_varint(s); break;
    case 1: f->value = bytes_read_u64(s); break;
    case 5: f->value = bytes_read_u32(s); break;
    case 2: {
        uint64_t n = bytes_read_varint(s);
        const unsigned char *data = n > bytes_left(s) ? NULL : bytes_take(s, (size_t)n);
        s->failed = s->failed || data == NULL;
        f->bytes = bytes_span(data, data == NULL ? 0 : (size_t)n);
        break;
    }
    default: s->failed = true;
    }
    return !s->failed && f->number > 0;
}

static float float_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

static struct status read_piece(struct reader *r, struct span s)
{
    struct piece p = {.text = (const unsigned char *)"", .type = TYPE_NORMAL};
    struct field f;
    while (next_field(&f, &s)) {
        if (f.number == 1 && f.wire == 2) {
            p.text = f.bytes.data;
            p.n = f.bytes.n;
        }
        p.score = f.number == 2 && f.wire == 5 ? float_of(f.value) : p.score;
        p.type = f.number == 3 && f.wire == 0 ? f.value : p.type;
    }
    bool is_whole = !s.failed && bytes_left(&s) == 0;
    bool is_text =
        p.n > 0 && memchr(p.text, '\0', p.n) == NULL && utf8_find_invalid((const char *)p.text, p.n) == p.n;
    FAIL_IF(!is_whole, STATUS_DATA, "%s: piece %zu is cut short or damaged", r->source, r->n);
    FAIL_IF(!is_text || !isfinite(p.score) || p.type < TYPE_NORMAL || p.type > TYPE_BYTE, STATUS_DATA,
            "%s: piece %zu has no text, no score or no type that SentencePiece knows", r->source, r->n);
    FAIL_IF(p.type == TYPE_USER_DEFINED || p.type == TYPE_UNUSED, STATUS_DATA,
            "%s: piece %zu, '%.*s', is %s, which kiln does not read from a tokenizer.model; save the "
            "tokenizer as "
            "tokenizer.json with transformers",
            r->source, r->n, (int)(p.n > 60 ? 60 : p.n), p.text,
            p.type == TYPE_UNUSED ? "marked as unused" : "defined by a user");
    FAIL_IF(!ARRAY_RESERVE(r->pieces, r->capacity, r->n + 1), STATUS_MEMORY, "out of memory for %s",
            r->source);
    r->pieces[r->n++] = p;
    return status_ok();
}

static struct status read_trainer(struct reader *r, struct span s)
{
    r->has_trainer = true;
    struct field f;
    while (next_field(&f, &s)) {
        int32_t id = f.value < INT32_MAX ? (int32_t)f.value : -1; /* -1 is written as 64 bits */
        switch (f.wire == 0 ? f.number : 0) {
        case 3: r->model_type = f.value; break;
        case 24: r->is_suffix = f.value != 0; break;
        case 35: r->has_bytes = f.value != 0; break;
        case 40: r->specials.unknown = id; break;
        case 41: r->specials.begin = id; break;
        case 42: r->specials.end = id; break;
        case 43: r->specials.pad = id; break;
        default: break;
        }
    }
    return s.failed || bytes_left(&s) > 0 ? refuse_cut(r->source) : status_ok();
}

static struct status read_normalizer(struct reader *r, struct span s)
{
    r->has_normalizer = true;
    struct field f;
    while (next_field(&f, &s)) {
        if (f.number == 2 && f.wire == 2) {
            r->charsmap = f.bytes.data;
            r->n_charsmap = f.bytes.n;
        }
        r->adds_prefix = f.number == 3 && f.wire == 0 ? f.value != 0 : r->adds_prefix;
        r->drops_spaces = f.number == 4 && f.wire == 0 ? f.value != 0 : r->drops_spaces;
        r->escapes_spaces = f.number == 5 && f.wire == 0 ? f.value != 0 : r->escapes_spaces;
    }
    return s.failed || bytes_left(&s) > 0 ? refuse_cut(r->source) : status_ok();
}

static struct status read_message(struct reader *r, struct span s)
{
    struct field f;
    while (next_field(&f, &s)) {
        if (f.wire == 2) {
            TRY(f.number == 1   ? read_piece(r, f.bytes)
                : f.number == 2 ? read_trainer(r, f.bytes)
                : f.number == 3 ? read_normalizer(r, f.bytes)
                                : status_ok());
        }
    }
    if (s.failed || bytes_left(&s) > 0 || r->n == 0 || !r->has_trainer || !r->has_normalizer) {
        return refuse_cut(r->source);
    }
    FAIL_IF(r->model_type != MODEL_UNIGRAM && r->model_type != MODEL_BPE, STATUS_DATA,
            "%s: its model is of the type %llu; kiln reads unigram (1) and BPE (2)", r->source,
            (unsigned long long)r->model_type);
    FAIL_IF(r->is_suffix || !r->escapes_spaces, STATUS_DATA,
            "%s: it puts spaces behind words or keeps them as they are, which kiln does not support",
            r->source);
    return status_ok();
}

/* ---- the vocabulary ---- */

static struct status take_pieces(struct sentencepiece *p, const struct reader *r)
{
    json_t *pieces = json_object();
    struct status s = status_ok();
    for (size_t i = 0; i < r->n && !failed(s); i++) {
        const char *text = (const char *)r->pieces[i].text;
        size_t n = r->pieces[i].n;
        if (json_object_getn(pieces, text, n) != NULL) {
            s = status_error(STATUS_DATA, "%s: piece %zu, '%.*s', stands there twice", r->source, i,
                             (int)(n > 60 ? 60 : n), text);
        } else if (json_object_setn_new(pieces, text, n, json_integer((json_int_t)i)) != 0) {
            s = status_error(STATUS_MEMORY, "out of memory for %s", r->source);
        }
    }
    s = failed(s) ? s : bpe_merges_init_plain(&p->bpe.merges, pieces, r->source);
    json_decref(pieces);
    return s;
}

static int by_score(const void *a, const void *b)
{
    const struct piece *x = *(const struct piece *const *)a, *y = *(const struct piece *const *)b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score) : (x > y) - (x < y);
}

/* The merges that make a piece: all ways to cut it in two pieces of text. */
static struct status add_merges(struct sentencepiece *p, const struct reader *r, const struct piece *piece,
                                int32_t rank)
{
    const char *text = (const char *)piece->text;
    for (size_t at = 1; at < piece->n; at++) {
        if (((unsigned char)text[at] & 0xC0) == 0x80) {
            continue;
        }
        int32_t left = bpe_merges_id(&p->bpe.merges, text, at);
        int32_t right = bpe_merges_id(&p->bpe.merges, text + at, piece->n - at);
        if (left >= 0 && right >= 0 && r->pieces[left].type == TYPE_NORMAL &&
            r->pieces[right].type == TYPE_NORMAL) {
            struct bpe_merge merge = {left, right, rank, (int32_t)(piece - r->pieces)};
            TRY(bpe_merges_put(&p->bpe.merges, merge, r->source));
        }
    }
    return status_ok();
}

/* SentencePiece merges the pair whose piece has the highest score; of equal scores, the leftmost. */
static struct status take_merges(struct sentencepiece *p, const struct reader *r)
{
    const struct piece **order =
        malloc(r->n * sizeof *order); /* NOLINT(bugprone-sizeof-expression): pointers */
    struct status s = status_ok();
    int32_t rank = -1;
    size_t n = 0;
    FAIL_IF(order == NULL, STATUS_MEMORY, "out of memory for %s", r->source);
    for (size_t i = 0; i < r->n; i++) {
        order[n] = &r->pieces[i];
        n += r->pieces[i].type == TYPE_NORMAL;
    }
    qsort((void *)order, n, sizeof *order, by_score); /* NOLINT(bugprone-sizeof-expression): pointers */
    for (size_t i = 0; i < n && !failed(s); i++) {
        rank += i == 0 || order[i]->score != order[i - 1]->score;
        s = add_merges(p, r, order[i], rank);
    }
    free((void *)order);
    return s;
}

static struct status take_scores(struct sentencepiece *p, const struct reader *r)
{
    double *scores = calloc(r->n, sizeof *scores);
    bool *is_text = calloc(r->n, sizeof *is_text);
    float least = INFINITY;
    struct status s = status_error(STATUS_MEMORY, "out of memory for %s", r->source);
    for (size_t i = 0; scores != NULL && is_text != NULL && i < r->n; i++) {
        scores[i] = (double)r->pieces[i].score;
        is_text[i] = r->pieces[i].type == TYPE_NORMAL;
        least = is_text[i] && r->pieces[i].score < least ? r->pieces[i].score : least;
    }
    if (scores != NULL && is_text != NULL) {
        s = sentencepiece_set_unigram(p, scores, is_text, (double)least, r->source);
    }
    p->unigram.sums_floats = true;
    free(scores);
    free(is_text);
    return s;
}

static struct status check_specials(const struct reader *r)
{
    const int32_t ids[] = {r->specials.unknown, r->specials.begin, r->specials.end, r->specials.pad};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        FAIL_IF(ids[i] >= 0 && (size_t)ids[i] >= r->n, STATUS_DATA,
                "%s: a special token has the id %d, but there are %zu pieces", r->source, ids[i], r->n);
    }
    FAIL_IF(r->specials.unknown < 0, STATUS_DATA, "%s has no unknown token", r->source);
    return status_ok();
}

static struct status take_all(struct sentencepiece *p, const struct reader *r, const void *bytes, size_t n)
{
    TRY(check_specials(r));
    TRY(take_pieces(p, r));
    p->bpe.unknown = r->specials.unknown;
    p->bpe.fuses_unknown = true;
    p->bpe.has_bytes = r->has_bytes;
    for (int b = 0; b < 256 && r->has_bytes; b++) {
        FAIL_IF(p->bpe.merges.byte[b] < 0, STATUS_DATA, "%s has no piece for the byte 0x%02x", r->source,
                (unsigned)b);
    }
    TRY(r->model_type == MODEL_BPE ? take_merges(p, r) : take_scores(p, r));
    p->rules.given = true;
    p->rules.drops_spaces = r->drops_spaces;
    p->cut.prefix = r->adds_prefix ? SENTENCEPIECE_ALWAYS : SENTENCEPIECE_NEVER;
    p->adds_space = r->adds_prefix;
    if (r->n_charsmap > 0) {
        p->rules.has_charsmap = true;
        TRY(charsmap_init(&p->rules.charsmap, r->charsmap, r->n_charsmap, r->source));
    }
    p->settings_hash = hash_fnv1a(bytes, n);
    sentencepiece_close(p);
    return status_ok();
}

struct status sentencepiece_model_read(struct sentencepiece *p, struct sentencepiece_specials *specials,
                                       const void *bytes, size_t n, const char *source)
{
    struct reader r = {.model_type = MODEL_UNIGRAM,
                       .adds_prefix = true,
                       .drops_spaces = true,
                       .escapes_spaces = true,
                       .specials = {0, 1, 2, -1},
                       .source = source};
    *p = (struct sentencepiece){0};
    struct status s = read_message(&r, bytes_span(bytes, n));
    s = failed(s) ? s : take_all(p, &r, bytes, n);
    *specials = r.specials;
    free(r.pieces);
    if (failed(s)) {
        sentencepiece_fini(p);
    }
    return s;
}
