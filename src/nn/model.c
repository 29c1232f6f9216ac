#include "nn/model.h"

int model_n_losses(const struct model *m)
{
    int n = 0;
    for (int i = 0; i < m->n_sums; i++) {
        n += m->sums[i].is_loss;
    }
    return n;
}
