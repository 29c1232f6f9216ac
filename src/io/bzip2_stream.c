/* bzip2_stream: a bzip2 file of one or many streams, unpacked in several threads.
 *
 * Marks in the file show where blocks begin (io/bzip2_block.h).  Blocks found wait in a ring; any thread
 * unpacks the next that nobody has begun, and the reading thread takes them in order.  If the one it needs is
 * not ready and nobody has begun it, it unpacks that block itself, so it never depends on helpers. */
#include "core/parallel.h"
#include "io/bzip2_block.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* most memory that an idle block keeps: a block of text needs less, one of repeated bytes up to 46 MB */
    KEPT_BYTES = 4 << 20,
    NAMED_BLOCKS = 10, /* damaged blocks that get a line each */
    MAGIC_BYTES = BZIP2_MAGIC_BITS / 8,
    CRC_BITS = 32,
};

enum block_state { BLOCK_FOUND, BLOCK_BEGUN, BLOCK_DONE };

struct block {
    uint64_t begin, end;   /* bits of the file */
    enum bzip2_mark after; /* kind of the mark at `end` */
    uint32_t stream_crc;   /* check sum of the stream, if that mark is its end */
    enum block_state state;
    bool good;
    uint32_t crc;
    struct bzip2_bytes bytes;
    struct status status; /* an error other than damage */
};

/* Block i is blocks[i % n_blocks].  n_taken <= n_begun <= n_found <= n_taken + n_blocks. */
struct bzip2 {
    const struct byte_stream *stream;
    struct block *blocks;
    int64_t n_blocks;

    /* fields of the reading thread */
    size_t block_at;      /* bytes taken of block n_taken */
    int64_t absorbed;     /* number of a block that was part of the one before it, or -1 */
    uint32_t stream_crc;  /* check sum of the blocks of this stream so far */
    bool stream_is_whole; /* all blocks of this stream were read, and were good */
    struct byte_place first, places[BYTE_STREAM_PLACES];
    int64_t n_places;

    pthread_mutex_t mutex; /* guards all fields below */
    pthread_cond_t changed;
    int64_t n_found, n_begun, n_taken;
    bool is_scanning, found_all;
    bool tail_is_cut;    /* found_all: the file ends within the end of a stream, or in the head of one */
    uint64_t next_begin; /* bit where the next block begins */
    struct status scan_status;
    struct bzip2_scan scan;
};

/* A file of fewer bytes than a head has is one if these begin a head: it was cut. */
static bool recognises(const unsigned char *head, size_t n)
{
    static const unsigned char magics[2][MAGIC_BYTES] = {"1AY&SY", {0x17, 0x72, 0x45, 0x38, 0x50, 0x90}};
    size_t n_magic = n < 4 ? 0 : n < 4 + MAGIC_BYTES ? n - 4 : MAGIC_BYTES;
    return n >= 4 && memcmp(head, "BZh", 3) == 0 && head[3] >= '1' && head[3] <= '9' &&
           (memcmp(head + 4, magics[0], n_magic) == 0 || memcmp(head + 4, magics[1], n_magic) == 0);
}

/* ---- finding blocks ---- */

/* Reads the check sum after a mark. */
static struct status read_stream_crc(const struct byte_stream *s, uint64_t mark, uint32_t *crc)
{
    unsigned char b[5] = {0};
    uint64_t at = mark + BZIP2_MAGIC_BITS, window = 0;
    size_t n = at % 8 == 0 ? 4 : 5;
    *crc = 0;
    if (at / 8 + n > s->file_bytes) {
        return status_ok(); /* the file is cut within it, which check_tail says */
    }
    TRY(byte_stream_read_file(s, b, n, at / 8));
    for (size_t i = 0; i < sizeof b; i++) {
        window = window << 8 | b[i];
    }
    *crc = (uint32_t)(window >> (8 - at % 8));
    return status_ok();
}

/* Whether the file, in which no block follows the end of the stream at this bit, ends within that end or in
 * the head of another stream.  Other bytes, such as padding, are ignored, as bunzip2 does. */
