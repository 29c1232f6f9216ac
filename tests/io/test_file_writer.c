/* Writing to what a path can lead to: links are followed and stay, pipes and devices are written in place and
 * stay, everything else is replaced at once or refused; and the check before the work finds out the same. */
#define _GNU_SOURCE
#include "test.h"

#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];

static char *path_of(const char *name)
{
    static char paths[4][1024];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static mode_t mode_of(const char *name)
{
    struct stat info;
    EXPECT(lstat(path_of(name), &info) == 0, "%s: %s", name, strerror(errno));
    return info.st_mode;
}

static void expect_text(const char *name, const char *text)
{
    struct file_map m;
    EXPECT_OK(file_map_open(&m, path_of(name)));
    EXPECT(m.n == strlen(text) && memcmp(m.data, text, m.n) == 0, "%s holds '%.*s'", name, (int)m.n,
           (const char *)m.data);
    file_map_close(&m);
}

static struct status write_text(const char *name, const char *text)
{
    return file_write_atomic(path_of(name), text, strlen(text));
}

/* Entries of the directory, those of temporary files included. */
static int count_entries(void)
{
    DIR *dir = opendir(directory);
    int n = -2;
    EXPECT(dir != NULL, "%s", directory);
    while (readdir(dir) != NULL) {
        n++;
    }
    closedir(dir);
    return n;
}

static void test_links(void)
{
    EXPECT_OK(write_text("target", "old"));
    EXPECT(mkdir(path_of("sub"), 0777) == 0, "sub");
    EXPECT(symlink("../target", path_of("sub/link")) == 0 && symlink("sub/link", path_of("link")) == 0 &&
               symlink("sub/new", path_of("dangling")) == 0 && symlink("loop", path_of("loop")) == 0,
           "links");
    EXPECT_OK(file_check_output(path_of("link"), 0));
    EXPECT_OK(write_text("link", "new"));
    expect_text("target", "new");
    EXPECT(S_ISLNK(mode_of("link")) && S_ISLNK(mode_of("sub/link")), "a link was replaced");
    EXPECT_OK(write_text("dangling", "made"));
    expect_text("sub/new", "made");
    EXPECT(S_ISLNK(mode_of("dangling")), "a link was replaced");
    EXPECT_ERROR(write_text("loop", "x"), STATUS_USAGE, "40 symbolic links");
    EXPECT_ERROR(file_check_output(path_of("loop"), 0), STATUS_USAGE, "40 symbolic links");
    EXPECT(count_entries() == 5, "%d entries", count_entries());
}

static void test_pipe(void)
{
    char got[8] = "";
    FILE *lines;
    EXPECT(mkfifo(path_of("pipe"), 0666) == 0, "mkfifo");
    EXPECT_ERROR(write_text("pipe", "x"), STATUS_IO, "no process reads it");
    EXPECT_ERROR(file_lines_open(&lines, path_of("pipe"), true), STATUS_IO, "no process reads it");
    int reader = open(path_of("pipe"), O_RDONLY | O_NONBLOCK);
    EXPECT(reader >= 0, "open");
    EXPECT_OK(file_check_output(path_of("pipe"), 0));
    EXPECT_OK(write_text("pipe", "whole"));
    EXPECT_OK(file_lines_open(&lines, path_of("pipe"), true));
    EXPECT(fputs("+1", lines) >= 0 && fclose(lines) == 0, "lines");
    EXPECT(read(reader, got, sizeof got) == 7 && memcmp(got, "whole+1", 7) == 0, "got %s", got);
    close(reader);
    EXPECT(S_ISFIFO(mode_of("pipe")), "the pipe was replaced");
}

static void test_device(void)
{
    enum { NULL_MAJOR = 1, NULL_MINOR = 3, FULL_MINOR = 7 };
    if (mknod(path_of("null"), S_IFCHR | 0666, makedev(NULL_MAJOR, NULL_MINOR)) != 0 ||
        mknod(path_of("full"), S_IFCHR | 0666, makedev(NULL_MAJOR, FULL_MINOR)) != 0 ||
        mknod(path_of("block"), S_IFBLK | 0666, makedev(7, 250)) != 0) {
        printf("devices are left out: %s\n", strerror(errno));
        return;
    }
    struct status s = write_text("null", "gone");
    if (s.code == STATUS_IO && strstr(s.message, "Permission denied") != NULL) {
        printf("devices are left out: %s\n", s.message); /* a file system mounted with nodev */
        return;
    }
    EXPECT_OK(s);
    EXPECT_OK(file_check_output(path_of("null"), 0));
    EXPECT_ERROR(write_text("full", "no room"), STATUS_IO, "No space left");
    EXPECT_ERROR(write_text("block", "x"), STATUS_USAGE, "neither a file nor a pipe");
    EXPECT_ERROR(file_check_output(path_of("block"), 0), STATUS_USAGE, "neither a file nor a pipe");
    EXPECT(S_ISCHR(mode_of("null")) && S_ISCHR(mode_of("full")) && S_ISBLK(mode_of("block")),
           "a device was replaced");
}

static void test_names(void)
{
    char name[NAME_MAX + 2];
    mode_t old = umask(027);
    memset(name, 'n', sizeof name);
    name[NAME_MAX] = '\0';
    EXPECT_OK(file_check_output(path_of(name), 0));
    EXPECT_OK(write_text(name, "long"));
    EXPECT((mode_of(name) & 0777) == 0640, "mode %o", mode_of(name));
    umask(old);
    name[NAME_MAX] = 'n';
    name[NAME_MAX + 1] = '\0';
    EXPECT_ERROR(file_check_output(path_of(name), 0), STATUS_USAGE, "the limit is 255");
    EXPECT_ERROR(write_text(name, "longer"), STATUS_USAGE, "the limit is 255");
    EXPECT_ERROR(file_write_atomic("", "x", 1), STATUS_USAGE, "is empty");
    EXPECT_ERROR(write_text("sub/", "x"), STATUS_USAGE, "is a directory");
    EXPECT_ERROR(write_text("new/", "x"), STATUS_USAGE, "names a directory");
}

static char *left_name(const char *name, const char *end)
{
    char left[512];
    snprintf(left, sizeof left, ".%.100s.kiln-0123456789abcdef%s", name, end);
    return path_of(left);
}

static void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0666);
    EXPECT(fd >= 0 && close(fd) == 0, "%s", path);
}

