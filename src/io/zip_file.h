/* zip_file: the members of a ZIP archive, read in place, for files that torch.save wrote (APPNOTE.TXT of
 * PKWARE, 4.3, with the ZIP64 fields of 4.5.3).
 *
 * The rule: members are never decompressed, and no two overlap or share a name.  So no archive can expand
 * to more than its file (docs/decisions/0043_foreign_checkpoints.md). */
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
    bool is_stored; /* `data` is the content: neither compressed nor encrypted */
    uint64_t begin; /* offset of its local header in the archive */
    uint32_t crc;   /* CRC-32 of the content, as the archive says */
};

struct zip_file {
    struct zip_member *members; /* [n], in the order of names */
    size_t n;
};

/* Lists the members.  The caller keeps the bytes until the close; `source` names them in messages. */
struct status zip_file_parse(struct zip_file *z, const void *bytes, size_t n, const char *source);

/* Reads all stored members: STATUS_DATA names one whose CRC-32 is wrong while another's is right.  If all are
 * wrong, whoever wrote the archive computed none, as PyTorch does if it is set to
 * (torch.serialization.set_crc32_options). */
struct status zip_file_check_sums(const struct zip_file *z, const char *source);

/* Safe on a zeroed struct. */
void zip_file_close(struct zip_file *z);

/* The member of this name, borrowed; NULL if there is none. */
const struct zip_member *zip_file_find(const struct zip_file *z, const char *name, size_t name_bytes);

#endif
