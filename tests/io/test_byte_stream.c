/* Tests of io/byte_stream: compressed files read as what was compressed, with and without helpers, from any
 * place; damage leaves a gap, and a file that was cut is read up to there. */
#include "fixture_store.h"

#include "core/buf.h"
#include "io/byte_stream.h"
#include "io/safetensors.h"

enum { ALIGNED_BYTES = 1008 }; /* of the lines that aligned.bz2 has */

static struct safetensors golden; /* tests/golden/streams.safetensors, by make_streams.py */
static struct buf lines;          /* what its texts unpack to */

static struct buf golden_file(const char *name)
{
    const struct stored_tensor *e = safetensors_find(&golden, name);
    struct buf file = {0};
    EXPECT(e != NULL, "the golden has no %s", name);
    buf_append(&file, e->data, e->bytes);
    return file;
}

static void make_lines(void)
{
    for (int i = 0; i < 20000; i++) {
        buf_printf(&lines, "line %d of the test\n", i % 997);
    }
}

static void open_bytes(struct byte_stream *s, const struct buf *file)
{
    fixture_write("file", file->data, file->n);
    EXPECT_OK(byte_stream_open(s, fixture_path("file"), file->n));
}

/* Reads the rest in pieces of n bytes; '!' for a gap. */
static struct status read_rest(struct buf *out, struct byte_stream *s, size_t n)
{
    char *piece = malloc(n);
    struct status status = status_ok();
    for (size_t got = 1; (got > 0 || s->at_gap) && !failed(status);) {
        if (s->at_gap) {
            buf_putc(out, '!');
            byte_stream_pass_gap(s);
        }
        status = byte_stream_read(s, piece, n, &got);
        buf_append(out, piece, got);
    }
    free(piece);
    return status;
}

struct helper {
    struct byte_stream *stream;
    _Atomic bool stop;
    int64_t n_helped;
};

static void *help(void *context)
{
    struct helper *h = context;
    while (!h->stop) {
        h->n_helped += byte_stream_help(h->stream);
    }
    return NULL;
}

static void expect_bytes(const char *name, const struct buf *wanted, int n_helpers)
{
    struct buf file = golden_file(name), found = {0};
    struct byte_stream s;
    struct helper helpers[3] = {{.stream = &s}, {.stream = &s}, {.stream = &s}};
    pthread_t threads[3];
    byte_stream_init(&s);
    for (int i = 0; i < n_helpers; i++) {
        EXPECT(pthread_create(&threads[i], NULL, help, &helpers[i]) == 0, "a thread");
    }
    open_bytes(&s, &file);
    EXPECT_OK(read_rest(&found, &s, 10007));
    EXPECT(found.n == wanted->n && memcmp(found.data, wanted->data, found.n) == 0,
           "%s with %d helpers: %zu of %zu bytes", name, n_helpers, found.n, wanted->n);
    EXPECT(s.n_damaged == 0 && !s.ends_early && s.offset == found.n && s.file_at == file.n, "%s: %lld, %llu",
           name, (long long)s.n_damaged, (unsigned long long)s.file_at);
    byte_stream_close(&s);
    for (int i = 0; i < n_helpers; i++) {
        helpers[i].stop = true;
        pthread_join(threads[i], NULL);
    }
    byte_stream_fini(&s);
    buf_fini(&file);
    buf_fini(&found);
}

static void files_read_as_what_was_compressed(void)
{
    static const char *const names[] = {"text.bz2", "many.bz2", "text.gz", "many.gz"};
    struct buf chance = golden_file("chance"), aligned = {0};
    buf_append(&aligned, lines.data, ALIGNED_BYTES);
    for (int n_helpers = 0; n_helpers <= 3; n_helpers++) {
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            expect_bytes(names[i], &lines, n_helpers);
        }
        expect_bytes("chance.bz2", &chance, n_helpers);
        expect_bytes("aligned.bz2", &aligned, n_helpers);
    }
    buf_fini(&chance);
    buf_fini(&aligned);
}

