/* entropy: getrandom(2), which may give less than it was asked for. */
#define _GNU_SOURCE
#include "core/entropy.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

bool entropy_draw(void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = getrandom((char *)bytes + done, n - done, 0);
        if (got < 0 && errno != EINTR) {
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}
