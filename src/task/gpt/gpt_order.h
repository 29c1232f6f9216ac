/* gpt_order: the order in which a run takes the samples of a store, that of Megatron-LM's index files
 * (data/gpt/index_files.h), and where these files are: in --data_cache_path, else in OUTPUT_DIR/index.
 *
 * The rule: sizes are known once the store is open, and files are made only before training begins, so that a
 * dry run and a refused one write none. */
#ifndef KILN_TASK_GPT_ORDER_H
#define KILN_TASK_GPT_ORDER_H

#include "data/gpt/index_files.h"
#include "dist/comm.h"
#include "task/pretrain.h"

/* Order of the samples of one store, or of a part of its documents; zeroed: they have none. */
struct gpt_order {
    struct sample_order_config config;
    struct sample_order order;
    struct index_files files;
    char name[128]; /* names of the store and of its part: "text_document", "train" */
    const char *part;
};

/* Finds the sizes of the order that config asks for; `part` is "train", "valid" or "test". */
struct status gpt_order_plan(struct gpt_order *g, const struct sample_order_config *config, const char *name,
                             const char *part);

/* Makes the files unless they are there, and maps them.  One rank of a host checks all numbers of files that
 * were there. */
struct status gpt_order_open(struct gpt_order *g, const struct pretrain_options *o);
void gpt_order_close(struct gpt_order *g);

/* Bytes of the files of several orders, and the private ones of a rank that makes the largest. */
struct gpt_order_size {
    size_t mapped, making;
};
void gpt_order_add_size(struct gpt_order_size *size, const struct gpt_order *g);
void gpt_order_announce(const struct gpt_order_size *size, const struct pretrain_options *o);

#endif
