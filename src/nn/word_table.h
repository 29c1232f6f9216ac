/* word_table: the table of words [V, H], as input layers read it and add to its gradient: complete, or with a
 * slice of the words on each peer (dev/peers.h), as nn/word_head.h has them. */
#ifndef KILN_NN_WORD_TABLE_H
#define KILN_NN_WORD_TABLE_H

#include "nn/stream.h"

/* out [T, H] = word[id] of the stream's ids, numbers below n_words, the rows that all peers have; each gets
 * its own rows of `out`. */
void word_table_look_up(struct exec *x, const struct stream *s, tensor out, tensor word, int64_t n_words);

/* dword[id] += dout, for the words that are here. */
void word_table_add_gradients(struct exec *x, tensor dword, tensor dout, tensor ids, int64_t n_words);

#endif
