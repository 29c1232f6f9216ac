#define _GNU_SOURCE
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

/* A line of proc_pid_maps(5): "begin-end permissions offset device inode   path", the numbers in base 16. */
struct line {
    int field; /* 0: begin, 1: end, 2: permissions, and on to 5: inode, 6: path */
    uintptr_t begin, end;
    size_t n; /* bytes of the path so far */
};

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses one byte of the line; the bytes of its path go to `path`. */
static void take(struct line *l, char c, char *path, size_t n)
{
    enum { PATH = 6 };
    if (l->field == PATH) {
        if ((l->n > 0 || c != ' ') && l->n + 1 < n) {
            path[l->n++] = c;
        }
    } else if ((l->field == 0 && c == '-') || (l->field > 0 && c == ' ')) {
        l->field++;
    } else if (l->field <= 1 && digit_of(c) >= 0) {
        uintptr_t *number = l->field == 0 ? &l->begin : &l->end;
        *number = *number * 16 + (uintptr_t)digit_of(c);
    }
}

bool map_fault_find(char *path, size_t n, const void *address)
{
    char chunk[1024];
    struct line line = {0};
    uintptr_t wanted = (uintptr_t)address;
    bool found = false;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 1; fd >= 0 && got != 0 && !found;) {
        got = read(fd, chunk, sizeof chunk);
        if (got < 0 && errno != EINTR) {
            break;
        }
        for (ssize_t i = 0; i < got && !found; i++) {
            if (chunk[i] != '\n') {
                take(&line, chunk[i], path, n);
                continue;
            }
            path[line.n] = '\0';
            found = line.begin <= wanted && wanted < line.end && path[0] == '/';
            line = (struct line){0};
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return found;
}
