#include "text/wordpiece.h"

#include <stdlib.h>
#include <string.h>

/* A cache from the bytes of a run to its ids.  A run is the text between ASCII white space and punctuation.
 * Its ids do not depend on what is around it, so on natural text the cache saves nearly all work (Zipf's
 * law). */
enum {
    MEMO_RUN_BYTES = 16,
    MEMO_IDS = 3,
    MEMO_WAYS = 2,  /* memos that share a slot: a cache line */
    MEMO_BITS = 16, /* 2^16 slots, 4 MiB: English text runs 15 % faster than with a quarter of them */
};

struct wordpiece_memo {
    uint64_t run[2]; /* the bytes, zeros behind them */
    int32_t ids[MEMO_IDS];
    uint8_t n_bytes; /* 0: empty */
    uint8_t n_ids;
};

static void append_id(struct wordpiece_scratch *t, int32_t id)
{
    if (!id_list_append(t->ids_out, id)) {
        t->out_of_memory = true;
    }
}

static void append(struct wordpiece_scratch *t, int32_t id, struct basic_span span)
{
    if (t->ids_out != NULL) {
        append_id(t, id);
        return;
    }
    if (!token_list_append(t->tokens_out, (struct token){id, span.start, span.end})) {
        t->out_of_memory = true;
    }
}

/* Greedy longest match.  A word that cannot be covered is one [UNK]. */
static void encode_word(void *context, const struct basic_word *w)
{
    struct wordpiece_scratch *t = context;
    int32_t ids[BASIC_WORD_MAX_CHARS];
    struct basic_span spans[BASIC_WORD_MAX_CHARS];
    int n_ids = 0;
    int next_char = 0;
    bool covered = w->n_chars <= BASIC_WORD_MAX_CHARS;
    for (size_t at = 0; covered && at < w->n_bytes;) {
        size_t n_matched = 0;
        int32_t id = vocab_match(t->vocab, at > 0, w->text + at, w->n_bytes - at, &n_matched);
        if (id < 0) {
            covered = false;
            break;
        }
        at += n_matched;
        spans[n_ids].start = w->spans[next_char].start;
        while (next_char < w->n_chars && w->char_starts[next_char] < at) {
            next_char++;
        }
        spans[n_ids].end = w->spans[next_char - 1].end;
        ids[n_ids++] = id;
    }
    if (!covered) {
        append(t, t->vocab->unk, w->whole);
        return;
    }
    for (int i = 0; i < n_ids; i++) {
        append(t, ids[i], spans[i]);
    }
}

static int32_t find_alone(const struct vocab *v, char c)
{
    size_t n_matched;
    int32_t id = vocab_match(v, false, &c, 1, &n_matched);
    return id < 0 ? v->unk : id;
}

struct status wordpiece_scratch_init(struct wordpiece_scratch *t, const struct vocab *vocab, bool lower_case)
{
    *t = (struct wordpiece_scratch){.vocab = vocab};
    TRY(basic_tokenizer_init(&t->basic, lower_case));
    size_t memo_bytes = sizeof *t->memos * MEMO_WAYS << MEMO_BITS;
    t->memos = aligned_alloc(sizeof *t->memos * MEMO_WAYS, memo_bytes); /* a pair is a cache line */
    if (t->memos == NULL) {
        wordpiece_scratch_fini(t);
        return status_error(STATUS_MEMORY, "out of memory for a tokenizer");
    }
    memset(t->memos, 0, memo_bytes);
    for (int c = 0; c < 128; c++) {
        t->punctuation_ids[c] = find_alone(vocab, (char)c);
    }
    return status_ok();
}

void wordpiece_scratch_fini(struct wordpiece_scratch *t)
{
    basic_tokenizer_fini(&t->basic);
    free(t->memos);
    *t = (struct wordpiece_scratch){0};
}

/* Bytes of the run at the start of text[0..n). */
static size_t run_length(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && basic_kinds[(unsigned char)text[i]] == BASIC_RUN) {
        i++;
    }
    return i;
}

/* The only failure of encoding is stored until the text is done: returning a status for each run would cost
 * more than the run. */
static struct status take_status(struct wordpiece_scratch *t, size_t n)
{
    bool out_of_memory = t->out_of_memory;
    t->out_of_memory = false;
    return out_of_memory
               ? status_error(STATUS_MEMORY, "out of memory for the tokens of a text of %zu bytes", n)
               : status_ok();
}

static void encode(struct wordpiece_scratch *t, const char *text, size_t n)
{
    t->out_of_memory |= !basic_tokenizer_words(&t->basic, text, n, 0, encode_word, t);
}

