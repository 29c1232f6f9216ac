#include "data/sorted_batches.h"

#include <stdlib.h>

/* An example and its length, for sorting. */
struct sized {
    int64_t length, example;
};

static int longest_first(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;
    if (x->length != y->length) {
        return x->length > y->length ? -1 : 1;
    }
    return x->example < y->example ? -1 : x->example > y->example;
}

struct status sorted_batches_order(int64_t **order, const struct example_source *source)
{
    size_t n = (size_t)source->n;
    struct sized *sorted = malloc((n + 1) * sizeof *sorted);
    *order = calloc(n + 1, sizeof **order);
    if (sorted == NULL || *order == NULL) {
        free(sorted);
        free(*order);
        *order = NULL;
        return status_error(STATUS_MEMORY, "out of memory for the order of %zu %s", n, source->name);
    }
    for (int64_t i = 0; i < source->n; i++) {
        sorted[i] = (struct sized){source->length(source->self, i), i};
    }
    qsort(sorted, n, sizeof *sorted, longest_first);
    for (int64_t i = 0; i < source->n; i++) {
        (*order)[i] = sorted[i].example;
    }
    free(sorted);
    return status_ok();
}

/* The limits count the sequence that fills up the last bucket of tokens. */
static void cut(struct sorted_batches *b, struct batch_limits limits)
{
    int64_t n_tokens = 0;
    for (int64_t i = 0; i < b->source.n; i++) {
        int64_t length = b->source.length(b->source.self, b->order[i]);
        n_tokens += length;
        bool begins =
            i == 0 || n_tokens > limits.n_tokens || i - b->firsts[b->n - 1] >= limits.n_sequences - 1;
        if (begins) {
            b->firsts[b->n++] = i;
            n_tokens = length;
        }
    }
    b->firsts[b->n] = b->source.n;
}

struct status sorted_batches_init(struct sorted_batches *b, const struct example_source *source,
                                  struct batch_limits limits, int32_t pad_id)
{
    *b = (struct sorted_batches){.source = *source, .pad_id = pad_id};
    TRY(sorted_batches_order(&b->order, source));
    b->firsts = malloc(((size_t)source->n + 1) * sizeof *b->firsts);
    if (b->firsts == NULL) {
        sorted_batches_fini(b);
        return status_error(STATUS_MEMORY, "out of memory for the batches of %lld %s", (long long)source->n,
                            source->name);
    }
    cut(b, limits);
    return status_ok();
}

void sorted_batches_fini(struct sorted_batches *b)
{
    free(b->order);
    free(b->firsts);
    *b = (struct sorted_batches){0};
}

const int64_t *sorted_batches_fill(const struct sorted_batches *b, int64_t index, struct batch *out)
{
    int64_t first = b->firsts[index], end = b->firsts[index + 1];
    batch_clear(out);
    for (int64_t i = first; i < end; i++) {
        b->source.add(b->source.self, b->order[i], (int32_t)(i - first), out);
    }
    batch_finish(out, b->pad_id);
    return b->order + first;
}
