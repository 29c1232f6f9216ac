/* plan: what `kiln plan` reports, for people and as JSON: what a model takes on one device, on several, on a
 * mesh of them or on the fastest of all meshes, and the predicted time of a step.  Nothing is run. */
#ifndef KILN_CMD_PLAN_H
#define KILN_CMD_PLAN_H

#include "core/buf.h"
#include "core/json.h"
#include "task/mesh_forecast.h"
#include "task/world_plan.h"

/* ---- units ---- */

/* Units of the tables: a small model would be all zeros in GiB. */
struct plan_unit {
    const char *name; /* unit of memory */
    double bytes;
    const char *sent_name; /* unit of what links carry, whose rates are decimal */
    double sent;
};

/* The unit for devices that hold `device_bytes`. */
static inline struct plan_unit plan_unit_of(double device_bytes)
{
    return device_bytes < 0x1p31 ? (struct plan_unit){"MiB", 0x1p20, "MB", 1e6}
                                 : (struct plan_unit){"GiB", 0x1p30, "GB", 1e9};
}

/* ---- --train_tokens (plan_budget.c) ---- */

/* What a run takes, by the predicted time of its step. */
struct plan_budget {
    const struct world_setup *setup;
    int64_t devices, sequences; /* sequences of all devices in a step */
    double step_s;              /* as if nothing overlapped; 0: not predicted */
    double tokens;              /* tokens of the run; 0: not asked for */
    double cost_per_hour;       /* of a device; 0: not known */
};

/* Appends time, device hours, energy and cost of the tokens, and the bytes of checkpoints and of the data. */
struct status plan_budget_append(struct buf *b, const struct plan_budget *p);

/* Puts the same into an object, as "budget". */
struct status plan_budget_add_json(json_t *object, const struct plan_budget *p);

/* ---- --mesh (plan_mesh.c) ---- */

struct plan_mesh {
    const struct world_setup *setup;
    double memory_bytes;          /* bytes of a device */
    struct trainer_config config; /* configuration of one rank; its `ranks` are the mesh */
    bool has_times;               /* times are asked for */

    /* set by plan_mesh_count */
    struct rank_plan *stages; /* [pp] */
    struct mesh_forecast times;
    double needed_bytes; /* bytes of the largest rank */
    int largest;         /* stage of the largest rank */
};

/* Reads "4x2x1": tensor parallel, pipeline, data parallel.  STATUS_USAGE. */
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

/* ---- --search (plan_search.c) ---- */

enum { PLAN_SEARCH_SIZES = 6, PLAN_SEARCH_SHOWN = 10 }; /* sizes of micro-batches: powers of two, from 1 */

struct plan_search {
    struct plan_mesh any; /* fields that all meshes have in common; its mesh and micro-batches are not read */
    int64_t world, batch; /* sequences of all devices in a step */
    int64_t recomputed_layers; /* what --checkpoint_activations would make of net.recompute */

    /* set by plan_search_run */
    struct world_setup setups[2][PLAN_SEARCH_SIZES]; /* as asked for, and with checkpointed activations */
    int64_t n_fit[2][ZERO_STAGES];                   /* meshes that fit, by these choices */
    struct plan_mesh *found;                         /* [n_found] the fastest first */
    int64_t n_found;
    size_t capacity;
    int64_t n_tried, n_batch, n_model, n_large; /* why the others fell out: see plan_search_append */
    struct status model_reason;                 /* reason of the first of n_model */
    double least_bytes;                         /* bytes of the smallest of n_large; 0: there is none */
};

/* Plans every mesh of s->world devices, with one and two chunks a stage, micro-batches of 1, 2, 4 ...
 * sequences and the stages of ZeRO from the asked one on, and sorts those that fit by time.  A mesh that does
 * not fit is planned with checkpointed activations too. */
struct status plan_search_run(struct plan_search *s);
void plan_search_fini(struct plan_search *s);

/* Appends the table of the fastest meshes. */
void plan_search_append(struct buf *b, const struct plan_search *s);

/* The caller json_decref's it; NULL without memory. */
json_t *plan_search_json(const struct plan_search *s);

/* STATUS_MEMORY, STATUS_USAGE: no mesh is left. */
struct status plan_search_check(const struct plan_search *s);

/* ---- numbers of devices (plan_report.c) ---- */

enum { PLAN_MOST_WORLDS = 8 };

struct plan_report {
    const struct world_setup *setup;
    double memory_bytes; /* bytes of a device */
    bool has_times;
    struct world_plan stages[ZERO_STAGES]; /* plans for the devices that were asked for */
    int stage;                             /* the stage that was asked for */
    struct plan_row {                      /* other numbers of devices */
        struct world_plan stages[ZERO_STAGES];
        bool has_times;       /* the batch can be divided among so many */
    } rows[PLAN_MOST_WORLDS]; /* [n_rows] */
    int n_rows;
};

/* Appends the tables of bytes, of work and of 1 to 128 devices. */
void plan_report_append(struct buf *b, const struct plan_report *r);

/* The caller json_decref's it; NULL without memory. */
json_t *plan_report_json(const struct plan_report *r);

#endif
