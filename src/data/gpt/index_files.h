/* index_files: an order of samples (data/gpt/sample_order.h) in Megatron-LM's three files beside a store:
 *
 *     PREFIX_train_indexmap_300ns_2048sl_42s_doc_idx.npy      the documents of all epochs, i32
 *     PREFIX_train_indexmap_300ns_2048sl_42s_sample_idx.npy   where each window begins, i32 [n + 1, 2]
 *     PREFIX_train_indexmap_300ns_2048sl_42s_shuffle_idx.npy  the window of each sample, u32
 *
 * with the samples wanted, their length and the seed in the names.  Megatron-LM believes whatever has these
 * names; here all numbers are checked against the store. */
#ifndef KILN_DATA_GPT_INDEX_FILES_H
#define KILN_DATA_GPT_INDEX_FILES_H

#include "data/gpt/sample_order.h"

/* The path of one of them: `prefix` is the directory and the store's name, `split` "train", "valid" or
 * "test". */
enum { INDEX_FILES_PATH_BYTES = 1024 };
struct status index_files_path(char path[INDEX_FILES_PATH_BYTES], const char *prefix, const char *split,
                               const struct sample_order_config *config, enum sample_order_array which);

/* Whether all three are there. */
bool index_files_exist(const char *prefix, const char *split, const struct sample_order_config *config);

/* Reads the three.  STATUS_DATA, naming the file: it is missing, cut short, of another type or shape, or not
 * an order of this store. */
struct status index_files_read(struct sample_order *o, const char *prefix, const char *split,
                               const struct sample_order_config *config);

/* Writes the three, each whole or not at all. */
struct status index_files_write(const struct sample_order *o, const char *prefix, const char *split,
                                const struct sample_order_config *config);

#endif
