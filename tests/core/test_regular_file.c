/* Only regular files are opened, and none that stands for another: a pointer of Git LFS is named as one. */
#include "core/regular_file.h"
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/kiln_regular_file_XXXXXX";

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void write_file(const char *name, const char *text, size_t n)
{
    FILE *f = fopen(path_of(name), "wb");
    EXPECT(f != NULL && fwrite(text, 1, n, f) == n && fclose(f) == 0, "cannot write %s", name);
}

static void expect_open(const char *name, size_t wanted)
{
    int fd = -1;
    size_t n = 0;
    EXPECT_OK(regular_file_open(&fd, &n, path_of(name)));
    EXPECT(fd >= 0 && n == wanted, "%s: %zu bytes", name, n);
    close(fd);
}

static void pointers_are_named(void)
{
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    static const char other[] = "version https://git-lfs.github.com/speculation\n";
    char large[2000] = {0};
    int fd;
    size_t n;
    write_file("pointer", pointer, sizeof pointer - 1);
    EXPECT_ERROR(regular_file_open(&fd, &n, path_of("pointer")), STATUS_DATA, "is a pointer of Git LFS");
    write_file("other", other, sizeof other - 1);
    expect_open("other", sizeof other - 1);
    memcpy(large, pointer, sizeof pointer - 1); /* a pointer has less than 1,024 bytes */
    write_file("large", large, sizeof large);
    expect_open("large", sizeof large);
    write_file("short", "version", 7);
    expect_open("short", 7);
    write_file("empty", "", 0);
    expect_open("empty", 0);
}

/* What decides what runs must be this user's, and itself: what is asked is what was opened. */
static void own_files_are_own(void)
{
    int fd;
    size_t n;
    char file[128];
    write_file("own", "A=1\n", 4);
    snprintf(file, sizeof file, "%s", path_of("own"));
    EXPECT_OK(regular_file_open_own(&fd, &n, file, "why"));
    EXPECT(fd >= 0 && n == 4, "%zu bytes", n);
    close(fd);
    EXPECT_OK(regular_file_open_own(&fd, &n, path_of("none"), "why"));
    EXPECT(fd == -1, "a file that is missing");
    EXPECT_OK(regular_file_open_own(&fd, &n, path_of("own/none"), "why"));
    EXPECT(fd == -1, "a file in a folder that is none, such as a HOME of /dev/null");
    EXPECT(symlink(file, path_of("link")) == 0, "a link");
    EXPECT_ERROR(regular_file_open_own(&fd, &n, path_of("link"), "why"), STATUS_USAGE,
                 "link is a symbolic link: why");
    for (int mode = 0020; mode >= 0002; mode -= 0016) {
        EXPECT(chmod(file, (mode_t)(0600 | mode)) == 0, "%o", mode);
        EXPECT_ERROR(regular_file_open_own(&fd, &n, file, "why"), STATUS_USAGE, "by other users: why");
        EXPECT(fd == -1, "left open");
    }
    EXPECT_ERROR(regular_file_open_own(&fd, &n, directory, "why"), STATUS_DATA, directory);
}

static void others_are_refused(void)
{
    int fd;
    size_t n;
    EXPECT(mkfifo(path_of("pipe"), 0600) == 0, "a pipe");
    EXPECT_ERROR(regular_file_open(&fd, &n, path_of("pipe")), STATUS_DATA, "pipe");
    EXPECT_ERROR(regular_file_open(&fd, &n, path_of("none")), STATUS_DATA, "none");
    EXPECT_ERROR(regular_file_open(&fd, &n, directory), STATUS_DATA, directory);
}

int main(void)
{
    static const char *const names[] = {"pointer", "other", "large", "short", "empty", "pipe", "own", "link"};
    EXPECT(mkdtemp(directory) != NULL, "mkdtemp");
    pointers_are_named();
    own_files_are_own();
    others_are_refused();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unlink(path_of(names[i]));
    }
    rmdir(directory);
    return 0;
}
