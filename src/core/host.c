#include "core/host.h"

#include <stdio.h>
#include <unistd.h>

struct host_text host_name(void)
{
    struct host_text name;
    if (gethostname(name.text, sizeof name.text) != 0) {
        snprintf(name.text, sizeof name.text, "localhost");
    }
    name.text[sizeof name.text - 1] = '\0';
    return name;
}

/* proc_sys_kernel(5): 36 characters. */
struct host_text host_boot(void)
{
    struct host_text boot = {"-"};
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f != NULL && fscanf(f, "%127s", boot.text) != 1) {
        snprintf(boot.text, sizeof boot.text, "-");
    }
    if (f != NULL) {
        fclose(f);
    }
    return boot;
}

struct host_text host_node(void)
{
    struct host_text node;
    snprintf(node.text, sizeof node.text, "%.64s %.60s", host_name().text, host_boot().text);
    return node;
}

struct host_text host_cpu_name(void)
{
    struct host_text name = {"unknown"};
    char line[256];
    FILE *info = fopen("/proc/cpuinfo", "r");
    while (info != NULL && fgets(line, sizeof line, info) != NULL) {
        if (sscanf(line, "model name : %127[^\n]", name.text) == 1) {
            break;
        }
    }
    if (info != NULL) {
        fclose(info);
    }
    return name;
}
