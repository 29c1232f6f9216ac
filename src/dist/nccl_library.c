#include "dist/nccl_library.h"

#include "core/shared_library.h"
#include "ops/library_search.h"

#include <stdio.h>
#include <stdlib.h>

_Static_assert(sizeof(struct nccl_id) == 128 && sizeof(struct nccl_config) == 24, "as in nccl.h");

static const char NAME[] = "libnccl.so.2";
static const char PACKAGE[] = "NCCL 2.14 or later, or name its file in KILN_NCCL_LIBRARY";

/* Versions before 2.9 had three digits after the major one. */
void nccl_library_put_version(char text[32], int version)
{
    int major = version < 10000 ? version / 1000 : version / 10000;
    int minor = version < 10000 ? version % 1000 / 100 : version % 10000 / 100;
    snprintf(text, 32, "%d.%d.%d", major, minor, version % 100);
}

static struct status check_version(struct nccl_library *l, const char *name)
{
    char is[32], wanted[32];
    const struct shared_symbol first[] = {{"ncclGetVersion", (void **)&l->get_version}, {0}};
    TRY(shared_library_open(name, PACKAGE, first));
    int result = l->get_version(&l->version);
    nccl_library_put_version(is, l->version);
    nccl_library_put_version(wanted, NCCL_OLDEST);
    FAIL_IF(result != NCCL_SUCCESS, STATUS_UNAVAILABLE, "%s does not say its version: error %d", name,
            result);
    return l->version >= NCCL_OLDEST
               ? status_ok()
               : status_error(STATUS_UNAVAILABLE, "%s is NCCL %s, and kiln needs %s or later; install %s",
                              name, is, wanted, PACKAGE);
}

static struct status load(struct nccl_library *l, const char *name)
{
    const struct shared_symbol symbols[] = {
        {"ncclGetUniqueId", (void **)&l->get_unique_id},
        {"ncclCommInitRankConfig", (void **)&l->init},
        {"ncclCommFinalize", (void **)&l->finalize},
        {"ncclCommDestroy", (void **)&l->destroy},
        {"ncclCommAbort", (void **)&l->cancel},
        {"ncclCommGetAsyncError", (void **)&l->get_async_error},
        {"ncclGetErrorString", (void **)&l->error_string},
        {"ncclGetLastError", (void **)&l->last_error},
        {"ncclAllReduce", (void **)&l->all_reduce},
        {"ncclReduce", (void **)&l->reduce},
        {"ncclBroadcast", (void **)&l->broadcast},
        {"ncclAllGather", (void **)&l->all_gather},
        {"ncclGroupStart", (void **)&l->group_start},
        {"ncclGroupEnd", (void **)&l->group_end},
        {0},
    };
    TRY(check_version(l, name));
    return shared_library_open(name, PACKAGE, symbols);
}

struct status nccl_library_load(struct nccl_library *l)
{
    char found[1024];
    const char *named = getenv("KILN_NCCL_LIBRARY");
    *l = (struct nccl_library){0};
    if (named != NULL && named[0] != '\0') {
        return load(l, named);
    }
    struct status s = load(l, NAME);
    return failed(s) && library_search_find(found, sizeof found, NAME) ? load(l, found) : s;
}
