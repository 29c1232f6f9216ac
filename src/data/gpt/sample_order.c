#include "data/gpt/sample_order.h"

#include "core/integers.h"
#include "core/mt19937.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The part of an epoch's samples below which the last epoch is shuffled apart. */
static const double LEAST_OF_LAST_EPOCH = 0.80;

static int64_t size_at(const struct sample_order_config *c, int64_t sequence)
{
    int32_t size;
    memcpy(&size, c->sizes + 4 * sequence, sizeof size);
    return size;
}

static int64_t count_tokens(const struct sample_order_config *c)
{
    int64_t n = 0;
    for (int64_t i = c->first; i < c->end; i++) {
        n += size_at(c, i);
    }
    return n;
}

/* Windows in so many tokens. */
static int64_t n_windows(const struct sample_order_config *c, int64_t n_tokens)
{
    return (n_tokens - 1) / c->seq_length;
}

static struct status count_epochs(struct sample_order *o, const struct sample_order_config *c,
                                  int64_t n_tokens)
{
    FAIL_IF(n_tokens == 0, STATUS_DATA,
            "the split of %lld documents has no tokens, but the run needs %lld samples of it",
            (long long)(c->end - c->first), (long long)c->n_wanted);
    /* the least e with (e n - 1) / S >= wanted */
    int64_t needed = c->n_wanted * c->seq_length + 1;
    o->n_epochs = needed <= n_tokens ? 1 : (needed + n_tokens - 1) / n_tokens;
    int64_t most;
    bool overflows = __builtin_mul_overflow(c->end - c->first, o->n_epochs, &most);
    FAIL_IF(overflows || most > INT32_MAX || n_windows(c, o->n_epochs * n_tokens) >= UINT32_MAX - 1,
            STATUS_USAGE,
            "%lld samples take %lld epochs of %lld documents, more than 32-bit indexes can "
            "count: --megatron_order false needs no indexes",
            (long long)c->n_wanted, (long long)o->n_epochs, (long long)(c->end - c->first));
    return status_ok();
}

/* Shuffles one part at a time, and reports the progress after each. */
static void shuffle(uint32_t *items, int64_t n, struct mt19937 *random, struct progress *progress,
                    const char *what)
{
    enum { PART = 1 << 20 };
    for (int64_t end = n; end > 0; end -= PART) {
        mt19937_shuffle(random, items, int_larger(end - PART, 0), end);
        if (progress_due(progress)) {
            progress_show(progress, "shuffling %s: %.0f %%", what, 100 - 100 * (double)end / (double)n);
        }
    }
}

/* Fills document[first, end) with complete epochs of the split's documents, and shuffles them together. */
static void shuffle_documents(int32_t *document, const struct sample_order_config *c, int64_t first,
                              int64_t end, struct mt19937 *random, struct progress *progress)
{
    for (int64_t i = first; i < end; i++) {
        document[i] = (int32_t)(c->first + (i - first) % (c->end - c->first));
    }
    shuffle((uint32_t *)document + first, end - first, random, progress, "documents");
}

void sample_order_shuffle(const struct sample_order *o, const struct sample_order_config *c,
                          int32_t *document, uint32_t *shuffled, struct progress *progress)
{
    struct mt19937 random;
    int64_t n = o->n_first_samples;
    mt19937_init(&random, c->seed);
    shuffle_documents(document, c, 0, o->n_first_documents, &random, progress);
    shuffle_documents(document, c, o->n_first_documents, o->n_documents, &random, progress);
    for (int64_t i = 0; i < o->n_samples; i++) {
        shuffled[i] = (uint32_t)i;
    }
    shuffle(shuffled, n, &random, progress, "samples");
    shuffle(shuffled + n, o->n_samples - n, &random, progress, "samples of the last epoch");
}

/* A window begins at the last token of the one before it, which is in the document that has it. */
void sample_start_next(struct sample_start *start, const int32_t *document,
                       const struct sample_order_config *c)
{
    int64_t token = start->token + c->seq_length;
    while (token >= size_at(c, document[start->place])) {
        token -= size_at(c, document[start->place++]);
    }
    start->token = (int32_t)token;
}

struct status sample_order_plan(struct sample_order *o, const struct sample_order_config *c)
{
    *o = (struct sample_order){0};
    int64_t n_tokens = count_tokens(c), n_sequences = c->end - c->first;
    TRY(count_epochs(o, c, n_tokens));
    int64_t per_epoch = n_windows(c, n_tokens), before = n_windows(c, (o->n_epochs - 1) * n_tokens);
    o->last_apart =
        o->n_epochs > 1 && c->n_wanted - before < (int64_t)(LEAST_OF_LAST_EPOCH * (double)per_epoch);
    o->n_samples = n_windows(c, o->n_epochs * n_tokens);
    o->n_first_samples = o->last_apart ? before : o->n_samples;
    o->n_documents = n_sequences * o->n_epochs;
    o->n_first_documents = n_sequences * (o->last_apart ? o->n_epochs - 1 : o->n_epochs);
    return status_ok();
}

