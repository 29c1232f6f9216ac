/* over_nccl: ranks that are threads, each with a GPU of its own: thread_device, and the fake library of
 * NCCL. */
#ifndef KILN_TESTS_OVER_NCCL_H
#define KILN_TESTS_OVER_NCCL_H

#include "dist/comm_device.h"

#include "ranks.h"
#include "thread_device.h"

/* The program's only argument, or the variable KILN_NCCL_LIBRARY, is the path of the library. */
static inline void over_nccl_use(const char *library, const char *fate)
{
    setenv("KILN_NCCL_LIBRARY", library, 1);
    setenv("FAKE_NCCL", fate, 1);
}

static inline const char *over_nccl_chip(int rank)
{
    static const char *const chips[] = {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0", "0000:04:00.0",
                                        "0000:05:00.0", "0000:06:00.0", "0000:07:00.0", "0000:08:00.0"};
    return chips[rank];
}

/* A communicator for tensors of the host, as other tables are tested with: each call runs on the rank's
 * device, and is waited for.  The device's memory is the host's. */
struct over_nccl {
    struct comm_device device;
    struct exec x;
};

/* Messages are over when they return; the rest is waited for. */
static inline struct status over_nccl_call(void *state, struct exec *x, const struct comm_call *call,
                                           tensor t, const int64_t *bounds)
{
    struct over_nccl *o = state;
    const struct comm *inner = &o->device.comm;
    struct comm_call mine = *call;
    mine.status = comm_call_host(call, x);
    o->x.status = mine.status;
    o->x.status = inner->type->call(inner->state, &o->x, &mine, t, bounds);
    if (call->kind != CALL_AGREE && call->kind != CALL_SEND && call->kind != CALL_RECEIVE) {
        comm_join(inner, &o->x);
        o->x.device->synchronize(o->x.context);
        return failed(o->x.status) ? o->x.status : comm_check(inner);
    }
    return o->x.status;
}

static inline void over_nccl_leave(void *state, struct status why)
{
    comm_leave(&((struct over_nccl *)state)->device.comm, why);
}

static inline struct status over_nccl_split(const struct comm *whole, const struct comm_group *g,
                                            struct comm *part);
static inline void over_nccl_close_part(struct comm *part);

static const struct comm_type over_nccl_type = {.name = "over nccl",
                                                .call = over_nccl_call,
                                                .leave = over_nccl_leave,
                                                .split = over_nccl_split,
                                                .close_part = over_nccl_close_part};

static inline struct status over_nccl_split(const struct comm *whole, const struct comm_group *g,
                                            struct comm *part)
{
    struct over_nccl *o = whole->state, *p = calloc(1, sizeof *p);
    EXPECT(p != NULL, "out of memory");
    p->x = o->x;
    struct status s = comm_split(&o->device.comm, &p->device.comm, g->first, g->stride, g->n);
    *part = p->device.comm;
    if (failed(s) || g->n == 1) {
        free(p);
    } else {
        part->type = &over_nccl_type;
        part->state = p;
    }
    return s;
}

static inline void over_nccl_close_part(struct comm *part)
{
    struct over_nccl *p = part->state;
    comm_part_close(&p->device.comm);
    free(p);
}

/* A body of ranks over NCCL instead of over `control`; rank_wrapper of ranks.h. */
static inline void over_nccl_run(const struct comm *control, rank_body *body, void *context)
{
    static const struct comm_nccl_config config = {.deadline_s = 30};
    struct over_nccl o = {.x = thread_device_exec(over_nccl_chip(control->rank))};
    if (control->size == 1) { /* which comm_device opens without NCCL */
        body(control, context);
    } else {
        EXPECT_OK(comm_device_open(&o.device, control, &o.x, &config));
        EXPECT(o.device.nccl != NULL, "ranks do not use NCCL");
        struct comm c = *control;
        c.type = &over_nccl_type;
        c.state = &o;
        body(&c, context);
        comm_device_close(&o.device);
    }
    thread_device_close(&o.x);
}

#endif
