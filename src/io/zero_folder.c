#include "io/zero_folder.h"

#include "core/bytes.h"
#include "core/integers.h"
#include "io/stored_rects.h"
#include "io/torch_tensors.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static const char *const prefixes[] = {"zero_pp_rank_", "bf16_zero_pp_rank_"};

/* Before "optim": releases before 0.3.14 wrote no "_". */
static const char *const dashes[] = {"_", ""};

enum { ENDING_BYTES = 48 };

/* How a folder names its files. */
struct naming {
    const char *directory, *prefix;
    char ending[ENDING_BYTES]; /* end of the file names of a rank of the model */
    int n_files, highest;      /* rank */
};

/* The rank of a file's name; -1: it is no such file. */
static int rank_of(const char *name, const char *prefix, const char *ending)
{
    size_t n = strlen(prefix), digits = 0;
    if (strncmp(name, prefix, n) == 0) {
        digits = strspn(name + n, "0123456789");
    }
    return digits > 0 && digits < 7 && strcmp(name + n + digits, ending) == 0 ? atoi(name + n) : -1;
}

static void name_ending(char ending[ENDING_BYTES], int model_rank, const char *dash)
{
    snprintf(ending, ENDING_BYTES, "_mp_rank_%02d%soptim_states.pt", model_rank, dash);
}

static void note(struct naming *found, const char *name, int model_rank)
{
    for (int i = 0; i < 4; i++) {
        char ending[ENDING_BYTES];
        name_ending(ending, model_rank, dashes[i / 2]);
        int rank = rank_of(name, prefixes[i % 2], ending);
        if (rank >= 0) {
            found->prefix = prefixes[i % 2];
            memcpy(found->ending, ending, sizeof ending);
            found->n_files++;
            found->highest = rank > found->highest ? rank : found->highest;
        }
    }
}

static struct naming look(const char *directory, int model_rank)
{
    struct naming found = {.directory = directory, .prefix = prefixes[1], .highest = -1};
    name_ending(found.ending, model_rank, dashes[0]);
    DIR *dir = opendir(directory);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        note(&found, e->d_name, model_rank);
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return found;
}

bool zero_folder_is_one(const char *directory)
{
    return look(directory, 0).n_files > 0;
}

static struct status out_of_memory(const char *directory)
{
    return status_error(STATUS_MEMORY, "out of memory for the optimizer of %s", directory);
}

/* ---- the files of the ranks ---- */

static const struct pickle_node *optimizer_of(const struct zero_folder *z, int rank)
{
    return pickle_find(z->ranks[rank].root, "optimizer_state_dict");
}

/* The "partition_count" of a rank's file: a number, or the largest of a list with one for each group. */
static int64_t partition_count(const struct pickle_node *optimizer)
{
    const struct pickle_node *count = pickle_find(optimizer, "partition_count");
    int64_t most = -1, n;
    if (torch_optimizer_number(&most, count)) {
        return most;
    }
    for (size_t i = 0; i < torch_optimizer_length(count); i++) {
        most = torch_optimizer_number(&n, count->list.items[i]) && n > most ? n : most;
    }
    return most;
}

static struct status open_rank(struct zero_folder *z, const struct naming *f, int rank, int n_ranks)
{
    char path[FILE_PATH_BYTES];
    int n = snprintf(path, sizeof path, "%s/%s%d%s", f->directory, f->prefix, rank, f->ending);
    FAIL_IF(n < 0 || n >= (int)sizeof path, STATUS_USAGE, "the path %.60s... is longer than %d bytes", path,
            (int)sizeof path - 1);
    FAIL_IF(!file_exists(path), STATUS_DATA,
            "%s is half a checkpoint: it has files of %d of its %d ranks, but no %s%d%s; "
            "copy that file from the machine of its rank",
            f->directory, f->n_files, n_ranks, f->prefix, rank, f->ending);
    TRY(torch_file_open(&z->ranks[z->n_ranks], path));
    z->n_ranks++;
    size_t used = 0;
    for (int i = 0; i < z->n_ranks; i++) {
        used += z->ranks[i].pickle.memory.used;
    }
    FAIL_IF(used > PICKLE_MAX_BYTES, STATUS_DATA, "%s: the pickles of its ranks need more than %d MiB",
            f->directory, PICKLE_MAX_BYTES >> 20);
    const struct pickle_node *optimizer = optimizer_of(z, rank);
    FAIL_IF(optimizer == NULL || optimizer->kind != PICKLE_DICT, STATUS_DATA,
            "%s has no \"optimizer_state_dict\", so it is not a file of ZeRO", path);
    int64_t count = partition_count(optimizer);
    FAIL_IF(rank > 0 && count != n_ranks, STATUS_DATA,
            "%s names %lld ranks, but the file of rank 0 names %d: they belong to different checkpoints",
            path, (long long)count, n_ranks);
    return status_ok();
}

