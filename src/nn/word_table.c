#include "nn/word_table.h"

#include "dev/peers.h"
#include "ops/ops.h"

/* The number of the first word that is here. */
static int64_t first_of(const struct exec *x, tensor word)
{
    return peers_rank(x) * word.dims[0];
}

/* A peer adds zeros for the words that it does not have. */
void word_table_look_up(struct exec *x, const struct stream *s, tensor out, tensor word, int64_t n_words)
{
    if (peers_size(x) == 1) {
        x->ops->gather_rows(x, out, word, s->ids);
        return;
    }
    x->ops->gather_slice(x, out, word, s->ids, first_of(x, word), n_words);
    stream_sum(x, s, out);
}

void word_table_add_gradients(struct exec *x, tensor dword, tensor dout, tensor ids, int64_t n_words)
{
    if (peers_size(x) == 1) {
        x->ops->scatter_add_rows(x, dword, dout, ids);
    } else {
        x->ops->scatter_add_slice(x, dword, dout, ids, first_of(x, dword), n_words);
    }
}
