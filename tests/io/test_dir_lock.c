/* One run per directory: a second one is refused with the owner's name, and death gives the lock back. */
#include "test.h"

#include "io/dir_lock.h"
#include "io/file.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that holds the lock of `directory` until it is killed. */
static pid_t start_owner(const char *directory)
{
    int ready[2];
    char byte = 'x';
    EXPECT(pipe(ready) == 0, "pipe");
    pid_t child = fork();
    EXPECT(child >= 0, "fork");
    if (child == 0) {
        struct dir_lock lock;
        close(ready[0]);
        if (failed(dir_lock_acquire(&lock, directory)) || write(ready[1], &byte, 1) != 1) {
            _exit(1);
        }
        close(ready[1]);
        pause();
        _exit(0);
    }
    close(ready[1]);
    EXPECT(read(ready[0], &byte, 1) == 1, "the owner did not get the lock");
    close(ready[0]);
    return child;
}

/* The lock of a name goes with its release, whichever way the name is spelled. */
static void beside_an_output(const char *directory)
{
    char path[600], other[600], file[600];
    struct dir_lock lock, second;
    snprintf(path, sizeof path, "%s/store", directory);
    snprintf(other, sizeof other, "%s/./store", directory);
    snprintf(file, sizeof file, "%s/.store.lock", directory);
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(dir_lock_acquire_beside(&lock, path));
        EXPECT_ERROR(dir_lock_acquire_beside(&second, other), STATUS_IO, "in use by another run");
        dir_lock_release(&second);
        EXPECT(file_exists(file), "%s went with the lock of another", file);
        dir_lock_release(&lock);
        EXPECT(!file_exists(file), "%s is left", file);
    }
    EXPECT_OK(file_write_atomic(file, "", 0)); /* of a run that died */
    EXPECT_OK(dir_lock_acquire_beside(&lock, path));
    dir_lock_release(&lock);
    snprintf(path, sizeof path, "%s/none/store", directory);
    EXPECT_ERROR(dir_lock_acquire_beside(&lock, path), STATUS_IO, "its directory does not exist");
}

int main(void)
{
    char directory[] = "/tmp/kiln_lock_XXXXXX";
    char owner[64];
    struct dir_lock lock;
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    pid_t child = start_owner(directory);
    snprintf(owner, sizeof owner, "pid %ld)", (long)child);
    EXPECT_ERROR(dir_lock_acquire(&lock, directory), STATUS_IO, owner);
    EXPECT(lock.fd == -1, "no lock, no descriptor");
    dir_lock_release(&lock);
    EXPECT(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child, "kill");
    EXPECT_OK(dir_lock_acquire(&lock, directory));
    struct dir_lock second;
    EXPECT_ERROR(dir_lock_acquire(&second, directory), STATUS_IO, "in use by another run");
    dir_lock_release(&lock);
    EXPECT_OK(dir_lock_acquire(&lock, directory));
    dir_lock_release(&lock);
    beside_an_output(directory);
    EXPECT_OK(file_remove_tree(directory));
    EXPECT_ERROR(dir_lock_acquire(&lock, directory), STATUS_IO, "cannot create");
    return 0;
}
