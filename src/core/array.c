#include "core/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool array_reserve(void *items, size_t *capacity, size_t n, size_t item_bytes)
{
    void *array;
    if (n <= *capacity) {
        return true;
    }
    size_t wanted = *capacity < 32 ? 64 : 2 * *capacity;
    wanted = wanted < n ? n : wanted;
    memcpy(&array, items, sizeof array);
    array = wanted > SIZE_MAX / item_bytes ? NULL : realloc(array, wanted * item_bytes);
    if (array == NULL) {
        return false;
    }
    memcpy(items, &array, sizeof array);
    *capacity = wanted;
    return true;
}
