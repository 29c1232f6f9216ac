#include "text/bpe_merges.h"

#include "core/hash.h"
#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The printable bytes, which stand for themselves: those of ASCII, and of Latin-1 but for the soft hyphen. */
static bool is_printable(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

static uint32_t character_of(unsigned char byte)
{
    uint32_t shifted = 0x100;
    for (unsigned b = 0; b < byte; b++) {
        shifted += !is_printable(b);
    }
    return is_printable(byte) ? byte : shifted;
}

void bpe_merges_byte_order(unsigned char order[256])
{
    int n = 0;
    for (int printable = 1; printable >= 0; printable--) {
        for (unsigned byte = 0; byte < 256; byte++) {
            if (is_printable(byte) == (printable == 1)) {
                order[n++] = (unsigned char)byte;
            }
        }
    }
}

void bpe_merges_write(struct buf *out, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[UTF8_MAX_BYTES];
        buf_append(out, text, (size_t)utf8_write(text, character_of((unsigned char)bytes[i])));
    }
}

/* Appends the bytes that text[0..n) stands for; false: a character stands for none. */
static bool read_bytes(const struct bpe_merges *m, struct buf *out, const char *text, size_t n)
{
    size_t at = 0;
    if (m->is_plain) {
        buf_append(out, text, n);
        return true;
    }
    while (at < n) {
        uint32_t c;
        at += (size_t)utf8_decode(&c, text + at, n - at);
        if (c >= 0x200 || m->of_character[c] < 0) {
            return false;
        }
        buf_putc(out, (char)m->of_character[c]);
    }
    return true;
}

/* ---- pieces ---- */

static uint32_t power_above(uint64_t n)
{
    uint32_t p = 16;
    while (p < 2 * n) {
        p *= 2;
    }
    return p;
}

const char *bpe_merges_piece(const struct bpe_merges *m, int32_t id, size_t *n)
{
    *n = m->starts[id + 1] - m->starts[id];
    return (const char *)m->bytes.data + m->starts[id];
}

static struct status out_of_memory(const char *source)
{
    return status_error(STATUS_MEMORY, "out of memory for the vocabulary %s", source);
}

/* The slot of a piece in m->names, or the empty one where it belongs. */
static int32_t *find_name(const struct bpe_merges *m, const char *bytes, size_t n)
{
    for (uint64_t h = hash_bytes(bytes, n);; h++) {
        int32_t *slot = &m->names[h & (m->n_names - 1)];
        size_t n_here = 0;
        const char *here = *slot < 0 ? NULL : bpe_merges_piece(m, *slot, &n_here);
        if (here == NULL || (n_here == n && (n == 0 || memcmp(here, bytes, n) == 0))) {
            return slot;
        }
    }
}

int32_t bpe_merges_id(const struct bpe_merges *m, const char *bytes, size_t n)
{
    return *find_name(m, bytes, n);
}

/* texts[id] = the text of each piece. */
static struct status sort_by_id(const char **texts, int32_t n, const json_t *pieces, const char *source)
{
    const char *text;
    json_t *value;
    json_object_foreach((json_t *)pieces, text, value)
    {
        json_int_t id = json_integer_value(value);
        FAIL_IF(!json_is_integer(value) || id < 0 || id >= n, STATUS_DATA,
                "%s: the id of piece '%.60s' must be a whole number from 0 to %d", source, text, n - 1);
        FAIL_IF(texts[id] != NULL, STATUS_DATA, "%s: the pieces '%.60s' and '%.60s' have the same id %lld",
                source, texts[id], text, (long long)id);
        texts[id] = text;
    }
    return status_ok();
}

/* A piece of characters that stand for no bytes, such as a special token, is found in no text. */
static struct status put_pieces(struct bpe_merges *m, const char *const *texts, const char *source)
{
    for (int32_t id = 0; id < m->n; id++) {
        size_t n = texts[id] == NULL ? 0 : strlen(texts[id]), start = m->bytes.n;
        m->starts[id] = m->starts[id + 1] = (uint32_t)start;
        if (texts[id] == NULL) {
            continue;
        }
        FAIL_IF(n > BPE_PIECE_MAX_BYTES, STATUS_DATA, "%s: the piece of id %d has %zu bytes, more than %d",
                source, id, n, BPE_PIECE_MAX_BYTES);
        if (!read_bytes(m, &m->bytes, texts[id], n)) {
            m->bytes.n = start;
            buf_append(&m->bytes, texts[id], n);
        }
        m->starts[id + 1] = (uint32_t)m->bytes.n;
        TRY(buf_status(&m->bytes));
        int32_t *slot = find_name(m, (const char *)m->bytes.data + start, m->bytes.n - start);
        FAIL_IF(*slot >= 0, STATUS_DATA, "%s: the ids %d and %d have the same bytes, '%.60s'", source, *slot,
                id, texts[id]);
        *slot = id;
    }
    return status_ok();
}