/* DeepSpeed numbers its stages; an enum of them is an object with the number. */
static int64_t stage_of(const struct pickle_node *optimizer)
{
    const struct pickle_node *stage = pickle_find(optimizer, "zero_stage");
    int64_t number;
    if (stage != NULL && stage->kind == PICKLE_OBJECT) {
        stage = pickle_item(stage->object.arguments, 0);
    }
    return torch_optimizer_number(&number, stage) ? number : -1;
}

static struct status check_first(const struct zero_folder *z, const struct naming *f)
{
    const struct pickle_node *optimizer = optimizer_of(z, 0);
    int64_t n_ranks = partition_count(optimizer), stage = stage_of(optimizer);
    FAIL_IF(stage == 3, STATUS_UNAVAILABLE,
            "%s was written by ZeRO stage 3, which splits each parameter; kiln reads stages 1 and 2",
            f->directory);
    FAIL_IF(n_ranks < 1 || n_ranks > ZERO_FOLDER_MOST_RANKS, STATUS_DATA,
            "%s: the file of rank 0 names %lld ranks; kiln reads 1 to %d", f->directory, (long long)n_ranks,
            ZERO_FOLDER_MOST_RANKS);
    FAIL_IF(f->highest >= n_ranks, STATUS_DATA,
            "%s has a file of rank %d, but the file of rank 0 names %lld ranks: they belong "
            "to different checkpoints",
            f->directory, f->highest, (long long)n_ranks);
    return status_ok();
}

static struct status open_ranks(struct zero_folder *z, const struct naming *f)
{
    z->ranks = calloc(ZERO_FOLDER_MOST_RANKS, sizeof *z->ranks);
    z->optimizers = calloc(ZERO_FOLDER_MOST_RANKS, sizeof *z->optimizers);
    if (z->ranks == NULL || z->optimizers == NULL) {
        return out_of_memory(f->directory);
    }
    TRY(open_rank(z, f, 0, f->highest + 1));
    TRY(check_first(z, f));
    int n_ranks = (int)partition_count(optimizer_of(z, 0));
    for (int r = 1; r < n_ranks; r++) {
        TRY(open_rank(z, f, r, n_ranks));
    }
    return status_ok();
}

/* Early releases had the state of the optimizer in a dict of the same name as the one around it. */
static const struct pickle_node *base_of(const struct pickle_node *optimizer)
{
    const struct pickle_node *base = pickle_find(optimizer, "base_optimizer_state");
    return base != NULL ? base : pickle_find(optimizer, "optimizer_state_dict");
}

static struct status open_optimizers(struct zero_folder *z, const char *directory)
{
    char source[FILE_PATH_BYTES + 40];
    for (int r = 0; r < z->n_ranks; r++) {
        struct torch_optimizer *o = &z->optimizers[r];
        const struct pickle_node *all = optimizer_of(z, r);
        int64_t beside;
        snprintf(source, sizeof source, "%s, the file of rank %d", directory, r);
        TRY(torch_optimizer_open(o, base_of(all), source));
        if (o->n_steps < 0 &&
            torch_optimizer_number(&beside, pickle_find(all, "base_optimizer_state_step"))) {
            o->n_steps = beside;
        }
        FAIL_IF(o->n_steps != z->optimizers[0].n_steps || o->n != z->optimizers[0].n ||
                    o->has_moments != z->optimizers[0].has_moments,
                STATUS_DATA,
                "%s: the optimizer of rank %d is at step %lld with %d groups, but rank 0 is "
                "at step %lld with %d: they belong to different checkpoints",
                directory, r, (long long)o->n_steps, o->n, (long long)z->optimizers[0].n_steps,
                z->optimizers[0].n);
    }
    z->n_steps = z->optimizers[0].n_steps;
    z->has_moments = z->optimizers[0].has_moments;
    z->loss_scaler = pickle_find(optimizer_of(z, 0), "loss_scaler");
    return status_ok();
}

