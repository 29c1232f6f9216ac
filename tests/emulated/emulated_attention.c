/* The choice of a kernel where there is no clock: shapes take turns at those that compete, so that the cases
 * of a test meet all of them.  A choice is kept as on a GPU, in the run's file and its checkpoints;
 * KILN_EMULATED_TURN=1 lets others win, as another hour on a GPU may. */
#include "ops/cuda/choice/attention_choice.h"
#include "ops/cuda/choice/cuda_choices.h"
#include "ops/cuda/table/cuda_context.h"

#include <stdlib.h>

bool cuda_attention_choose(enum launch_attention_kernel *kernel, struct exec *x, const char *op,
                           const struct launch *l, const struct attention_call *call,
                           const struct attention_candidates *candidates)
{
    (void)op, (void)l;
    const struct launch_attention *s = &call->sizes;
    const char *other = getenv("KILN_EMULATED_TURN");
    struct cuda_choices *choices = ((struct cuda_context *)x->context)->choices;
    int64_t turn =
        s->n_rows_q + s->n_heads + s->n_sequences + s->head_size / 32 + (other != NULL ? atoi(other) : 0);
    struct product_choice choice = {.form = (int)candidates->kernels[turn % candidates->n], .micros = 1};
    char key[PRODUCT_KEY_BYTES];
    attention_key(key, choices->machine, call, candidates);
    const struct product_choice *kept = product_cache_find(&choices->cache, key);
    if (kept != NULL) {
        choice = *kept;
    } else if (failed(product_cache_keep(&choices->cache, key, &choice))) {
        return false;
    }
    product_cache_write(&choices->cache);
    *kernel = (enum launch_attention_kernel)choice.form;
    return true;
}
