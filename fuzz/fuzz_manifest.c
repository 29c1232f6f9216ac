/* Any bytes as a checkpoint's manifest.  A random input never has the right checksum, so each one is also
 * tried with its last line made right. */
#include "core/hash.h"
#include "model/checkpoint_manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void parse(const void *bytes, size_t n)
{
    struct checkpoint_manifest m;
    if (!failed(checkpoint_manifest_parse(&m, bytes, n, "input"))) {
        CHECK(n > 100, "%zu bytes cannot list all files", n);
        for (int i = 0; i < m.n; i++) {
            CHECK(checkpoint_manifest_is_name(m.files[i].name) && strchr(m.files[i].name, '/') == NULL,
                  "'%s' leads out of the directory", m.files[i].name);
            CHECK(checkpoint_manifest_find(&m, m.files[i].name) == &m.files[i], "%s is there twice",
                  m.files[i].name);
        }
    }
    checkpoint_manifest_fini(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char last[64];
    int last_bytes = snprintf(last, sizeof last, "  \"manifest_crc32c\": \"%08" PRIx32 "\"\n}\n",
                              hash_crc32c(0, bytes, n));
    char *signed_bytes = malloc(n + sizeof last);
    parse(bytes, n);
    if (signed_bytes != NULL) {
        if (n > 0) {
            memcpy(signed_bytes, bytes, n);
        }
        memcpy(signed_bytes + n, last, (size_t)last_bytes);
        parse(signed_bytes, n + (size_t)last_bytes);
    }
    free(signed_bytes);
    return 0;
}
