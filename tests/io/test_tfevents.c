/* Tests of io/tfevents: bytes that TensorBoard's own writer gave for the same events, the framing of a real
 * event file, and files that cannot be written. */
#include "fixture_shared.h"

#include "core/bytes.h"
#include "core/hash.h"
#include "io/tfevents.h"

#include <unistd.h>

static void checksums_are_castagnolis(void)
{
    /* RFC 3720, appendix B.4 */
    unsigned char zeros[32] = {0}, up[32];
    for (int i = 0; i < 32; i++) {
        up[i] = (unsigned char)i;
    }
    EXPECT(hash_crc32c(0, zeros, sizeof zeros) == 0x8a9136aa, "zeros");
    EXPECT(hash_crc32c(0, up, sizeof up) == 0x46dd794e, "0 to 31");
}

static void expect_hex(const struct buf *b, const char *wanted)
{
    EXPECT(2 * b->n == strlen(wanted), "%zu bytes, not %zu", b->n, strlen(wanted) / 2);
    for (size_t i = 0; i < b->n; i++) {
        char hex[3];
        snprintf(hex, sizeof hex, "%02x", (unsigned char)b->data[i]);
        EXPECT(memcmp(hex, wanted + 2 * i, 2) == 0, "byte %zu is %s, not %.2s", i, hex, wanted + 2 * i);
    }
}

/* The wanted bytes are those of tensorboard.summary.writer.record_writer with tensorboard.compat.proto. */
static void events_are_tensorboards(void)
{
    struct buf b = {0};
    tfevents_append_version(&b, 1.5);
    expect_hex(&b, "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
    buf_clear(&b);
    struct tfevents_scalar scalars[] = {{"Loss", 2.5}, {"heldout/mlm_loss", -0.125}};
    tfevents_append_scalars(&b, 300, 1700000000.25, scalars, 2);
    expect_hex(
        &b, "34000000000000005e33175c0900001040fc54d94110ac022a260a0b0a044c6f737315000020400a170a1068656c646f"
            "75742f6d6c6d5f6c6f737315000000bef9782349");
    buf_clear(&b);
    tfevents_append_start(&b, 301, 1700000000.25);
    expect_hex(&b, "100000000000000095fbfe180900001040fc54d94110ad023a020801cb79b93b");
    buf_clear(&b);
    tfevents_append_text(&b, 3, 1700000000.25, "seq_length", "16");
    expect_hex(
        &b,
        "40000000000000002817f4950900001040fc54d94110032a330a310a177365715f6c656e6774682f746578745f73756d6d61"
        "7279420c0807120412020801420231364a080a060a04746578740eb0e114");
    buf_fini(&b);
}

/* Each record of a file that TensorFlow wrote, framed again, is what stands there. */
static void framing_is_tensorflows(const char *name)
{
    struct buf file = shared_read_member("formats.tar.xz", name), again = {0};
    struct span s = bytes_span(file.data, file.n);
    int n_records = 0;
    while (bytes_left(&s) > 0) {
        uint64_t n = bytes_read_u64(&s);
        bytes_read_u32(&s);
        const unsigned char *event = bytes_take(&s, n);
        bytes_read_u32(&s);
        EXPECT(!s.failed, "record %d of %s is cut", n_records, name);
        tfevents_append_record(&again, event, n);
        n_records++;
    }
    EXPECT(n_records > 10, "%d records", n_records);
    EXPECT(again.n == file.n && memcmp(again.data, file.data, file.n) == 0, "%s is framed otherwise", name);
    buf_fini(&file);
    buf_fini(&again);
}

/* A run that goes on opens another file; each event is on disk when the call returns. */
static void a_file_grows_with_each_event(void)
{
    struct tfevents t;
    struct tfevents_scalar scalar = {"Loss", 1};
    struct file_map m;
    char directory[] = "test_tfevents.XXXXXX";
    EXPECT(mkdtemp(directory) != NULL, "a directory");
    EXPECT_OK(tfevents_open(&t, directory, 1));
    EXPECT(strstr(t.log.path, "/events.out.tfevents.") != NULL, "named %s", t.log.path);
    size_t n = 40 + 31; /* the version and the start */
    for (int step = 1; step < 4; step++) {
        EXPECT_OK(tfevents_write(&t, step, 1, &scalar, 1));
        EXPECT_OK(file_map_open(&m, t.log.path));
        EXPECT(m.n > n, "step %d is on disk", step);
        n = m.n;
        file_map_close(&m);
    }
    tfevents_close(&t);
    EXPECT_OK(file_remove_tree(directory));
}

static void a_file_that_cannot_be_made(void)
{
    struct tfevents t;
    struct tfevents_scalar scalar = {"Loss", 1};
    EXPECT_ERROR(tfevents_open(&t, "/proc/none/events", 1), STATUS_IO, "/proc/none");
    EXPECT_OK(tfevents_write(&t, 1, 1, &scalar, 1)); /* and nothing happens */
}

int main(void)
{
    checksums_are_castagnolis();
    events_are_tensorboards();
    a_file_grows_with_each_event();
    a_file_that_cannot_be_made();
    framing_is_tensorflows("events.out.tfevents.test");
    framing_is_tensorflows("events.out.tfevents.1683453501.mlperf.8390.0");
    return 0;
}
