/* unpack_absent: fetch/unpack.h in a build without libarchive. */
#include "fetch/unpack.h"

#include <stddef.h>

struct status unpack_archive(const char *target, enum unpack_kind kind, const char *archive,
                             const struct unpack_sum *sums)
{
    (void)kind, (void)sums;
    return status_error(
        STATUS_UNAVAILABLE,
        "%s: this kiln was built without libarchive, so it unpacks nothing; unpack it to %s, or install "
        "libarchive-dev (tools/install_deps.sh) and build again with -DKILN_ARCHIVE=ON",
        archive, target);
}

const char *unpack_version(void)
{
    return NULL;
}
