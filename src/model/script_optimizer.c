/* script_optimizer: a model, and what the replaced scripts keep of a run besides it, in their own files:
 * ckpt_N.pt, and DeepSpeed's folder of ZeRO 1.  model/foreign_moments.h reads both.
 *
 * The rule: parameters are as the scripts have them: under their names, with the vocabulary rounded up, in
 * the order of their modules, and in the two groups of their optimizer. */
#include "io/pickle_writer.h"
#include "io/torch_writer.h"
#include "io/zero_folder.h"
#include "model/checkpoint.h"
#include "model/foreign_moments.h"
#include "model/model_dir_forms.h"
#include "model/model_progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

/* Rows of the vocabulary, rounded up. */
static int64_t script_params_rows(const struct model_dir_contents *c)
{
    int64_t rows = c->family->sizes(c->config).vocab_size, multiple = c->family->script->word_multiple;
    return (rows + multiple - 1) / multiple * multiple;
}

/* Whether the model has the head that a copy belongs to. */
static bool has_part_of(const struct model_dir_contents *c, const char *name)
{
    for (int i = 0; i < c->params->n; i++) {
        if (names_hf_part(c->family, c->params->params[i].name) == names_hf_part(c->family, name)) {
            return true;
        }
    }
    return false;
}

static void append_param(struct script_params *s, const char *name, const struct param *p, bool copy)
{
    struct script_param *added = &s->list[s->n++];
    *added = (struct script_param){.param = p, .copy = copy};
    snprintf(added->name, sizeof added->name, "%s", name);
    names_hf_rename(added->name, s->c->family->script->renames);
    added->decayed = foreign_moments_is_decayed(added->name);
}

/* The first parameter of the table whose name begins like this. */
static int first_like(const struct param_table *t, const char *name, size_t n)
{
    int i = 0;
    while (strncmp(t->params[i].name, name, n) != 0) {
        i++;
    }
    return i;
}

/* A parameter to be sorted. */
struct place {
    const struct param_table *table;
    const struct param *param;
};

/* Below the module that both are in, a parameter of its own comes first, then its modules as they come first
 * in the table. */
static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    const char *p = x->param->name, *q = y->param->name;
    size_t same = 0, module = 0;
    for (; p[same] == q[same] && p[same] != '\0'; same++) {
        module = p[same] == '.' ? same + 1 : module;
    }
    const char *p_dot = strchr(p + module, '.'), *q_dot = strchr(q + module, '.');
    if (p_dot == NULL || q_dot == NULL) {
        return p_dot == NULL && q_dot == NULL ? (x->param > y->param) - (x->param < y->param)
                                              : (p_dot != NULL) - (q_dot != NULL);
    }
    return first_like(x->table, p, (size_t)(p_dot - p) + 1) -
           first_like(x->table, q, (size_t)(q_dot - q) + 1);
}

static void fill_params(struct script_params *s, struct place *places, bool by_module)
{
    const struct model_dir_contents *c = s->c;
    for (int i = 0; i < c->params->n; i++) {
        places[i] = (struct place){c->params, &c->params->params[i]};
    }
    if (by_module) {
        qsort(places, (size_t)c->params->n, sizeof *places, compare_places);
    }
    for (int i = 0; i < c->params->n; i++) {
        append_param(s, places[i].param->name, places[i].param, false);
    }
    for (const char *const(*copy)[2] = c->family->script->copies; (*copy)[0] != NULL; copy++) {
        if (has_part_of(c, (*copy)[0])) {
            append_param(s, (*copy)[0], param_table_find(c->params, (*copy)[1]), true);
        }
    }
}

/* Lists the parameters: with `by_module` in the order in which PyTorch numbers the parameters of a module,
 * its own before those of the modules in it; else in the order of the parameter table. */
