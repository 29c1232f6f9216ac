#include "model/weight_sink.h"

static struct status view(void *self, const struct param *p, tensor *values)
{
    const tensor *flat = self;
    *values = param_view(p, *flat);
    return status_ok();
}

/* Does nothing: the values were read into their place. */
static struct status leave(void *self, const struct param *p, tensor values)
{
    (void)self, (void)p, (void)values;
    return status_ok();
}

struct weight_sink weight_sink_of(tensor *flat)
{
    return (struct weight_sink){.self = flat, .place = view, .put = leave, .current = view};
}
