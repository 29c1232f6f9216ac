#include "data/bert/nsp.h"

static int64_t length(struct nsp_range range)
{
    return range.end - range.begin;
}

static struct nsp_range tokens_of(const struct indexed *store, int64_t first, int64_t end)
{
    return (struct nsp_range){indexed_offset(store, first), indexed_offset(store, end)};
}

/* The smallest sentence index s such that sentences [first, s) have `target` tokens; `end` if there is
 * none. */
static int64_t reach(const struct indexed *store, int64_t first, int64_t end, int64_t target)
{
    int64_t full = indexed_offset(store, first) + target;
    int64_t sentence = first + 1;
    while (sentence < end && indexed_offset(store, sentence) < full) {
        sentence++;
    }
    return sentence;
}

/* Up to 10 tries for a document other than `current`.  If all fail, the pair is labelled as "next". */
static int64_t draw_document(const struct indexed *store, int64_t current, struct rng_stream *r)
{
    enum { TRIES = 10 };
    int64_t document = current;
    for (int i = 0; i < TRIES && document == current; i++) {
        document = rng_below(r, (uint32_t)store->n_documents); /* fewer than sentences, which fit 32 bits */
    }
    return document;
}

static struct nsp_range draw_random_segment(const struct indexed *store, int64_t document, int64_t target,
                                            struct rng_stream *r)
{
    int64_t begin = indexed_first_sequence(store, document);
    int64_t end = indexed_first_sequence(store, document + 1);
    int64_t first = begin + rng_below(r, (uint32_t)(end - begin));
    return tokens_of(store, first, reach(store, first, end, target));
}

/* Each token is taken from the front or the back of the longer segment by the toss of a coin, so
 * that neither end is always kept. */
void nsp_truncate(struct nsp_range *a, struct nsp_range *b, int64_t max_tokens, struct rng_stream *r)
{
    while (length(*a) + length(*b) > max_tokens) {
        struct nsp_range *longer = length(*a) > length(*b) ? a : b;
        if (rng_below(r, 2) == 0) {
            longer->begin++;
        } else {
            longer->end--;
        }
    }
}

/* The length that a sample aims at. */
static int64_t draw_target(int64_t max_tokens, double short_seq_prob, struct rng_stream *r)
{
    return rng_uniform(r) < short_seq_prob ? 2 + (int64_t)rng_below(r, (uint32_t)(max_tokens - 1))
                                           : max_tokens;
}

struct nsp_range nsp_draw_window(const struct indexed *store, struct sample sample, int64_t max_tokens,
                                 double short_seq_prob, struct rng_stream *r)
{
    int64_t target = draw_target(max_tokens, short_seq_prob, r);
    int64_t end = reach(store, sample.first, sample.first + sample.n_sentences, target);
    struct nsp_range window = tokens_of(store, sample.first, end);
    if (length(window) > target) {
        window.begin += rng_below(r, (uint32_t)(length(window) - target + 1));
        window.end = window.begin + target;
    }
    return window;
}

struct nsp_pair nsp_draw(const struct indexed *store, struct sample sample, int64_t max_tokens,
                         double short_seq_prob, struct rng_stream *r)
{
    int64_t target = draw_target(max_tokens, short_seq_prob, r);
    int64_t end = reach(store, sample.first, sample.first + sample.n_sentences, target);
    int64_t n = end - sample.first;
    int64_t split = sample.first + (n == 1 ? 1 : 1 + rng_below(r, (uint32_t)(n - 1)));
    struct nsp_pair pair = {.a = tokens_of(store, sample.first, split), .label = NSP_IS_NEXT};
    if (n == 1 || rng_below(r, 2) == 0) {
        int64_t document = draw_document(store, sample.document, r);
        pair.label = document == sample.document ? NSP_IS_NEXT : NSP_IS_RANDOM;
        pair.b = draw_random_segment(store, document, target - length(pair.a), r);
    } else {
        pair.b = tokens_of(store, split, end);
    }
    nsp_truncate(&pair.a, &pair.b, max_tokens, r);
    return pair;
}
