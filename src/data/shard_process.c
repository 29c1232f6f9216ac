#define _GNU_SOURCE
#include "data/shard_process.h"

#include "core/shared_library.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The messages of the two processes, over a pair of sockets that preserve message boundaries.  A request is
 * answered by one answer.  The parent makes the shared memory as large as two slots and seals its size, so
 * that the child cannot shrink it. */
enum {
    MESSAGE_SOCKET = 3, /* file descriptors of the child */
    MESSAGE_MEMORY = 4,
    MESSAGE_PATH_BYTES = 1024,
    MESSAGE_MAGIC = 0x68736b31,
};

enum message_kind { MESSAGE_MEASURE, MESSAGE_READ };

struct request {
    uint32_t magic;
    uint32_t kind;
    uint64_t offset, n_bytes;  /* READ: the part of the shared memory for the arrays */
    struct shard_shape wanted; /* READ: the file's shape when it was measured */
    char path[MESSAGE_PATH_BYTES];
};

struct answer {
    uint32_t magic;
    uint32_t kind;
    struct shard_shape shape;
    struct status status;
};

static const char HIDDEN_ARGUMENT[] = "--serve-hdf5-shards";

bool shard_process_is_wanted(int argc, char **argv)
{
    return argc == 2 && strcmp(argv[1], HIDDEN_ARGUMENT) == 0;
}

/* Duplicates a descriptor to a number above those that the child will use. */
static int lift(int fd)
{
    enum { ABOVE = 16 };
    int lifted = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, ABOVE);
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = error;
    return lifted;
}

static struct status no_resource(const char *what)
{
    return status_error(STATUS_INTERNAL, "cannot %s for the process that reads HDF5 files: %s", what,
                        strerror(errno));
}

/* Ctrl-C signals the whole process group, but only the training process must react: the child ends when its
 * socket closes. */
