/* plan_report: the report of `kiln plan`, for people and as JSON. */
#ifndef KILN_CMD_PLAN_REPORT_H
#define KILN_CMD_PLAN_REPORT_H

#include "core/buf.h"
#include "core/json.h"
#include "task/world_plan.h"

enum { PLAN_MOST_WORLDS = 8 };

struct plan_report {
    const char *config_file;
    const struct world_setup *setup;
    double memory_bytes; /* of a device */
    bool has_times;
    struct world_plan stages[ZERO_STAGES]; /* of the devices that were asked for */
    int stage;                             /* that was asked for */
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