static struct status script_params_init(struct script_params *s, const struct model_dir_contents *c,
                                        bool by_module)
{
    *s = (struct script_params){.c = c};
    size_t most = (size_t)c->params->n;
    for (const char *const(*copy)[2] = c->family->script->copies; (*copy)[0] != NULL; copy++) {
        most++;
    }
    s->list = calloc(most, sizeof *s->list);
    struct place *places = calloc((size_t)c->params->n, sizeof *places);
    if (s->list != NULL && places != NULL) {
        fill_params(s, places, by_module);
    }
    free(places);
    if (s->n > 0) {
        return status_ok();
    }
    free(s->list);
    return status_error(STATUS_MEMORY, "out of memory for the list of tensors");
}

/* Views the elements of parameter `i` in a flat buffer of the parameter table's layout, zeros in the rows of
 * the vocabulary that are rounded up. */
static tensor script_params_view(const struct script_params *s, int i, tensor flat)
{
    struct param rounded = *s->list[i].param;
    if (rounded.split == PARAM_BY_WORD) {
        rounded.dims[0] = script_params_rows(s->c);
    }
    return param_view(&rounded, flat);
}

/* DeepSpeed pads a group to a multiple of this many elements for each rank (its
 * nccl_start_alignment_factor). */
enum { ALIGNMENT = 2, N_GROUPS = 2 };

/* Puts the state dict of the model, copies too. */
static struct status put_model(struct torch_writer *w, const struct script_params *s)
{
    struct torch_item *items = calloc((size_t)s->n, sizeof *items);
    FAIL_IF(items == NULL, STATUS_MEMORY, "out of memory for the list of tensors");
    for (int i = 0; i < s->n; i++) {
        items[i] = (struct torch_item){s->list[i].name, script_params_view(s, i, s->c->master)};
    }
    torch_writer_put_dict(w, items, s->n);
    free(items);
    return status_ok();
}

static void put_moments(struct torch_writer *w, tensor exp_avg, tensor exp_avg_sq, int64_t n_steps)
{
    pickle_put_dict_begin(&w->pickle);
    pickle_put_key_int(&w->pickle, "step", n_steps);
    pickle_put_text(&w->pickle, "exp_avg");
    torch_writer_put_tensor(w, exp_avg);
    pickle_put_text(&w->pickle, "exp_avg_sq");
    torch_writer_put_tensor(w, exp_avg_sq);
    pickle_put(&w->pickle, SETITEMS);
}

/* A group of parameters [first, first + n), with all that the scripts' LAMB, LANS and AdamW look up in it:
 * loading replaces the group of the new run. */
static void put_group(struct buf *b, const struct model_progress *p, bool decayed, int first, int n,
                      int64_t n_steps)
{
    pickle_put_dict_begin(b);
    pickle_put_key_real(b, "lr", p->rate);
    pickle_put_key_real(b, "initial_lr", p->rate);
    pickle_put_text(b, "betas");
    pickle_put(b, MARK);
    pickle_put_real(b, 0.9);
    pickle_put_real(b, 0.999);
    pickle_put(b, TUPLE);
    pickle_put_key_real(b, "eps", 1e-6);
    pickle_put_key_real(b, "weight_decay", decayed ? 0.01 : 0);
    pickle_put_key_bool(b, "bias_correction", true);
    pickle_put_key_bool(b, "grad_averaging", true);
    pickle_put_key_real(b, "max_grad_norm", 1);
    pickle_put_key_int(b, "step", n_steps);
    pickle_put_key_list_begin(b, "params");
    for (int i = 0; i < n; i++) {
        pickle_put_int(b, first + i);
    }
    pickle_put(b, APPENDS);
    pickle_put(b, SETITEMS);
}

static bool is_of_group(const struct script_param *p, int group)
{
    return !p->copy && p->decayed == (group == 0);
}

static int group_size(const struct script_params *s, int group)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        n += is_of_group(&s->list[i], group);
    }
    return n;
}

