/* digest: the checksums under which others publish their files: MD5 (RFC 1321) and SHA-256 (FIPS 180-4).  MD5
 * finds accidents, SHA-256 strangers too.  And SHA-256 with a key (HMAC), by which messages prove who sent
 * them. */
#ifndef KILN_CORE_DIGEST_H
#define KILN_CORE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum digest_kind { DIGEST_MD5, DIGEST_SHA256 };

struct digest {
    enum digest_kind kind;
    uint32_t h[8];
    uint64_t n_bytes;
    unsigned char block[64]; /* the bytes that fill no block yet */
};

/* Hexadecimal digits, in lower case. */
struct digest_text {
    char text[65];
};

/* Begins a digest. */
void digest_init(struct digest *d, enum digest_kind kind);
void digest_put(struct digest *d, const void *bytes, size_t n);

/* The digest of all that was put; the struct is used up. */
void digest_end(struct digest *d, struct digest_text *hex);

/* Recognises the digest of hexadecimal digits by their number: 32 or 64; false if they are none. */
bool digest_kind_of(enum digest_kind *kind, const char *hex);

/* HMAC-SHA-256 (RFC 2104): a code of the bytes that can be computed only with the key. */
enum { DIGEST_KEY_BYTES = 32, DIGEST_KEYED_BYTES = 32 };
void digest_keyed(unsigned char out[DIGEST_KEYED_BYTES], const unsigned char key[DIGEST_KEY_BYTES],
                  const void *bytes, size_t n);

/* Name of the kind: "sha256". */
const char *digest_name(enum digest_kind kind);

#endif
