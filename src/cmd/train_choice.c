#include "cmd/train_choice.h"

#include "core/integers.h"

#include <math.h>
#include <stddef.h>

/* The largest first. */
static const struct train_size sizes[] = {{12, 768, 12}, {8, 512, 8}, {6, 384, 6},
                                          {4, 256, 4},   {3, 192, 6}, {2, 128, 2}};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

/* Share of the machine's rate of products that training reaches, the update and all other work included. */
static const double efficiency = 0.5;

int64_t train_choice_vocab_size(int64_t n_bytes)
{
    const struct {
        int64_t n_bytes, pieces;
    } rows[] = {{(int64_t)1 << 30, 32768}, {200000000, 16384}, {30000000, 8192}, {6000000, 4096}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (n_bytes >= rows[i].n_bytes) {
            return rows[i].pieces;
        }
    }
    return 2048;
}

/* Weights of attention and feed-forward: 4 and 8 squares of the width in each layer. */
static int64_t weights_of(const struct train_size *s)
{
    return 12 * s->n_layers * s->width * s->width;
}

/* Tokens that can be trained on: a weight costs two operations forward and four backward for each token; of
 * masked words, few need the words' logits. */
static double tokens_of(const struct train_facts *f, const struct train_size *s)
{
    double logits = (double)(f->vocab_size * s->width) * (f->masked ? 0.2 : 1);
    return f->seconds * f->flops_per_s * efficiency / (6 * ((double)weights_of(s) + logits));
}

static const struct train_size *size_of(const struct train_facts *f)
{
    const struct train_size *s = sizes;
    double most = (double)TRAIN_MOST_EPOCHS * (double)f->n_tokens;
    while (s + 1 < sizes + N_SIZES &&
           fmin(tokens_of(f, s), most) < TRAIN_TOKENS_PER_WEIGHT * (double)weights_of(s)) {
        s++;
    }
    return s;
}

/* Tokens of a step. */
static int64_t step_of(double n_tokens)
{
    return n_tokens < 30e6 ? 2048 : n_tokens < 100e6 ? 4096 : n_tokens < 500e6 ? 8192 : 16384;
}

/* Bits a byte that decoders of `kiln train` had, by the logarithm of the tokens of their training; after
 * four epochs a text teaches little more (Muennighoff et al. 2023, arXiv:2305.16264). */
static double bits_of(double n_tokens, int64_t of_text)
{
    double decades = log10(fmax(fmin(n_tokens, 4 * (double)of_text), 1e5) / 1e6);
    return fmax(1.72 - 0.3 * decades, 0.95);
}

struct train_choice train_choice_make(const struct train_facts *f)
{
    const struct train_size *s = size_of(f);
    struct train_choice c = {.size = s, .n_weights = weights_of(s), .length = f->masked ? 128 : 256};
    double most = (double)TRAIN_MOST_EPOCHS * (double)f->n_tokens, by_time = tokens_of(f, s);
    c.ends_by_steps = by_time > most;
    c.n_tokens = fmin(by_time, most);
    c.epochs = c.n_tokens / (double)int_larger(f->n_tokens, 1);
    c.batch = step_of(c.n_tokens) / c.length;
    c.n_steps = int_larger((int64_t)(c.n_tokens / (double)(c.batch * c.length)), 1);
    double bits = bits_of(c.n_tokens, f->n_tokens);
    c.bits[0] = bits * 0.92;
    c.bits[1] = bits * 1.08;
    return c;
}
