/* plan_search: `kiln plan --search`: all meshes of so many devices, with one and two chunks a stage and
 * micro-batches of 1, 2, 4 ... sequences, by their predicted time.  Nothing is run. */
#ifndef KILN_CMD_PLAN_SEARCH_H
#define KILN_CMD_PLAN_SEARCH_H

#include "cmd/plan_mesh.h"

enum { PLAN_SEARCH_SIZES = 6, PLAN_SEARCH_SHOWN = 10 }; /* of micro-batches: powers of two, from 1 */

struct plan_search {
    struct plan_mesh any; /* what all meshes have in common: its mesh and micro-batches are not read */
    int64_t world, batch; /* sequences of all devices in a step */

    /* by plan_search_run */
    struct world_setup setups[PLAN_SEARCH_SIZES];
    struct plan_mesh *found; /* [n_found] the fastest first */
    int64_t n_found, capacity;
    int64_t n_tried, n_batch, n_model, n_large; /* why the others fell out: see plan_search_append */
    struct status model_reason;                 /* of the first of n_model */
    double least_bytes;                         /* of those too large, 0: there is none */
};

/* Plans every mesh of s->world devices, and sorts those that fit by time. */
struct status plan_search_run(struct plan_search *s);
void plan_search_fini(struct plan_search *s);

/* Appends the table of the fastest meshes. */
void plan_search_append(struct buf *b, const struct plan_search *s);

/* The caller json_decref's it; NULL without memory. */
json_t *plan_search_json(const struct plan_search *s);

/* STATUS_MEMORY, STATUS_USAGE: no mesh is left. */
struct status plan_search_check(const struct plan_search *s);

#endif
