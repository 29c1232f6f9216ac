/* fuzz_documents: any bytes as a file of text, compressed or not.  What comes out is trimmed, valid UTF-8
 * without line ends, begins with a document, and is as much as the counts say.  Input: one byte for the
 * settings and the places from which reading goes on anew, the rest is the file. */
#include "corpus/corpus.h"
#include "corpus/corpus_pass.h"
#include "corpus/source_formats.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char path[] = "/dev/shm/kiln-fuzz-XXXXXX"; /* in memory: 50 times faster */

static void remove_file(void)
{
    unlink(path);
}

static void check_paragraph(struct paragraph p)
{
    CHECK(p.n > 0 && memchr(p.text, '\n', p.n) == NULL && utf8_find_invalid(p.text, p.n) == p.n, "paragraph");
    CHECK(strchr(" \t\r\v\f", p.text[0]) == NULL || p.text[0] == '\0', "space in front");
}

/* Reads everything, and goes on as another run would where `seeks` has a bit for the piece. */
static void read_everything(struct corpus *c, unsigned seeks)
{
    struct document d = {0};
    struct converter converter;
    int64_t n_documents = 0, n_raw = 0, n_pieces = 0;
    bool end = false, is_packed = false;
    converter_init(&converter, &c->options);
    while (!failed(corpus_next(c, &d, &end)) && !end) {
        CHECK(!failed(converter_run(&converter, &d)), "memory");
        CHECK((d.n_paragraphs > 0) == (d.fate == DOCUMENT_KEPT), "an empty piece");
        is_packed = byte_stream_is_packed(&c->source.reader.stream);
        for (int64_t i = 0; i < d.n_paragraphs; i++) {
            check_paragraph(document_paragraph(&d, i));
        }
        CHECK(d.begins || n_pieces > 0 || d.format != NULL, "the first piece begins a document");
        n_documents += d.begins && d.format == NULL;
        n_raw += d.format != NULL;
        uint64_t done = corpus_done_bytes(c);
        if (seeks >> (n_pieces++ % 4) & 1) {
            CHECK(!failed(corpus_seek(c, corpus_place(c))) && (is_packed || corpus_done_bytes(c) == done),
                  "seek");
        }
    }
    CHECK(corpus_done_bytes(c) <= c->files.total_bytes, "bytes done");
    CHECK(!end || (corpus_done_bytes(c) == c->files.total_bytes && c->counts.n_documents == n_documents),
          "the end");
    const int64_t *n_by_format = c->counts.n_by_format;
    CHECK(!end || n_documents + n_raw > 0 || c->counts.n_empty_documents > 0 ||
              n_by_format[source_formats_index(&text_source)] +
                      n_by_format[source_formats_index(&lines_source)] ==
                  0,
          "a file without documents");
    converter_fini(&converter);
    document_fini(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static int fd = -1;
    if (fd < 0) {
        fd = mkstemp(path);
        CHECK(fd >= 0, "mkstemp");
        atexit(remove_file);
    }
    if (n == 0) {
        return 0;
    }
    CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, data + 1, n - 1, 0) == (ssize_t)(n - 1), "write");
    const char *input = path;
    int format = (data[0] & 7) - 1;
    bool is_format = format >= 0 && format < SOURCE_N_FORMATS;
    struct source_options o = {.format = is_format ? source_formats[format] : NULL,
                               .replace_invalid_utf8 = data[0] & 8};
    struct corpus c;
    if (!failed(corpus_open(&c, &input, 1, o))) {
        read_everything(&c, data[0] >> 4);
        corpus_close(&c);
    }
    return 0;
}
