#include "core/kernel_file.h"

#include <stdio.h>
#include <string.h>

unsigned long long kernel_file_read(const char *path, const char *key)
{
    char line[256];
    unsigned long long value = 0;
    FILE *f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), " %llu", &value) == 1) {
            break;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return value;
}
