/* mesh: ranks in three directions: tensor parallel (slices of the same layers), pipeline (layers one after
 * the other) and data parallel (replicas of the model, each with its own samples).
 *
 * Rank = pp * (world / PP) + dp * TP + tp, as DeepSpeed numbers them (topology "pipe", "data", "model"): the
 * ranks of a tensor group are neighbours, which a launcher puts on one node, and stages are furthest apart,
 * since they exchange least.  The ranks of one replica are no regular row of numbers: a sum over a replica
 * goes over `tensor`, and then over `pipe`. */
#ifndef KILN_DIST_MESH_H
#define KILN_DIST_MESH_H

#include "dist/comm.h"

#include <stdio.h>

/* The number of ranks in each direction. */
struct mesh_shape {
    int tp, pp, dp;
};

/* Coordinates of a rank, from 0. */
struct mesh_place {
    int tp, pp, dp;
};

struct mesh {
    struct mesh_shape shape;
    struct mesh_place place; /* place of this rank */
    struct comm world;       /* borrowed */
    struct comm tensor;      /* [tp] the ranks with this one's layers and samples */
    struct comm pipe;        /* [pp] the stages of this replica with this one's slice, from first to last */
    struct comm data;        /* [dp] the ranks with this one's layers and slice: they have the same weights */
    /* the first and the last stage of `pipe`, which share the tied embedding; of other stages, and with
     * fewer than two, this rank alone */
    struct comm ends;
};

/* Whether ranks have parts of the model: slices of its layers, or some of them. */
bool mesh_cuts_model(struct mesh_shape shape);

/* The mesh of a world whose ranks have the complete model each, or of a single rank: nothing is split, `data`
 * is the world itself, and there is nothing to close. */
struct mesh mesh_of_replicas(const struct comm *world);

/* Splits the world; every rank calls it at once.  A mesh of replicas alone is not split.  STATUS_USAGE: the
 * ranks do not make this mesh.  All ranks return the same error, and then there is nothing to close. */
struct status mesh_open(struct mesh *m, const struct comm *world, struct mesh_shape shape);

/* Closes the parts, which all ranks do; the world stays.  Safe on a zeroed struct. */
void mesh_close(struct mesh *m);

/* Bytes that this rank has sent so far (comm_sent; splitting sends a little), by receiver: ranks with other
 * slices of its layers; other stages, with `ends`; and replicas.  Each -1 where they are not counted. */
struct mesh_sent {
    int64_t slices, stages, replicas;
};
struct mesh_sent mesh_sent(const struct mesh *m);

/* The place of rank `rank`, and the rank of a place. */
struct mesh_place mesh_place_of(struct mesh_shape shape, int rank);
int mesh_rank(struct mesh_shape shape, struct mesh_place place);

/* Writes a table, a row for each rank: its number, coordinates and host.  hosts [world]; NULL: there is no
 * such column. */
void mesh_print(FILE *f, struct mesh_shape shape, const char *const *hosts);

/* Gathers the hosts of all ranks, then rank 0 writes the table of mesh_print with them, if f is not NULL.
 * All ranks call it, and return the same error.  STATUS_MEMORY. */
struct status mesh_print_hosts(FILE *f, const struct mesh *m, const struct comm *control);

#endif
