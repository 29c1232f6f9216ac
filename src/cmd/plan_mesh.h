/* plan_mesh: the report of `kiln plan --mesh`, for people and as JSON: what each stage of a mesh takes and
 * sends, and the predicted time of a step beside what others have published.  Nothing is run. */
#ifndef KILN_CMD_PLAN_MESH_H
#define KILN_CMD_PLAN_MESH_H

#include "core/buf.h"
#include "core/json.h"
#include "task/mesh_forecast.h"

struct plan_mesh {
    const char *config_file;
    const struct world_setup *setup;
    double memory_bytes;          /* of a device */
    struct trainer_config config; /* of one rank; its `ranks` are the mesh */
    bool has_times;               /* they are asked for */

    /* by plan_mesh_count */
    struct rank_plan *stages; /* [pp] */
    struct mesh_forecast times;
    double needed_bytes; /* of the largest rank */
    int largest;         /* its stage */
};

/* Of "4x2x1": tensor parallel, pipeline, data parallel.  STATUS_USAGE. */
struct status plan_mesh_read(struct mesh_shape *shape, const char *text);

/* Counts bytes and times; without `whole` only until a rank does not fit.  STATUS_USAGE: the model does not
 * divide so. */
struct status plan_mesh_count(struct plan_mesh *p, bool whole);

/* Safe on a zeroed struct. */
void plan_mesh_fini(struct plan_mesh *p);

/* Whether every stage fits into its device's memory. */
bool plan_mesh_fits(const struct plan_mesh *p);

/* Sequences of all replicas in a step. */
int64_t plan_mesh_batch(const struct plan_mesh *p);

/* TFLOP/s of a device by the formula of Megatron's logs, of the model alone or with what is recomputed. */
double plan_mesh_tflops(const struct plan_mesh *p, bool with_recomputed);

/* Appends the tables of bytes, traffic and time. */
struct status plan_mesh_append(struct buf *b, const struct plan_mesh *p);

/* The caller json_decref's it; NULL without memory. */
json_t *plan_mesh_json(const struct plan_mesh *p);

/* STATUS_MEMORY: the largest rank does not fit. */
struct status plan_mesh_check(const struct plan_mesh *p);

#endif
