#include "text/vocab.h"

#include "core/hash.h"
#include "core/log.h"
#include "io/file.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* A place of the hash table of pieces. */
struct vocab_slot {
    uint32_t tag;   /* bits of the hash that do not choose the place */
    int32_t id;     /* plus 1; 0: empty */
    uint32_t start; /* offset in the text of the piece without its prefix */
    uint16_t n;     /* bytes of the piece */
    bool continues;
};

static const size_t MAX_FILE_BYTES = 8 << 20; /* so that ids and offsets stay below 2^32 */

static struct status out_of_memory(const char *source)
{
    return status_error(STATUS_MEMORY, "out of memory for the vocabulary %s", source);
}

/* The next power of two. */
static uint32_t round_up(size_t n)
{
    uint32_t power = 16;
    while (power < n) {
        power *= 2;
    }
    return power;
}

/* The hash of a piece, byte by byte: that of a prefix is on the way to that of the complete piece.  The same
 * multiplicative hash as in word_cache.h; its highest bits are the best. */
static uint64_t hash_begin(bool continues)
{
    return continues ? UINT64_C(0xD6E8FEB86659FD93) : UINT64_C(0xBF58476D1CE4E5B9);
}

static uint64_t hash_byte(uint64_t h, char byte)
{
    return (h ^ (unsigned char)byte) * UINT64_C(0x9E3779B97F4A7C15);
}

static uint64_t hash_piece(bool continues, const char *text, size_t n)
{
    uint64_t h = hash_begin(continues);
    for (size_t i = 0; i < n; i++) {
        h = hash_byte(h, text[i]);
    }
    return h;
}

bool vocab_continues(const char *piece, size_t n)
{
    return n > VOCAB_PREFIX_BYTES && piece[0] == '#' && piece[1] == '#';
}

/* Takes the prefix from a piece; whether it had one. */
static bool take_prefix(const char **piece, size_t *n)
{
    bool continues = vocab_continues(*piece, *n);
    *piece += continues ? VOCAB_PREFIX_BYTES : 0;
    *n -= continues ? VOCAB_PREFIX_BYTES : 0;
    return continues;
}

/* The place of a piece without prefix, or the empty one where it would be. */
static struct vocab_slot *find_slot(const struct vocab *v, uint64_t hash, bool continues, const char *text,
                                    size_t n)
{
    uint32_t mask = v->n_slots - 1;
    for (uint32_t at = (uint32_t)(hash >> 40) & mask;; at = (at + 1) & mask) {
        struct vocab_slot *slot = &v->slots[at];
        if (slot->id == 0) {
            return slot;
        }
        if (slot->tag == (uint32_t)(hash >> 8) && slot->continues == continues && slot->n == n &&
            memcmp(v->text + slot->start, text, n) == 0) {
            return slot;
        }
    }
}

/* A bit for each piece, so that most texts that are no piece are rejected in the cache (Bloom 1970, with one
 * hash). */
static uint64_t *filter_word(const struct vocab *v, uint64_t hash)
{
    return &v->filter[hash >> (64 - VOCAB_FILTER_BITS) >> 6];
}

static uint64_t filter_bit(uint64_t hash)
{
    return UINT64_C(1) << (hash >> (64 - VOCAB_FILTER_BITS) & 63);
}

int32_t vocab_find(const struct vocab *v, const char *piece, size_t n)
{
    bool continues = take_prefix(&piece, &n);
    return find_slot(v, hash_piece(continues, piece, n), continues, piece, n)->id - 1;
}

const char *vocab_piece(const struct vocab *v, int32_t id, size_t *n)
{
    CHECK(id >= 0 && id < v->n, "id %d of a vocabulary of %d", id, v->n);
    *n = v->lengths[id];
    return v->text + v->starts[id];
}