/* ---- the flat buffers ---- */

/* A group of parameters, and its flat buffers as the ranks have them. */
struct flat {
    const struct zero_folder *z;
    const char *directory;
    const struct pickle_node *shapes; /* a dict from names to dims */
    int group;
    int64_t part;  /* elements of each rank */
    int64_t total; /* elements of its parameters */
};

/* A rank's part of a group; NULL: it is not a tensor. */
static const struct stored_tensor *part_of(const struct flat *f, enum param_kept kept, int rank)
{
    const struct torch_optimizer *o = &f->z->optimizers[rank];
    const struct pickle_node *weights = pickle_item(
        pickle_find(optimizer_of(f->z, rank), "single_partition_of_fp32_groups"), (size_t)f->group);
    switch (kept) {
    case PARAM_WEIGHT: return weights != NULL && weights->kind == PICKLE_TENSOR ? weights->tensor : NULL;
    case PARAM_EXP_AVG: return o->items[f->group].exp_avg;
    default: return o->items[f->group].exp_avg_sq;
    }
}

static struct status bad_shape(const struct flat *f, const struct pickle_node *name)
{
    bool is_text =
        name->kind == PICKLE_TEXT && stored_tensor_name_is_printable(name->text.data, name->text.n);
    return status_error(STATUS_DATA, "%s: \"param_shapes\" of %s has an impossible shape for %.*s",
                        f->directory, f->z->states,
                        is_text ? (int)(name->text.n < 80 ? name->text.n : 80) : 7,
                        is_text ? name->text.data : "a name");
}

/* The name and the shape of a parameter. */
static struct status take_shape(struct zero_folder *z, struct stored_tensor *t, const struct flat *f,
                                const struct pickle_node *name, const struct pickle_node *dims)
{
    size_t n = torch_optimizer_length(dims);
    if (name->kind != PICKLE_TEXT || name->text.n >= (size_t)TORCH_NAME_BYTES ||
        !stored_tensor_name_is_printable(name->text.data, name->text.n) || dims->kind != PICKLE_TUPLE ||
        n > STORED_MAX_DIMS) {
        return bad_shape(f, name);
    }
    *t = (struct stored_tensor){.dtype_label = "float32", .dtype = DTYPE_F32, .n_dims = (int)n};
    for (size_t i = 0; i < n; i++) {
        if (dims->list.items[i]->kind != PICKLE_INT) {
            return bad_shape(f, name);
        }
        t->dims[i] = dims->list.items[i]->integer;
    }
    if (!stored_tensor_make_dense(t, sizeof(float)) || t->bytes == 0) {
        return bad_shape(f, name);
    }
    t->name = bump_copy(&z->memory, name->text.data, name->text.n);
    return t->name == NULL ? bump_status(&z->memory, f->directory) : status_ok();
}

/* The parts hold all parameters, and not many more elements: padding makes the buffer a multiple of twice the
 * number of ranks.  Weights may be saved without it. */
static struct status check_parts(const struct flat *f, enum param_kept kept)
{
    int64_t part = f->part, padding = part * f->z->n_ranks - f->total;
    for (int r = 0; r < f->z->n_ranks; r++) {
        const struct stored_tensor *t = part_of(f, kept, r);
        int64_t left = f->total - r * part, needed = left < 0 ? 0 : left < part ? left : part;
        FAIL_IF(t == NULL || t->n_dims != 1 || t->unreadable != NULL || !stored_tensor_is_dense(t) ||
                    !stored_tensor_converts(t->dtype, DTYPE_F32) || t->dtype != part_of(f, kept, 0)->dtype,
                STATUS_DATA, "%s: rank %d has no flat buffer of numbers for group %d", f->directory, r,
                f->group);
        FAIL_IF(t->dims[0] < needed || t->dims[0] > part || padding < 0 || padding >= 2 * f->z->n_ranks,
                STATUS_DATA,
                "%s: rank %d has %lld elements of group %d, but the group has %lld elements, in parts of "
                "%lld for each of %d ranks: the files belong to different checkpoints",
                f->directory, r, (long long)t->dims[0], f->group, (long long)f->total, (long long)part,
                f->z->n_ranks);
    }
    return status_ok();
}

