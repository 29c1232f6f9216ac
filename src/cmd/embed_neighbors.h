/* embed_neighbors: the words of a vocabulary whose input vectors have the smallest angles with a word's. */
#ifndef KILN_CMD_EMBED_NEIGHBORS_H
#define KILN_CMD_EMBED_NEIGHBORS_H

#include "cmd/session_flags.h"

/* Prints the k nearest complete words of each word, from arguments or lines of standard input, as a table
 * with tabs or as JSON.  STATUS_DATA: a word is no single token of the vocabulary. */
struct status embed_neighbors_print(const struct session_flags *f, int64_t k, bool json, int n_words,
                                    const char *const *words);

#endif