/* Parameters are numbered in the order of the groups. */
static void put_state_dict(struct torch_writer *w, const struct script_params *s)
{
    const struct model_progress *p = s->c->progress;
    int number = 0, n_first = group_size(s, 0);
    pickle_put_dict_begin(&w->pickle);
    pickle_put_key_dict_begin(&w->pickle, "state");
    for (int group = 0; group < N_GROUPS; group++) {
        for (int i = 0; i < s->n; i++) {
            if (is_of_group(&s->list[i], group)) {
                pickle_put_int(&w->pickle, number++);
                put_moments(w, script_params_view(s, i, p->exp_avg), script_params_view(s, i, p->exp_avg_sq),
                            p->step);
            }
        }
    }
    pickle_put(&w->pickle, SETITEMS);
    pickle_put_key_list_begin(&w->pickle, "param_groups");
    put_group(&w->pickle, p, true, 0, n_first, p->step);
    put_group(&w->pickle, p, false, n_first, number - n_first, p->step);
    pickle_put(&w->pickle, APPENDS);
    pickle_put(&w->pickle, SETITEMS);
}

/* Puts the list of files after a number: the scripts begin with the file of that number. */
static void put_files(struct buf *b, const struct model_progress *p)
{
    pickle_put_key_list_begin(b, "files");
    pickle_put_int(b, 0);
    for (int64_t i = 0; i < p->n_files; i++) {
        pickle_put_text(b, p->files[i]);
    }
    pickle_put(b, APPENDS);
    pickle_put_key_int(b, "epoch", 0);
}

/* Puts the state that the scripts keep of a run in ckpt_N.pt, apart from its model, in an open dict. */
static void put_optimizer(struct torch_writer *w, const struct script_params *s)
{
    pickle_put_text(&w->pickle, "optimizer");
    put_state_dict(w, s);
    pickle_put_key_list_begin(&w->pickle, "master params");
    for (int group = 0; group < N_GROUPS; group++) {
        for (int i = 0; i < s->n; i++) {
            if (is_of_group(&s->list[i], group)) {
                torch_writer_put_tensor(w, script_params_view(s, i, s->c->master));
            }
        }
    }
    pickle_put(&w->pickle, APPENDS);
    put_files(&w->pickle, s->c->progress);
    pickle_put_key_none(&w->pickle, "data_loader");
}

/* ---- ckpt_STEP.pt ---- */

/* A vocabulary that is larger than its pieces already keeps its number of rows, rounded up; else the number
 * of pieces is written, which readers round up themselves. */
struct status model_dir_script_config(void **config, const struct model_dir_contents *c)
{
    *config = NULL;
    FAIL_IF(c->family->script == NULL || c->family->old_config == NULL, STATUS_UNAVAILABLE,
            "kiln does not write models of the kind %s for PyTorch's scripts", c->family->name);
    *config = malloc(c->family->config_bytes);
    FAIL_IF(*config == NULL, STATUS_MEMORY, "out of memory for a configuration");
    memcpy(*config, c->config, c->family->config_bytes);
    if (c->family->sizes(c->config).vocab_size != c->tokenizer->n) {
        c->family->set_words(*config, script_params_rows(c), c->tokenizer->n);
    }
    return status_ok();
}

struct status model_dir_write_script(const char *path, const struct model_dir_contents *c)
{
    struct script_params params;
    struct torch_writer w;
    TRY(script_params_init(&params, c, c->progress != NULL));
    torch_writer_init(&w);
    pickle_put_dict_begin(&w.pickle);
    pickle_put_text(&w.pickle, "model");
    struct status made = put_model(&w, &params);
    if (c->progress != NULL) {
        put_optimizer(&w, &params);
    }
    pickle_put(&w.pickle, SETITEMS);
    struct status written = torch_writer_commit(&w, path);
    free(params.list);
    return failed(made) ? made : written;
}

/* ---- DeepSpeed ---- */

static void put_shapes(struct buf *b, const struct script_params *s)
{
    pickle_put_key_list_begin(b, "param_shapes");
    for (int group = 0; group < N_GROUPS; group++) {
        pickle_put_ordered_dict(b);
        pickle_put(b, MARK);
        for (int i = 0; i < s->n; i++) {
            if (is_of_group(&s->list[i], group)) {
                pickle_put_text(b, s->list[i].name);
                torch_writer_put_size(b, script_params_view(s, i, s->c->master));
            }
        }
        pickle_put(b, SETITEMS);
    }
    pickle_put(b, APPENDS);
}

