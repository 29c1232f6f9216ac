/* file: reading by mmap, and writing so that a crash never leaves a file that looks whole: written beside its
 * place with another name, fsynced, renamed, and the directory fsynced. */
#ifndef KILN_IO_FILE_H
#define KILN_IO_FILE_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A whole file, read-only. */
struct file_map {
    const unsigned char *data; /* [n]; not NULL-terminated; NULL for an empty file */
    size_t n;
};

/* STATUS_DATA if the file is missing, a directory or unreadable. */
struct status file_map_open(struct file_map *m, const char *path);
void file_map_close(struct file_map *m);

/* A file being written, buffered.  Failure is sticky and reported by file_writer_commit. */
struct file_writer {
    int fd;
    char path[1024];      /* where it will stand */
    char temporary[1056]; /* where it is written */
    unsigned char *buffer;
    size_t buffered;
    uint64_t n_bytes; /* written so far, the buffered ones included */
    uint32_t crc;     /* CRC-32C of them */
    struct status status;
};

/* Nothing exists at `path` until the commit. */
struct status file_writer_open(struct file_writer *w, const char *path);
void file_writer_put(struct file_writer *w, const void *bytes, size_t n);

/* Writes out, fsyncs, renames and fsyncs the directory; on failure removes what was written. Closes either
 * way. */
struct status file_writer_commit(struct file_writer *w);

/* Gives up: removes what was written.  Safe after a commit and on a zeroed writer. */
void file_writer_abandon(struct file_writer *w);

/* The three steps in one. */
struct status file_write_atomic(const char *path, const void *bytes, size_t n);

/* Opens a log of lines for writing: at the end of what is there, which gets a newline first if a crash cut its last
 * line, or from the start if `append` is false.  The caller fcloses it. */
struct status file_lines_open(FILE **file, const char *path, bool append);

bool file_exists(const char *path);
bool file_is_directory(const char *path);

/* Creates the directory and its missing parents; one that exists is fine. */
struct status file_make_directories(const char *path);

/* Makes renames and removals in a directory durable. */
struct status file_sync_directory(const char *path);

/* Removes a directory and everything in it. */
struct status file_remove_tree(const char *path);

/* Bytes that can still be written on the file system of `path`; UINT64_MAX if unknown. */
uint64_t file_free_bytes(const char *path);

/* Whether both are there and one file, by whatever names. */
bool file_is_same(const char *a, const char *b);

#endif
