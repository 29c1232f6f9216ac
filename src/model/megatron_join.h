/* megatron_join: what the readers of Megatron-DeepSpeed's folders have in common: tensors that ranks share
 * are laid over the mapped files, and copies that drifted apart are averaged.  Only megatron_files.c and
 * megatron_states.c include this. */
#ifndef KILN_MODEL_MEGATRON_JOIN_H
#define KILN_MODEL_MEGATRON_JOIN_H

#include "model/megatron_files.h"

enum { MEGATRON_MOST_RANKS = 1024 };

/* A folder being read. */
struct megatron_reading {
    struct megatron_files *m;
    const char *directory;
    int64_t n_layers;
    int n_ranks;  /* ranks of tensor parallelism */
    double drift; /* the largest difference of copies */
    const char *drifted;
};

/* The shards of a tensor, by rank. */
struct megatron_shards {
    const struct stored_tensor *of[MEGATRON_MOST_RANKS];
    const char *name; /* name in the module */
    int n;
    bool are_moments; /* moments of weights whose copies were compared */
};

/* Begins to read into the struct, which is zeroed; and the end, which checks names where `s` is no
 * failure. */
struct megatron_reading megatron_join_begin(struct megatron_files *m, const char *directory,
                                            int64_t n_layers);
struct status megatron_join_finish(const struct megatron_reading *r, struct status s);

/* Opens a file, the last of m->files from then on. */
struct status megatron_join_open(struct megatron_files *m, const char *path);

/* Lists a tensor of a module under the name that it has in the complete model. */
struct status megatron_join_add(struct megatron_reading *r, const struct stored_tensor *t, int64_t module,
                                const char *rest);

/* Lists a tensor that ranks share. */
struct status megatron_join(struct megatron_reading *r, const struct megatron_shards *s, int64_t module);

/* Makes `t`, which is the first shard under the name of the complete tensor, the complete tensor. */
struct status megatron_join_shards(struct megatron_reading *r, struct stored_tensor *t,
                                   const struct megatron_shards *s, int64_t module);

/* Sets n_layers where it is unknown, 0: the last module is then the norm after the layers. */
void megatron_join_guess_layers(struct megatron_reading *r, int64_t last);

/* Says how far copies drifted. */
void megatron_join_tell_drift(const struct megatron_reading *r);

/* The path of the layer file of a module and a rank. */
struct status megatron_join_layer_path(char path[FILE_PATH_BYTES], const struct megatron_reading *r,
                                       int64_t module, int rank);

/* The number of ranks of tensor parallelism that have layer files, and the number of layers by their names,
 * if it is unknown. */
struct status megatron_join_look(struct megatron_reading *r);

#endif