/* Lays a parameter over the parts, from element `first` of the group's buffer. */
static struct status place(struct zero_folder *z, const struct flat *f, enum param_kept kept,
                           struct stored_tensor *t, int64_t first)
{
    const struct stored_tensor *own = part_of(f, kept, (int)(first / f->part));
    size_t size = dtype_bytes(own->dtype);
    int64_t n = (int64_t)(t->bytes / sizeof(float)),
            n_parts = (first + n - 1) / f->part - first / f->part + 1;
    t->dtype = own->dtype;
    t->dtype_label = own->dtype_label;
    t->bytes = (size_t)n * size;
    t->data = own->data + (size_t)(first % f->part) * size;
    t->storage = own->storage;
    t->storage_bytes = own->storage_bytes;
    t->rects = NULL;
    if (n_parts == 1) {
        return status_ok();
    }
    struct stored_rects rects = {.capacity = 3 * (size_t)n_parts};
    rects.list = bump_take(&z->memory, rects.capacity * sizeof *rects.list);
    if (rects.list == NULL) {
        return bump_status(&z->memory, f->directory);
    }
    for (int64_t at = 0, here; at < n; at += here) {
        int64_t skipped = (first + at) % f->part, rows = t->n_dims > 0 ? t->dims[0] : 1;
        own = part_of(f, kept, (int)((first + at) / f->part));
        here = int_smaller(n - at, f->part - skipped);
        struct stored_part run = {.n = {rows, n / rows}, .begin = at, .end = at + here};
        stored_rects_add_run(&rects, &run, own->data + (size_t)skipped * size, size);
    }
    t->rects = rects.list;
    t->n_rects = rects.n;
    return status_ok();
}

static struct status place_all(struct zero_folder *z, const struct flat *f, int n)
{
    for (int kept = 0; kept < (z->has_moments ? PARAM_N_KEPT : 1); kept++) {
        int64_t first = 0;
        TRY(check_parts(f, (enum param_kept)kept));
        for (int i = z->n; i < z->n + n; i++) {
            struct stored_tensor *t = &z->tensors[kept][i];
            *t = z->tensors[PARAM_WEIGHT][i];
            int64_t count = (int64_t)(t->bytes / dtype_bytes(t->dtype));
            t->bytes = (size_t)count * sizeof(float);
            TRY(place(z, f, (enum param_kept)kept, t, first));
            first += count;
        }
    }
    return status_ok();
}

static struct status take_group(struct zero_folder *z, struct flat *f)
{
    int n = (int)(f->shapes->list.n / 2);
    const struct stored_tensor *first = part_of(f, PARAM_WEIGHT, 0);
    for (int i = 0; i < n; i++) {
        struct stored_tensor *t = &z->tensors[PARAM_WEIGHT][z->n + i];
        TRY(take_shape(z, t, f, f->shapes->list.items[(size_t)2 * (size_t)i],
                       f->shapes->list.items[(size_t)2 * (size_t)i + 1]));
        int64_t count = (int64_t)(t->bytes / sizeof(float));
        if (count > INT64_MAX / 4 - f->total) {
            return bad_shape(f, f->shapes->list.items[(size_t)2 * (size_t)i]);
        }
        f->total += count;
    }
    FAIL_IF(first == NULL || first->n_dims != 1 || first->dims[0] < 1, STATUS_DATA,
            "%s: rank 0 has no \"single_partition_of_fp32_groups\" for group %d of \"param_shapes\"",
            f->directory, f->group);
    /* The tensors of rank 0 are full parts, except weights if one rank has all: those may lack the
     * padding. */
    const struct stored_tensor *moment = part_of(f, PARAM_EXP_AVG, 0);
    f->part = moment != NULL && moment->n_dims == 1 && moment->dims[0] > first->dims[0] ? moment->dims[0]
                                                                                        : first->dims[0];
    TRY(place_all(z, f, n));
    z->n += n;
    return status_ok();
}

