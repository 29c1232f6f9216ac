/* fenced_device: the cpu as a device whose memory the host may not touch: it is mapped for ops and copies
 * only, so a pointer that is followed anywhere else ends the test with a segmentation fault. */
#ifndef KILN_TESTS_FENCED_DEVICE_H
#define KILN_TESTS_FENCED_DEVICE_H

#include "ops/op_slots.h"

#include "../test.h"

#include <sys/mman.h>

enum { FENCED_BLOCKS = 16, FENCED_CONTEXTS = 8 };

static struct {
    void *memory[FENCED_BLOCKS];
    size_t bytes[FENCED_BLOCKS];
    int64_t n_copies;      /* that were waited for */
    int64_t n_waits;       /* those, and other waits */
    int64_t n_sent;        /* copies that nobody waits for */
    int64_t n_allocations; /* of memory of any kind */
    struct fenced_context {
        bool open;
        void *staging;
        size_t staging_bytes;
        int64_t n_waiting; /* ops since the last wait */
    } contexts[FENCED_CONTEXTS];
} fenced;

static void fenced_protect(int protection)
{
    for (int i = 0; i < FENCED_BLOCKS; i++) {
        EXPECT(fenced.memory[i] == NULL || mprotect(fenced.memory[i], fenced.bytes[i], protection) == 0,
               "mprotect");
    }
}

static struct status fenced_open(void **context)
{
    for (int i = 0; i < FENCED_CONTEXTS; i++) {
        if (!fenced.contexts[i].open) {
            fenced.contexts[i] = (struct fenced_context){.open = true};
            *context = &fenced.contexts[i];
            return status_ok();
        }
    }
    return status_error(STATUS_MEMORY, "more than %d contexts", FENCED_CONTEXTS);
}

static struct fenced_context *fenced_context_of(void *context)
{
    struct fenced_context *c = context;
    EXPECT(c >= fenced.contexts && c < fenced.contexts + FENCED_CONTEXTS && c->open, "no context");
    return c;
}

static void fenced_close(void *context)
{
    free(fenced_context_of(context)->staging);
    fenced_context_of(context)->open = false;
}

static struct status fenced_allocate(void **memory, size_t bytes, const char *what)
{
    *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(*memory != MAP_FAILED, "%zu bytes for %s", bytes, what);
    fenced.n_allocations++;
    for (int i = 0; i < FENCED_BLOCKS; i++) {
        if (fenced.memory[i] == NULL) {
            fenced.memory[i] = *memory;
            fenced.bytes[i] = bytes;
            return status_ok();
        }
    }
    return status_error(STATUS_MEMORY, "more than %d blocks", FENCED_BLOCKS);
}

static void fenced_release(void *memory, size_t bytes)
{
    for (int i = 0; i < FENCED_BLOCKS; i++) {
        if (fenced.memory[i] == memory) {
            fenced.memory[i] = NULL;
        }
    }
    munmap(memory, bytes);
}

static struct status fenced_copy(void *context, void *to, const void *from, size_t bytes)
{
    fenced_context_of(context)->n_waiting = 0;
    fenced_protect(PROT_READ | PROT_WRITE);
    memcpy(to, from, bytes);
    fenced_protect(PROT_NONE);
    fenced.n_copies++;
    fenced.n_waits++;
    return status_ok();
}

static struct status fenced_stage(void *context, void **on_host, size_t bytes)
{
    struct fenced_context *c = fenced_context_of(context);
    if (bytes > c->staging_bytes) {
        free(c->staging);
        c->staging = malloc(bytes);
        EXPECT(c->staging != NULL, "out of memory");
        c->staging_bytes = bytes;
        fenced.n_allocations++;
    }
    *on_host = c->staging;
    return status_ok();
}

static struct status fenced_send(void *context, void *on_device, const void *on_host, size_t bytes)
{
    EXPECT(on_host == fenced_context_of(context)->staging, "not what was staged");
    fenced_protect(PROT_READ | PROT_WRITE);
    memcpy(on_device, on_host, bytes);
    fenced_protect(PROT_NONE);
    fenced.n_sent++;
    return status_ok();
}

static struct status fenced_synchronize(void *context)
{
    fenced_context_of(context)->n_waiting = 0;
    fenced.n_waits++;
    return status_ok();
}

static size_t fenced_free_bytes(void)
{
    return device_cpu.free_bytes();
}

static const struct device device_fenced = {
    .name = "fenced",
    .open = fenced_open,
    .close = fenced_close,
    .allocate = fenced_allocate,
    .release = fenced_release,
    .copy_in = fenced_copy,
    .copy_out = fenced_copy,
    .stage = fenced_stage,
    .send = fenced_send,
    .synchronize = fenced_synchronize,
    .free_bytes = fenced_free_bytes,
};

#define FENCED(slot, parameters, arguments, ...)                                                             \
    static void fenced_##slot(struct exec *x, OP_UNPACK parameters)                                          \
    {                                                                                                        \
        fenced_context_of(x->context)->n_waiting++;                                                          \
        fenced_protect(PROT_READ | PROT_WRITE);                                                              \
        ops_cpu()->slot(x, OP_UNPACK arguments);                                                             \
        fenced_protect(PROT_NONE);                                                                           \
    }
OP_SLOTS(FENCED)

#define FENCED_ENTRY(slot, ...) .slot = fenced_##slot,
static const struct ops ops_fenced = {.name = "fenced", OP_SLOTS(FENCED_ENTRY)};

#endif