/* Writes the file of the first rank, with the model and the position. */
static struct status write_states(const char *path, const struct script_params *s)
{
    const struct model_progress *p = s->c->progress;
    struct torch_writer w;
    torch_writer_init(&w);
    struct buf *b = &w.pickle;
    pickle_put_dict_begin(b);
    pickle_put_text(b, "module");
    struct status made = put_model(&w, s);
    pickle_put_key_list(b, "buffer_names");
    pickle_put_key_none(b, "optimizer");
    put_shapes(b, s);
    pickle_put_key_dict_begin(b, "lr_scheduler");
    pickle_put_key_int(b, "last_epoch", p->step);
    pickle_put_key_int(b, "_step_count", p->step + 1);
    pickle_put(b, SETITEMS);
    pickle_put_key_list(b, "sparse_tensor_module_names");
    pickle_put_key_int(b, "skipped_steps", p->n_skipped);
    pickle_put_key_int(b, "global_steps", p->step);
    pickle_put_key_int(b, "dp_world_size", p->n_ranks);
    pickle_put_key_int(b, "mp_world_size", 1);
    pickle_put_key_dict_begin(b, "ds_config");
    pickle_put(b, SETITEMS);
    pickle_put_key_text(b, "ds_version", ZERO_FOLDER_VERSION);
    put_files(b, p);
    pickle_put(b, SETITEMS);
    struct status written = torch_writer_commit(&w, path);
    return failed(made) ? made : written;
}

/* The flat buffers of a group: weights and both moments, each padded so that all ranks have equal parts. */
struct flat_group {
    float *kept[PARAM_N_KEPT]; /* [part * n_ranks] */
    int64_t n, part;           /* elements of the parameters; of a rank */
};

static struct status fill_group(struct flat_group *g, const struct script_params *s, int group)
{
    const struct model_progress *p = s->c->progress;
    const tensor from[PARAM_N_KEPT] = {s->c->master, p->exp_avg, p->exp_avg_sq};
    *g = (struct flat_group){0};
    for (int i = 0; i < s->n; i++) {
        g->n += is_of_group(&s->list[i], group) ? tensor_count(script_params_view(s, i, s->c->master)) : 0;
    }
    int64_t unit = ALIGNMENT * p->n_ranks;
    g->part = (g->n + unit - 1) / unit * ALIGNMENT;
    for (int kept = 0; kept < PARAM_N_KEPT; kept++) {
        int64_t at = 0;
        g->kept[kept] = calloc((size_t)(g->part * p->n_ranks) + 1, sizeof(float));
        FAIL_IF(g->kept[kept] == NULL, STATUS_MEMORY, "out of memory for %lld elements of the optimizer",
                (long long)g->n);
        for (int i = 0; i < s->n; i++) {
            if (is_of_group(&s->list[i], group)) {
                tensor t = script_params_view(s, i, from[kept]);
                memcpy(g->kept[kept] + at, t.data, tensor_bytes(t));
                at += tensor_count(t);
            }
        }
    }
    return status_ok();
}

static tensor part_of(const struct flat_group *g, enum param_kept kept, int rank, int64_t n)
{
    return tensor_1d(g->kept[kept] + g->part * rank, DTYPE_F32, n);
}

/* Elements of a rank that are no padding. */
static int64_t own_part(const struct flat_group *g, int rank)
{
    int64_t left = g->n - g->part * rank;
    return left < 0 ? 0 : left < g->part ? left : g->part;
}

static void put_base(struct torch_writer *w, const struct model_progress *p,
                     const struct flat_group groups[N_GROUPS], int rank)
{
    pickle_put_dict_begin(&w->pickle);
    pickle_put_key_dict_begin(&w->pickle, "state");
    for (int g = 0; g < N_GROUPS; g++) {
        pickle_put_int(&w->pickle, g);
        put_moments(w, part_of(&groups[g], PARAM_EXP_AVG, rank, groups[g].part),
                    part_of(&groups[g], PARAM_EXP_AVG_SQ, rank, groups[g].part), p->step - p->n_skipped);
    }
    pickle_put(&w->pickle, SETITEMS);
    pickle_put_key_list_begin(&w->pickle, "param_groups");
    for (int g = 0; g < N_GROUPS; g++) {
        put_group(&w->pickle, p, g == 0, g, 1, p->step - p->n_skipped);
    }
    pickle_put(&w->pickle, APPENDS);
    pickle_put(&w->pickle, SETITEMS);
}

