#include "text/vocab.h"

#include "core/hash.h"
#include "io/file.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* An edge of the trie: from `key` >> 8, a node, by `key` & 255, a byte; 0 is an empty slot (no edge leaves
 * node 0). */
struct vocab_edge {
    uint32_t key;
    uint32_t to;
};

enum { ROOT_BEGINS = 1, ROOT_CONTINUES = 2, N_ROOTS = 3 };

static const size_t MAX_FILE_BYTES = 8 << 20; /* so that nodes stay below 2^24, the limit of a key */

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

static uint32_t edge_slot(const struct vocab *v, uint32_t key)
{
    uint32_t slot = (uint32_t)((key * 0x9E3779B97F4A7C15U) >> 32) & (v->n_edges - 1);
    while (v->edges[slot].key != 0 && v->edges[slot].key != key) {
        slot = (slot + 1) & (v->n_edges - 1);
    }
    return slot;
}

static uint32_t follow(const struct vocab *v, uint32_t node, unsigned char byte)
{
    return v->edges[edge_slot(v, node << 8 | byte)].to;
}

bool vocab_continues(const char *piece, size_t n)
{
    return n > VOCAB_PREFIX_BYTES && piece[0] == '#' && piece[1] == '#';
}

/* The root under which a piece is kept, and the piece without its prefix. */
static uint32_t take_root(const char **piece, size_t *n)
{
    if (vocab_continues(*piece, *n)) {
        *piece += VOCAB_PREFIX_BYTES;
        *n -= VOCAB_PREFIX_BYTES;
        return ROOT_CONTINUES;
    }
    return ROOT_BEGINS;
}

/* Adds a piece and returns -1, or returns the id that it already has. */
static int32_t insert(struct vocab *v, int32_t *accepted, uint32_t *n_nodes, const char *piece, size_t n,
                      int32_t id)
{
    uint32_t node = take_root(&piece, &n);
    for (size_t i = 0; i < n; i++) {
        uint32_t key = node << 8 | (unsigned char)piece[i];
        struct vocab_edge *e = &v->edges[edge_slot(v, key)];
        if (e->key == 0) {
            e->key = key;
            e->to = *n_nodes;
            accepted[(*n_nodes)++] = -1;
        }
        node = e->to;
    }
    if (accepted[node] >= 0) {
        return accepted[node];
    }
    accepted[node] = id;
    return -1;
}

/* The piece that ends at a node, or -1. */
static int32_t piece_at(const struct vocab *v, uint32_t node)
{
    uint32_t id = node - N_ROOTS;
    return id < (uint32_t)v->n ? (int32_t)id : -1;
}

int32_t vocab_find(const struct vocab *v, const char *piece, size_t n)
{
    uint32_t node = take_root(&piece, &n);
    for (size_t i = 0; i < n && node != 0; i++) {
        node = follow(v, node, (unsigned char)piece[i]);
    }
    return piece_at(v, node);
}

const char *vocab_piece(const struct vocab *v, int32_t id, size_t *n)
{
    CHECK(id >= 0 && id < v->n, "id %d of a vocabulary of %d", id, v->n);
    *n = v->lengths[id];
    return v->text + v->starts[id];
}

int32_t vocab_match(const struct vocab *v, bool continues, const char *text, size_t n, size_t *n_matched)
{
    int32_t best = -1;
    uint32_t node = continues ? ROOT_CONTINUES : ROOT_BEGINS;
    for (size_t i = 0; i < n; i++) {
        node = follow(v, node, (unsigned char)text[i]);
        if (node == 0) {
            break;
        }
        if (piece_at(v, node) >= 0) {
            best = piece_at(v, node);
            *n_matched = i + 1;
        }
    }
    return best;
}

/* Finds the pieces: one a line.  Errors name the line, from 1. */
static struct status split_lines(struct vocab *v, const char *source)
{
    size_t at = 0;
    while (at < v->text_bytes) {
        const char *line = v->text + at;
        const char *newline = memchr(line, '\n', v->text_bytes - at);
        size_t n = newline != NULL ? (size_t)(newline - line) : v->text_bytes - at;
        size_t next = at + n + (newline != NULL);
        n -= n > 0 && line[n - 1] == '\r';
        if (n == 0) {
            return status_error(STATUS_DATA, "%s: line %d is empty; every line must hold one piece", source,
                                v->n + 1);
        }
        if (n > VOCAB_PIECE_MAX_BYTES) {
            return status_error(STATUS_DATA,
                                "%s: the piece of line %d has %zu bytes, but at most %d are allowed", source,
                                v->n + 1, n, VOCAB_PIECE_MAX_BYTES);
        }
        size_t invalid = utf8_find_invalid(line, n);
        if (invalid < n) {
            return status_error(STATUS_DATA, "%s: line %d is not valid UTF-8 at its byte %zu (value 0x%02x)",
                                source, v->n + 1, invalid + 1, (unsigned char)line[invalid]);
        }
        v->starts[v->n] = (uint32_t)at;
        v->lengths[v->n++] = (uint16_t)n;
        at = next;
    }
    return v->n > 0 ? status_ok() : status_error(STATUS_DATA, "%s is empty: it holds no pieces", source);
}

