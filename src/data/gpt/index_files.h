/* index_files: an order of samples (data/gpt/sample_order.h) in Megatron-LM's three files next to a store:
 *
 *     PREFIX_train_indexmap_300ns_2048sl_42s_doc_idx.npy      the documents of all epochs, i32
 *     PREFIX_train_indexmap_300ns_2048sl_42s_sample_idx.npy   where each window begins, i32 [n + 1, 2]
 *     PREFIX_train_indexmap_300ns_2048sl_42s_shuffle_idx.npy  the window of each sample, u32
 *
 * with the samples wanted, their length and the seed in the names.  Megatron-LM believes whatever has these
 * names; here all numbers are checked against the store.
 *
 * The rule: they are made once, by whichever process comes first, and mapped by all, so that the ranks of a
 * host share their memory. */
#ifndef KILN_DATA_GPT_INDEX_FILES_H
#define KILN_DATA_GPT_INDEX_FILES_H

#include "data/gpt/sample_order.h"
#include "io/npy_file.h"

struct index_files {
    struct npy_file of[SAMPLE_ORDER_N_ARRAYS];
};

/* The path of one of them: `prefix` is the directory and the store's name, `split` "train", "valid" or
 * "test". */
enum { INDEX_FILES_PATH_BYTES = 1024 };
struct status index_files_path(char path[INDEX_FILES_PATH_BYTES], const char *prefix, const char *split,
                               const struct sample_order_config *config, enum sample_order_array which);

/* Whether all three files exist. */
bool index_files_exist(const char *prefix, const char *split, const struct sample_order_config *config);

/* Makes the three files unless they exist, each complete or not at all; meanwhile other processes wait.
 * `order` has the sizes (sample_order_plan).  *made: this call did.  STATUS_PREEMPTED, STATUS_MEMORY,
 * STATUS_IO. */
struct status index_files_make(bool *made, const struct sample_order *order, const char *prefix,
                               const char *split, const struct sample_order_config *config);

/* Private memory of a process that makes them. */
size_t index_files_make_bytes(const struct sample_order *order);

/* Maps the three, to which the arrays of `order` then point; with `checks` all numbers are looked at.
 * STATUS_DATA, naming the file: it is missing, cut short, of another type or shape, or not an order of this
 * store. */
struct status index_files_open(struct index_files *f, struct sample_order *order, const char *prefix,
                               const char *split, const struct sample_order_config *config, bool checks);

/* Safe on a zeroed struct. */
void index_files_close(struct index_files *f);

#endif
