#include "text/wordpiece.h"

#include "text/text_split.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* The roles of code points (enum basic_role) with the id of those that stand alone: ROLE_ALONE + id.  0: not
 * met yet. */
enum { ROLE_PART = 1, ROLE_SPACE, ROLE_ALONE };
enum { N_ROLES = 0x10000 };

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

struct status wordpiece_scratch_init(struct wordpiece_scratch *t, const struct vocab *vocab, bool lower_case)
{
    *t = (struct wordpiece_scratch){.vocab = vocab};
    TRY(basic_tokenizer_init(&t->basic, lower_case));
    t->roles = calloc(N_ROLES, sizeof *t->roles);
    if (t->roles == NULL || !word_cache_init(&t->cache, WORD_CACHE_WORD_BITS)) {
        wordpiece_scratch_fini(t);
        return status_error(STATUS_MEMORY, "out of memory for a tokenizer");
    }
    return status_ok();
}

void wordpiece_scratch_fini(struct wordpiece_scratch *t)
{
    basic_tokenizer_fini(&t->basic);
    word_cache_fini(&t->cache);
    free(t->roles);
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

/* ---- only ids: runs through the cache, which finds nearly all of them ---- */

static void append_ids(struct wordpiece_scratch *t, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        append_id(t, ids[i]);
    }
}

static bool append_found(struct wordpiece_scratch *t, const char *run, size_t n)
{
    size_t n_ids = 0;
    const int32_t *ids = n <= WORD_CACHE_LONG_BYTES ? word_cache_find(&t->cache, run, n, &n_ids) : NULL;
    if (ids != NULL) {
        append_ids(t, ids, n_ids);
    }
    return ids != NULL;
}

/* Encodes a word as encode_word does, without offsets. */
static void encode_folded(struct wordpiece_scratch *t, const char *word, size_t n)
{
    size_t before = t->ids_out->n;
    size_t n_matched;
    for (size_t at = 0; at < n; at += n_matched) {
        int32_t id = vocab_match(t->vocab, at > 0, word + at, n - at, &n_matched);
        if (id < 0) {
            t->ids_out->n = before;
            append_id(t, t->vocab->unk);
            return;
        }
        append_id(t, id);
    }
}

/* Encodes a run, or a part of one, that the cache lacks. */
static void encode_new(struct wordpiece_scratch *t, const char *run, size_t n)
{
    size_t before = t->ids_out->n;
    char word[BASIC_FOLD_BYTES];
    size_t n_word;
    if (basic_tokenizer_fold(&t->basic, word, &n_word, run, n)) {
        encode_folded(t, word, n_word);
    } else {
        encode(t, run, n);
    }
    if (n <= WORD_CACHE_LONG_BYTES && !t->out_of_memory) {
        word_cache_add(&t->cache, run, n, t->ids_out->ids + before, t->ids_out->n - before);
    }
}

/* The role of the code point c, which is text[0..n). */
static int32_t find_role(struct wordpiece_scratch *t, uint32_t c, const char *text, size_t n)
{
    enum basic_role role = basic_tokenizer_role(&t->basic, c);
    if (role != BASIC_ALONE) {
        return role == BASIC_SEPARATES ? ROLE_SPACE : ROLE_PART;
    }
    encode(t, text, n); /* one id: the piece of the character, or [UNK] */
    return t->out_of_memory ? ROLE_PART : ROLE_ALONE + t->ids_out->ids[--t->ids_out->n];
}

static int32_t recall_role(struct wordpiece_scratch *t, uint32_t c, const char *text, size_t n)
{
    if (c >= N_ROLES) {
        return find_role(t, c, text, n);
    }
    if (t->roles[c] == 0) {
        t->roles[c] = find_role(t, c, text, n);
    }
    return t->roles[c];
}

static void encode_part(struct wordpiece_scratch *t, const char *part, size_t n)
{
    if (n > 0 && !append_found(t, part, n)) {
        encode_new(t, part, n);
    }
}

/* Encodes a run that the cache lacks.  It is cut at code points above ASCII that are white space or stand
 * alone: the words on either side of them do not depend on the other side.  So text without white space, such
 * as Chinese, costs a table's look-up a character, and the quotes of a word do not make it another word. */