/* Early releases save the shapes of one group alone, not in a list. */
static const struct pickle_node *shapes_of(const struct pickle_node *shapes, size_t g)
{
    const struct pickle_node *group = shapes->kind == PICKLE_DICT && g == 0 ? shapes : pickle_item(shapes, g);
    return group != NULL && group->kind == PICKLE_DICT ? group : NULL;
}

static struct status take_groups(struct zero_folder *z, const char *directory,
                                 const struct pickle_node *states)
{
    const struct pickle_node *shapes = pickle_find(states, "param_shapes");
    size_t n_groups = shapes == NULL                ? 0
                      : shapes->kind == PICKLE_DICT ? 1
                                                    : torch_optimizer_length(shapes),
           n = 0;
    FAIL_IF(n_groups == 0 || n_groups != (size_t)z->optimizers[0].n, STATUS_DATA,
            "%s: %s has \"param_shapes\" of %zu groups, but the ranks have %d groups", directory, z->states,
            n_groups, z->optimizers[0].n);
    for (size_t g = 0; g < n_groups; g++) {
        const struct pickle_node *group = shapes_of(shapes, g);
        n += group == NULL ? 0 : group->list.n / 2;
        FAIL_IF(group == NULL || n > TORCH_OPTIMIZER_MOST_ITEMS, STATUS_DATA,
                "%s: \"param_shapes\" of group %zu must be a list of at most %d shapes", directory, g,
                TORCH_OPTIMIZER_MOST_ITEMS);
    }
    for (int kept = 0; kept < PARAM_N_KEPT; kept++) {
        z->tensors[kept] = calloc(n + 1, sizeof *z->tensors[kept]);
        if (z->tensors[kept] == NULL) {
            return out_of_memory(directory);
        }
    }
    for (size_t g = 0; g < n_groups; g++) {
        struct flat flat = {.z = z, .directory = directory, .shapes = shapes_of(shapes, g), .group = (int)g};
        CHECK(flat.shapes != NULL, "group %zu", g);
        TRY(take_group(z, &flat));
    }
    return stored_tensor_check_names(z->tensors[PARAM_WEIGHT], z->n, directory);
}

/* Who reads one rank needs a model that is not cut. */
static struct status check_whole(const char *directory, const struct pickle_node *states)
{
    int64_t n = 0;
    return torch_optimizer_number(&n, pickle_find(states, "mp_world_size")) && n > 1
               ? status_error(
                     STATUS_UNAVAILABLE,
                     "%s belongs to a model that is split over %lld ranks, whose parts kiln does not join",
                     directory, (long long)n)
               : status_ok();
}

/* Releases since 0.19 can pad each parameter, which kiln does not know. */
static struct status check_layout(const struct zero_folder *z, const char *directory,
                                  const struct pickle_node *states)
{
    const struct pickle_node *paddings = pickle_find(optimizer_of(z, 0), "param_alignment_paddings");
    int64_t n = 0;
    FAIL_IF(torch_optimizer_number(&n, pickle_find(states, "dp_world_size")) && n != z->n_ranks, STATUS_DATA,
            "%s: %s names %lld ranks, but the optimizer has files of %d: they belong to "
            "different checkpoints",
            directory, z->states, (long long)n, z->n_ranks);
    for (size_t g = 0; g < torch_optimizer_length(paddings); g++) {
        const struct pickle_node *group = paddings->list.items[g];
        for (size_t i = 0; i < torch_optimizer_length(group); i++) {
            FAIL_IF(!torch_optimizer_number(&n, group->list.items[i]) || n != 0, STATUS_UNAVAILABLE,
                    "%s has padding between its parameters (\"parameter_alignment\"), which "
                    "kiln does not read",
                    directory);
        }
    }
    return status_ok();
}

static struct status open_all(struct zero_folder *z, const char *directory, int rank,
                              const struct pickle_node *states)
{
    struct naming f = look(directory, rank);
    TRY(open_ranks(z, &f));
    TRY(check_layout(z, directory, states));
    TRY(open_optimizers(z, directory));
    return take_groups(z, directory, states);
}

