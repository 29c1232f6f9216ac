#define _DEFAULT_SOURCE
#include "emulated_memory.h"

#include "test.h"

#include <stdint.h>

#include <sys/mman.h>

enum { MOST_BLOCKS = 256 };

static struct block {
    char *memory;
    size_t bytes;
    bool pinned;
} blocks[MOST_BLOCKS];

static void protect(int protection)
{
    for (int i = 0; i < MOST_BLOCKS; i++) {
        bool fenced = blocks[i].memory != NULL && !blocks[i].pinned;
        EXPECT(!fenced || mprotect(blocks[i].memory, blocks[i].bytes, protection) == 0, "mprotect");
    }
}

static void *take(size_t bytes, bool pinned)
{
    int i = 0;
    while (i < MOST_BLOCKS && blocks[i].memory != NULL) {
        i++;
    }
    EXPECT(i < MOST_BLOCKS, "more than %d blocks of device memory", MOST_BLOCKS);
    bytes = bytes > 0 ? bytes : 1;
    void *memory =
        mmap(NULL, bytes, pinned ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    blocks[i] = (struct block){memory, bytes, pinned};
    return memory;
}

void *emulated_memory_take(size_t bytes)
{
    return take(bytes, false);
}

void *emulated_memory_take_pinned(size_t bytes)
{
    return take(bytes, true);
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

static bool is_of_device(uintptr_t address)
{
    for (int i = 0; i < MOST_BLOCKS; i++) {
        uintptr_t first = (uintptr_t)blocks[i].memory;
        if (first != 0 && address >= first && address <= first + blocks[i].bytes) {
            return true;
        }
    }
    return false;
}

bool emulated_memory_has(const void *pointer)
{
    for (int i = 0; i < MOST_BLOCKS; i++) {
        const char *first = blocks[i].memory, *p = pointer;
        if (first != NULL && !blocks[i].pinned && p >= first && p < first + blocks[i].bytes) {
            return true;
        }
    }
    return false;
}

/* Whether there is any memory at an address: numbers of a kernel's arguments are hardly ever one. */
static bool is_mapped(uintptr_t address)
{
    enum { PAGE = 4096 };
    unsigned char resident;
    return address >= PAGE && mincore((char *)NULL + address / PAGE * PAGE, 1, &resident) == 0;
}

void emulated_memory_check(const void *pointer)
{
    uintptr_t address = (uintptr_t)pointer;
    EXPECT(is_of_device(address) || !is_mapped(address), "a kernel is given the host's memory at %p",
           pointer);
}
