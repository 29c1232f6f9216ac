/* Plain C: the clock is behind cuda_choices_time, so that tests run this without a GPU. */
#include "ops/cuda/choice/attention_choice.h"

#include "ops/cuda/choice/cuda_choices.h"
#include "ops/cuda/table/cuda_context.h"

#include <math.h>

struct trial {
    const struct launch *l;
    enum launch_attention_kernel kernel;
    const struct attention_call *call;
};

static bool run_trial(void *self)
{
    const struct trial *t = self;
    attention_launch(t->l, t->kernel, t->call);
    return cuda_launch_error() == NULL;
}

/* Runs after the first read what runs before them read: results share no memory with operands. */
static void check_operands(const struct attention_call *c)
{
    const struct launch_attention_rows *r = &c->rows;
    const struct launch_rows read[] = {r->q, r->k, r->v, c->backward ? r->out : r->q, r->dout};
    const struct launch_rows written[] = {r->dq, r->dk, r->dv, c->backward ? r->dq : r->out};
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 4; j++) {
            CHECK(read[i].data == NULL || read[i].data != written[j].data, "attention in place");
        }
    }
}

/* The fastest candidate in `choice`; false if none runs. */
static bool find_fastest(struct product_choice *choice, struct cuda_choices *choices, const struct launch *l,
                         const struct attention_call *call, const struct attention_candidates *candidates)
{
    struct attention_call timed = *call;
    *choice = (struct product_choice){.micros = (double)INFINITY};
    check_operands(call);
    timed.rows.dbias = call->rows.dbias != NULL ? call->rows.instead : NULL;
    for (int i = 0; i < candidates->n; i++) {
        struct trial t = {l, candidates->kernels[i], &timed};
        double micros = cuda_choices_time(choices, l->stream, run_trial, &t);
        if (micros < choice->micros) {
            choice->form = (int)t.kernel;
            choice->micros = micros;
        }
    }
    return isfinite(choice->micros);
}

static struct status time_and_keep(struct product_choice *choice, struct cuda_choices *choices,
                                   const char *key, const struct launch *l, const struct attention_call *call,
                                   const struct attention_candidates *candidates)
{
    const char *shape = strchr(key, '\t') + 1;
    if (cuda_choices_is_capturing(l->stream)) {
        return status_error(STATUS_INTERNAL, "%s is first met while a graph is captured", shape);
    }
    if (!find_fastest(choice, choices, l, call, candidates)) {
        return status_error(STATUS_INTERNAL, "no kernel runs %s", shape);
    }
    return product_cache_keep(&choices->cache, key, choice);
}

bool cuda_attention_choose(enum launch_attention_kernel *kernel, struct exec *x, const char *op,
                           const struct launch *l, const struct attention_call *call,
                           const struct attention_candidates *candidates)
{
    struct cuda_choices *choices = ((struct cuda_context *)x->context)->choices;
    struct product_choice choice = {0};
    char key[PRODUCT_KEY_BYTES];
    attention_key(key, choices->machine, call, candidates);
    const struct product_choice *kept = product_cache_find(&choices->cache, key);
    if (kept != NULL && attention_is_candidate(candidates, kept->form)) {
        choice = *kept;
    } else {
        struct status s = time_and_keep(&choice, choices, key, l, call, candidates);
        if (failed(s)) {
            exec_fail(x, s.code, op, "%s", s.message);
            return false;
        }
    }
    product_cache_write(&choices->cache);
    *kernel = (enum launch_attention_kernel)choice.form;
    return true;
}