struct status wordpiece_encode(struct wordpiece_scratch *t, struct token_list *out, const char *text,
                               size_t n)
{
    t->tokens_out = out;
    t->ids_out = NULL;
    encode(t, text, n);
    return take_status(t, n);
}

static void remember(struct wordpiece_memo *m, const uint64_t run[2], size_t n, const int32_t *ids,
                     size_t n_ids)
{
    *m = (struct wordpiece_memo){.run = {run[0], run[1]}, .n_bytes = (uint8_t)n, .n_ids = (uint8_t)n_ids};
    for (size_t i = 0; i < n_ids; i++) {
        m->ids[i] = ids[i];
    }
}

/* A mask of the first n bytes in memory, n < 8. */
static uint64_t keep_bytes(size_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (UINT64_C(1) << (8 * n)) - 1;
#else
    return ~(UINT64_MAX >> (8 * n));
#endif
}

/* Reads the n bytes of a run, at most MEMO_RUN_BYTES, with zeros behind them; `readable` bytes may be
 * read. */
static void load_run(uint64_t run[2], const char *text, size_t n, size_t readable)
{
    if (readable < MEMO_RUN_BYTES) {
        run[0] = 0;
        run[1] = 0;
        memcpy(run, text, n);
        return;
    }
    memcpy(run, text, MEMO_RUN_BYTES);
    if (n < 8) {
        run[0] &= keep_bytes(n);
        run[1] = 0;
    } else if (n < MEMO_RUN_BYTES) {
        run[1] &= keep_bytes(n - 8);
    }
}

static void encode_run(struct wordpiece_scratch *t, const char *text, size_t n, size_t readable)
{
    if (n > MEMO_RUN_BYTES) {
        encode(t, text, n);
        return;
    }
    uint64_t run[2];
    load_run(run, text, n, readable);
    uint64_t h = (run[0] ^ (run[1] * 0x9E3779B97F4A7C15U)) * 0xD6E8FEB86659FD93U;
    struct wordpiece_memo *pair = &t->memos[MEMO_WAYS * (h >> (64 - MEMO_BITS))];
    for (int way = 0; way < MEMO_WAYS; way++) {
        const struct wordpiece_memo *m = &pair[way];
        if (m->n_bytes == n && m->run[0] == run[0] && m->run[1] == run[1]) {
            for (int i = 0; i < m->n_ids; i++) {
                append_id(t, m->ids[i]);
            }
            return;
        }
    }
    size_t before = t->ids_out->n;
    encode(t, text, n);
    size_t n_ids = t->ids_out->n - before;
    if (n_ids <= MEMO_IDS && !t->out_of_memory) {
        pair[1] = pair[0]; /* the older one gives way */
        remember(&pair[0], run, n, n_ids > 0 ? t->ids_out->ids + before : NULL, n_ids);
    }
}

struct status wordpiece_encode_ids(struct wordpiece_scratch *t, struct id_list *out, const char *text,
                                   size_t n)
{
    t->tokens_out = NULL;
    t->ids_out = out;
    for (size_t at = 0; at < n;) {
        unsigned char c = (unsigned char)text[at];
        if (basic_kinds[c] == BASIC_RUN) {
            size_t n_run = run_length(text + at, n - at);
            encode_run(t, text + at, n_run, n - at);
            at += n_run;
            continue;
        }
        if (basic_kinds[c] == BASIC_PUNCTUATION) {
            append_id(t, t->punctuation_ids[c]);
        }
        at++;
    }
    return take_status(t, n);
}

/* Whether no space is written between two pieces that are both words of their own. */
static bool joins(const char *left, size_t n_left, const char *right, size_t n_right)
{
    bool opens = n_left == 1 && strchr("([{$#/-'", left[0]) != NULL && left[0] != '\0';
    bool closes = n_right == 1 && strchr(".,;:!?)]}%/-'", right[0]) != NULL && right[0] != '\0';
    return opens || closes;
}

void wordpiece_decode(const struct vocab *v, struct buf *out, const int32_t *ids, size_t n)
{
    const char *previous = NULL;
    size_t n_previous = 0;
    for (size_t i = 0; i < n; i++) {
        size_t n_piece;
        const char *piece = vocab_piece(v, ids[i], &n_piece);
        size_t n_prefix = vocab_continues(piece, n_piece) ? VOCAB_PREFIX_BYTES : 0;
        if (previous != NULL && n_prefix == 0 && !joins(previous, n_previous, piece, n_piece)) {
            buf_putc(out, ' ');
        }
        buf_append(out, piece + n_prefix, n_piece - n_prefix);
        previous = piece;
        n_previous = n_piece;
    }
}