/* The rest from any place is the rest of the bytes, however far reading had got. */
static void reading_goes_on_from_places(const char *name)
{
    static const size_t offsets[] = {0, 1, 99999, 100000, 100001, 237110, 237111, 237112, 300000};
    struct buf file = golden_file(name), out = {0};
    struct byte_stream first, second;
    byte_stream_init(&first);
    byte_stream_init(&second);
    open_bytes(&first, &file);
    EXPECT_OK(byte_stream_open(&second, fixture_path("file"), file.n));
    EXPECT_OK(read_rest(&out, &first, 777));
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        struct byte_place place = byte_stream_place(&first, offsets[i]);
        EXPECT(place.offset == offsets[i] && place.from_offset <= place.offset, "the place of %zu",
               offsets[i]);
        buf_clear(&out);
        EXPECT_OK(byte_stream_seek(&second, place));
        EXPECT_OK(read_rest(&out, &second, 4096));
        EXPECT(out.n == lines.n - offsets[i] && memcmp(out.data, lines.data + offsets[i], out.n) == 0,
               "%s from %zu: %zu", name, offsets[i], out.n);
    }
    EXPECT_ERROR(byte_stream_seek(&second, (struct byte_place){.offset = lines.n + 1}), STATUS_DATA,
                 "has changed");
    byte_stream_fini(&first);
    byte_stream_fini(&second);
    buf_fini(&file);
    buf_fini(&out);
}

/* A changed byte in any part of a bzip2 file costs a block or two, never the rest; what is read is right. */
static void damage_leaves_a_gap(void)
{
    struct buf file = golden_file("text.bz2"), out = {0};
    struct byte_stream s;
    byte_stream_init(&s);
    for (size_t at = 20; at + 20 < file.n; at += file.n / 41) {
        file.data[at] ^= 0x10;
        buf_clear(&out);
        open_bytes(&s, &file);
        EXPECT_OK(read_rest(&out, &s, 5000));
        file.data[at] ^= 0x10;
        const char *gap = out.n == 0 ? NULL : memchr(out.data, '!', out.n);
        EXPECT(gap != NULL && s.n_damaged >= 1, "byte %zu: no gap", at);
        size_t n_before = (size_t)(gap - out.data), n_after = out.n - n_before - 1;
        EXPECT(memcmp(out.data, lines.data, n_before) == 0, "byte %zu: before", at);
        EXPECT(memcmp(gap + 1, lines.data + lines.n - n_after, n_after) == 0, "byte %zu: after", at);
        EXPECT(lines.n - n_before - n_after <= 2 * 100000, "byte %zu: %zu of %zu bytes", at,
               n_before + n_after, lines.n);
    }
    byte_stream_fini(&s);
    buf_fini(&file);
    buf_fini(&out);
}

/* The check sum at the end of a bzip2 stream is wrong: nothing is missing of what is read, but it is said. */
static void a_wrong_sum_of_a_stream_is_damage(void)
{
    struct buf file = golden_file("text.bz2"), out = {0};
    struct byte_stream s;
    byte_stream_init(&s);
    for (int damaged = 0; damaged < 2; damaged++) {
        file.data[file.n - 3] ^=
            damaged ? 0x10 : 0; /* of the last 32 bits, behind which are at most 7 of padding */
        buf_clear(&out);
        open_bytes(&s, &file);
        EXPECT_OK(read_rest(&out, &s, 5000));
        EXPECT(out.n == lines.n && memcmp(out.data, lines.data, out.n) == 0, "%zu of %zu bytes", out.n,
               lines.n);
        EXPECT(s.n_damaged == damaged, "%lld damaged places, not %d", (long long)s.n_damaged, damaged);
    }
    byte_stream_fini(&s);
    buf_fini(&file);
    buf_fini(&out);
}

