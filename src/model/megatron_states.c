/* The states of the optimizers of a pipeline of Megatron-DeepSpeed: each rank of tensor parallelism in each
 * stage has a mp_rank_KK file and the files of ZeRO of its own parameters, of which the others are joined. */
#include "core/log.h"
#include "io/torch_optimizer.h"
#include "model/megatron_join.h"
#include "model/megatron_names.h"

#include <stdlib.h>
#include <string.h>

static struct status states_path(char path[FILE_PATH_BYTES], const char *directory, int rank)
{
    int n = snprintf(path, FILE_PATH_BYTES, "%s/mp_rank_%02d_model_states.pt", directory, rank);
    return n > 0 && n < FILE_PATH_BYTES
               ? status_ok()
               : status_error(STATUS_USAGE, "the path %.60s... is longer than %d bytes", directory,
                              FILE_PATH_BYTES - 1);
}

/* Whether the parameters of a rank are those of modules of a pipeline. */
static bool is_of_pipeline(const struct pickle_node *states)
{
    const struct pickle_node *shapes = pickle_find(states, "param_shapes");
    const struct pickle_node *group =
        shapes != NULL && shapes->kind == PICKLE_LIST ? pickle_item(shapes, 0) : shapes;
    char name[PARAM_NAME_BYTES] = "";
    const char *rest;
    if (group == NULL || group->kind != PICKLE_DICT || group->list.n == 0 ||
        group->list.items[0]->kind != PICKLE_TEXT) {
        return false;
    }
    const struct pickle_node *first = group->list.items[0];
    snprintf(name, sizeof name, "%.*s", (int)(first->text.n < sizeof name ? first->text.n : sizeof name - 1),
             first->text.data);
    return megatron_names_module(name, &rest) > 0;
}

bool megatron_files_has_states(const char *directory)
{
    char path[FILE_PATH_BYTES];
    struct torch_file f = {0};
    bool is = zero_folder_is_one(directory) && !failed(states_path(path, directory, 0)) &&
              file_exists(path) && !failed(torch_file_open(&f, path)) && is_of_pipeline(f.root);
    torch_file_close(&f);
    return is;
}

static const struct pickle_node *find_argument(const struct pickle_node *states, const char *name)
{
    const struct pickle_node *args = states == NULL ? NULL : pickle_find(states, "args");
    return args != NULL && args->kind == PICKLE_OBJECT ? pickle_find(args->object.state, name) : NULL;
}

int64_t megatron_files_argument(const struct pickle_node *states, const char *name)
{
    int64_t n;
    return torch_optimizer_number(&n, find_argument(states, name)) ? n : 0;
}

double megatron_files_real(const struct pickle_node *states, const char *name)
{
    const struct pickle_node *node = find_argument(states, name);
    return node != NULL && node->kind == PICKLE_FLOAT ? node->real : 0;
}

static struct status open_rank(struct megatron_reading *r, const char *path, int k)
{
    struct megatron_files *m = r->m;
    struct zero_folder *own = &m->ranks[k];
    TRY(megatron_join_open(m, path));
    TRY(zero_folder_open_rank(own, r->directory, k, m->files[m->n_files - 1].root));
    m->n_ranks++;
    return own->n_steps == m->ranks[0].n_steps && own->has_moments == m->ranks[0].has_moments
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s: the optimizer of mp_rank_%02d counts %lld steps, and that of mp_rank_00 "
                              "%lld: they belong to different checkpoints",
                              r->directory, k, (long long)own->n_steps, (long long)m->ranks[0].n_steps);
}

/* The files of all ranks, mp_rank_00 and on, until there is none. */
static struct status open_ranks(struct megatron_reading *r)
{
    struct megatron_files *m = r->m;
    char path[FILE_PATH_BYTES];
    m->ranks = calloc(MEGATRON_MOST_RANKS, sizeof *m->ranks);
    FAIL_IF(m->ranks == NULL, STATUS_MEMORY, "out of memory for the ranks of %s", r->directory);
    for (int k = 0; k < MEGATRON_MOST_RANKS; k++) {
        TRY(states_path(path, r->directory, k));
        if (!file_exists(path)) {
            break;
        }
        TRY(open_rank(r, path, k));
    }
    m->states = m->files[0].root;
    m->n_updates = m->ranks[0].n_steps;
    m->has_moments = m->ranks[0].has_moments;
    return status_ok();
}

/* Sets the number of ranks that share the tensors: those with layer files, or the number in "args"; else
 * all. */
static struct status count_ranks(struct megatron_reading *r)
{
    int64_t says = megatron_files_argument(r->m->states, "tensor_model_parallel_size");
    int64_t stages = megatron_files_argument(r->m->states, "pipeline_model_parallel_size");
    int n = r->m->n_ranks;
    r->n_ranks = r->n_ranks > 0 ? r->n_ranks : says > 0 && says <= n ? (int)says : n;
    bool fits = n % r->n_ranks == 0 && (says <= 0 || says == r->n_ranks) &&
                (says <= 0 || stages <= 0 || says * stages == n);
    return fits ? status_ok()
                : status_error(STATUS_DATA,
                               "%s has %d files mp_rank_KK_model_states.pt, of %d ranks of tensor "
                               "parallelism, but \"args\" say %lld such ranks and %lld stages: copy the "
                               "files of all ranks",
                               r->directory, n, r->n_ranks, (long long)says, (long long)stages);
}