static int spawn(pid_t *pid, int socket, int memory)
{
    char *const argv[] = {(char *)"kiln", (char *)HIDDEN_ARGUMENT, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t blocked;
    char program[1024];
    shared_library_program(program, sizeof program);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGHUP);
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        posix_spawn_file_actions_adddup2(&actions, socket, MESSAGE_SOCKET);
        posix_spawn_file_actions_adddup2(&actions, memory, MESSAGE_MEMORY);
        posix_spawnattr_setsigmask(&attributes, &blocked);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        error = posix_spawnp(pid, program, &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static struct status start(struct shard_process *p)
{
    int ends[2];
    p->memory = lift(memfd_create("kiln-shards", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (p->memory < 0) {
        return no_resource("make shared memory");
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return no_resource("make a socket");
    }
    p->socket = lift(ends[0]);
    int theirs = lift(ends[1]);
    int error = p->socket < 0 || theirs < 0 ? errno : spawn(&p->pid, theirs, p->memory);
    if (theirs >= 0) {
        close(theirs);
    }
    if (error != 0) {
        p->pid = 0;
        errno = error;
        return no_resource("start a process");
    }
    return status_ok();
}

struct status shard_process_open(struct shard_process *p)
{
    *p = (struct shard_process){.socket = -1, .memory = -1};
    FAIL_IF(hdf5_file_version() == NULL, STATUS_USAGE,
            "this kiln was built without HDF5 (libhdf5-dev was missing, or "
            "KILN_HDF5=OFF), so it cannot read .hdf5 files");
    struct status s = start(p);
    if (failed(s)) {
        shard_process_close(p);
    }
    return s;
}

/* Kills the child, if it still runs, and returns how it ended. */
static int reap(struct shard_process *p)
{
    int how = 0;
    if (p->pid > 0) {
        kill(p->pid, SIGKILL);
        while (waitpid(p->pid, &how, 0) < 0 && errno == EINTR) {
        }
    }
    p->pid = 0;
    return how;
}

void shard_process_close(struct shard_process *p)
{
    if (p->mapped != NULL) {
        munmap(p->mapped, SHARD_PROCESS_SLOTS * p->slot_bytes);
    }
    reap(p);
    if (p->socket > 0) {
        close(p->socket);
    }
    if (p->memory > 0) {
        close(p->memory);
    }
    *p = (struct shard_process){.socket = -1, .memory = -1};
}

/* The child has closed its end: it is dead or about to die, and only its first reason to die counts.  A
 * signal of a memory error means a damaged file; other signals come from outside. */
static struct status describe_end(struct shard_process *p)
{
    int how = reap(p);
    FAIL_IF(!WIFSIGNALED(how), STATUS_DATA,
            "%s: the process that reads HDF5 files ended with exit code %d while it read "
            "this file, which is probably damaged",
            p->pending, WIFEXITED(how) ? WEXITSTATUS(how) : -1);
    int signal = WTERMSIG(how);
    bool broken =
        signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGILL || signal == SIGFPE;
    return status_error(
        broken ? STATUS_DATA : STATUS_IO,
        "%s: the process that reads HDF5 files was ended by signal %d (%s) while it read this file%s",
        p->pending, signal, strsignal(signal),
        broken ? ", which is damaged" : "; if memory was short, use smaller files");
}

static struct status wait_readable(struct shard_process *p)
{
    struct pollfd poll_for = {.fd = p->socket, .events = POLLIN};
    int n;
    do {
        n = poll(&poll_for, 1, SHARD_PROCESS_PATIENCE_S * 1000);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        return status_ok();
    }
    reap(p);
    return status_error(STATUS_IO, "%s: reading it took more than %d seconds; the disk may be stuck",
                        p->pending, SHARD_PROCESS_PATIENCE_S);
}

/* Receives the answer to the pending request, and checks everything in it. */
static struct status take_answer(struct shard_process *p, uint32_t kind, struct shard_shape *shape)
{
    struct answer answer;
    TRY(wait_readable(p));
    ssize_t n = recv(p->socket, &answer, sizeof answer, MSG_WAITALL | MSG_TRUNC);
    if (n == 0 || (n < 0 && errno == ECONNRESET)) {
        return describe_end(p);
    }
    bool whole = n == (ssize_t)sizeof answer && answer.magic == MESSAGE_MAGIC && answer.kind == kind;
    if (!whole || memchr(answer.status.message, '\0', sizeof answer.status.message) == NULL) {
        reap(p);
        return status_error(
            STATUS_DATA,
            "%s: the process that reads HDF5 files sent an invalid answer; the file is probably damaged",
            p->pending);
    }
    *shape = answer.shape;
    return answer.status;
}

static struct status send_request(struct shard_process *p, struct request *request, const char *path)
{
    CHECK(p->pending[0] == '\0', "a second request while %s is read", p->pending);
    int n = snprintf(request->path, sizeof request->path, "%s", path);
    FAIL_IF(n < 0 || (size_t)n >= sizeof request->path, STATUS_USAGE, "the path %.60s... is too long", path);
    memcpy(p->pending, request->path, sizeof p->pending);
    request->magic = MESSAGE_MAGIC;
    FAIL_IF(p->pid == 0, STATUS_IO, "%s: the process that reads HDF5 files has ended", path);
    if (send(p->socket, request, sizeof *request, MSG_NOSIGNAL) == (ssize_t)sizeof *request) {
        return status_ok();
    }
    return describe_end(p);
}

static struct status answered(struct shard_process *p, struct status s)
{
    p->pending[0] = '\0';
    return s;
}

struct status shard_process_measure(struct shard_process *p, const char *path, struct shard_shape *shape)
{
    struct request request = {.kind = MESSAGE_MEASURE};
    struct status s = send_request(p, &request, path);
    if (!failed(s)) {
        s = take_answer(p, MESSAGE_MEASURE, shape);
    }
    if (!failed(s)) {
        s = shard_format_check(shape, path);
    }
    return answered(p, s);
}

struct status shard_process_make_room(struct shard_process *p, size_t slot_bytes)
{
    const size_t page = 4096;
    CHECK(p->mapped == NULL && slot_bytes > 0, "room for %zu bytes", slot_bytes);
    p->slot_bytes = (slot_bytes + page - 1) / page * page;
    size_t n = SHARD_PROCESS_SLOTS * p->slot_bytes;
    if (ftruncate(p->memory, (off_t)n) != 0 ||
        fcntl(p->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return no_resource("size the shared memory");
    }
    void *mapped = mmap(NULL, n, PROT_READ, MAP_SHARED, p->memory, 0);
    FAIL_IF(mapped == MAP_FAILED, STATUS_MEMORY, "out of memory for two shards of %zu bytes", p->slot_bytes);
    p->mapped = mapped;
    return status_ok();
}

struct status shard_process_ask(struct shard_process *p, const char *path, const struct shard_shape *shape,
                                int slot)
{
    struct request request = {.kind = MESSAGE_READ,
                              .offset = (uint64_t)slot * p->slot_bytes,
                              .n_bytes = shard_format_bytes(shape),
                              .wanted = *shape};
    CHECK(slot >= 0 && slot < SHARD_PROCESS_SLOTS && request.n_bytes <= p->slot_bytes, "slot %d", slot);
    struct status s = send_request(p, &request, path);
    return failed(s) ? answered(p, s) : s;
}

struct status shard_process_wait(struct shard_process *p)
{
    struct shard_shape shape;
    CHECK(p->pending[0] != '\0', "nothing was asked for");
    return answered(p, take_answer(p, MESSAGE_READ, &shape));
}

const void *shard_process_slot(const struct shard_process *p, int slot)
{
    return (const char *)p->mapped + (size_t)slot * p->slot_bytes;
}

/* ---- the process that is started: it answers until its parent is gone, and may crash at any time ---- */

/* The shared memory, mapped at the first request that needs it: the parent sizes it after measuring. */
static struct status map_memory(char **memory, size_t *n)
{
    struct stat info;
    if (*memory != NULL) {
        return status_ok();
    }
    FAIL_IF(fstat(MESSAGE_MEMORY, &info) != 0 || info.st_size <= 0, STATUS_INTERNAL,
            "the shared memory has no size");
    *n = (size_t)info.st_size;
    void *mapped = mmap(NULL, *n, PROT_READ | PROT_WRITE, MAP_SHARED, MESSAGE_MEMORY, 0);
    FAIL_IF(mapped == MAP_FAILED, STATUS_MEMORY, "out of memory for two shards of %zu bytes", *n / 2);
    *memory = mapped;
    return status_ok();
}

static bool same_shape(const struct shard_shape *a, const struct shard_shape *b)
{
    return a->n == b->n && a->seq_length == b->seq_length && a->n_predictions == b->n_predictions &&
           a->packed == b->packed;
}

static struct status read_shard(const struct request *r, char **memory, size_t *n_memory)
{
    struct hdf5_array arrays[SHARD_MAX_ARRAYS];
    struct shard_shape shape;
    TRY(shard_format_measure(&shape, r->path));
    FAIL_IF(!same_shape(&shape, &r->wanted), STATUS_DATA, "%s has changed since this run opened it", r->path);
    TRY(map_memory(memory, n_memory));
    CHECK(r->offset <= *n_memory && r->n_bytes <= *n_memory - r->offset &&
              shard_format_bytes(&shape) == r->n_bytes,
          "%llu bytes at %llu of %zu", (unsigned long long)r->n_bytes, (unsigned long long)r->offset,
          *n_memory);
    int n = shard_format_arrays(arrays, &shape, *memory + r->offset);
    return hdf5_file_read(r->path, arrays, n);
}

int shard_process_serve(void)
{
    char *memory = NULL;
    size_t n_memory = 0;
    struct request request;
    close_range(MESSAGE_MEMORY + 1, ~0U, 0); /* this process uses no other file of its parent */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    while (recv(MESSAGE_SOCKET, &request, sizeof request, 0) == (ssize_t)sizeof request) {
        struct answer answer;
        memset(&answer, 0, sizeof answer); /* padding included, since all of it is sent */
        answer.magic = MESSAGE_MAGIC;
        answer.kind = request.kind;
        answer.status = request.kind == MESSAGE_MEASURE ? shard_format_measure(&answer.shape, request.path)
                                                        : read_shard(&request, &memory, &n_memory);
        if (send(MESSAGE_SOCKET, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer) {
            break;
        }
    }
    if (memory != NULL) {
        munmap(memory, n_memory);
    }
    return 0;
}
