/* The processors that control groups allow, by files of both versions. */
#include "test.h"

#include "core/cgroup.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/kiln_cgroup_XXXXXX";

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    unlink(path);
    if (text != NULL) {
        FILE *f = fopen(path, "w");
        EXPECT(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0, "%s", path);
    }
}

int main(void)
{
    static const struct {
        const char *max, *quota, *period;
        double wanted;
    } cases[] = {
        {"200000 100000\n", NULL, NULL, 2},
        {"150000 100000\n", NULL, NULL, 1.5},
        {"max 100000\n", NULL, NULL, 0},
        {"50000 100000\n", NULL, NULL, 0.5},
        {"", NULL, NULL, 0},
        {"1 0\n", NULL, NULL, 0},
        {NULL, "300000\n", "100000\n", 3},
        {NULL, "-1\n", "100000\n", 0},
        {NULL, "300000\n", NULL, 0},
        {NULL, NULL, NULL, 0},
    };
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put("cpu.max", cases[i].max);
        put("cpu.cfs_quota_us", cases[i].quota);
        put("cpu.cfs_period_us", cases[i].period);
        double n = cgroup_processors_of(directory);
        EXPECT(fabs(n - cases[i].wanted) < 1e-9, "case %zu: %g processors, not %g", i, n, cases[i].wanted);
    }
    put("cpu.max", NULL);
    put("cpu.cfs_quota_us", NULL);
    put("cpu.cfs_period_us", NULL);
    rmdir(directory);
    EXPECT(cgroup_processors() >= 0, "this process");
    return 0;
}
