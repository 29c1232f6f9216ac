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
    EXPECT_OK(file_remove_tree(directory));
    EXPECT_ERROR(dir_lock_acquire(&lock, directory), STATUS_IO, "cannot create");
    return 0;
}
