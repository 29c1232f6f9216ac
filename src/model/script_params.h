/* script_params: the parameters of a model as the training scripts that kiln replaces have them: under their
 * names, with the vocabulary rounded up, in the order of their modules, and in the two groups of their
 * optimizer. */
#ifndef KILN_MODEL_SCRIPT_PARAMS_H
#define KILN_MODEL_SCRIPT_PARAMS_H

#include "model/model_dir.h"

struct script_param {
    char name[PARAM_NAME_BYTES]; /* the scripts' name */
    const struct param *param;
    bool decayed; /* in the first group */
    bool copy;    /* copy of a tied parameter, which a state dict lists, but no optimizer */
};

struct script_params {
    const struct model_dir_contents *c;
    struct script_param *list; /* [n], copies last */
    int n;
};

/* Lists the parameters: with `by_module` in the order in which PyTorch numbers the parameters of a module,
 * its own before those of the modules in it; else in the order of the parameter table.  STATUS_UNAVAILABLE:
 * the scripts have no such models. */
struct status script_params_init(struct script_params *s, const struct model_dir_contents *c, bool by_module);

/* Safe on a zeroed struct. */
void script_params_fini(struct script_params *s);

/* Views the elements of parameter `i` in a flat buffer of the parameter table's layout, zeros in the rows of
 * the vocabulary that are rounded up. */
tensor script_params_view(const struct script_params *s, int i, tensor flat);

/* Rows of the vocabulary, rounded up. */
int64_t script_params_rows(const struct model_dir_contents *c);

#endif
