#include "ops/attention_bits.h"

enum { TILES_BEHIND = 3 };

bool attention_bits_are_kept(const struct device *device, struct dropout dropout)
{
    return device->keeps_dropout_bits && dropout_threshold(dropout) > 0;
}

static int64_t chunks_of(int64_t max_seqlen_kv)
{
    return (max_seqlen_kv + ATTENTION_BITS_CHUNK - 1) / ATTENTION_BITS_CHUNK;
}

int64_t attention_bits_rows(int64_t n_heads, int64_t max_seqlen_kv)
{
    return n_heads * chunks_of(max_seqlen_kv);
}

/* A sequence of n rows has at most (n + 15) / 16 tiles, and begins at tile first / 16 + sequence. */
int64_t attention_bits_cols(int64_t n_rows_q, int64_t n_sequences)
{
    return (n_rows_q / ATTENTION_BITS_TILE + n_sequences + TILES_BEHIND) * ATTENTION_BITS_WORDS;
}

/* The word of an element, and its bit there. */
static uint32_t *find(const struct attention *a, struct attention_element e, int *bit)
{
    int64_t row = e.head * chunks_of(a->max_seqlen_kv) + e.key / ATTENTION_BITS_CHUNK;
    int64_t tile = e.first / ATTENTION_BITS_TILE + e.sequence + e.query / ATTENTION_BITS_TILE;
    int r = (int)(e.query % ATTENTION_BITS_TILE), c = (int)(e.key % ATTENTION_BITS_CHUNK);
    *bit = c / 16 * 8 + c % 16 / 8 * 4 + r / 8 * 2 + c % 2;
    return (uint32_t *)a->bits.data + row * tensor_cols(a->bits) + tile * ATTENTION_BITS_WORDS + r % 8 * 4 +
           c % 8 / 2;
}

bool attention_bits_get(const struct attention *a, struct attention_element e)
{
    int bit;
    const uint32_t *word = find(a, e, &bit);
    return (*word >> bit & 1) != 0;
}

void attention_bits_set(const struct attention *a, struct attention_element e, bool kept)
{
    int bit;
    uint32_t *word = find(a, e, &bit);
    *word = (*word & ~(1U << bit)) | (uint32_t)kept << bit;
}