/* What a dead run left of the same file goes; what is a live writer's, or only looks alike, stays. */
static void test_left_over(void)
{
    struct file_writer alive, other;
    static const char *const others[] = {
        ".a.kiln-0123456789abcdef.tmp.txt", ".a.kiln-0123456789abcde.tmp",
        ".a.kiln-0123456789ABCDEF.tmp",     "a.kiln-0123456789abcdef.tmp",
        ".b.kiln-0123456789abcdef.tmp",     ".a.txt.kiln-0123456789abcdef.tmp"};
    enum { N = sizeof others / sizeof others[0] };
    int before = count_entries();
    for (int i = 0; i < N; i++) {
        touch(path_of(others[i]));
    }
    EXPECT(symlink("target", path_of(".a.kiln-aaaaaaaaaaaaaaaa.tmp")) == 0, "a link");
    EXPECT_OK(file_writer_open(&alive, path_of("a")));
    const char *foreign = path_of(".a.kiln-bbbbbbbbbbbbbbbb.tmp");
    touch(foreign);
    bool has_foreign = geteuid() == 0 && chown(foreign, 1, 1) == 0;
    temporary_clean(path_of("a"));
    EXPECT(file_exists(foreign) == has_foreign, "another user's file");
    unlink(foreign);
    touch(left_name("a", ".tmp"));
    EXPECT_OK(file_writer_open(&other, path_of("a")));
    EXPECT(!file_exists(left_name("a", ".tmp")), "what a dead run left is still there");
    EXPECT(file_exists(alive.temporary.path), "a live writer's file is gone");
    for (int i = 0; i < N; i++) {
        EXPECT(file_exists(path_of(others[i])), "%s is gone", others[i]);
        EXPECT(unlink(path_of(others[i])) == 0, "%s", others[i]);
    }
    EXPECT(unlink(path_of(".a.kiln-aaaaaaaaaaaaaaaa.tmp")) == 0, "the link is gone");
    file_writer_put(&alive, "one", 3);
    file_writer_put(&other, "other", 5);
    EXPECT_OK(file_writer_commit(&other));
    EXPECT_OK(file_writer_commit(&alive));
    expect_text("a", "one");
    EXPECT(unlink(path_of("a")) == 0 && count_entries() == before, "something is left");
}