static __attribute__((noinline)) void encode_unknown(struct wordpiece_scratch *t, const char *run, size_t n)
{
    size_t start = 0;
    for (size_t at = 0; at < n;) {
        uint32_t c = (unsigned char)run[at];
        size_t n_bytes = c < 0x80 ? 1 : (size_t)utf8_decode(&c, run + at, n - at);
        int32_t role = c < 0x80 ? ROLE_PART : recall_role(t, c, run + at, n_bytes);
        if (role != ROLE_PART) {
            encode_part(t, run + start, at - start);
            start = at + n_bytes;
        }
        if (role >= ROLE_ALONE) {
            append_id(t, role - ROLE_ALONE);
        }
        at += n_bytes;
    }
    if (start == 0) {
        encode_new(t, run, n);
    } else {
        encode_part(t, run + start, n - start);
    }
}

static void encode_run(struct wordpiece_scratch *t, const char *run, size_t n)
{
    if (!append_found(t, run, n)) {
        encode_unknown(t, run, n);
    }
}

/* Bytes that encode_block may read: those of the block, and a short run from its last byte on. */
enum { BLOCK_READS = TEXT_SPLIT_BYTES + WORD_CACHE_SHORT_BYTES };

/* Room for the ids of a block whose runs are all short ones. */
static bool make_room(struct wordpiece_scratch *t)
{
    while (t->ids_out->capacity - t->ids_out->n < TEXT_SPLIT_BYTES * WORD_CACHE_SHORT_IDS) {
        if (!id_list_grow(t->ids_out)) {
            t->out_of_memory = true;
            return false;
        }
    }
    return true;
}

/* Encodes the tokens that end in the first 64 bytes of text[0..n), n >= BLOCK_READS, and returns how many
 * bytes need not be read again, at least 1.  A longer run at the start is encoded completely. */
static size_t encode_block(struct wordpiece_scratch *t, const char *text, size_t n)
{
    struct text_split split = text_split_block(text);
    struct id_list *ids = t->ids_out;
    if (!make_room(t)) {
        return n;
    }
    int32_t *out = ids->ids + ids->n;
    for (; split.ends != 0; split.ends &= split.ends - 1, split.starts &= split.starts - 1) {
        unsigned start = text_split_lowest(split.starts);
        size_t n_run = text_split_lowest(split.ends) - start;
        const struct word_cache_short *e =
            n_run <= WORD_CACHE_SHORT_BYTES ? word_cache_find_short(&t->cache, text + start, n_run) : NULL;
        if (e != NULL && e->n_ids <= WORD_CACHE_SHORT_IDS) {
            memcpy(out, e->ids, sizeof e->ids); /* all: no branch */
            out += e->n_ids;
            continue;
        }
        ids->n = (size_t)(out - ids->ids);
        if (e == NULL && n_run <= WORD_CACHE_SHORT_BYTES) {
            encode_unknown(t, text + start, n_run);
        } else {
            encode_run(t, text + start, n_run);
        }
        if (!make_room(t)) {
            return n;
        }
        out = ids->ids + ids->n;
    }
    ids->n = (size_t)(out - ids->ids);
    if (split.starts == 0) {
        return TEXT_SPLIT_BYTES;
    }
    size_t start = text_split_lowest(split.starts);
    if (start == 0) {
        start = run_length(text, n);
        encode_run(t, text, start);
    }
    return start;
}

struct status wordpiece_encode_ids(struct wordpiece_scratch *t, struct id_list *out, const char *text,
                                   size_t n)
{
    t->tokens_out = NULL;
    t->ids_out = out;
    size_t at = 0;
    while (n - at >= BLOCK_READS) {
        at += encode_block(t, text + at, n - at);
    }
    char rest[2 * BLOCK_READS]; /* the end of the text with white space after it */
    size_t n_rest = n - at;
    memset(rest, ' ', sizeof rest);
    if (n_rest > 0) {
        memcpy(rest, text + at, n_rest);
    }
    for (at = 0; at < n_rest;) {
        at += encode_block(t, rest + at, sizeof rest - at);
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