static void put_group_ints(struct buf *b, const char *key, int64_t first, int64_t second)
{
    pickle_put_text(b, key);
    pickle_put_list(b);
    pickle_put_int(b, first);
    pickle_put_int(b, second);
    pickle_put(b, APPENDS);
}

static struct status write_rank(const char *path, const struct model_progress *p,
                                const struct flat_group groups[N_GROUPS], int rank)
{
    struct torch_writer w;
    torch_writer_init(&w);
    struct buf *b = &w.pickle;
    pickle_put_dict_begin(b);
    pickle_put_key_dict_begin(b, "optimizer_state_dict");
    pickle_put_key_bool(b, "dynamic_loss_scale", false);
    pickle_put_key_bool(b, "overflow", false);
    pickle_put_text(b, "base_optimizer_state");
    put_base(&w, p, groups, rank);
    pickle_put_key_list_begin(b, "single_partition_of_fp32_groups");
    for (int g = 0; g < N_GROUPS; g++) {
        torch_writer_put_tensor(&w, part_of(&groups[g], PARAM_WEIGHT, rank, own_part(&groups[g], rank)));
    }
    pickle_put(b, APPENDS);
    pickle_put_key_int(b, "zero_stage", 1);
    put_group_ints(b, "group_paddings", groups[0].part - own_part(&groups[0], rank),
                   groups[1].part - own_part(&groups[1], rank));
    put_group_ints(b, "partition_count", p->n_ranks, p->n_ranks);
    pickle_put_key_text(b, "ds_version", ZERO_FOLDER_VERSION);
    pickle_put(b, SETITEMS);
    pickle_put_key_text(b, "ds_version", ZERO_FOLDER_VERSION);
    pickle_put(b, SETITEMS);
    return torch_writer_commit(&w, path);
}

static struct status write_ranks(const char *folder, const struct script_params *s)
{
    struct flat_group groups[N_GROUPS] = {{.n = 0}};
    struct status status = status_ok();
    for (int g = 0; g < N_GROUPS && !failed(status); g++) {
        status = fill_group(&groups[g], s, g);
    }
    for (int r = 0; r < s->c->progress->n_ranks && !failed(status); r++) {
        char path[CHECKPOINT_PATH_BYTES];
        status = checkpoint_path(path, "%s/bf16_zero_pp_rank_%d_mp_rank_00_optim_states.pt", folder, r);
        status = failed(status) ? status : write_rank(path, s->c->progress, groups, r);
    }
    for (int g = 0; g < N_GROUPS; g++) {
        for (int kept = 0; kept < PARAM_N_KEPT; kept++) {
            free(groups[g].kept[kept]);
        }
    }
    return status;
}

/* Writes DIRECTORY/latest and DIRECTORY/STEP/ with the states of the model and those of each rank, as ZeRO 1
 * of DeepSpeed does. */
static struct status write_folder(const char *directory, const struct script_params *s)
{
    char folder[CHECKPOINT_PATH_BYTES], path[CHECKPOINT_PATH_BYTES], tag[32];
    int n = snprintf(tag, sizeof tag, "%" PRId64, s->c->progress->global_step);
    TRY(checkpoint_path(folder, "%s/%s", directory, tag));
    TRY(file_make_directories(folder));
    TRY(checkpoint_path(path, "%s/" ZERO_FOLDER_STATES, folder));
    TRY(write_states(path, s));
    TRY(write_ranks(folder, s));
    TRY(file_sync_directory(folder));
    TRY(checkpoint_path(path, "%s/latest", directory));
    return file_write_atomic(path, tag, (size_t)n);
}

struct status model_dir_write_deepspeed(const char *path, const struct model_dir_contents *c)
{
    struct script_params params;
    CHECK(c->progress != NULL, "a folder of DeepSpeed without a state of a run");
    TRY(script_params_init(&params, c, true));
    struct status s = write_folder(path, &params);
    free(params.list);
    return s;
}
