/* script_optimizer: what the replaced scripts keep of a run besides its model, in their own files: the rest
 * of ckpt_N.pt, and DeepSpeed's folder of ZeRO 1.  model/foreign_moments.h reads both. */
#include "io/pickle_writer.h"
#include "io/zero_folder.h"
#include "model/checkpoint.h"
#include "model/model_dir_forms.h"
#include "model/model_progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* DeepSpeed pads a group to a multiple of this many elements for each rank (its
 * nccl_start_alignment_factor). */
enum { ALIGNMENT = 2, N_GROUPS = 2 };

struct status script_optimizer_put_model(struct torch_writer *w, const struct script_params *s)
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
    pickle_put_items(&w->pickle);
}

/* A group of parameters [first, first + n), with all that the scripts' LAMB, LANS and AdamW look up in it:
 * loading replaces the group of the new run. */
static void put_group(struct buf *b, const struct model_progress *p, bool decayed, int first, int n,
                      int64_t n_steps)
{
    pickle_put_dict_begin(b);
    pickle_put_key_real(b, "lr", p->learning_rate);
    pickle_put_key_real(b, "initial_lr", p->learning_rate);
    pickle_put_text(b, "betas");
    pickle_put_mark(b);
    pickle_put_real(b, 0.9);
    pickle_put_real(b, 0.999);
    pickle_put_tuple(b);
    pickle_put_key_real(b, "eps", 1e-6);
    pickle_put_key_real(b, "weight_decay", decayed ? p->weight_decay : 0);
    pickle_put_text(b, "bias_correction");
    pickle_put_true(b);
    pickle_put_text(b, "grad_averaging");
    pickle_put_true(b);
    pickle_put_key_real(b, "max_grad_norm", 1);
    pickle_put_key_int(b, "step", n_steps);
    pickle_put_text(b, "params");
    pickle_put_list(b);
    for (int i = 0; i < n; i++) {
        pickle_put_int(b, first + i);
    }
    pickle_put_list_end(b);
    pickle_put_items(b);
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
    pickle_put_text(&w->pickle, "state");
    pickle_put_dict_begin(&w->pickle);
    for (int group = 0; group < N_GROUPS; group++) {
        for (int i = 0; i < s->n; i++) {
            if (is_of_group(&s->list[i], group)) {
                pickle_put_int(&w->pickle, number++);
                put_moments(w, script_params_view(s, i, p->exp_avg), script_params_view(s, i, p->exp_avg_sq),
                            p->step);
            }
        }
    }
    pickle_put_items(&w->pickle);
    pickle_put_text(&w->pickle, "param_groups");
    pickle_put_list(&w->pickle);
    put_group(&w->pickle, p, true, 0, n_first, p->step);
    put_group(&w->pickle, p, false, n_first, number - n_first, p->step);
    pickle_put_list_end(&w->pickle);
    pickle_put_items(&w->pickle);
}

/* Puts the list of files after a number: the scripts begin with the file of that number. */
static void put_files(struct buf *b, const struct model_progress *p)
{
    pickle_put_text(b, "files");
    pickle_put_list(b);
    pickle_put_int(b, 0);
    for (int64_t i = 0; i < p->n_files; i++) {
        pickle_put_text(b, p->files[i]);
    }
    pickle_put_list_end(b);
    pickle_put_key_int(b, "epoch", 0);
}

void script_optimizer_put(struct torch_writer *w, const struct script_params *s)
{
    pickle_put_text(&w->pickle, "optimizer");
    put_state_dict(w, s);
    pickle_put_text(&w->pickle, "master params");
    pickle_put_list(&w->pickle);
    for (int group = 0; group < N_GROUPS; group++) {
        for (int i = 0; i < s->n; i++) {
            if (is_of_group(&s->list[i], group)) {
                torch_writer_put_tensor(w, script_params_view(s, i, s->c->master));
            }
        }
    }
    pickle_put_list_end(&w->pickle);
    put_files(&w->pickle, s->c->progress);
    pickle_put_text(&w->pickle, "data_loader");
    pickle_put_none(&w->pickle);
}

/* ---- DeepSpeed ---- */