static struct status find_bytes(struct bpe_merges *m, const char *source)
{
    for (unsigned b = 0; b < 256; b++) {
        char name[8] = {(char)b};
        int n = m->is_plain ? snprintf(name, sizeof name, "<0x%02X>", b) : 1;
        m->byte[b] = bpe_merges_id(m, name, (size_t)n);
        FAIL_IF(m->byte[b] < 0 && !m->is_plain, STATUS_DATA,
                "%s has no piece for the byte 0x%02x; a byte-level vocabulary has one for each of the 256",
                source, b);
    }
    return status_ok();
}

/* One more than the largest id; a file has not many ids that no piece has. */
static size_t count_ids(const json_t *pieces)
{
    size_t n = json_object_size(pieces), most = 2 * n + 1024;
    json_int_t end = 0;
    const char *text;
    json_t *id;
    json_object_foreach((json_t *)pieces, text, id)
    {
        end = json_integer_value(id) >= end ? json_integer_value(id) + 1 : end;
    }
    return (size_t)end >= n && (size_t)end < most ? (size_t)end : n;
}

static struct status init(struct bpe_merges *m, const json_t *pieces, const char *source, bool is_plain)
{
    size_t n = count_ids(pieces);
    *m = (struct bpe_merges){.is_plain = is_plain};
    FAIL_IF(n == 0 || n > BPE_MOST_PIECES, STATUS_DATA, "%s has %zu pieces; it must have 256 to %d", source,
            n, BPE_MOST_PIECES);
    memset(m->of_character, -1, sizeof m->of_character);
    for (unsigned b = 0; b < 256; b++) {
        m->of_character[character_of((unsigned char)b)] = (int16_t)b;
    }
    m->n = (int32_t)n;
    m->n_names = power_above(n);
    m->starts = calloc(n + 1, sizeof *m->starts);
    m->names = malloc(m->n_names * sizeof *m->names);
    const char **texts = calloc(n, sizeof *texts);
    struct status s = out_of_memory(source);
    if (m->starts != NULL && m->names != NULL && texts != NULL) {
        memset(m->names, -1, m->n_names * sizeof *m->names);
        s = sort_by_id(texts, m->n, pieces, source);
        s = failed(s) ? s : put_pieces(m, texts, source);
        s = failed(s) ? s : find_bytes(m, source);
    }
    free(texts);
    if (failed(s)) {
        bpe_merges_fini(m);
    }
    return s;
}

struct status bpe_merges_init(struct bpe_merges *m, const json_t *pieces, const char *source)
{
    return init(m, pieces, source, false);
}

struct status bpe_merges_init_plain(struct bpe_merges *m, const json_t *pieces, const char *source)
{
    return init(m, pieces, source, true);
}

void bpe_merges_fini(struct bpe_merges *m)
{
    buf_fini(&m->bytes);
    free(m->starts);
    free(m->names);
    free(m->slots);
    *m = (struct bpe_merges){0};
}

/* ---- merges ---- */

static uint64_t hash_of(int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return key * UINT64_C(0x9E3779B97F4A7C15) >> 32;
}

static struct bpe_merge *find_slot(const struct bpe_merges *m, int32_t left, int32_t right)
{
    for (uint64_t h = hash_of(left, right);; h++) {
        struct bpe_merge *slot = &m->slots[h & (m->n_slots - 1)];
        if (slot->left < 0 || (slot->left == left && slot->right == right)) {
            return slot;
        }
    }
}

const struct bpe_merge *bpe_merges_find(const struct bpe_merges *m, int32_t left, int32_t right)
{
    if (m->n_slots == 0) {
        return NULL;
    }
    const struct bpe_merge *slot = find_slot(m, left, right);
    return slot->left < 0 ? NULL : slot;
}

void bpe_merges_prefetch(const struct bpe_merges *m, int32_t left, int32_t right)
{
    if (m->n_slots > 0) {
        __builtin_prefetch(&m->slots[hash_of(left, right) & (m->n_slots - 1)]);
    }
}

/* Doubles the table when it is half full. */
static struct status make_room(struct bpe_merges *m, const char *source)
{
    if (2U * ((uint32_t)m->n_merges + 1) <= m->n_slots) {
        return status_ok();
    }
    struct bpe_merges old = *m;
    m->n_slots = power_above((uint64_t)m->n_merges + 1);
    m->slots = malloc(m->n_slots * sizeof *m->slots);
    if (m->slots == NULL) {
        *m = old;
        return out_of_memory(source);
    }
    memset(m->slots, -1, m->n_slots * sizeof *m->slots);
    for (uint32_t i = 0; i < old.n_slots; i++) {
        if (old.slots[i].left >= 0) {
            *find_slot(m, old.slots[i].left, old.slots[i].right) = old.slots[i];
        }
    }
    free(old.slots);
    return status_ok();
}

