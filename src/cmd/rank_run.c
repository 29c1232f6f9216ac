#include "cmd/rank_run.h"

#include "core/log.h"
#include "core/parallel.h"
#include "dist/world.h"

#include <time.h>

struct status rank_run_begin(struct comm *world, const struct launcher_flags *flags)
{
    TRY(world_open(world));
    struct status s = world->size > 1 ? status_ok() : launcher_check_flags(flags);
    if (world->size > 1) {
        log_set_rank(world->rank);
        parallel_share(world->n_local);
    }
    return failed(s) ? rank_run_end(world, s) : s;
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
