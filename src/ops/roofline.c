#include "ops/roofline.h"

static void after_call(struct op_watch *w, struct exec *x, const struct op_call *call)
{
    struct roofline *r = (struct roofline *)w;
    struct op_total *total = &r->totals[call->slot];
    double multiplied = call->flops / r->products, moved = call->bytes / r->copy;
    (void)x;
    r->seconds[call->slot] += multiplied > moved ? multiplied : moved;
    r->product_seconds += multiplied > moved ? multiplied : 0;
    total->n_calls++;
    total->ns = (int64_t)(1e9 * r->seconds[call->slot] + 0.5);
    total->flops += call->flops;
    total->bytes += call->bytes;
}

void roofline_init(struct roofline *r, double products, double copy)
{
    *r = (struct roofline){.products = products, .copy = copy};
    op_watch_init(&r->watch, &ops_plan);
    r->watch.after = after_call;
    for (int i = 0; i < OP_WATCH_N_OPS; i++) {
        r->totals[i].op = op_watch_name(i);
    }
}

double roofline_seconds(const struct roofline *r)
{
    double seconds = 0;
    for (int i = 0; i < OP_WATCH_N_OPS; i++) {
        seconds += r->seconds[i];
    }
    return seconds;
}