static struct status insert_all(struct vocab *v, int32_t *accepted, uint32_t *n_nodes, const char *source)
{
    for (*n_nodes = 0; *n_nodes < N_ROOTS; (*n_nodes)++) {
        accepted[*n_nodes] = -1;
    }
    for (int32_t id = 0; id < v->n; id++) {
        const char *piece = v->text + v->starts[id];
        int32_t earlier = insert(v, accepted, n_nodes, piece, v->lengths[id], id);
        if (earlier >= 0) {
            return status_error(STATUS_DATA, "%s: lines %d and %d hold the same piece '%.*s'; remove one",
                                source, earlier + 1, id + 1, (int)v->lengths[id], piece);
        }
    }
    return status_ok();
}

/* Renumbers the nodes so that piece i ends at node N_ROOTS + i and a walk reads only edges, and packs the
 * edges into a table that fits the cache.  Until then `accepted` says which piece ends at a
 * node. */
static bool pack(struct vocab *v, int32_t *accepted, uint32_t n_nodes)
{
    uint32_t next = N_ROOTS + (uint32_t)v->n;
    for (uint32_t node = N_ROOTS; node < n_nodes; node++) {
        accepted[node] = accepted[node] >= 0 ? N_ROOTS + accepted[node] : (int32_t)next++;
    }
    for (uint32_t node = 0; node < N_ROOTS; node++) {
        accepted[node] = (int32_t)node;
    }
    struct vocab_edge *old = v->edges;
    uint32_t n_old = v->n_edges;
    v->n_edges = round_up(2 * (size_t)n_nodes);
    v->edges = calloc(v->n_edges, sizeof *v->edges);
    for (uint32_t i = 0; i < n_old && v->edges != NULL; i++) {
        if (old[i].key != 0) {
            uint32_t key = (uint32_t)accepted[old[i].key >> 8] << 8 | (old[i].key & 0xFF);
            v->edges[edge_slot(v, key)] = (struct vocab_edge){key, (uint32_t)accepted[old[i].to]};
        }
    }
    free(old);
    return v->edges != NULL;
}

static struct status build_trie(struct vocab *v, const char *source)
{
    uint32_t n_nodes = 0;
    v->n_edges = round_up(2 * v->text_bytes); /* a byte makes at most one edge: half full at most */
    v->edges = calloc(v->n_edges, sizeof *v->edges);
    int32_t *accepted = malloc((v->text_bytes + N_ROOTS) * sizeof *accepted);
    struct status s = v->edges != NULL && accepted != NULL ? insert_all(v, accepted, &n_nodes, source)
                                                           : out_of_memory(source);
    if (!failed(s) && !pack(v, accepted, n_nodes)) {
        s = out_of_memory(source);
    }
    free(accepted);
    return s;
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
        if (*specials[i].id < 0) {
            return status_error(STATUS_DATA,
                                "%s lacks the piece %s, which BERT needs; add it as a line of its own",
                                source, specials[i].piece);
        }
    }
    return status_ok();
}

static bool allocate(struct vocab *v, const char *text, size_t n)
{
    size_t n_lines = 1;
    for (size_t i = 0; i < n; i++) {
        n_lines += text[i] == '\n';
    }
    v->text = malloc(n);
    v->starts = malloc(n_lines * sizeof *v->starts);
    v->lengths = malloc(n_lines * sizeof *v->lengths);
    if (v->text == NULL || v->starts == NULL || v->lengths == NULL) {
        return false;
    }
    memcpy(v->text, text, n);
    v->text_bytes = n;
    return true;
}

static struct status build(struct vocab *v, const char *text, size_t n, const char *source)
{
    if (n == 0) {
        return status_error(STATUS_DATA, "%s is empty: it holds no pieces", source);
    }
    if (n > MAX_FILE_BYTES) {
        return status_error(STATUS_DATA, "%s has %zu bytes, but a vocabulary may have at most %zu", source, n,
                            MAX_FILE_BYTES);
    }
    if (!allocate(v, text, n)) {
        return out_of_memory(source);
    }
    v->hash = hash_fnv1a(text, n);
    TRY(split_lines(v, source));
    TRY(build_trie(v, source));
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
    free(v->edges);
    *v = (struct vocab){0};
}
