/* file: reading by mmap, and writing so that a crash never leaves a file that looks complete: it is written
 * under a temporary name in the same directory (io/temporary.h), fsynced, renamed, and the directory fsynced.
 *
 * A link is followed: its target is written, and the link stays.  An existing path that is not a regular file
 * cannot be replaced: a pipe or a character device (/dev/stdout, /dev/null) is written in place, anything
 * else is refused. */
#ifndef KILN_IO_FILE_H
#define KILN_IO_FILE_H

#include "core/status.h"
#include "io/temporary.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The limit of every path that kiln writes to, the NUL included. */
enum { FILE_PATH_BYTES = 1024 };

/* Writes a printf-formatted path.  STATUS_USAGE if it is longer. */
struct status file_make_path(char path[FILE_PATH_BYTES], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A complete file, read-only. */
struct file_map {
    const unsigned char *data; /* [n]; not NUL-terminated */
    size_t n;
    int fd; /* open on the file if there is data */
};

/* STATUS_DATA if the file is missing, a directory or unreadable. */
struct status file_map_open(struct file_map *m, const char *path);

/* After reading: STATUS_IO if the file has become shorter since it was mapped.  A part cut off the last
 * remaining page reads as zeros; reading beyond that page is a SIGBUS (map_fault_find). */
struct status file_map_check(const struct file_map *m, const char *path);
void file_map_close(struct file_map *m);

/* A CRC-32C of samples, to distinguish large files that have no checksums.  `crc` is that of the files before
 * this one, 0 at first.  Samples are the size and 64 / n_files blocks of 64 KiB, spread evenly from the first
 * to the last, or one in the middle; of a smaller file all bytes. */
uint32_t file_map_sample(uint32_t crc, const struct file_map *m, int64_t n_files);

/* A file being written, buffered.  Failure is sticky and reported by file_writer_commit. */
struct file_writer {
    char path[FILE_PATH_BYTES]; /* the final path, or the one written in place */
    struct temporary temporary; /* the file written until then; its fd is -1 when writing in place */
    int fd;                     /* written to: the temporary's, or our own */
    unsigned char *buffer;      /* NULL: not open */
    size_t buffered;
    uint64_t n_bytes; /* written so far, the buffered ones included */
    uint32_t crc;     /* CRC-32C of them */
    struct status status;
};

/* Until the commit `path` does not exist, or keeps its old file.  Temporaries of it that dead runs left are
 * removed.  STATUS_USAGE: a path that is empty, too long, or names something that kiln never writes to;
 * STATUS_IO. */
struct status file_writer_open(struct file_writer *w, const char *path);
void file_writer_put(struct file_writer *w, const void *bytes, size_t n);

/* Writes out, fsyncs, renames and fsyncs the directory; on failure removes what was written.  Closes either
 * way. */
struct status file_writer_commit(struct file_writer *w);

/* Abandons the file: removes what was written.  Safe after a commit and on a zeroed writer. */
void file_writer_abandon(struct file_writer *w);

/* Begin, write and commit in one call. */
struct status file_write_atomic(const char *path, const void *bytes, size_t n);

/* Writes bytes at a place of an open file; `path` is for the message of STATUS_IO. */
struct status file_write_at(int fd, const char *path, const void *bytes, size_t n, int64_t at);

/* Replaces `path` by the target of its last name, through all links; the target need not exist.
 * STATUS_USAGE: too long, or a loop. */
struct status file_follow_links(char path[FILE_PATH_BYTES]);

/* Finds the path to which a file for `path` is written: the end of its chain of links, which need not exist.
 * If something exists that cannot be replaced, the target is `path` itself, and *in_place is set.
 * STATUS_USAGE: empty, too long, or a loop. */
struct status file_find_target(char target[FILE_PATH_BYTES], const char *path, bool *in_place);

/* Opens a log of lines for writing.  With `append` it continues an existing file, first adding a newline if a
 * crash cut its last line; else it starts empty.  The caller fcloses it. */
struct status file_lines_open(FILE **file, const char *path, bool append);

/* The two functions below find out, before any work, whether its result can be written.  They create a file
 * with a random name and remove it, and also any directories they had to make, so that nothing is left.
 * Errors name the path and the limit.  STATUS_USAGE: a path that is empty, "/" or too long; STATUS_IO: it
 * cannot be made or written, or its file system has fewer than `bytes_wanted` bytes free (0: unknown). */

/* Checks the path of a file that file_writer or file_lines_open will write; its directory must exist.  A link
 * is followed.  An existing path that is not a regular file would be written in place: it must be a pipe or a
 * character device. */
struct status file_check_output(const char *path, uint64_t bytes_wanted);

/* Checks the path of a directory that will be made, with its parents, if missing.  Up to `longest_suffix`
 * bytes will be appended to its path, slash and temporary names included (those of file_writer need no
 * space). */
struct status file_check_output_directory(const char *path, size_t longest_suffix, uint64_t bytes_wanted);

/* The part of file_check_output_directory that writes nothing: for a dry run. */
struct status file_check_directory_path(const char *path, size_t longest_suffix);

/* Whether there is a file or directory of that name. */
bool file_exists(const char *path);

/* Whether it is there and has any bytes. */
bool file_has_bytes(const char *path);
bool file_is_directory(const char *path);

/* Whether both paths lead to the same file or directory, by device and inode. */
bool file_is_same(const char *a, const char *b);

/* Whether both paths lead to the same file, which need not exist yet: its directory and name are then
 * compared. */
bool file_is_same_name(const char *a, const char *b);

/* Whether the name `path`, itself no link, is still that of the open file. */
bool file_is_open_as(int fd, const char *path);

/* The longest existing prefix of `path`, in complete names: "" if not even the first exists.  STATUS_USAGE:
 * too long. */
struct status file_existing_part(char part[FILE_PATH_BYTES], const char *path);

/* The directory that holds `path`, which does not end in a slash: "." where it names none. */
void file_parent(char parent[FILE_PATH_BYTES], const char *path);

/* Creates the directory and its missing parents; one that exists is fine. */
struct status file_make_directories(const char *path);

/* Creates the directory that holds `path`. */
struct status file_make_parent(const char *path);

/* Makes renames and removals in a directory durable. */
struct status file_sync_directory(const char *path);

/* Removes a directory and everything in it. */
struct status file_remove_tree(const char *path);

/* Bytes that can still be written on the file system of `path`; UINT64_MAX if unknown. */
uint64_t file_free_bytes(const char *path);

/* The path, cut to n - 1 bytes, of the file that is mapped at `address`; false if none is, or /proc is not
 * there.  The kernel knows it for every mapping (/proc/self/maps), so code that maps files need not record it
 * (docs/decisions/0029_cut_files.md).  For signal handlers: calls nothing but open, read and close. */
bool map_fault_find(char *path, size_t n, const void *address);

#endif