struct status zero_folder_open_rank(struct zero_folder *z, const char *directory, int rank,
                                    const struct pickle_node *states)
{
    *z = (struct zero_folder){.memory = bump_with_limit(PICKLE_MAX_BYTES)};
    snprintf(z->states, sizeof z->states, "mp_rank_%02d_model_states.pt", rank);
    struct status s = open_all(z, directory, rank, states);
    if (failed(s)) {
        zero_folder_close(z);
    }
    return s;
}

struct status zero_folder_open(struct zero_folder *z, const char *directory, const struct pickle_node *states)
{
    *z = (struct zero_folder){0};
    TRY(check_whole(directory, states));
    return zero_folder_open_rank(z, directory, 0, states);
}

void zero_folder_close(struct zero_folder *z)
{
    for (int r = 0; r < z->n_ranks; r++) {
        torch_optimizer_close(&z->optimizers[r]);
        torch_file_close(&z->ranks[r]);
    }
    for (int kept = 0; kept < PARAM_N_KEPT; kept++) {
        free(z->tensors[kept]);
    }
    free(z->ranks);
    free(z->optimizers);
    bump_fini(&z->memory);
    *z = (struct zero_folder){0};
}

struct status zero_folder_check(const struct zero_folder *z, const char *directory)
{
    for (int r = 0; r < z->n_ranks; r++) {
        TRY(file_map_check(&z->ranks[r].map, directory));
    }
    return status_ok();
}

/* ---- against the model's own copy ---- */

/* The rank whose file has an element of a tensor; -1: none. */
static int rank_with(const struct zero_folder *z, const struct stored_tensor *t, int64_t element)
{
    int64_t n = (int64_t)(t->bytes / dtype_bytes(t->dtype)), cols = t->n_dims > 0 ? n / t->dims[0] : 1;
    const struct stored_rect wanted = {.at = {element / cols, element % cols}, .n = {1, 1}};
    const unsigned char *at = NULL;
    for (int64_t i = 0; i < stored_tensor_rects(t); i++) {
        struct stored_rect rect = stored_tensor_rect(t, i);
        at = stored_rect_cut(&rect, &wanted, dtype_bytes(t->dtype)) ? rect.data : at;
    }
    for (int r = 0; r < z->n_ranks; r++) {
        const unsigned char *begin = z->ranks[r].map.data;
        if (at >= begin && at < begin + z->ranks[r].map.n) {
            return r;
        }
    }
    return -1;
}

static struct status differs(const struct zero_folder *z, const char *directory,
                             const struct stored_tensor *t, const struct zero_copy *copy, int64_t element)
{
    return status_error(STATUS_DATA,
                        "%s: the fp32 weights of rank %d, rounded to %s, differ from %s in element %lld of "
                        "%.80s: the file belongs to another rank or step, or is damaged",
                        directory, rank_with(z, t, element), dtype_name(copy->tensor->dtype), copy->source,
                        (long long)element, t->name);
}

struct status zero_folder_compare_one(const struct zero_folder *z, const char *directory,
                                      const struct stored_tensor *t, const struct zero_copy *of)
{
    const struct stored_tensor *copy = of->tensor;
    int64_t at = -1;
    bool fits = copy != NULL && copy->unreadable == NULL && stored_tensor_is_dense(copy) &&
                stored_tensor_converts(DTYPE_F32, copy->dtype) &&
                copy->bytes / dtype_bytes(copy->dtype) == t->bytes / dtype_bytes(t->dtype);
    TRY(fits ? stored_tensor_find_difference(&at, t, copy) : status_ok());
    return at < 0 ? status_ok() : differs(z, directory, t, of, at);
}

struct status zero_folder_compare(const struct zero_folder *z, const char *directory,
                                  const struct pickle_node *states)
{
    for (int i = 0; i < z->n; i++) {
        const struct stored_tensor *t = &z->tensors[PARAM_WEIGHT][i];
        const struct pickle_node *node = pickle_find(pickle_find(states, "module"), t->name);
        bool has = node != NULL && node->kind == PICKLE_TENSOR;
        const struct zero_copy copy = {has ? node->tensor : NULL, z->states};
        TRY(zero_folder_compare_one(z, directory, t, &copy));
    }
    return status_ok();
}