static struct status check_tail(struct bzip2 *z, uint64_t stream_end)
{
    uint64_t tail = (stream_end + 7) / 8, n_bytes = z->stream->file_bytes;
    unsigned char head[3];
    size_t n = tail >= n_bytes ? 0 : n_bytes - tail < sizeof head ? (size_t)(n_bytes - tail) : sizeof head;
    TRY(byte_stream_read_file(z->stream, head, n, tail));
    z->tail_is_cut = tail > n_bytes || (n > 0 && memcmp(head, "BZh", n) == 0);
    return status_ok();
}

/* Sets next_begin to the first block at or after the bit, or found_all. */
static struct status find_begin(struct bzip2 *z, uint64_t bit)
{
    enum bzip2_mark mark;
    uint64_t stream_end = bit;
    TRY(bzip2_block_next(&z->scan, z->stream, &bit, &mark));
    while (mark == BZIP2_STREAM_END) {
        stream_end = bit += BZIP2_MAGIC_BITS + CRC_BITS;
        TRY(bzip2_block_next(&z->scan, z->stream, &bit, &mark));
    }
    z->next_begin = bit;
    z->found_all = mark == BZIP2_FILE_END;
    return z->found_all ? check_tail(z, stream_end) : status_ok();
}

/* Fills the block that begins at next_begin. */
static struct status find_block(struct bzip2 *z, struct block *b)
{
    uint64_t bit = z->next_begin + BZIP2_MAGIC_BITS;
    b->begin = z->next_begin;
    b->state = BLOCK_FOUND;
    b->status = status_ok();
    b->bytes.n = 0;
    TRY(bzip2_block_next(&z->scan, z->stream, &bit, &b->after));
    b->end = bit;
    if (b->after == BZIP2_STREAM_END) {
        TRY(read_stream_crc(z->stream, bit, &b->stream_crc));
        return find_begin(z, bit + BZIP2_MAGIC_BITS + CRC_BITS);
    }
    z->next_begin = bit;
    z->found_all = b->after == BZIP2_FILE_END;
    return status_ok();
}

/* ---- jobs, which any thread does; with the mutex, which is free while they work ---- */

static struct block *block_of(struct bzip2 *z, int64_t number)
{
    return &z->blocks[number % z->n_blocks];
}

static void do_scan(struct bzip2 *z)
{
    struct block *b = block_of(z, z->n_found);
    z->is_scanning = true;
    pthread_mutex_unlock(&z->mutex);
    struct status s = find_block(z, b);
    pthread_mutex_lock(&z->mutex);
    z->is_scanning = false;
    z->n_found += !failed(s);
    z->scan_status = s;
}

static void do_unpack(struct bzip2 *z)
{
    struct block *b = block_of(z, z->n_begun++);
    b->state = BLOCK_BEGUN;
    pthread_mutex_unlock(&z->mutex);
    b->status = bzip2_block_unpack(&b->bytes, z->stream, b->begin, b->end, &b->good, &b->crc);
    pthread_mutex_lock(&z->mutex);
    b->state = BLOCK_DONE;
}

static bool do_job(struct bzip2 *z)
{
    bool room = z->n_found < z->n_taken + z->n_blocks;
    if (z->n_begun < z->n_found) {
        do_unpack(z);
    } else if (!z->is_scanning && !z->found_all && !failed(z->scan_status) && room) {
        do_scan(z);
    } else {
        return false;
    }
    pthread_cond_broadcast(&z->changed);
    return true;
}

static bool help_bzip2(struct byte_stream *s)
{
    struct bzip2 *z = s->state;
    pthread_mutex_lock(&z->mutex);
    bool did = do_job(z);
    pthread_mutex_unlock(&z->mutex);
    return did;
}

/* Works, or waits for a helper, until block `number` is found and, if `done`, unpacked; *there is false if
 * the file has no such block. */
static struct status wait_for_block(struct bzip2 *z, int64_t number, bool done, bool *there)
{
    struct status s = status_ok();
    pthread_mutex_lock(&z->mutex);
    for (;;) {
        *there = number < z->n_found;
        if (*there && (!done || block_of(z, number)->state == BLOCK_DONE)) {
            break;
        }
        if (!*there && (failed(z->scan_status) || (z->found_all && !z->is_scanning))) {
            s = z->scan_status;
            break;
        }
        if (!do_job(z)) {
            pthread_cond_wait(&z->changed, &z->mutex);
        }
    }
    pthread_mutex_unlock(&z->mutex);
    return s;
}

/* ---- the reading thread ---- */

