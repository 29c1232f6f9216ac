/* plan_mesh: the report of `kiln plan --mesh`: what each stage of a mesh takes and sends.  All of it is
 * counted; no time is predicted. */
#ifndef KILN_CMD_PLAN_MESH_H
#define KILN_CMD_PLAN_MESH_H

#include "core/buf.h"
#include "task/world_plan.h"
#include "train/mesh_plan.h"

struct plan_mesh {
    const struct world_setup *setup;
    double memory_bytes; /* of a device */
    struct mesh_job job;
    double needed_bytes; /* of the largest rank, once the report is made */
    int largest;         /* its stage */
};

/* Of "4x2x1": tensor parallel, pipeline, data parallel.  STATUS_USAGE. */
struct status plan_mesh_read(struct mesh_shape *shape, const char *text);

struct status plan_mesh_append(struct buf *b, struct plan_mesh *p);

/* STATUS_MEMORY: the largest rank does not fit. */
struct status plan_mesh_check(const struct plan_mesh *p);

#endif