static void cut_files_are_read_up_to_there(const char *name)
{
    struct buf file = golden_file(name), out = {0}, in_bytes = {0};
    size_t whole = file.n;
    struct byte_stream s;
    byte_stream_init(&s);
    for (size_t n = 14; n < whole; n += 1 + whole / 97) {
        file.n = n;
        buf_clear(&out);
        buf_clear(&in_bytes);
        open_bytes(&s, &file);
        EXPECT_OK(read_rest(&out, &s, 5000));
        EXPECT(out.n <= lines.n && memcmp(buf_text(&out), lines.data, out.n) == 0, "%s cut to %zu", name, n);
        bool between_streams = s.offset == 100000 || s.offset == 237111 || s.offset == lines.n;
        EXPECT(s.ends_early || between_streams, "%s cut to %zu: nothing said", name, n);
        open_bytes(&s, &file);
        EXPECT_OK(read_rest(&in_bytes, &s, 1));
        EXPECT(in_bytes.n == out.n, "%s cut to %zu: %zu bytes, one by one %zu", name, n, out.n, in_bytes.n);
    }
    byte_stream_fini(&s);
    buf_fini(&file);
    buf_fini(&out);
    buf_fini(&in_bytes);
}

static void damaged_gzip_is_an_error(void)
{
    struct buf file = golden_file("text.gz"), out = {0};
    struct byte_stream s;
    byte_stream_init(&s);
    file.data[file.n / 2] ^= 0x10;
    open_bytes(&s, &file);
    EXPECT_ERROR(read_rest(&out, &s, 5000), STATUS_DATA, "is damaged: its gzip data is wrong at byte ");
    byte_stream_fini(&s);
    buf_fini(&file);
    buf_fini(&out);
}

/* Anything that begins like a bzip2 file, of random bits behind, ends. */
static void noise_ends(void)
{
    struct buf file = golden_file("text.bz2"), out = {0};
    struct byte_stream s;
    uint32_t x = 1;
    byte_stream_init(&s);
    for (int round = 0; round < 50; round++) {
        for (size_t i = 10; i < file.n; i += 1 + x % 300) {
            x = x * 1664525 + 1013904223;
            file.data[i] = (char)(x >> 24);
        }
        buf_clear(&out);
        open_bytes(&s, &file);
        EXPECT_OK(read_rest(&out, &s, 5000));
    }
    byte_stream_fini(&s);
    buf_fini(&file);
    buf_fini(&out);
}

/* Another process cuts the file between two reads of places. */
static void a_cut_under_the_reader_is_told(void)
{
    struct buf text = {0};
    struct byte_stream s;
    char bytes[300];
    buf_append(&text, lines.data, 5000);
    byte_stream_init(&s);
    open_bytes(&s, &text);
    EXPECT_OK(byte_stream_read_file(&s, bytes, sizeof bytes, 4700));
    EXPECT(memcmp(bytes, text.data + 4700, sizeof bytes) == 0, "other bytes");
    EXPECT(truncate(fixture_path("file"), 100) == 0, "truncate");
    EXPECT_ERROR(byte_stream_read_file(&s, bytes, sizeof bytes, 0), STATUS_IO,
                 "was cut from 5000 to 100 bytes");
    byte_stream_fini(&s);
    buf_fini(&text);
}

int main(void)
{
    EXPECT_OK(safetensors_open(&golden, KILN_SOURCE_DIR "/tests/golden/streams.safetensors"));
    make_lines();
    files_read_as_what_was_compressed();
    reading_goes_on_from_places("text.bz2");
    reading_goes_on_from_places("many.bz2");
    reading_goes_on_from_places("text.gz");
    damage_leaves_a_gap();
    a_wrong_sum_of_a_stream_is_damage();
    cut_files_are_read_up_to_there("text.bz2");
    cut_files_are_read_up_to_there("many.bz2");
    cut_files_are_read_up_to_there("text.gz");
    damaged_gzip_is_an_error();
    a_cut_under_the_reader_is_told();
    noise_ends();
    buf_fini(&lines);
    safetensors_close(&golden);
    fixture_remove();
    return 0;
}