/* A block that is not one with its end may be one with the next: the mark between them was chance.  Then the
 * block takes in what belongs to it. */
static struct status retry_block(struct bzip2 *z, struct block *b)
{
    bool there;
    TRY(wait_for_block(z, z->n_taken + 1, false, &there));
    if (!there) {
        return status_ok();
    }
    const struct block *next = block_of(z, z->n_taken + 1);
    bool takes_next = next->begin == b->end; /* false: the mark was an end of a stream */
    uint64_t end = takes_next ? next->end : next->begin;
    TRY(bzip2_block_unpack(&b->bytes, z->stream, b->begin, end, &b->good, &b->crc));
    if (b->good) {
        b->after = takes_next ? next->after : BZIP2_BLOCK;
        b->stream_crc = takes_next ? next->stream_crc : 0;
        b->end = end;
        z->absorbed = takes_next ? z->n_taken + 1 : -1;
    }
    return status_ok();
}

static void report_damage(struct byte_stream *s, const char *what, uint64_t begin, uint64_t end)
{
    s->n_damaged++;
    if (s->n_damaged <= NAMED_BLOCKS) {
        byte_stream_warn(s, "%s at bytes %llu to %llu is damaged, so its text is left out", what,
                         (unsigned long long)(begin / 8), (unsigned long long)((end + 7) / 8));
    } else if (s->n_damaged == NAMED_BLOCKS + 1) {
        byte_stream_warn(s, "more blocks are damaged; the summary at the end counts them");
    }
}

static void report_block(struct byte_stream *s, struct bzip2 *z, const struct block *b)
{
    z->stream_is_whole = false;
    if (b->after == BZIP2_FILE_END) {
        byte_stream_warn(s, "it is cut short in the block at byte %llu; the data before the end is used",
                         (unsigned long long)(b->begin / 8));
        s->ends_early = true;
    } else {
        report_damage(s, "the bzip2 block", b->begin, b->end);
        s->at_gap = true;
    }
}

/* At the end of a stream its check sum must be that of its blocks (bzip2's format: each rotates the sum). */
static void check_stream(struct byte_stream *s, struct bzip2 *z, const struct block *b)
{
    z->stream_crc = (z->stream_crc << 1 | z->stream_crc >> 31) ^ b->crc;
    if (b->after == BZIP2_FILE_END && b->good) {
        byte_stream_warn(
            s, "it is cut short before the end of its bzip2 stream; the data before the end is used");
        s->ends_early = true;
    }
    if (b->after == BZIP2_STREAM_END) {
        if (z->stream_is_whole && z->stream_crc != b->stream_crc) {
            byte_stream_warn(s,
                             "the checksum of the bzip2 stream that ends at byte %llu does not match its "
                             "blocks; blocks may be missing",
                             (unsigned long long)(b->end / 8));
            s->n_damaged++;
        }
        z->stream_crc = 0;
        z->stream_is_whole = true;
    }
}

static void drop_block(struct byte_stream *s, struct bzip2 *z, struct block *b)
{
    s->file_at = (b->end + 7) / 8;
    if (b->bytes.capacity > KEPT_BYTES) {
        free(b->bytes.data);
        b->bytes = (struct bzip2_bytes){0};
    }
    z->block_at = 0;
    pthread_mutex_lock(&z->mutex);
    z->n_taken++;
    pthread_cond_broadcast(&z->changed);
    pthread_mutex_unlock(&z->mutex);
}

/* Opens the block n_taken for reading: adds a place, or reports what is wrong with it. */
static struct status begin_block(struct byte_stream *s, struct bzip2 *z, struct block *b)
{
    TRY(b->status);
    if (!b->good && b->after != BZIP2_FILE_END) {
        TRY(retry_block(z, b));
    }
    if (b->good) {
        z->places[z->n_places++ % BYTE_STREAM_PLACES] =
            (struct byte_place){.from_bit = b->begin, .from_offset = s->offset};
    } else {
        report_block(s, z, b);
    }
    check_stream(s, z, b);
    return status_ok();
}

static void end_of_file(struct byte_stream *s, const struct bzip2 *z)
{
    if (z->tail_is_cut && !s->ends_early) {
        byte_stream_warn(s, "it is cut short between two blocks; the data before the end is used");
        s->ends_early = true;
    }
    s->file_at = s->file_bytes;
}

