/* ref_token_choice: the definition of choosing a token (ops/ref.c): tokens are taken one by one in their
 * order. */
#include "ops/ref_slots.h"

#include "ops/ref_access.h"

#include <math.h>

/* A row, while one of its n tokens is chosen. */
struct choice {
    tensor logits, options;
    int64_t row, n;
    double largest; /* the largest logit after the changes */
};

static double option(const struct choice *c, enum choice_option k)
{
    return get2(c->options, c->row, k);
}

static double logit(const struct choice *c, int64_t id)
{
    return get2(c->logits, c->row, id);
}

static bool goes_before(const struct choice *c, int64_t a, int64_t b)
{
    return logit(c, a) != logit(c, b) ? logit(c, a) > logit(c, b) : a < b;
}

/* The token after `id` in the order, or the first after -1; -1: there is none. */
static int64_t next_of(const struct choice *c, int64_t id)
{
    int64_t next = -1;
    for (int64_t i = 0; i < c->n; i++) {
        if ((id < 0 || goes_before(c, id, i)) && (next < 0 || goes_before(c, i, next))) {
            next = i;
        }
    }
    return next;
}

/* Puts the changed logit in its place, and the logit before where the change was, or back. */
static void change(const struct choice *c, tensor changes, int64_t i)
{
    int64_t id = (int64_t)get2(changes, i, CHANGE_ID);
    double before = logit(c, id), z = before + get2(changes, i, CHANGE_ADD),
           n = get2(changes, i, CHANGE_N_NEW);
    if (get2(changes, i, CHANGE_WAS) != 0) {
        z = z < 0 ? z * option(c, CHOICE_REPETITION) : z / option(c, CHOICE_REPETITION);
    }
    z -= n > 0 ? n * option(c, CHOICE_FREQUENCY) + option(c, CHOICE_PRESENCE) : 0;
    set2(c->logits, c->row, id, z);
    set2(changes, i, CHANGE_ADD, before);
}

static void change_back(const struct choice *c, tensor changes, int64_t i)
{
    set2(c->logits, c->row, (int64_t)get2(changes, i, CHANGE_ID), get2(changes, i, CHANGE_ADD));
}

static double weight(const struct choice *c, int64_t id)
{
    return exp((logit(c, id) - c->largest) / option(c, CHOICE_TEMPERATURE));
}

/* The sum over the first tokens up to `last`, all of which weigh at least `least`. */
static double sum_to(const struct choice *c, int64_t last, double least)
{
    double sum = 0;
    for (int64_t id = next_of(c, -1); id >= 0; id = id == last ? -1 : next_of(c, id)) {
        sum += weight(c, id) >= least ? weight(c, id) : 0;
    }
    return sum;
}

/* The last of the first k tokens. */
static int64_t last_of_first(const struct choice *c, int64_t k)
{
    int64_t last = next_of(c, -1);
    for (int64_t n = 1; (k == 0 || n < k) && next_of(c, last) >= 0; n++) {
        last = next_of(c, last);
    }
    return last;
}

static int64_t choose(struct choice *c)
{
    double min_p = option(c, CHOICE_MIN_P), sum = 0;
    int64_t first = next_of(c, -1), last, id;
    c->largest = logit(c, first);
    if (option(c, CHOICE_TEMPERATURE) == 0) {
        return first;
    }
    last = last_of_first(c, (int64_t)option(c, CHOICE_TOP_K));
    double wanted = option(c, CHOICE_TOP_P) * sum_to(c, last, 0);
    for (id = first; option(c, CHOICE_TOP_P) < 1 && (sum += weight(c, id)) < wanted && id != last;) {
        id = next_of(c, id);
    }
    last = option(c, CHOICE_TOP_P) < 1 ? id : last;
    wanted = option(c, CHOICE_RANDOM) * sum_to(c, last, min_p);
    for (id = first, sum = weight(c, id); sum <= wanted && id != last;) {
        int64_t next = next_of(c, id);
        if (weight(c, next) < min_p) {
            break;
        }
        id = next;
        sum += weight(c, id);
    }
    return id;
}

static double log_sum_exp(tensor logits, int64_t row, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        max = fmax(max, get2(logits, row, i));
    }
    for (int64_t i = 0; i < n; i++) {
        sum += exp(get2(logits, row, i) - max);
    }
    return max + log(sum);
}

static bool all_finite(tensor logits, int64_t row, int64_t n)
{
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        finite = finite && isfinite(get2(logits, row, i));
    }
    return finite;
}

static void rate(const struct choice *c, tensor tokens, tensor log_ps, double all)
{
    int64_t id = (int64_t)get2(tokens, c->row, 0), n_rated = (int64_t)option(c, CHOICE_N_RATED);
    for (int64_t k = 0; k < n_rated && id >= 0; k++) {
        set2(tokens, c->row, k, (double)id);
        set2(log_ps, c->row, k, logit(c, id) - all);
        id = next_of(c, k == 0 ? -1 : id);
    }
}

void ref_choose_tokens(struct exec *x, tensor tokens, tensor log_ps, tensor changes, tensor logits,
                       tensor options, tensor starts, int64_t n_tokens, int64_t n_words)
{
    for (int64_t m = 0; !stopped(x) && m < tensor_rows(logits); m++) {
        struct choice c = {logits, options, m, n_tokens, 0};
        int64_t label = (int64_t)option(&c, CHOICE_LABEL), begin = index_at(starts, m),
                end = index_at(starts, m + 1);
        for (int64_t k = 0; k < tensor_cols(tokens); k++) {
            set2(tokens, m, k, -1);
            set2(log_ps, m, k, 0);
        }
        if (!all_finite(logits, m, n_words)) {
            set2(log_ps, m, 0, NAN);
            continue;
        }
        if (label < 0) {
            for (int64_t i = begin; i < end; i++) {
                change(&c, changes, i);
            }
            label = choose(&c);
            for (int64_t i = begin; i < end; i++) {
                change_back(&c, changes, i);
            }
        }
        set2(tokens, m, 0, (double)label);
        rate(&c, tokens, log_ps, log_sum_exp(logits, m, n_words));
    }
}
