#include "cmd/rank_run.h"

#include "core/json.h"
#include "core/log.h"
#include "core/parallel.h"
#include "dist/same_run.h"
#include "dist/world.h"
#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* mpirun binds each of two ranks to one processor, whatever there is. */
static void share_threads(int n_local)
{
    struct parallel_share s = parallel_share(n_local);
    log_info("threads: %d of each rank", s.threads);
    if (!s.given && s.threads < s.share) {
        log_warning("the launcher lets this rank run on %d of the %d processors that are its share: mpirun's "
                    "--bind-to none or --map-by slot:PE=%d gives it all",
                    s.threads, s.share, s.share);
    }
}

/* Files may have other paths on other nodes; what they hold is compared when they are read. */
static bool is_path(const struct option *o)
{
    return o->value_name != NULL && (strcmp(o->value_name, "FILE") == 0 ||
                                     strcmp(o->value_name, "DIR") == 0 || strcmp(o->value_name, "PATH") == 0);
}

static void add_flag(struct same_run *same, const struct option *o, json_t *values)
{
    char name[64];
    json_t *value = json_object_get(values, option_key(o).text);
    char *text =
        value == NULL || is_path(o) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    snprintf(name, sizeof name, "--%s", o->name);
    same_run_add(same, name,
                 value == NULL || json_is_null(value) ? "not given"
                 : is_path(o)                         ? "given"
                 : text != NULL                       ? text
                                                      : "");
    free(text);
}

/* Every row of the option table, so that a new flag is compared without anyone thinking of it. */
struct status rank_run_compare_flags(const struct comm *world, const struct command *c, const void *args)
{
    struct same_run same = {0};
    json_t *values = option_values(c, args);
    for (struct option_walk w = {0}; option_next(&w, c);) {
        const struct option *o = &w.row;
        if (!o->of_rank && json_object_get(values, option_key(o).text) != NULL) {
            add_flag(&same, o, values);
        }
    }
    json_decref(values);
    return same_run_check(&same, world, STATUS_USAGE);
}

/* Kernels of other instruction sets and libraries round otherwise, so that weights would drift apart. */
static struct status compare_kernels(const struct comm *world)
{
    struct same_run same = {0};
    struct buf libraries = {0};
    for (int i = 0; ops_cpu_library(i) != NULL; i++) {
        buf_printf(&libraries, "%s%s", i > 0 ? ", " : "", ops_cpu_library(i));
    }
    same_run_add(&same, "the instruction set of the kernels", ops_cpu_isa());
    same_run_add(&same, "the library of matrix products", buf_text(&libraries));
    buf_fini(&libraries);
    return same_run_check(&same, world, STATUS_UNAVAILABLE);
}

static struct status begin(struct comm *world, const struct command *c, const void *args,
                           const struct launcher_flags *flags)
{
    if (world->size == 1) {
        return launcher_check_flags(flags);
    }
    TRY(rank_run_compare_flags(world, c, args));
    TRY(compare_kernels(world));
    share_threads(world->n_local);
    return status_ok();
}

/* The ranks; where there are none to talk to, this process talks. */
static struct status open_world(struct comm *world)
{
    struct status s = world_open(world);
    if (failed(s) || world->size == 1) {
        log_set_level(LOG_INFO);
        return s;
    }
    log_set_rank(world->rank);
    return status_ok();
}

struct status rank_run_begin(struct comm *world, const struct command *c, const void *args,
                             const struct launcher_flags *flags)
{
    TRY(open_world(world));
    struct status s = begin(world, c, args, flags);
    return failed(s) ? rank_run_end(world, s) : s;
}

struct status rank_run_refuse(struct status s)
{
    struct comm world;
    return failed(open_world(&world)) ? s : rank_run_end(&world, s);
}

/* A launcher ends all ranks once one has ended with an error: the first one has this time to say which. */
static const struct timespec until_said = {.tv_nsec = 500000000};

struct status rank_run_end(struct comm *world, struct status s)
{
    return rank_run_leave(world, comm_agree(world, s));
}

struct status rank_run_leave(struct comm *world, struct status s)
{
    if (world->rank > 0) {
        log_set_level(LOG_QUIET);
        nanosleep(failed(s) ? &until_said : &(struct timespec){0}, NULL);
    }
    world_close(world, s);
    return s;
}

/* Ranks that are left over are in no mesh, which mesh_open says. */
static struct mesh_shape shape_of(const struct mesh_flags *f, int world)
{
    int tp = (int)f->tensor_parallel, pp = (int)f->pipeline_parallel, dp = world / (tp * pp);
    return (struct mesh_shape){.tp = tp, .pp = pp, .dp = dp > 0 ? dp : 1};
}

struct status rank_run_mesh(struct mesh *m, const struct mesh_flags *f, const struct comm *world, bool tells)
{
    struct mesh_shape shape = shape_of(f, world->size);
    if (world->emulated != NULL) { /* emulation_tell reports the place of this rank */
        return status_context(mesh_open(m, world, shape), "--emulate_world");
    }
    TRY(mesh_open(m, world, shape));
    struct status s = status_ok();
    if (mesh_cuts_model(shape)) {
        s = mesh_print_hosts(tells && world->rank == 0 ? stderr : NULL, m, world);
    }
    if (failed(s)) {
        mesh_close(m);
    }
    return s;
}