static void put_shapes(struct buf *b, const struct script_params *s)
{
    pickle_put_text(b, "param_shapes");
    pickle_put_list(b);
    for (int group = 0; group < N_GROUPS; group++) {
        pickle_put_ordered_dict(b);
        pickle_put_mark(b);
        for (int i = 0; i < s->n; i++) {
            if (is_of_group(&s->list[i], group)) {
                pickle_put_text(b, s->list[i].name);
                torch_writer_put_size(b, script_params_view(s, i, s->c->master));
            }
        }
        pickle_put_items(b);
    }
    pickle_put_list_end(b);
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
    struct status made = script_optimizer_put_model(&w, s);
    pickle_put_key_list(b, "buffer_names");
    pickle_put_text(b, "optimizer");
    pickle_put_none(b);
    put_shapes(b, s);
    pickle_put_text(b, "lr_scheduler");
    pickle_put_dict_begin(b);
    pickle_put_key_int(b, "last_epoch", p->step);
    pickle_put_key_int(b, "_step_count", p->step + 1);
    pickle_put_items(b);
    pickle_put_key_list(b, "sparse_tensor_module_names");
    pickle_put_key_int(b, "skipped_steps", p->n_skipped);
    pickle_put_key_int(b, "global_steps", p->step);
    pickle_put_key_int(b, "dp_world_size", p->n_ranks);
    pickle_put_key_int(b, "mp_world_size", 1);
    pickle_put_text(b, "ds_config");
    pickle_put_dict_begin(b);
    pickle_put_items(b);
    pickle_put_text(b, "ds_version");
    pickle_put_text(b, ZERO_FOLDER_VERSION);
    put_files(b, p);
    pickle_put_items(b);
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
    pickle_put_text(&w->pickle, "state");
    pickle_put_dict_begin(&w->pickle);
    for (int g = 0; g < N_GROUPS; g++) {
        pickle_put_int(&w->pickle, g);
        put_moments(w, part_of(&groups[g], PARAM_EXP_AVG, rank, groups[g].part),
                    part_of(&groups[g], PARAM_EXP_AVG_SQ, rank, groups[g].part), p->step - p->n_skipped);
    }
    pickle_put_items(&w->pickle);
    pickle_put_text(&w->pickle, "param_groups");
    pickle_put_list(&w->pickle);
    for (int g = 0; g < N_GROUPS; g++) {
        put_group(&w->pickle, p, g == 0, g, 1, p->step - p->n_skipped);
    }
    pickle_put_list_end(&w->pickle);
    pickle_put_items(&w->pickle);
}

static void put_group_ints(struct buf *b, const char *key, int64_t first, int64_t second)
{
    pickle_put_text(b, key);
    pickle_put_list(b);
    pickle_put_int(b, first);
    pickle_put_int(b, second);
    pickle_put_list_end(b);
}

static struct status write_rank(const char *path, const struct model_progress *p,
                                const struct flat_group groups[N_GROUPS], int rank)
{
    struct torch_writer w;
    torch_writer_init(&w);
    struct buf *b = &w.pickle;
    pickle_put_dict_begin(b);
    pickle_put_text(b, "optimizer_state_dict");
    pickle_put_dict_begin(b);
    pickle_put_text(b, "dynamic_loss_scale");
    pickle_put_false(b);
    pickle_put_text(b, "overflow");
    pickle_put_false(b);
    pickle_put_text(b, "base_optimizer_state");
    put_base(&w, p, groups, rank);
    pickle_put_text(b, "single_partition_of_fp32_groups");
    pickle_put_list(b);
    for (int g = 0; g < N_GROUPS; g++) {
        torch_writer_put_tensor(&w, part_of(&groups[g], PARAM_WEIGHT, rank, own_part(&groups[g], rank)));
    }
    pickle_put_list_end(b);
    pickle_put_key_int(b, "zero_stage", 1);
    put_group_ints(b, "group_paddings", groups[0].part - own_part(&groups[0], rank),
                   groups[1].part - own_part(&groups[1], rank));
    put_group_ints(b, "partition_count", p->n_ranks, p->n_ranks);
    pickle_put_text(b, "ds_version");
    pickle_put_text(b, ZERO_FOLDER_VERSION);
    pickle_put_items(b);
    pickle_put_text(b, "ds_version");
    pickle_put_text(b, ZERO_FOLDER_VERSION);
    pickle_put_items(b);
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

struct status script_optimizer_write_folder(const char *directory, const struct script_params *s)
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
