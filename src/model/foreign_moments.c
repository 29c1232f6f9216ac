#include "model/foreign_moments.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct foreign_moment *)a)->name, ((const struct foreign_moment *)b)->name);
}

/* Adds an entry, which stands for the tensor of this name in the files. */
static struct foreign_moment *add(struct foreign_moments *o, const struct model_dir *m, const char *name)
{
    struct names_hf as = names_hf_canonical(m->family, name);
    struct foreign_moment *added = &o->list[o->n++];
    *added = (struct foreign_moment){0};
    memcpy(added->name, as.name, sizeof added->name);
    return added;
}

static bool same_shape(const struct stored_tensor *a, const struct stored_tensor *b)
{
    return a->n_dims == b->n_dims && memcmp(a->dims, b->dims, (size_t)a->n_dims * sizeof *a->dims) == 0;
}

static bool is_real(const struct stored_tensor *t)
{
    return t->unreadable == NULL && stored_tensor_converts(t->dtype, DTYPE_F32);
}

/* Checks that the state of a parameter has its shape; parameters that are no part of the model are not
 * read. */
static struct status check(const struct model_dir *m, const struct foreign_moment *kept)
{
    const struct model_tensor *t = model_files_find(&m->files, kept->name, false);
    for (int i = 0; i < PARAM_N_KEPT && t != NULL; i++) {
        FAIL_IF(kept->kept[i] != NULL && (!same_shape(kept->kept[i], &t->stored) || !is_real(kept->kept[i])),
                STATUS_DATA,
                "%s: the optimizer's state of %s does not have the shape of that weight: it "
                "belongs to another model, or its parameters were in another order",
                m->path, kept->name);
    }
    return status_ok();
}

/* ---- DeepSpeed ---- */

static struct status take_zero(struct foreign_moments *o, const struct model_dir *m,
                               const struct zero_folder *z)
{
    o->n_steps = z->n_steps;
    o->has = z->has_moments;
    for (int i = 0; i < z->n && z->has_moments; i++) {
        struct foreign_moment *added = add(o, m, z->tensors[PARAM_WEIGHT][i].name);
        added->kept[PARAM_EXP_AVG] = &z->tensors[PARAM_EXP_AVG][i];
        added->kept[PARAM_EXP_AVG_SQ] = &z->tensors[PARAM_EXP_AVG_SQ][i];
    }
    return status_ok();
}

/* ---- a complete file ---- */

bool foreign_moments_is_decayed(const char *name)
{
    static const char *const not_decayed[] = {"bias", "gamma", "beta", "LayerNorm"};
    for (int i = 0; i < 4; i++) {
        if (strstr(name, not_decayed[i]) != NULL) {
            return false;
        }
    }
    return true;
}

/* The name of a tensor below "model", if it is a parameter of its own; else NULL. */
static const char *parameter_name(const struct model_dir *m, const struct stored_tensor *t)
{
    static const char *const roots[] = {"model.", "module."};
    for (int i = 0; i < 2; i++) {
        if (strncmp(t->name, roots[i], strlen(roots[i])) == 0) {
            struct names_hf as = names_hf_canonical(m->family, t->name + strlen(roots[i]));
            return as.tied || as.part == NAMES_BUFFER ? NULL : t->name + strlen(roots[i]);
        }
    }
    return NULL;
}

/* The parameters of the file, decayed ones or the others or both, in its order. */
static void add_group(struct foreign_moments *o, const struct model_dir *m, bool decayed, bool others)
{
    const struct tensor_file *f = &m->files.files[0];
    for (int i = 0; i < f->n; i++) {
        const char *name = parameter_name(m, &f->tensors[i]);
        if (name != NULL && (foreign_moments_is_decayed(name) ? decayed : others)) {
            add(o, m, name);
        }
    }
}

/* apex's copies of the weights, in the order of the optimizer. */
static struct status take_masters(struct foreign_moments *o, const struct model_dir *m,
                                  const struct pickle_node *masters)
{
    size_t n = torch_optimizer_length(masters);
    if (masters == NULL) {
        return status_ok();
    }
    for (int i = 0; i < o->n && n == (size_t)o->n; i++) {
        const struct pickle_node *item = masters->list.items[i];
        o->list[i].kept[PARAM_WEIGHT] = item->kind == PICKLE_TENSOR ? item->tensor : NULL;
        n = o->list[i].kept[PARAM_WEIGHT] == NULL ? 0 : n;
    }
    return n == (size_t)o->n
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s: its \"master params\" are not the %d weights of its optimizer", m->path,
                              o->n);
}

static struct status take_optimizer(struct foreign_moments *o, const struct model_dir *m,
                                    const struct pickle_node *root)
{
    const struct pickle_node *state = pickle_find(root, "optimizer");
    if (state == NULL || state->kind == PICKLE_NONE) {
        return status_ok();
    }
    TRY(torch_optimizer_open(&o->optimizer, state, m->path));
    int in_first = 0;
    for (int i = 0; i < o->optimizer.n; i++) {
        in_first += o->optimizer.items[i].group == 0;
    }
    bool two = o->optimizer.n_groups == 2;
    add_group(o, m, true, !two);
    int n_first = o->n;
    if (two) {
        add_group(o, m, false, true);
    }
    FAIL_IF(o->optimizer.n_groups > 2 || in_first != n_first || o->optimizer.n != o->n, STATUS_DATA,
            "%s: its optimizer has %d parameters in %d group(s), %d of them in the first, but its model has "
            "%d, of which %d are decayed: kiln cannot match moments and weights",
            m->path, o->optimizer.n, o->optimizer.n_groups, in_first, o->n, n_first);
    o->has = o->optimizer.has_moments;
    o->n_steps = o->optimizer.n_steps;
    for (int i = 0; i < o->n; i++) {
        o->list[i].kept[PARAM_EXP_AVG] = o->optimizer.items[i].exp_avg;
        o->list[i].kept[PARAM_EXP_AVG_SQ] = o->optimizer.items[i].exp_avg_sq;
    }
    return take_masters(o, m, pickle_find(root, "master params"));
}

static struct status take_all(struct foreign_moments *o, const struct model_dir *m)
{
    const struct zero_folder *z = m->files.zero;
    int most = z != NULL ? z->n : m->files.files[0].n;
    o->list = calloc((size_t)most + 1, sizeof *o->list);
    FAIL_IF(o->list == NULL, STATUS_MEMORY, "out of memory for the optimizer of %s", m->path);
    TRY(z != NULL ? take_zero(o, m, z) : take_optimizer(o, m, m->files.files[0].torch.root));
    for (int i = 0; i < o->n; i++) {
        TRY(check(m, &o->list[i]));
    }
    qsort(o->list, (size_t)o->n, sizeof *o->list, compare);
    return status_ok();
}

struct status foreign_moments_init(struct foreign_moments *o, const struct model_dir *m)
{
    *o = (struct foreign_moments){.n_steps = -1};
    struct status s = take_all(o, m);
    if (failed(s)) {
        foreign_moments_fini(o);
    }
    return s;
}

void foreign_moments_fini(struct foreign_moments *o)
{
    torch_optimizer_close(&o->optimizer);
    free(o->list);
    *o = (struct foreign_moments){.n_steps = -1};
}

const struct foreign_moment *foreign_moments_find(const struct foreign_moments *o, const char *name)
{
    struct foreign_moment key = {0};
    CHECK(strlen(name) < sizeof key.name, "the name %s is too long", name);
    memcpy(key.name, name, strlen(name) + 1);
    return o->n == 0 ? NULL : bsearch(&key, o->list, (size_t)o->n, sizeof key, compare);
}
