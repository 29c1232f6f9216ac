#include "dist/world.h"

#include "core/launcher.h"
#include "core/log.h"
#include "core/shared_library.h"
#include "dist/comm_wire.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the library of MPI ---- */

static const char LIBRARY[] = "libkiln_mpi.so";
static const char INSTALL[] = "apt-get install libopenmpi-dev openmpi-bin, and build again";

/* Why processes that were started like this cannot find each other by MPI, and what to do. */
static struct status check_launcher(const struct launcher_ranks *told)
{
    static const char start[] = "start the ranks by `mpirun -n N kiln ...` or `srun --mpi=pmix kiln ...`";
    switch (told->kind) {
    case LAUNCHER_NONE:
    case LAUNCHER_OPEN_MPI:
    case LAUNCHER_PMIX:
        return launcher_serves_mpi()
                   ? status_ok()
                   : status_error(STATUS_UNAVAILABLE,
                                  "%s is %" PRId64 ", so this process is one of several, but no launcher "
                                  "started it (PMIX_NAMESPACE is not set): %s, or unset %s",
                                  told->variable, told->value, start, told->variable);
    case LAUNCHER_OTHER_MPI:
    case LAUNCHER_TORCH:
    case LAUNCHER_SLURM: break;
    }
    return status_error(STATUS_UNAVAILABLE,
                        "%s is %" PRId64 ": this process is one of several, but MPI cannot find the others "
                        "under the launcher that set it: %s, or unset %s",
                        told->variable, told->value, start, told->variable);
}

static struct status load(const struct wire_entry **entry)
{
    char path[1100];
    shared_library_of_kiln(path, sizeof path, LIBRARY);
    /* MPI loads parts of its own that look for its symbols */
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    FAIL_IF(library == NULL, STATUS_UNAVAILABLE,
            "this process is one of several, which needs MPI: %.200s; this build has none, "
            "or this machine lacks it: %s",
            dlerror(), INSTALL);
    const struct wire_entry *e = dlsym(library, "kiln_mpi_entry");
    FAIL_IF(e == NULL || strcmp(e->version, KILN_VERSION) != 0 || e->entry_bytes != sizeof *e ||
                e->wire_bytes != sizeof(struct wire) || e->op_bytes != sizeof(struct wire_op) ||
                e->status_bytes != sizeof(struct status),
            STATUS_UNAVAILABLE, "%s belongs to another version of kiln; build both together", path);
    *entry = e;
    return status_ok();
}

/* Processes that were started by the launcher of another MPI each find only themselves. */
static struct status check_size(const struct wire *w, const struct launcher_ranks *told)
{
    bool is_right = told->size == 0 ? w->size > 1 : w->size == told->size;
    return is_right
               ? status_ok()
               : status_error(
                     STATUS_UNAVAILABLE,
                     "%s is %" PRId64
                     ", but %s finds %d ranks: start them by the mpirun of the MPI that kiln was built with",
                     told->variable, told->value, w->library, w->size);
}

/* ---- which of its node's GPUs a rank uses ---- */

static const char DEVICES[] = "CUDA_VISIBLE_DEVICES";

static int count_words(const char *list)
{
    int n = 0;
    for (const char *p = list; *p != '\0'; p += *p == ',') {
        n += *p != ',';
        p += strcspn(p, ",");
    }
    return n;
}

/* CUDA shows those before the first that it does not know (CUDA C Programming Guide, environment variables),
 * so a list of fewer words than it seems is the user's to mend. */
bool world_choose_device(char *chosen, size_t n, const char *list, int n_chips, int local_rank)
{
    if (list == NULL) {
        snprintf(chosen, n, "%d", n_chips > 0 ? local_rank % n_chips : 0);
        return n_chips > 0;
    }
    int words = count_words(list), k = words > 0 ? local_rank % words : 0;
    const char *p = list;
    while (k > 0 || *p == ',') {
        k -= *p != ',';
        p += strcspn(p, ",");
        p += *p == ',';
    }
    int length = (int)strcspn(p, ",");
    return words > 0 && snprintf(chosen, n, "%.*s", length, p) < (int)n;
}

/* The driver makes a file for each GPU that this process, or its container, may use. */
static int count_chips(void)
{
    enum { MOST = 64 };
    char path[32];
    int n = 0;
    for (int i = 0; i < MOST; i++) {
        snprintf(path, sizeof path, "/dev/nvidia%d", i);
        n += access(path, F_OK) == 0;
    }
    return n;
}

void world_show_device(int local_rank)
{
    char chosen[128];
    const char *list = getenv(DEVICES);
    if (!world_choose_device(chosen, sizeof chosen, list, count_chips(), local_rank) ||
        (list != NULL && strcmp(list, chosen) == 0)) {
        return;
    }
    if (setenv(DEVICES, chosen, 1) != 0) {
        log_warning("%s=%s cannot be set: all ranks of this node use the first GPU", DEVICES, chosen);
    }
}

/* ---- the ranks ---- */

struct status world_open(struct comm *world)
{
    struct launcher_ranks told;
    const struct wire_entry *entry = NULL;
    struct wire wire;
    struct comm_wire_options options;
    *world = comm_self();
    TRY(launcher_find_ranks(&told));
    TRY(launcher_timeout(&options.deadline_s));
    TRY(launcher_silence(&options.silence_s));
    TRY(launcher_most_sharing(&options.most_sharing));
    if (told.kind == LAUNCHER_NONE) {
        return status_ok();
    }
    TRY(check_launcher(&told));
    TRY(load(&entry));
    TRY(entry->open(&wire));
    struct status s = check_size(&wire, &told);
    if (failed(s)) {
        wire.type->close(wire.state, wire.size == 1);
        return s;
    }
    struct comm several;
    TRY(comm_wire_open(&several, &wire, &options));
    *world = several;
    world_show_device(world->local_rank);
    return status_ok();
}

void world_close(struct comm *world, struct status why)
{
    comm_leave(world, why);
    if (world->size > 1) {
        comm_wire_close(world);
    }
    *world = comm_self();
}
