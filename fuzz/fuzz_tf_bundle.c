/* fuzz_tf_bundle: any bytes as the index of a TensorFlow checkpoint, as a block of one whose checksums hold,
 * and as the entry of one of its tensors: refused, or every tensor of it lies inside its shard. */
#include "fixture_table.h"
#include "io/tf_bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void try_index(const void *bytes, size_t n, const uint8_t *shard, size_t shard_bytes)
{
    struct tf_bundle b;
    const struct span one = bytes_span(shard, shard_bytes);
    struct status s = tf_bundle_parse(&b, bytes_span(bytes, n), &one, 1, "input");
    CHECK(!failed(s) || s.code == STATUS_DATA, "%s", s.message);
    for (int i = 0; i < b.n; i++) {
        const struct stored_tensor *t = &b.tensors[i];
        CHECK(t->storage == NULL ||
                  (t->data >= shard && t->storage_bytes <= (size_t)(shard + shard_bytes - t->data)),
              "%s lies outside", t->name);
        CHECK(t->unreadable != NULL || t->bytes == 0 || t->storage != NULL, "%s lies nowhere", t->name);
    }
    tf_bundle_close(&b);
}

/* A table of one block, of which the bytes are as stored. */
static void try_block(const void *bytes, size_t n, char compression, const uint8_t *shard, size_t shard_bytes)
{
    struct table_maker t = {0};
    table_block(&t, bytes, n, compression);
    table_finish(&t);
    try_index(t.out.data, t.out.n, shard, shard_bytes);
    table_maker_fini(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct buf block = {0};
    try_index(data, n, data, n);
    try_block(data, n, SORTED_TABLE_PLAIN, data, n);
    try_block(data, n, SORTED_TABLE_SNAPPY, data, n);
    table_entry(&block, 0, "", 0, "\x08\x01", 2);
    table_entry(&block, 0, "w", 1, data, n);
    table_restarts(&block);
    try_block(block.data, block.n, SORTED_TABLE_PLAIN, data, n);
    buf_fini(&block);
    return 0;
}
