/* foreign_moments: which moments in another program's checkpoint belong to which parameter.
 *
 * DeepSpeed's folders say it by name.  PyTorch's optimizers number their parameters in the order of the
 * groups that they were given.  The replaced scripts give two, in the order of the model: parameters whose
 * names have none of "bias", "gamma", "beta" and "LayerNorm", which are decayed, and the rest; a script of
 * one's own may give one. */
#ifndef KILN_MODEL_FOREIGN_MOMENTS_H
#define KILN_MODEL_FOREIGN_MOMENTS_H

#include "io/torch_optimizer.h"
#include "model/model_dir.h"

struct foreign_moment {
    char name[PARAM_NAME_BYTES]; /* kiln's name of the parameter */
    /* the weight of fp16 runs, in fp32, NULL: the model's is meant; and moments, NULL: there are none.  They
     * have the shape of the stored weight */
    const struct stored_tensor *kept[PARAM_N_KEPT];
};

struct foreign_moments {
    struct torch_optimizer optimizer; /* optimizer of a complete file */
    struct foreign_moment *list;      /* [n] in the order of names */
    int n;
    bool has;        /* there are moments */
    int64_t n_steps; /* steps that the optimizer counted; -1: it does not say */
};

/* STATUS_DATA if an optimizer's state does not belong to the model's parameters. */
struct status foreign_moments_init(struct foreign_moments *o, const struct model_dir *m);

/* Safe on a zeroed struct. */
void foreign_moments_fini(struct foreign_moments *o);

/* Whether the replaced scripts decay a parameter, by its name. */
bool foreign_moments_is_decayed(const char *name);

/* The moments of the parameter of this name; NULL if there are none. */
const struct foreign_moment *foreign_moments_find(const struct foreign_moments *o, const char *name);

#endif
