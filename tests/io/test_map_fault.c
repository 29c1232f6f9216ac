/* The file behind an address, and what a handler of SIGBUS makes of it when a mapped file is cut. */
#define _GNU_SOURCE
#include "test.h"

#include "io/file.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_BYTES = 1 << 20 };

static char directory[] = "/tmp/kiln_map_fault_XXXXXX";

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    char path[1024];
    (void)number, (void)context;
    bool found = map_fault_find(path, sizeof path, info->si_addr);
    _exit(found && strcmp(strrchr(path, '/') + 1, "cut") == 0 ? 3 : 4);
}

static void test_find(void)
{
    char path[1024], found[1024], name[200];
    struct file_map m, other;
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    snprintf(path, sizeof path, "%s/with a space-%s", directory, name);
    static char bytes[N_BYTES];
    EXPECT_OK(file_write_atomic(path, bytes, sizeof bytes));
    EXPECT_OK(file_map_open(&m, path));
    EXPECT(map_fault_find(found, sizeof found, m.data) && strcmp(found, path) == 0, "%s", found);
    EXPECT(map_fault_find(found, sizeof found, m.data + m.n - 1) && strcmp(found, path) == 0, "%s", found);
    EXPECT(map_fault_find(found, 20, m.data) && strncmp(found, path, 19) == 0 && found[19] == '\0', "%s",
           found);
    EXPECT(!map_fault_find(found, sizeof found, bytes) || strstr(found, "test_map_fault") != NULL, "%s",
           found);
    EXPECT(!map_fault_find(found, sizeof found, found), "the stack is %s", found);
    EXPECT(!map_fault_find(found, sizeof found, NULL), "NULL is %s", found);
    EXPECT_OK(file_map_open(&other, "/proc/self/exe"));
    EXPECT(map_fault_find(found, sizeof found, other.data) && strstr(found, "test_map_fault") != NULL, "%s",
           found);
    file_map_close(&other);
    EXPECT_OK(file_map_check(&m, path));
    EXPECT(truncate(path, N_BYTES - 1) == 0, "truncate");
    EXPECT_ERROR(file_map_check(&m, path), STATUS_IO, "was cut from 1048576 to 1048575 bytes");
    file_map_close(&m);
}

static void test_cut(void)
{
    char path[1024];
    static char bytes[N_BYTES];
    int how;
    snprintf(path, sizeof path, "%s/cut", directory);
    EXPECT_OK(file_write_atomic(path, bytes, sizeof bytes));
    pid_t child = fork();
    if (child == 0) {
        struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
        struct file_map m;
        sigaction(SIGBUS, &action, NULL);
        EXPECT_OK(file_map_open(&m, path));
        EXPECT(truncate(path, 1000) == 0, "truncate");
        _exit(((const volatile unsigned char *)m.data)[N_BYTES / 2]);
    }
    EXPECT(waitpid(child, &how, 0) == child && WIFEXITED(how) && WEXITSTATUS(how) == 3, "how %x",
           (unsigned)how);
}

int main(void)
{
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    test_find();
    test_cut();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