/* Finds what the ranks of a stage keep of a parameter. */
static struct status find_shards(struct megatron_shards *s, const struct megatron_reading *r,
                                 const struct zero_folder *first, enum param_kept kept, const char *name)
{
    (void)megatron_names_module(name, &s->name);
    s->n = r->n_ranks;
    for (int k = 0; k < r->n_ranks; k++) {
        s->of[k] = stored_tensor_find(first[k].tensors[kept], first[k].n, name);
        FAIL_IF(s->of[k] == NULL, STATUS_DATA, "%s: %s has no %.80s, which another rank has", r->directory,
                first[k].states, name);
    }
    return status_ok();
}

/* A parameter of a stage, and its moments. */
static struct status join_parameter(struct megatron_reading *r, const struct zero_folder *first,
                                    const char *name)
{
    struct megatron_files *m = r->m;
    struct megatron_shards shards = {.are_moments = false};
    const char *rest;
    int64_t module = megatron_names_module(name, &rest);
    TRY(find_shards(&shards, r, first, PARAM_WEIGHT, name));
    TRY(megatron_join(r, &shards, module));
    for (int kept = PARAM_EXP_AVG; kept < PARAM_N_KEPT && m->has_moments; kept++) {
        struct stored_tensor *t = &m->tensors[kept][m->n - 1];
        TRY(find_shards(&shards, r, first, (enum param_kept)kept, name));
        shards.are_moments = true;
        *t = *shards.of[0];
        t->name = m->tensors[PARAM_WEIGHT][m->n - 1].name;
        TRY(megatron_join_shards(r, t, &shards, module));
    }
    return status_ok();
}

/* The parameters of a stage; the copies of the embeddings that a later one has are left out. */
static struct status join_stage(struct megatron_reading *r, int stage)
{
    const struct zero_folder *first = &r->m->ranks[stage * r->n_ranks];
    for (int k = 1; k < r->n_ranks; k++) {
        FAIL_IF(first[k].n != first->n, STATUS_DATA, "%s: %s has %d parameters, but %s has %d", r->directory,
                first[k].states, first[k].n, first->states, first->n);
    }
    for (int i = 0; i < first->n; i++) {
        const char *rest, *name = first->tensors[PARAM_WEIGHT][i].name;
        bool is_copy = stage > 0 && megatron_names_module(name, &rest) == MEGATRON_EMBEDDING;
        TRY(is_copy ? status_ok() : join_parameter(r, first, name));
    }
    return status_ok();
}

/* Compares what rank k keeps of a module with its layer file. */
static struct status compare_module(const struct megatron_reading *r, int k, int64_t module,
                                    const struct torch_file *layer, const char *path)
{
    const struct zero_folder *z = &r->m->ranks[k];
    for (int i = 0; i < z->n; i++) {
        const struct stored_tensor *t = &z->tensors[PARAM_WEIGHT][i];
        const char *rest;
        if (megatron_names_module(t->name, &rest) == module) {
            const struct zero_copy copy = {stored_tensor_find(layer->tensors, layer->n, rest),
                                           strrchr(path, '/') + 1};
            TRY(zero_folder_compare_one(z, r->directory, t, &copy));
        }
    }
    return status_ok();
}

/* A rank's file under another rank's name has the right sizes, but not the weights that the model computes
 * with, where their files are there. */
static struct status compare_rank(const struct megatron_reading *r, int k)
{
    char path[FILE_PATH_BYTES];
    for (int64_t module = MEGATRON_EMBEDDING; module <= r->n_layers + MEGATRON_BEHIND; module++) {
        struct torch_file layer;
        TRY(megatron_join_layer_path(path, r, module, k % r->n_ranks));
        if (file_exists(path)) {
            TRY(torch_file_open(&layer, path));
            struct status s = compare_module(r, k, module, &layer, path);
            torch_file_close(&layer);
            TRY(s);
        }
    }
    return status_ok();
}

static struct status read_states(struct megatron_reading *r)
{
    struct megatron_files *m = r->m;
    int most = 0;
    TRY(megatron_join_look(r));
    TRY(open_ranks(r));
    TRY(count_ranks(r));
    megatron_join_guess_layers(r, megatron_files_argument(m->states, "num_layers") + MEGATRON_BEHIND);
    for (int k = 0; k < m->n_ranks; k++) {
        most += m->ranks[k].n;
    }
    for (int kept = PARAM_EXP_AVG; kept < PARAM_N_KEPT; kept++) {
        m->tensors[kept] = calloc((size_t)most + 1, sizeof *m->tensors[kept]);
        FAIL_IF(m->tensors[kept] == NULL, STATUS_MEMORY, "out of memory for the moments of %s", r->directory);
    }
    for (int k = 0; k < m->n_ranks; k++) {
        TRY(compare_rank(r, k));
    }
    for (int stage = 0; stage < m->n_ranks / r->n_ranks; stage++) {
        TRY(join_stage(r, stage));
    }
    log_info("%s: reading the fp32 weights of %d ranks, of %d parts of the model", r->directory,
             m->ranks[0].n_ranks, m->n_ranks);
    megatron_join_tell_drift(r);
    return status_ok();
}

struct status megatron_files_open_states(struct megatron_files *m, const char *directory, int64_t n_layers)
{
    struct megatron_reading r = megatron_join_begin(m, directory, n_layers);
    return megatron_join_finish(&r, read_states(&r));
}
