#include "data/bert/sample_map.h"

#include <stdlib.h>

static struct status check_store(const struct indexed *store)
{
    FAIL_IF(store->n_sequences == 0, STATUS_DATA, "the token store is empty");
    FAIL_IF(store->n_sequences >= UINT32_MAX, STATUS_DATA,
            "the token store has %lld sentences; at most %u are supported", (long long)store->n_sequences,
            UINT32_MAX - 1);
    for (int64_t d = 0; d < store->n_documents; d++) {
        FAIL_IF(indexed_first_sequence(store, d) == indexed_first_sequence(store, d + 1), STATUS_DATA,
                "document %lld of the token store has no sentences", (long long)d);
    }
    for (int64_t i = 0; i < store->n_sequences; i++) {
        FAIL_IF(indexed_offset(store, i) == indexed_offset(store, i + 1), STATUS_DATA,
                "sentence %lld of the token store has no tokens", (long long)i);
    }
    return status_ok();
}

/* Walks the samples of a store, writes their first sentences to `first` unless it is NULL, and counts them.
 */
static int64_t walk_samples(const struct indexed *store, int64_t max_tokens, uint32_t *first)
{
    int64_t n = 0;
    for (int64_t d = 0; d < store->n_documents; d++) {
        int64_t sentence = indexed_first_sequence(store, d);
        int64_t end = indexed_first_sequence(store, d + 1);
        while (sentence < end) {
            if (first != NULL) {
                first[n] = (uint32_t)sentence;
            }
            n++;
            int64_t full = indexed_offset(store, sentence) + max_tokens;
            /* A sentence that is longer than a sequence is a sample by itself. */
            do {
                sentence++;
            } while (sentence < end && indexed_offset(store, sentence) < full);
        }
    }
    return n;
}

struct status sample_map_build(struct sample_map *m, const struct indexed *store, int64_t max_tokens)
{
    *m = (struct sample_map){.store = store};
    TRY(check_store(store));
    m->n_samples = walk_samples(store, max_tokens, NULL);
    m->first = malloc(((size_t)m->n_samples + 1) * sizeof *m->first);
    FAIL_IF(m->first == NULL, STATUS_MEMORY, "out of memory for a map of %lld samples",
            (long long)m->n_samples);
    walk_samples(store, max_tokens, m->first);
    m->first[m->n_samples] = (uint32_t)store->n_sequences;
    return status_ok();
}

void sample_map_fini(struct sample_map *m)
{
    free(m->first);
    *m = (struct sample_map){0};
}

struct sample sample_map_at(const struct sample_map *m, int64_t index)
{
    CHECK(index >= 0 && index < m->n_samples, "sample %lld of %lld", (long long)index,
          (long long)m->n_samples);
    return (struct sample){.document = indexed_find_document(m->store, m->first[index]),
                           .first = m->first[index],
                           .n_sentences = m->first[index + 1] - m->first[index]};
}
