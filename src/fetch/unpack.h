/* unpack: zip, tar, gzip and bzip2.  A hostile archive can neither write outside its target nor fill the
 * disk.
 *
 * NAME.zip becomes the directory NAME/, whether or not its files are in a folder of that name; NAME.gz
 * becomes NAME.  The result is written under a temporary name, checked, and renamed when it is complete.
 * libarchive reads the formats (unpack_archive.c); a build without it says so (unpack_absent.c). */
#ifndef KILN_FETCH_UNPACK_H
#define KILN_FETCH_UNPACK_H

#include "core/status.h"
#include "io/file.h"

enum unpack_kind { UNPACK_NONE, UNPACK_FILE, UNPACK_DIRECTORY };

/* The checksum of a file in an archive; a row without a name ends a table. */
struct unpack_sum {
    const char *name; /* in the directory that the archive becomes */
    const char *sum;  /* MD5 or SHA-256 */
};

/* The kind of an archive and the path of its target, by its suffix; UNPACK_NONE: not an archive. */
enum unpack_kind unpack_target(char target[FILE_PATH_BYTES], const char *archive);

/* STATUS_DATA names the archive and the reason: damaged, not of the format of its suffix, a path outside the
 * target, a link or a device, a duplicate name, more than 100 times its size, a file of `sums` (may be NULL)
 * that is missing or has another checksum. STATUS_IO: disk full.  STATUS_USAGE: the target exists.
 * STATUS_PREEMPTED: a signal. */
struct status unpack_archive(const char *target, enum unpack_kind kind, const char *archive,
                             const struct unpack_sum *sums);

/* Whether the files of a directory have the checksums; STATUS_DATA. */
struct status unpack_check(const char *directory, const struct unpack_sum *sums);

/* The name of an archive's file below the target: *name points into `path`; "" is the target itself.  False
 * if the path is absolute, contains "..", is empty or too long, or has a control character or a backslash. */
bool unpack_name(const char **name, const char *path, const char *top);

/* libarchive's version; NULL if it is not built in or not installed. */
const char *unpack_version(void);

#endif
