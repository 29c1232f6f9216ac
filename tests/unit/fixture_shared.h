/* fixture_shared: real data for tests, from ../shared beside the checkout; a test that misses it is
 * skipped. */
#ifndef KILN_TESTS_FIXTURE_SHARED_H
#define KILN_TESTS_FIXTURE_SHARED_H

#include "test.h"

#include "core/buf.h"
#include "io/file.h"

/* The path KILN_SHARED/data/`archive`, or the test is skipped; in a buffer of its own, till the next call. */
static inline const char *shared_find(const char *archive)
{
    static char path[1024];
    const char *shared = getenv("KILN_SHARED") != NULL ? getenv("KILN_SHARED") : KILN_SOURCE_DIR "/../shared";
    snprintf(path, sizeof path, "%s/data/%s", shared, archive);
    if (!file_exists(path)) {
        test_skip("shared",
                  "there is no %s; the developers' data, whose folder KILN_SHARED names, enable this", path);
    }
    return path;
}

/* The content of the member of that archive whose path ends in `name`; the caller frees it. */
static inline struct buf shared_read_member(const char *archive, const char *name)
{
    struct buf command = {0}, content = {0};
    buf_printf(&command, "tar -xJOf '%s' --wildcards '*%s'", shared_find(archive), name);
    FILE *pipe = popen(buf_text(&command), "r");
    EXPECT(pipe != NULL, "tar cannot be started");
    char block[65536];
    for (size_t n; (n = fread(block, 1, sizeof block, pipe)) > 0;) {
        buf_append(&content, block, n);
    }
    EXPECT(pclose(pipe) == 0 && content.n > 0, "tar failed for %s", name);
    buf_fini(&command);
    return content;
}

#endif
