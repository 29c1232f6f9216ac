#include "text/script.h"

#include <string.h>

int script_of(uint32_t c)
{
    if (c < 0x80) { /* the most frequent */
        uint32_t lower = c | 0x20;
        return lower >= 'a' && lower <= 'z' ? 0 : SCRIPT_NONE;
    }
    int low = 0, high = script_n_ranges;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (script_ranges[middle].last < c) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < script_n_ranges && script_ranges[low].first <= c ? script_ranges[low].script : SCRIPT_NONE;
}

int script_find(const char *name, size_t n)
{
    for (int i = 0; i < script_n; i++) {
        if (strlen(script_names[i]) == n && memcmp(script_names[i], name, n) == 0) {
            return i;
        }
    }
    return SCRIPT_NONE;
}
