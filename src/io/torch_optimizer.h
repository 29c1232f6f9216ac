/* torch_optimizer: what Optimizer.state_dict() of PyTorch left in a pickle (torch/optim/optimizer.py):
 * "state", a dict from the numbers of parameters to what the optimizer keeps of each, and "param_groups",
 * which say in what order the numbers were given.  apex's and Habana's optimizers save the same, but count
 * their steps in the group.
 *
 * The rule: whatever is used was checked when it was opened; what kiln has no use for is not looked at. */
#ifndef KILN_IO_TORCH_OPTIMIZER_H
#define KILN_IO_TORCH_OPTIMIZER_H

#include "io/pickle.h"
#include "io/stored_tensor.h"

/* State of a parameter, which may be a flat group of parameters. */
struct torch_optimizer_item {
    int group;
    const struct stored_tensor *exp_avg, *exp_avg_sq; /* both or none */
};

struct torch_optimizer {
    struct torch_optimizer_item *items; /* [n] in the order of the groups */
    int n, n_groups;
    bool has_moments; /* every item has moments; else none has */
    int64_t n_steps;  /* steps that it counted; -1: it does not say */
};

enum { TORCH_OPTIMIZER_MOST_GROUPS = 4096, TORCH_OPTIMIZER_MOST_ITEMS = 1 << 14 };

/* STATUS_DATA says what is wrong in `source`: no such dict, moments of some parameters only, counts of steps
 * that differ. `root` may also be the list of the state of each group, as early DeepSpeeds save it. */
struct status torch_optimizer_open(struct torch_optimizer *o, const struct pickle_node *root,
                                   const char *source);

/* Safe on a zeroed struct and after a failed open. */
void torch_optimizer_close(struct torch_optimizer *o);

/* Whether a node is an integer, also as a float or as a tensor of one element. */
bool torch_optimizer_number(int64_t *number, const struct pickle_node *node);

/* The elements of a list or tuple; 0 of anything else. */
size_t torch_optimizer_length(const struct pickle_node *list);

#endif