size_t sample_order_bytes(const struct sample_order *o)
{
    return sizeof(int32_t) * (size_t)(o->n_documents + 2 * (o->n_samples + 1) + o->n_samples);
}

/* ---- arrays that were read ---- */

/* Whether each number of [first, end) is `times` times in row[0..n), n = times (end - first).  `counts` has a
 * zero for each of these numbers, and is left so. */
static bool has_all(const uint32_t *row, int64_t n, int64_t first, int64_t end, int64_t times,
                    uint32_t *counts)
{
    bool good = true;
    for (int64_t i = 0; i < n && good; i++) {
        good = row[i] >= first && row[i] < end && counts[row[i] - first]++ < times;
    }
    memset(counts, 0, (size_t)(end - first) * sizeof *counts);
    return good;
}

static bool documents_are_whole(const struct sample_order *o, const struct sample_order_config *c,
                                uint32_t *counts)
{
    const uint32_t *row = (const uint32_t *)o->document;
    int64_t n = c->end - c->first, n_first = o->n_first_documents;
    return has_all(row, n_first, c->first, c->end, n_first / n, counts) &&
           has_all(row + n_first, o->n_documents - n_first, c->first, c->end, 1, counts);
}

/* Whether row[begin, end) has each number of [begin, end) once.  `seen` has a zero bit for each. */
static bool is_permuted(const uint32_t *row, int64_t begin, int64_t end, unsigned char *seen)
{
    bool good = true;
    for (int64_t i = begin; i < end && good; i++) {
        good = row[i] >= begin && row[i] < end && (seen[row[i] / 8] >> row[i] % 8 & 1) == 0;
        if (good) {
            seen[row[i] / 8] |= (unsigned char)(1U << row[i] % 8);
        }
    }
    return good;
}

static bool windows_are_whole(const struct sample_order *o, unsigned char *seen)
{
    return is_permuted(o->shuffled, 0, o->n_first_samples, seen) &&
           is_permuted(o->shuffled, o->n_first_samples, o->n_samples, seen);
}

static bool starts_follow(const struct sample_order *o, const struct sample_order_config *c)
{
    struct sample_start at = {0};
    for (int64_t i = 0; i <= o->n_samples; i++) {
        if (o->starts[2 * i] != at.place || o->starts[2 * i + 1] != at.token) {
            return false;
        }
        if (i < o->n_samples) {
            sample_start_next(&at, o->document, c);
        }
    }
    return true;
}

struct status sample_order_check(enum sample_order_array *wrong, const struct sample_order *o,
                                 const struct sample_order_config *c)
{
    uint32_t *counts = calloc((size_t)(c->end - c->first) + 1, sizeof *counts);
    unsigned char *seen = calloc((size_t)o->n_samples / 8 + 1, 1);
    bool has_room = counts != NULL && seen != NULL;
    *wrong = !has_room                            ? SAMPLE_ORDER_N_ARRAYS
             : !documents_are_whole(o, c, counts) ? SAMPLE_ORDER_DOCUMENT
             : !windows_are_whole(o, seen)        ? SAMPLE_ORDER_SHUFFLED
             : !starts_follow(o, c)               ? SAMPLE_ORDER_STARTS
                                                  : SAMPLE_ORDER_N_ARRAYS;
    free(counts);
    free(seen);
    return has_room
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory to check %lld samples", (long long)o->n_samples);
}

/* ---- splits ---- */

struct status sample_order_split(int64_t bounds[4], const char *list, int64_t n_sequences)
{
    double parts[3] = {0}, sum = 0;
    const char *at = list;
    bool more = true;
    for (int n = 0; more; n++) {
        char *end;
        double part = strtod(at, &end);
        FAIL_IF(n == 3 || end == at || !(part >= 0) || !isfinite(part), STATUS_USAGE,
                "the split '%.40s' must be at most three numbers of 0 or more, such as 949,50,1", list);
        parts[n] = part;
        sum += part;
        more = *end == ',' || *end == '/';
        FAIL_IF(!more && *end != '\0', STATUS_USAGE, "the split '%.40s' has '%.10s' after a number", list,
                end);
        at = end + more;
    }
    FAIL_IF(sum <= 0, STATUS_USAGE, "the split '%.40s' is all zeros", list);
    bounds[0] = 0;
    for (int i = 0; i < 3; i++) { /* rint rounds halves to even, as Python does */
        bounds[i + 1] = bounds[i] + (int64_t)rint(parts[i] / sum * (double)n_sequences);
    }
    int64_t excess = bounds[3] - n_sequences;
    for (int i = 1; i <= 3; i++) {
        bounds[i] -= excess;
    }
    return status_ok();
}