static struct status read_bzip2(struct byte_stream *s, void *to, size_t n, size_t *got)
{
    struct bzip2 *z = s->state;
    while (*got == 0 && !s->at_gap) {
        bool there;
        TRY(wait_for_block(z, z->n_taken, true, &there));
        if (!there) {
            end_of_file(s, z);
            return status_ok();
        }
        struct block *b = block_of(z, z->n_taken);
        bool is_absorbed = z->absorbed == z->n_taken;
        if (z->block_at == 0 && !is_absorbed) {
            TRY(begin_block(s, z, b));
        }
        size_t left = is_absorbed || !b->good ? 0 : b->bytes.n - z->block_at;
        *got = n < left ? n : left;
        if (*got > 0) { /* a bad block may have no bytes at all */
            memcpy(to, b->bytes.data + z->block_at, *got);
            z->block_at += *got;
        }
        if (*got == left) {
            drop_block(s, z, b);
        }
    }
    return status_ok();
}

static struct byte_place place_of(const struct byte_stream *s, uint64_t offset)
{
    const struct bzip2 *z = s->state;
    struct byte_place found = z->first;
    int64_t oldest = z->n_places > BYTE_STREAM_PLACES ? z->n_places - BYTE_STREAM_PLACES : 0;
    for (int64_t i = z->n_places - 1; i >= oldest; i--) {
        const struct byte_place *p = &z->places[i % BYTE_STREAM_PLACES];
        if (p->from_offset <= offset) {
            found = *p;
            break;
        }
    }
    found.offset = offset;
    return found;
}

/* Begins at a bit where a block begins. */
static struct status begin_at(struct byte_stream *s, struct bzip2 *z, struct byte_place place)
{
    z->n_found = z->n_begun = z->n_taken = z->n_places = 0;
    z->block_at = 0;
    z->absorbed = -1;
    z->tail_is_cut = false;
    z->stream_crc = 0;
    z->stream_is_whole = place.from_bit == 0;
    z->scan_status = status_ok();
    z->first = (struct byte_place){.from_bit = place.from_bit, .from_offset = place.from_offset};
    s->offset = place.from_offset;
    s->file_at = place.from_bit / 8;
    return find_begin(z, place.from_bit);
}

static struct status seek_bzip2(struct byte_stream *s, struct byte_place place)
{
    struct bzip2 *z = s->state;
    TRY(begin_at(s, z, place));
    FAIL_IF(place.from_bit > 0 && z->next_begin != place.from_bit, STATUS_DATA,
            "%s has no bzip2 block at byte %llu, where reading should continue: the file has changed",
            s->path, (unsigned long long)(place.from_bit / 8));
    return byte_stream_skip(s, place.offset);
}

static void close_bzip2(struct byte_stream *s)
{
    struct bzip2 *z = s->state;
    for (int64_t i = 0; i < z->n_blocks; i++) {
        free(z->blocks[i].bytes.data);
    }
    free(z->blocks);
    pthread_cond_destroy(&z->changed);
    pthread_mutex_destroy(&z->mutex);
    free(z);
    s->state = NULL;
}

static struct status open_bzip2(struct byte_stream *s)
{
    struct bzip2 *z = calloc(1, sizeof *z);
    FAIL_IF(z == NULL, STATUS_MEMORY, "out of memory to unpack %s", s->path);
    z->stream = s;
    pthread_mutex_init(&z->mutex, NULL);
    pthread_cond_init(&z->changed, NULL);
    s->state = z;
    /* two blocks for each thread, one that it unpacks and one that waits to be read, and one more that is
     * being read */
    z->n_blocks = 2 * (int64_t)parallel_n_parts() + 1;
    z->blocks = calloc((size_t)z->n_blocks, sizeof *z->blocks);
    struct status status = z->blocks == NULL
                               ? status_error(STATUS_MEMORY, "out of memory to unpack %s", s->path)
                               : begin_at(s, z, (struct byte_place){0});
    if (failed(status)) {
        close_bzip2(s);
    }
    return status;
}

const struct byte_stream_kind bzip2_stream = {
    .name = "bzip2",
    .recognises = recognises,
    .open = open_bzip2,
    .read = read_bzip2,
    .seek = seek_bzip2,
    .place = place_of,
    .help = help_bzip2,
    .close = close_bzip2,
};
