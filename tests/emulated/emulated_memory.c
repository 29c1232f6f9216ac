#define _DEFAULT_SOURCE
#include "emulated_memory.h"

#include "test.h"

#include <sys/mman.h>

enum { MOST_BLOCKS = 256 };

static struct block {
    void *memory;
    size_t bytes;
} blocks[MOST_BLOCKS];

static void protect(int protection)
{
    for (int i = 0; i < MOST_BLOCKS; i++) {
        EXPECT(blocks[i].memory == NULL || mprotect(blocks[i].memory, blocks[i].bytes, protection) == 0,
               "mprotect");
    }
}

void *emulated_memory_take(size_t bytes)
{
    int i = 0;
    while (i < MOST_BLOCKS && blocks[i].memory != NULL) {
        i++;
    }
    EXPECT(i < MOST_BLOCKS, "more than %d blocks of device memory", MOST_BLOCKS);
    bytes = bytes > 0 ? bytes : 1;
    void *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    blocks[i] = (struct block){memory, bytes};
    return memory;
}

void emulated_memory_give_back(void *memory)
{
    for (int i = 0; i < MOST_BLOCKS && memory != NULL; i++) {
        if (blocks[i].memory == memory) {
            munmap(memory, blocks[i].bytes);
            blocks[i] = (struct block){0};
            return;
        }
    }
    EXPECT(memory == NULL, "this is no device memory");
}

void emulated_memory_open(void)
{
    protect(PROT_READ | PROT_WRITE);
}

void emulated_memory_close(void)
{
    protect(PROT_NONE);
}
