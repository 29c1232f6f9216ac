/* hash: checksums of files and names.  None of them protects against an attacker. */
#ifndef KILN_CORE_HASH_H
#define KILN_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli polynomial, reflected; RFC 3720 appendix B.4), continued from `crc`, which is 0 at the
 * beginning. */
uint32_t hash_crc32c(uint32_t crc, const void *bytes, size_t n);

/* CRC-32 of ZIP and zlib (polynomial 0x04C11DB7, reflected; RFC 1952 section 8), by tables for 8 bytes at a
 * time, which the caller keeps: Kounavis and Berry 2005, "slicing-by-8". */
struct hash_crc32_tables {
    uint32_t t[8][256];
};
void hash_crc32_init(struct hash_crc32_tables *tables);
uint32_t hash_crc32(const struct hash_crc32_tables *tables, uint32_t crc, const void *bytes, size_t n);

/* A checksum of bytes that hold checksums, rotated and moved so that it does not vanish in them, as LevelDB
 * and TensorFlow store it; and the way back. */
uint32_t hash_mask_crc(uint32_t crc);
uint32_t hash_unmask_crc(uint32_t masked);

/* 64-bit FNV-1a (Fowler, Noll, Vo): for values that are kept in files. */
uint64_t hash_fnv1a(const void *bytes, size_t n);

/* A hash for tables in memory, several times as fast: 8 bytes a step, with the multipliers of splitmix64
 * (Steele, Lea and Flood 2014).  It depends on the byte order of the machine. */
uint64_t hash_bytes(const void *bytes, size_t n);

#endif