int32_t vocab_match(const struct vocab *v, bool continues, const char *text, size_t n, size_t *n_matched)
{
    struct prefix {
        uint64_t hash;
        size_t n;
    } prefixes[VOCAB_PIECE_MAX_BYTES];
    int n_prefixes = 0;
    size_t longest = v->longest[continues];
    uint64_t hash = hash_begin(continues);
    for (size_t i = 0; i < n && i < longest; i++) {
        hash = hash_byte(hash, text[i]);
        if (i + 1 == n || (text[i + 1] & 0xC0) != 0x80) { /* a character ends here */
            prefixes[n_prefixes++] = (struct prefix){hash, i + 1};
        }
    }
    while (n_prefixes-- > 0) {
        const struct prefix *p = &prefixes[n_prefixes];
        if ((*filter_word(v, p->hash) & filter_bit(p->hash)) == 0) {
            continue;
        }
        int32_t id = find_slot(v, p->hash, continues, text, p->n)->id - 1;
        if (id >= 0) {
            *n_matched = p->n;
            return id;
        }
    }
    return -1;
}

/* The bytes of a byte-order mark, which Windows' editors write. */
static size_t skip_mark(const struct vocab *v, const char *source)
{
    size_t n = utf8_mark_bytes(v->text, v->text_bytes);
    if (n > 0) {
        log_warning("%s begins with a byte-order mark, which is left out", source);
    }
    return n;
}

/* The advice for a file that was saved in another form than lines of UTF-8; "": the form is not known. */
static const char *form_advice(const struct vocab *v)
{
    bool is_utf16 =
        v->text_bytes >= 2 && (memcmp(v->text, "\xff\xfe", 2) == 0 || memcmp(v->text, "\xfe\xff", 2) == 0);
    bool ends_by_cr =
        memchr(v->text, '\n', v->text_bytes) == NULL && memchr(v->text, '\r', v->text_bytes) != NULL;
    return is_utf16     ? ": it is UTF-16; convert it (iconv -f UTF-16 -t UTF-8)"
           : ends_by_cr ? ": its lines end in CR alone; convert them (tr '\\r' '\\n')"
                        : "";
}

/* Finds the pieces: one a line.  Errors name the line, from 1. */
static struct status split_lines(struct vocab *v, const char *source)
{
    size_t at = skip_mark(v, source);
    int n_empty = 0, first_empty = 0;
    while (at < v->text_bytes) {
        const char *line = v->text + at;
        const char *newline = memchr(line, '\n', v->text_bytes - at);
        size_t n = newline != NULL ? (size_t)(newline - line) : v->text_bytes - at;
        size_t next = at + n + (newline != NULL);
        n -= n > 0 && line[n - 1] == '\r';
        if (n == 0) {
            first_empty = n_empty++ == 0 ? v->n + 1 : first_empty;
        }
        FAIL_IF(n > VOCAB_PIECE_MAX_BYTES, STATUS_DATA,
                "%s: the piece of line %d has %zu bytes, but at most %d are allowed%s", source, v->n + 1, n,
                VOCAB_PIECE_MAX_BYTES, form_advice(v));
        size_t invalid = utf8_find_invalid(line, n);
        FAIL_IF(invalid < n, STATUS_DATA, "%s: line %d is not valid UTF-8 at its byte %zu (value 0x%02x)%s",
                source, v->n + 1, invalid + 1, (unsigned char)line[invalid], form_advice(v));
        v->starts[v->n] = (uint32_t)at;
        v->lengths[v->n++] = (uint16_t)n;
        at = next;
    }
    if (n_empty > 0) {
        log_warning("%s: line %d is empty%s: the line keeps its id, and no text gets it", source, first_empty,
                    n_empty > 1 ? ", as are others" : "");
    }
    return v->n > n_empty ? status_ok()
                          : status_error(STATUS_DATA, "%s is empty: it holds no pieces", source);
}

static void warn_of_twins(const struct vocab *v, const char *source, int n_twins, int first, int second)
{
    if (n_twins > 0) {
        log_warning("%s: lines %d and %d hold the same piece '%.*s'%s: the last one counts, and no text gets "
                    "the other id",
                    source, first, second, (int)v->lengths[second - 1], v->text + v->starts[second - 1],
                    n_twins > 1 ? ", and there are more such lines" : "");
    }
}

