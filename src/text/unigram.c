#include "text/unigram.h"

#include "core/array.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1 << 24, FIRST_SLOTS = 1 << 12 };

static struct status out_of_memory(void)
{
    return status_error(STATUS_MEMORY, "out of memory for the pieces of a unigram model");
}

/* ---- the trie ---- */

static uint32_t slot_of(const struct unigram *u, uint32_t key)
{
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (u->n_slots - 1);
}

/* The slot of an edge, or the empty one where it belongs. */
static uint32_t find_slot(const struct unigram *u, uint32_t key)
{
    uint32_t i = slot_of(u, key);
    while (u->keys[i] != 0 && u->keys[i] != key) {
        i = (i + 1) & (u->n_slots - 1);
    }
    return i;
}

/* The root is node 1, so that no key is 0. */
static uint32_t child_of(const struct unigram *u, uint32_t node, char byte)
{
    uint32_t i = find_slot(u, node << 8 | (unsigned char)byte);
    return u->keys[i] == 0 ? 0 : u->children[i];
}

static struct status set_slots(struct unigram *u, uint32_t n_slots)
{
    struct unigram old = *u;
    u->keys = calloc(n_slots, sizeof *u->keys);
    u->children = malloc(n_slots * sizeof *u->children);
    u->n_slots = n_slots;
    if (u->keys == NULL || u->children == NULL) {
        free(u->keys);
        free(u->children);
        *u = old;
        return out_of_memory();
    }
    for (uint32_t i = 0; i < old.n_slots; i++) {
        if (old.keys[i] != 0) {
            uint32_t slot = find_slot(u, old.keys[i]);
            u->keys[slot] = old.keys[i];
            u->children[slot] = old.children[i];
        }
    }
    free(old.keys);
    free(old.children);
    return status_ok();
}

static struct status add_node(struct unigram *u)
{
    if (!ARRAY_RESERVE(u->ids, u->node_capacity, u->n_nodes + 1)) {
        return out_of_memory();
    }
    u->ids[u->n_nodes++] = -1;
    return u->n_nodes * 2 <= u->n_slots ? status_ok() : set_slots(u, 2 * u->n_slots);
}

struct status unigram_init(struct unigram *u, int32_t n)
{
    *u = (struct unigram){.n = n, .unknown = -1};
    u->scores = calloc((size_t)n + 1, sizeof *u->scores);
    struct status s = u->scores == NULL ? out_of_memory() : set_slots(u, FIRST_SLOTS);
    s = failed(s) ? s : add_node(u); /* no node is 0 */
    s = failed(s) ? s : add_node(u);
    if (failed(s)) {
        unigram_fini(u);
    }
    return s;
}

void unigram_fini(struct unigram *u)
{
    free(u->keys);
    free(u->children);
    free(u->ids);
    free(u->scores);
    *u = (struct unigram){0};
}

struct status unigram_add(struct unigram *u, int32_t *before, const char *piece, size_t n, int32_t id,
                          const char *source)
{
    uint32_t node = 1;
    for (size_t i = 0; i < n; i++) {
        uint32_t next = child_of(u, node, piece[i]);
        if (next == 0) {
            FAIL_IF(u->n_nodes >= MOST_NODES, STATUS_DATA,
                    "%s: the pieces have more than %d different beginnings", source, MOST_NODES);
            next = (uint32_t)u->n_nodes;
            TRY(add_node(u));
            uint32_t slot = find_slot(u, node << 8 | (unsigned char)piece[i]);
            u->keys[slot] = node << 8 | (unsigned char)piece[i];
            u->children[slot] = next;
        }
        node = next;
    }
    *before = u->ids[node];
    u->ids[node] = *before < 0 && n > 0 ? id : *before;
    return status_ok();
}

int32_t unigram_find(const struct unigram *u, const char *piece, size_t n)
{
    uint32_t node = 1;
    for (size_t i = 0; i < n && node != 0; i++) {
        node = child_of(u, node, piece[i]);
    }
    return node == 0 ? -1 : u->ids[node];
}

/* ---- the best pieces ---- */

void unigram_scratch_fini(struct unigram_scratch *s)
{
    free(s->steps);
    free(s->pieces);
    *s = (struct unigram_scratch){0};
}

static double add_scores(const struct unigram *u, double a, double b)
{
    return u->sums_floats ? (double)((float)a + (float)b) : a + b;
}

static void offer(struct unigram_step *to, double score, size_t start, int32_t id)
{
    if (to->id < 0 || score > to->score) {
        *to = (struct unigram_step){score, start, id};
    }
}

static size_t character_bytes(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/* Offers the pieces that begin at `at` to the places where they end. */
static void extend(const struct unigram *u, struct unigram_step *steps, const char *text, size_t n, size_t at,
                   size_t length)
{
    double here = steps[at].score;
    bool has_one = false;
    uint32_t node = 1;
    for (size_t end = at; end < n;) {
        node = child_of(u, node, text[end]);
        if (node == 0) {
            break;
        }
        int32_t id = u->ids[node];
        end++;
        if (id >= 0) {
            offer(&steps[end], add_scores(u, u->scores[id], here), at, id);
            has_one = has_one || end - at == length;
        }
    }
    if (!has_one) {
        offer(&steps[at + length], add_scores(u, u->unknown_score, here), at, u->unknown);
    }
}

struct status unigram_encode(const struct unigram *u, struct unigram_scratch *s, const char *text, size_t n)
{
    s->n_pieces = 0;
    if (!ARRAY_RESERVE(s->steps, s->capacity, n + 1)) {
        return out_of_memory();
    }
    for (size_t i = 0; i <= n; i++) {
        s->steps[i] = (struct unigram_step){.id = -1};
    }
    for (size_t at = 0, length; at < n; at += length) {
        length = character_bytes((unsigned char)text[at]);
        length = length < n - at ? length : n - at;
        extend(u, s->steps, text, n, at, length);
    }
    for (size_t end = n; end > 0; end = s->steps[end].start) {
        if (!ARRAY_RESERVE(s->pieces, s->piece_capacity, s->n_pieces + 1)) {
            return out_of_memory();
        }
        s->pieces[s->n_pieces++] = (struct unigram_piece){s->steps[end].id, s->steps[end].start, end};
    }
    return status_ok();
}
