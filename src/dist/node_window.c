#define _GNU_SOURCE
#include "dist/node_window.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 64 };

/* Time that a rank spins before it sleeps: longer than a meeting of running ranks takes, shorter than waking
 * up. */
static const int64_t SPIN_NS = 30000;
static const int64_t SLEEP_NS = 5000000;

struct shared {
    _Alignas(LINE_BYTES) _Atomic uint32_t bell; /* changes whenever a rank comes */
    _Atomic uint32_t n_asleep;
};

struct seat {
    _Alignas(LINE_BYTES) _Atomic uint32_t n_meetings; /* meetings that the rank has come to */
};

/* ---- layout: shared, seats, slots of two meetings ---- */

static size_t seats_at(void)
{
    return sizeof(struct shared);
}

static size_t slots_at(int size)
{
    size_t end = seats_at() + (size_t)size * sizeof(struct seat);
    return (end + 4095) / 4096 * 4096;
}

static size_t window_bytes(int size)
{
    return slots_at(size) + 2 * (size_t)size * NODE_WINDOW_SLOT_BYTES;
}

static struct shared *shared_of(const struct node_window *w)
{
    return w->memory;
}

static struct seat *seat_of(const struct node_window *w, int rank)
{
    return (struct seat *)((char *)w->memory + seats_at()) + rank;
}

static void *slot_at(const struct node_window *w, int rank, uint32_t meeting)
{
    size_t i = (size_t)rank + (size_t)w->size * (meeting % 2);
    return (char *)w->memory + slots_at(w->size) + i * NODE_WINDOW_SLOT_BYTES;
}

void *node_window_next_slot(const struct node_window *w)
{
    return slot_at(w, w->rank, w->n_meetings + 1);
}

const void *node_window_slot(const struct node_window *w, int rank)
{
    return slot_at(w, rank, w->n_meetings);
}

/* ---- begin and end ---- */

static struct status fail(const char *what)
{
    return status_error(errno == ENOSPC ? STATUS_MEMORY : STATUS_IO, "%s: %s", what, strerror(errno));
}

/* Maps the file and locks this rank's byte. */
static struct status enter(struct node_window *w)
{
    size_t bytes = window_bytes(w->size);
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
    if (p == MAP_FAILED) {
        return fail("cannot map the shared memory of this node's ranks");
    }
    w->memory = p;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = w->rank, .l_len = 1};
    return fcntl(w->fd, F_OFD_SETLK, &lock) == 0 ? status_ok()
                                                 : fail("cannot lock the byte of a rank in shared memory");
}

struct status node_window_create(struct node_window *w, const char *name, int size)
{
    *w = (struct node_window){
        .rank = 0, .size = size, .fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    if (w->fd < 0) {
        return fail("memory for a node's ranks in /dev/shm");
    }
    errno = posix_fallocate(w->fd, 0, (off_t)window_bytes(size)); /* a shortage shows here, not as SIGBUS */
    if (errno != 0) {
        return fail("memory for a node's ranks in /dev/shm");
    }
    return enter(w);
}

struct status node_window_join(struct node_window *w, const char *name, int rank, int size)
{
    struct stat file;
    *w = (struct node_window){.rank = rank, .size = size, .fd = shm_open(name, O_RDWR | O_CLOEXEC, 0)};
    if (w->fd < 0) {
        return fail("the memory of a node's ranks in /dev/shm");
    }
    FAIL_IF(fstat(w->fd, &file) != 0 || (size_t)file.st_size < window_bytes(size), STATUS_MEMORY,
            "the shared memory of this node's ranks in /dev/shm was cut");
    return enter(w);
}

void node_window_remove_name(const char *name)
{
    shm_unlink(name);
}

void node_window_close(struct node_window *w)
{
    if (w->memory != NULL) {
        munmap(w->memory, window_bytes(w->size));
        w->memory = NULL;
    }
    if (w->fd >= 0) {
        close(w->fd);
        w->fd = -1;
    }
}

/* ---- meetings ---- */

void node_window_come(struct node_window *w)
{
    struct shared *s = shared_of(w);
    w->n_meetings++;
    atomic_store(&seat_of(w, w->rank)->n_meetings, w->n_meetings);
    atomic_fetch_add(&s->bell, 1);
    if (atomic_load(&s->n_asleep) > 0) {
        syscall(SYS_futex, &s->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

bool node_window_has_come(const struct node_window *w, int rank)
{
    /* the other rank may be one meeting ahead */
    return (int32_t)(atomic_load(&seat_of(w, rank)->n_meetings) - w->n_meetings) >= 0;
}

static bool have_all_come(const struct node_window *w)
{
    for (int r = 0; r < w->size; r++) {
        if (!node_window_has_come(w, r)) {
            return false;
        }
    }
    return true;
}

bool node_window_wait(struct node_window *w, int64_t idle_ns, bool is_crowded)
{
    struct shared *s = shared_of(w);
    if (have_all_come(w)) {
        return true;
    }
    if (idle_ns < SPIN_NS && !is_crowded) {
        return false;
    }
    atomic_fetch_add(&s->n_asleep, 1);
    uint32_t bell = atomic_load(&s->bell);
    if (!have_all_come(w)) {
        struct timespec most = {.tv_nsec = SLEEP_NS};
        syscall(SYS_futex, &s->bell, FUTEX_WAIT, bell, &most, NULL, 0);
    }
    atomic_fetch_sub(&s->n_asleep, 1);
    return have_all_come(w);
}

bool node_window_is_alive(const struct node_window *w, int rank)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
    return rank == w->rank || fcntl(w->fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}
