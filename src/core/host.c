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

struct host_text host_node(void)
{
    struct host_text node;
    char boot[40] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f != NULL) {
        boot[fread(boot, 1, 36, f)] = '\0';
        fclose(f);
    }
    snprintf(node.text, sizeof node.text, "%.64s %s", host_name().text, boot);
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