/* A writer's death gives its temporary free; its life keeps it. */
static void test_dead_writer(void)
{
    int ready[2];
    char byte = 'x';
    EXPECT(pipe(ready) == 0, "pipe");
    int before = count_entries();
    pid_t child = fork();
    if (child == 0) {
        struct file_writer w;
        if (!failed(file_writer_open(&w, path_of("d"))) && write(ready[1], &byte, 1) == 1) {
            pause();
        }
        _exit(1);
    }
    EXPECT(read(ready[0], &byte, 1) == 1 && count_entries() == before + 1, "the child's temporary");
    temporary_clean(path_of("d"));
    EXPECT(count_entries() == before + 1, "a live writer's file is gone");
    EXPECT(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child, "kill");
    temporary_clean(path_of("d"));
    EXPECT(count_entries() == before, "what a dead writer left is still there");
}

/* Stands in for the C library's: the first time that a "child" is made, its parent goes just before, as by
 * the check of another run, which removes the directories that it made. */
int mkdir(const char *path, mode_t mode)
{
    static bool done;
    const char *name = strrchr(path, '/');
    if (!done && name != NULL && strcmp(name, "/child") == 0) {
        char parent[FILE_PATH_BYTES];
        file_parent(parent, path);
        done = rmdir(parent) == 0;
    }
    return mkdirat(AT_FDCWD, path, mode);
}

static void test_parent_that_goes(void)
{
    EXPECT_OK(file_make_directories(path_of("common/child")));
    EXPECT(file_is_directory(path_of("common/child")), "it was not made");
    EXPECT(rmdir(path_of("common/child")) == 0 && rmdir(path_of("common")) == 0, "rmdir");
}

static void test_check_output(void)
{
    int before = count_entries();
    EXPECT_OK(file_check_output(path_of("fine"), 1));
    EXPECT_ERROR(file_check_output("", 0), STATUS_USAGE, "is empty");
    EXPECT_ERROR(file_check_output("/", 0), STATUS_USAGE, "is a directory");
    EXPECT_ERROR(file_check_output(path_of("no/such/file"), 0), STATUS_IO, "no/such");
    EXPECT_ERROR(file_check_output(path_of("fine"), UINT64_MAX - 1), STATUS_IO, "18446744073709551614 bytes");
    EXPECT(count_entries() == before, "something is left");
}

static void test_check_directory(void)
{
    char deep[FILE_PATH_BYTES];
    int before = count_entries();
    EXPECT_OK(file_check_output_directory(path_of("run"), 100, 1));
    EXPECT_OK(file_check_output_directory(path_of("a/b//c/"), 100, 1));
    EXPECT_OK(file_check_output_directory(path_of("sub"), 100, 1));
    EXPECT_ERROR(file_check_output_directory("", 1, 0), STATUS_USAGE, "is empty");
    EXPECT_ERROR(file_check_output_directory("/", 1, 0), STATUS_USAGE, "root of the file system");
    EXPECT_ERROR(file_check_output_directory("/usr/..", 1, 0), STATUS_USAGE, "root of the file system");
    EXPECT_ERROR(file_check_output_directory(path_of("target"), 1, 0), STATUS_USAGE, "is not a directory");
    EXPECT_ERROR(file_check_output_directory(path_of("target/sub"), 1, 0), STATUS_IO,
                 "cannot create the directory");
    EXPECT_ERROR(file_check_output_directory(path_of("x/y"), 1, UINT64_MAX - 1), STATUS_IO, "free some");
    memset(deep, 'd', sizeof deep);
    deep[FILE_PATH_BYTES - 100] = '\0';
    EXPECT_ERROR(file_check_output_directory(deep, 100, 0), STATUS_USAGE, "the limit is 923");
    EXPECT_ERROR(file_check_output_directory("/proc/self/run", 100, 0), STATUS_IO, "/proc/self/run");
    EXPECT(count_entries() == before, "something is left");
}

static void test_has_bytes(void)
{
    char path[64];
    snprintf(path, sizeof path, "%s/bytes", directory);
    EXPECT(!file_has_bytes(path), "what is not there has no bytes");
    EXPECT_OK(file_write_atomic(path, "", 0));
    EXPECT(file_exists(path) && !file_has_bytes(path), "an empty file has no bytes");
    EXPECT_OK(file_write_atomic(path, "x", 1));
    EXPECT(file_has_bytes(path), "one byte is one");
    EXPECT_OK(file_remove_tree(path));
}

int main(void)
{
    strcpy(directory, "/tmp/kiln_file_writer_XXXXXX");
    EXPECT(mkdtemp(directory) != NULL, "mkdtemp");
    signal(SIGPIPE, SIG_IGN);
    test_links();
    test_pipe();
    test_device();
    test_names();
    test_left_over();
    test_dead_writer();
    test_check_output();
    test_check_directory();
    test_parent_that_goes();
    test_has_bytes();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
