/* meeting: ranks that are threads or processes meet in memory that they share, and leave bytes for each other
 * there. */
#ifndef KILN_TESTS_MEETING_H
#define KILN_TESTS_MEETING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

enum { MEETING_SLOT_BYTES = 1 << 16 };

struct meeting {
    _Atomic int size, n_here, round;
    _Alignas(64) char slots[]; /* [size, MEETING_SLOT_BYTES] */
};

static inline size_t meeting_bytes(int size)
{
    return sizeof(struct meeting) + (size_t)size * MEETING_SLOT_BYTES;
}

static inline char *meeting_slot(struct meeting *m, int rank)
{
    return m->slots + (size_t)rank * MEETING_SLOT_BYTES;
}

/* Waits until all ranks have called it; false if `is_over` says that this rank waits no more. */
static inline bool meeting_come(struct meeting *m, bool (*is_over)(void *context), void *context)
{
    struct timespec pause = {.tv_nsec = 100000};
    int round = atomic_load(&m->round);
    if (atomic_fetch_add(&m->n_here, 1) + 1 == atomic_load(&m->size)) {
        atomic_store(&m->n_here, 0);
        atomic_fetch_add(&m->round, 1);
        return true;
    }
    while (atomic_load(&m->round) == round) {
        if (is_over(context)) {
            return false;
        }
        nanosleep(&pause, NULL); /* time: between two looks, of any number */
    }
    return true;
}

#endif
