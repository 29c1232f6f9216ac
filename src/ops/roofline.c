#include "ops/roofline.h"

static void after_call(struct op_watch *w, struct exec *x, const struct op_call *call)
{
    struct roofline *r = (struct roofline *)w;
    double multiplied = call->flops / r->products, moved = call->bytes / r->copy;
    (void)x;
    r->seconds += multiplied > moved ? multiplied : moved;
    r->product_seconds += multiplied > moved ? multiplied : 0;
}

void roofline_init(struct roofline *r, double products, double copy)
{
    *r = (struct roofline){.products = products, .copy = copy};
    op_watch_init(&r->watch, &ops_plan);
    r->watch.after = after_call;
}
