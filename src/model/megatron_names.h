/* megatron_names: what Megatron-DeepSpeed calls the tensors of its pipeline, and how ranks of tensor
 * parallelism share them.
 *
 * A pipeline numbers its modules: 1 has the embeddings, 3 to L + 2 the layers, and L + 4 the last norm, of
 * "weight" and "bias" alone; the others have no weights.  In states the number begins the name, "3.NAME", and
 * the embeddings are "tied_modules.embed.NAME".  Here these become "embedding.NAME", "layers.I.NAME" and
 * "final.NAME", which the layout of a family knows. */
#ifndef KILN_MODEL_MEGATRON_NAMES_H
#define KILN_MODEL_MEGATRON_NAMES_H

#include "core/param.h"

enum { MEGATRON_EMBEDDING = 1, MEGATRON_FIRST_LAYER = 3, MEGATRON_BEHIND = 4, MEGATRON_WORD_MULTIPLE = 128 };

#define MEGATRON_TIED "tied_modules.embed." /* prefix of the names of the embeddings in states */

/* The module of a name as states have it, and what follows; 0: it is no such name. */
int64_t megatron_names_module(const char *name, const char **rest);

/* The name of a tensor of a module, in a pipeline of n_layers layers; false: the module has no weights, or
 * the name is too long. */
bool megatron_names_put(char name[PARAM_NAME_BYTES], int64_t module, const char *rest, int64_t n_layers);

/* The inverse of megatron_names_put: the module, and what follows. */
int64_t megatron_names_split(const char *name, const char **rest, int64_t n_layers);

/* The name in states of a tensor that megatron_names_put named; false: it is too long. */
bool megatron_names_state(char name[PARAM_NAME_BYTES], const char *of, int64_t n_layers);

/* How n ranks of tensor parallelism share a tensor of this name. */
enum megatron_cut { MEGATRON_COPIED, MEGATRON_BY_ROW, MEGATRON_BY_COL };
enum megatron_cut megatron_names_cut(const char *name);

#endif