static void insert_all(struct vocab *v, const char *source)
{
    int n_twins = 0, twins[2] = {0};
    for (int32_t id = 0; id < v->n; id++) {
        const char *piece = v->text + v->starts[id];
        size_t n = v->lengths[id];
        bool continues = take_prefix(&piece, &n);
        uint64_t hash = hash_piece(continues, piece, n);
        struct vocab_slot *slot = find_slot(v, hash, continues, piece, n);
        if (v->lengths[id] == 0) {
            continue;
        }
        if (slot->id > 0 && n_twins++ == 0) {
            twins[0] = slot->id, twins[1] = id + 1;
        }
        *slot = (struct vocab_slot){(uint32_t)(hash >> 8), id + 1, (uint32_t)(piece - v->text), (uint16_t)n,
                                    continues};
        *filter_word(v, hash) |= filter_bit(hash);
        v->longest[continues] = n > v->longest[continues] ? (uint16_t)n : v->longest[continues];
    }
    warn_of_twins(v, source, n_twins, twins[0], twins[1]);
}

static struct status build_table(struct vocab *v, const char *source)
{
    v->n_slots = round_up(2 * (size_t)v->n); /* half full at most */
    v->slots = calloc(v->n_slots, sizeof *v->slots);
    v->filter = calloc((size_t)1 << VOCAB_FILTER_BITS >> 6, sizeof *v->filter);
    if (v->slots == NULL || v->filter == NULL) {
        return out_of_memory(source);
    }
    insert_all(v, source);
    return status_ok();
}

static struct status find_special(struct vocab *v, const char *source)
{
    const struct {
        const char *piece;
        int32_t *id;
    } specials[] = {
        {"[PAD]", &v->pad}, {"[UNK]", &v->unk}, {"[CLS]", &v->cls}, {"[SEP]", &v->sep}, {"[MASK]", &v->mask}};
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        *specials[i].id = vocab_find(v, specials[i].piece, strlen(specials[i].piece));
    }
    return v->unk >= 0 ? status_ok()
                       : status_error(STATUS_DATA,
                                      "%s lacks the piece [UNK], which stands for words that no piece "
                                      "covers; is it the vocabulary of a BERT?",
                                      source);
}

static bool allocate(struct vocab *v, const char *text, size_t n)
{
    size_t n_lines = 1;
    for (size_t i = 0; i < n; i++) {
        n_lines += text[i] == '\n';
    }
    v->text = malloc(n);
    v->starts = calloc(n_lines, sizeof *v->starts);
    v->lengths = calloc(n_lines, sizeof *v->lengths);
    if (v->text == NULL || v->starts == NULL || v->lengths == NULL) {
        return false;
    }
    memcpy(v->text, text, n);
    v->text_bytes = n;
    return true;
}

static struct status build(struct vocab *v, const char *text, size_t n, const char *source)
{
    FAIL_IF(n == 0, STATUS_DATA, "%s is empty: it holds no pieces", source);
    FAIL_IF(n > MAX_FILE_BYTES, STATUS_DATA, "%s has %zu bytes, but a vocabulary may have at most %zu",
            source, n, MAX_FILE_BYTES);
    if (!allocate(v, text, n)) {
        return out_of_memory(source);
    }
    v->hash = hash_fnv1a(text, n);
    TRY(split_lines(v, source));
    TRY(build_table(v, source));
    return find_special(v, source);
}

struct status vocab_init(struct vocab *v, const char *text, size_t n, const char *source)
{
    *v = (struct vocab){0};
    struct status s = build(v, text, n, source);
    if (failed(s)) {
        vocab_fini(v);
    }
    return s;
}

struct status vocab_open(struct vocab *v, const char *path)
{
    *v = (struct vocab){0};
    struct file_map map;
    TRY(status_context(file_map_open(&map, path), "vocabulary"));
    struct status s = vocab_init(v, (const char *)map.data, map.n, path);
    if (!failed(s)) {
        s = file_map_check(&map, path);
        if (failed(s)) {
            vocab_fini(v);
        }
    }
    file_map_close(&map);
    return s;
}

void vocab_fini(struct vocab *v)
{
    free(v->text);
    free(v->starts);
    free(v->lengths);
    free(v->slots);
    free(v->filter);
    *v = (struct vocab){0};
}
