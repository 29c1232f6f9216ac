#include "ops/op_sync.h"

static void after_call(struct op_watch *w, struct exec *x, const struct op_call *call)
{
    (void)w;
    exec_queued(x, op_watch_name(call->slot));
    exec_synchronize(x);
}

void op_sync_init(struct op_watch *w, const struct ops *inner)
{
    op_watch_init(w, inner);
    w->after = after_call;
}