/* The id of a piece as files write it; -1: there is none. */
static int32_t find_text(const struct bpe_merges *m, struct buf *bytes, struct text_bytes text)
{
    size_t start = bytes->n;
    return read_bytes(m, bytes, text.bytes, text.n)
               ? bpe_merges_id(m, (const char *)bytes->data + start, bytes->n - start)
               : -1;
}

struct status bpe_merges_put(struct bpe_merges *m, struct bpe_merge merge, const char *source)
{
    TRY(make_room(m, source));
    struct bpe_merge *slot = find_slot(m, merge.left, merge.right);
    m->n_merges += slot->left < 0;
    m->n_ranks = merge.rank + 1;
    *slot = merge;
    return status_ok();
}

struct status bpe_merges_add(struct bpe_merges *m, struct text_bytes left, struct text_bytes right,
                             const char *source, int64_t line)
{
    struct buf bytes = {0};
    struct bpe_merge merge = {.rank = m->n_ranks};
    merge.left = find_text(m, &bytes, left);
    merge.right = find_text(m, &bytes, right);
    merge.id = merge.left < 0 || merge.right < 0 ? -1 : bpe_merges_id(m, (const char *)bytes.data, bytes.n);
    struct status s = buf_status(&bytes);
    buf_fini(&bytes);
    TRY(s);
    FAIL_IF(merge.id < 0, STATUS_DATA, "%s:%lld: the merge '%.*s' and '%.*s' %s not in the vocabulary",
            source, (long long)line, (int)left.n, left.bytes, (int)right.n, right.bytes,
            merge.left >= 0 && merge.right >= 0 ? "makes a piece that is" : "joins a piece that is");
    return bpe_merges_put(m, merge, source);
}

const struct bpe_merge **bpe_merges_by_rank(const struct bpe_merges *m)
{
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are meant */
    const struct bpe_merge **list = calloc((size_t)m->n_ranks + 1, sizeof *list);
    for (uint32_t i = 0; list != NULL && i < m->n_slots; i++) {
        if (m->slots[i].left >= 0) {
            list[m->slots[i].rank] = &m->slots[i];
        }
    }
    for (int32_t rank = 0, n = 0; list != NULL && rank < m->n_ranks; rank++) {
        list[n] = list[rank];
        n += list[rank] != NULL;
    }
    return list;
}

/* The hash of at most 4 numbers, low bytes first on every machine. */
static uint64_t hash_numbers(const uint32_t *numbers, int n)
{
    unsigned char bytes[16];
    for (int i = 0; i < 4 * n; i++) {
        bytes[i] = (unsigned char)(numbers[i / 4] >> 8 * (i % 4));
    }
    return hash_fnv1a(bytes, (size_t)(4 * n));
}

/* Whether a piece is two that are numbered before it, as what a merge makes. */
static bool is_made(const struct bpe_merges *m, int32_t id)
{
    size_t n;
    const char *bytes = bpe_merges_piece(m, id, &n);
    bool is = false;
    for (size_t i = 1; i < n && !is; i++) {
        int32_t left = bpe_merges_id(m, bytes, i), right = bpe_merges_id(m, bytes + i, n - i);
        is = left >= 0 && right >= 0 && left < id && right < id;
    }
    return is;
}

struct status bpe_merges_check_end(const struct bpe_merges *m, const char *source)
{
    int32_t first = m->n, last = 255;
    for (uint32_t i = 0; i < m->n_slots; i++) {
        const struct bpe_merge *s = &m->slots[i];
        first = s->left >= 0 && s->rank == 0 ? s->id : first;
        last = s->left >= 0 && s->rank == m->n_ranks - 1 ? s->id : last;
    }
    bool in_order = m->n_merges == 0 || last - first == m->n_merges - 1;
    while (m->n_merges == 0 && last + 1 < m->n && !is_made(m, last + 1)) {
        last++; /* pieces of one byte may follow special ones */
    }
    return !in_order || last + 1 >= m->n || !is_made(m, last + 1)
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s has %d merges, but piece %d of the vocabulary is what the next one makes: "
                              "the file has lost its end",
                              source, (int)m->n_merges, (int)last + 1);
}

/* A sum, for the order of the slots says nothing. */
uint64_t bpe_merges_hash(const struct bpe_merges *m)
{
    uint64_t sum = 0;
    for (int32_t id = 0; id < m->n; id++) {
        size_t n;
        const char *piece = bpe_merges_piece(m, id, &n);
        uint64_t hash = hash_fnv1a(piece, n);
        sum += hash_numbers((uint32_t[]){(uint32_t)id, (uint32_t)hash, (uint32_t)(hash >> 32)}, 3);
    }
    for (uint32_t i = 0; i < m->n_slots; i++) {
        const struct bpe_merge *s = &m->slots[i];
        if (s->left >= 0) {
            sum += hash_numbers((uint32_t[]){(uint32_t)s->left, (uint32_t)s->right, (uint32_t)s->rank, 1}, 4);
        }
    }
    return sum;
}
