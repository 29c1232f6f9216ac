/* core/log: a line is one write, so that those of several ranks do not run into each other, and what a
 * terminal would obey is shown. */
#define _GNU_SOURCE
#include "core/log.h"

#include "test.h"

#include <fcntl.h>
#include <unistd.h>

int main(void)
{
    static const char wanted[] = "rank 3: warning: \\x1b[1mckpt\\u0085 of 12\n";
    char got[256];
    int ends[2];
    EXPECT(pipe2(ends, O_DIRECT) == 0, "a pipe that keeps writes apart");
    int saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    log_set_rank(3);
    log_warning("%s of %d", "\x1b[1mckpt\xc2\x85", 12);
    dup2(saved, STDERR_FILENO);
    ssize_t n = read(ends[0], got, sizeof got);
    EXPECT(n == (ssize_t)sizeof wanted - 1 && memcmp(got, wanted, (size_t)n) == 0, "one write: '%.*s'",
           (int)(n > 0 ? n : 0), got);
    return 0;
}
