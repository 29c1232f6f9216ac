#include "model/weight_source.h"

static struct status view(void *self, const struct param *p, tensor *values)
{
    const tensor *flat = self;
    *values = param_view(p, *flat);
    return status_ok();
}

struct weight_source weight_source_of(const tensor *flat)
{
    return (struct weight_source){.self = (void *)flat, .read = view};
}

struct weight_source weight_source_either(const struct weight_source *other, const tensor *flat)
{
    return other != NULL ? *other : weight_source_of(flat);
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
