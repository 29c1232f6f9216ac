/* network: a model in memory, ready to run: its weights, the layer loop (pass/stage.h) and memory for
 * batches, in one planned block.  It is all that inference needs, and belongs to one thread; networks in
 * several threads may share the weights of one.
 *
 * A caller with more in the same block, such as a trainer, calls the steps of network_init, which are
 * below. */
#ifndef KILN_PASS_NETWORK_H
#define KILN_PASS_NETWORK_H

#include "pass/choice_room.h"
#include "pass/stage.h"
#include "pass/vector_places.h"

/* The memory and work of a network, known before anything is allocated. */
struct network_plan {
    int64_t n_params;
    size_t weight_bytes;     /* master, vectors and working copy; in fp8 the layers' weights in fp8 too */
    size_t master_bytes;     /* part of weight_bytes: master and vectors, in fp32 */
    size_t cache_bytes;      /* keys and values of sequences in flight */
    size_t activation_bytes; /* activations of all batches in flight */
    size_t workspace_bytes, beside_bytes; /* scratch of an op, and of one that runs beside it (dev/queue.h) */
    size_t library_bytes; /* used by the device's context, or the host's libraries and threads */
    size_t total_bytes;   /* bytes of everything above, and of the rest of the block */
    double flops, bytes;  /* work of the largest batch: bytes moved by its ops, each tensor once */
};

struct network {
    /* configuration with the numbers that 0 stands for: the part's ranges, n_slots */
    struct network_config config;
    struct network_plan plan;
    struct exec x;
    struct profile *profile; /* receives the progress; NULL: nobody asks */
    struct param_table params;
    const struct network *owner; /* owner of the weights; NULL: they are this network's own */
    void *memory;                /* holds everything below except an owner's weights */

    /* Weights are kept in up to three flat buffers.  In fp32 there is the master alone, and passes read it.
     * In bf16, fp16 and int8 matrices are read from the working copy, and vectors in fp32: from the master
     * where it is complete, else from `vectors`.  The master is complete for training, a shard where ranks
     * share it (network_share_master), and empty without a backward. */
    struct param_shard owned; /* elements that the master has */
    tensor master;            /* [owned] */
    tensor working;           /* [all elements]; null where passes read the master */
    tensor scales;            /* scales of the rows of a working copy in int8; else null */
    tensor vectors;           /* [places.n]; null where the master is complete */
    struct vector_places places;
    tensor index;               /* i64 [1], result of a search (pass/culprit.h) */
    struct choice_room choices; /* choices of the next tokens of cached sequences; else empty */
    void *weights;              /* the model's views */
    int64_t version;            /* version of the weights: counts their changes */
    struct stage stage;
};

/* Validates the configuration by running the largest batch forward on the plan table; allocates nothing that
 * stays. */
struct status network_plan(struct network_plan *plan, const struct network_config *config);

/* Allocates what is planned.  The weights are zero. */
struct status network_init(struct network *n, const struct network_config *config);

/* Allocates a network without weights: it views those of `owner`, which must outlive it and hold all parts
 * that config->model needs, and never writes them.  Not for training. */
struct status network_init_shared(struct network *n, const struct network_config *config,
                                  const struct network *owner);

/* Safe on a zeroed struct and after a failed init. */
void network_fini(struct network *n);

/* Whether the fp32 master has all elements; for borrowed weights, whether the owner's master has. */
bool network_has_master(const struct network *n);

/* The tensor from which passes read the parameter. */
tensor network_view_param(const struct network *n, const struct param *p);

/* Call it after the weights were changed from outside: makes their copies from the master, where it is
 * complete. */
void network_weights_changed(struct network *n);

/* Copies the vectors of this rank's shard to `vectors`, where ranks gather them, if ranks share the
 * master. */
void network_copy_vectors(struct network *n);

/* ---- the steps of network_init ---- */

/* STATUS_USAGE unless n ranks can each have a slice of the model's layers and words. */
struct status network_check_slices(const struct network_config *config, int n);

/* Sets up table of parameters, exec and stage, without memory.  `owner` may be NULL.  STATUS_USAGE: the
 * precision does not fit the model. */
struct status network_declare(struct network *n, const struct network_config *config,
                              const struct network *owner);

/* Keeps only these elements of the master on this rank, where passes do not read it; call it before memory is
 * carved. */
void network_share_master(struct network *n, struct param_shard shard);

/* Carves the beginning of the block: weights, and the result of searches in them. */
void network_carve(struct network *n, struct arena *arena);

/* Carves and views tensors with shapes and no memory, instead of network_carve and network_carve_end, for an
 * `ops` that computes nothing. */
struct status network_carve_planned(struct network *n, struct arena *block);

/* Completes n->plan except flops and bytes, after the plan table has seen all ops of a batch, and carves the
 * end of the block. */
void network_plan_end(struct network *n, struct arena *block);

/* Opens the device and allocates the block of n->plan.  STATUS_MEMORY. */
struct status network_allocate(struct network *n, struct arena *block);

/* Carves the end of the block, and views everything. */
struct status network_carve_end(struct network *n, struct arena *block);

#endif
