/* zip_file: the members of a ZIP archive, where they lie: for files that torch.save wrote (APPNOTE.TXT of PKWARE, 4.3,
 * with the ZIP64 fields of 4.5.3).
 *
 * The rule: members are read in place, so those that are compressed are not read at all; no two share a byte or a name.
 * So nothing that is in an archive can be larger than its file (docs/decisions/0043_foreign_checkpoints.md).
 * The CRC-32 of a member is not compared: PyTorch does not either, and may write none (torch.serialization.set_crc32_options). */
#ifndef KILN_IO_ZIP_FILE_H
#define KILN_IO_ZIP_FILE_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zip_member {
    const char *name; /* [name_bytes], in the archive: not NUL-terminated */
    size_t name_bytes;
    const unsigned char *data; /* [n] */
    size_t n;
    bool is_stored; /* data are what was put in: not compressed, not encrypted */
    uint64_t begin; /* of its local header in the archive */
};

struct zip_file {
    struct zip_member *members; /* [n], in the order of names */
    size_t n;
};

/* The archive whose `n` bytes the caller keeps until the close; `source` names them in messages. */
struct status zip_file_parse(struct zip_file *z, const void *bytes, size_t n, const char *source);

/* Safe on a zeroed struct. */
void zip_file_close(struct zip_file *z);

/* Borrowed; NULL if there is none of this name. */
const struct zip_member *zip_file_find(const struct zip_file *z, const char *name, size_t name_bytes);

#endif
