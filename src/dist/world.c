#include "dist/world.h"

#include "core/launcher.h"
#include "dist/comm_self.h"

#include <inttypes.h>

struct status world_open(struct comm *world)
{
    struct launcher_ranks told;
    *world = comm_self();
    TRY(launcher_find_ranks(&told));
    return told.kind == LAUNCHER_NONE
               ? status_ok()
               : status_error(STATUS_UNAVAILABLE,
                              "%s is %" PRId64
                              ": this process is one of several, and this build has no communicator for them",
                              told.variable, told.value);
}

void world_close(struct comm *world, struct status why)
{
    comm_leave(world, why);
    *world = comm_self();
}
