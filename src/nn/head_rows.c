#include "nn/head_rows.h"

tensor head_rows_in(tensor own, tensor h, int field, const struct layer_call *call)
{
    return call->picks != NULL ? row_picks_of_field(call->picks, h, field) : own;
}

tensor head_rows_read(struct exec *x, tensor own, tensor h, int field, const struct layer_call *call)
{
    if (call->picks == NULL) {
        x->ops->gather_rows(x, own, h, call->stream->fields[field]);
    }
    return head_rows_in(own, h, field, call);
}

void head_rows_add(struct exec *x, tensor dh, tensor own, int field, const struct layer_call *call)
{
    if (call->picks == NULL) {
        x->ops->scatter_add_rows(x, dh, own, call->stream->fields[field]);
    }
}
