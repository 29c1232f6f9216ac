#include "cmd/rank_run.h"

#include "core/log.h"
#include "core/parallel.h"
#include "dist/world.h"

#include <time.h>

/* mpirun binds each of two ranks to one processor, whatever there is. */
static void share_threads(int n_local)
{
    struct parallel_share s = parallel_share(n_local);
    log_info("threads: %d of each rank", s.threads);
    if (!s.given && s.threads < s.share) {
        log_warning("the launcher lets this rank run on %d of the %d processors that are its share: mpirun's "
                    "--bind-to none "
                    "or --map-by slot:PE=%d gives it all",
                    s.threads, s.share, s.share);
    }
}

struct status rank_run_begin(struct comm *world, const struct launcher_flags *flags)
{
    TRY(world_open(world));
    struct status s = world->size > 1 ? status_ok() : launcher_check_flags(flags);
    if (world->size > 1) {
        log_set_rank(world->rank);
        share_threads(world->n_local);
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
