/* host_view: a tensor's elements in memory that the host can read and write: the tensor itself if the
 * device's memory is the host's, else a copy. */
#ifndef KILN_DEV_HOST_VIEW_H
#define KILN_DEV_HOST_VIEW_H

#include "core/tensor.h"
#include "dev/exec.h"

struct host_view {
    tensor host;  /* dense or with the strides of the tensor */
    void *memory; /* memory of a copy, owned; else NULL */
};

/* Views the dense tensor `t` of the exec's device with its contents, after the ops before it.  STATUS_MEMORY,
 * or the exec's failure. */
struct status host_view_open(struct host_view *v, struct exec *x, tensor t);

/* Views `t` as host_view_open does, but without its contents: the host is going to write them. */
struct status host_view_open_blank(struct host_view *v, struct exec *x, tensor t);

/* Copies what the host wrote into `t`. */
void host_view_commit(const struct host_view *v, struct exec *x, tensor t);

/* Safe on a zeroed struct. */
void host_view_close(struct host_view *v);

#endif
