/* zip_writer: writes a ZIP archive of stored members as torch.save does (APPNOTE.TXT of PKWARE, 4.3, with the
 * ZIP64 fields of 4.5.3 where sizes and places need them): every member's data at a multiple of 64 bytes, so
 * that readers can map it. io/zip_file.h reads it. */
#ifndef KILN_IO_ZIP_WRITER_H
#define KILN_IO_ZIP_WRITER_H

#include "core/buf.h"
#include "core/hash.h"
#include "io/file.h"

enum { ZIP_ALIGNMENT = 64 };

struct zip_writer {
    struct file_writer file;
    struct buf directory; /* written at the end */
    uint64_t n_members;
    struct hash_crc32_tables tables;
};

/* Opens the archive as file_writer_open opens a file. */
struct status zip_writer_open(struct zip_writer *w, const char *path);

/* Appends a member; its name is not checked against the others. */
void zip_writer_put(struct zip_writer *w, const char *name, const void *data, size_t n);

/* Writes the directory and commits the file, as file_writer_commit. */
struct status zip_writer_commit(struct zip_writer *w);

/* The header in front of a member's data that begins at `place`, and its entry in the directory: for tests of
 * archives larger than a disk. */
void zip_writer_describe(struct buf *header, struct buf *entry, const char *name, uint64_t place, uint64_t n,
                         uint32_t crc);

/* The end of an archive: the records after a directory of `bytes` at `begin`. */
void zip_writer_end(struct buf *end, uint64_t n_members, uint64_t begin, uint64_t bytes);

#endif
