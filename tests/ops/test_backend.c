/* An accelerator is seen by the files of its driver. */
#include "test.h"

#include "ops/backend.h"

#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/kiln_backend_XXXXXX";

static void put(const char *name, bool is_directory)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, name);
    if (is_directory) {
        EXPECT(mkdir(path, 0700) == 0, "%s", path);
    } else {
        FILE *f = fopen(path, "w");
        EXPECT(f != NULL && fclose(f) == 0, "%s", path);
    }
}

static void take(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, name);
    EXPECT(remove(path) == 0, "%s", path);
}

int main(void)
{
    EXPECT(mkdtemp(root) != NULL, "%s", root);
    EXPECT(backend_visible(root) == NULL, "an empty machine has %s", backend_visible(root));
    put("/dev", true);
    put("/dev/accel", true);
    put("/dev/accel/accel0", false);
    EXPECT(strcmp(backend_visible(root), "an accelerator") == 0, "%s", backend_visible(root));
    put("/dev/nvidiactl", false);
    EXPECT(strcmp(backend_visible(root), "an NVIDIA GPU") == 0, "%s", backend_visible(root));
    static const char *const all[] = {"/dev/nvidiactl", "/dev/accel/accel0", "/dev/accel", "/dev", ""};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        take(all[i]);
    }
    return 0;
}
