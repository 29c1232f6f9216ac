/* fuzz_documents: any bytes as a file of text.  What comes out is trimmed, valid UTF-8 without line ends,
 * begins with a document, and is as much as the counts say.  Input: one byte for the settings, the rest is
 * the file. */
#include "corpus/documents.h"
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

static void read_everything(struct documents *d)
{
    int64_t n_documents = 0, n_paragraphs = 0;
    bool end = false;
    for (;;) {
        struct documents_text t;
        if (failed(documents_next(d, &t, &end)) || end) {
            break;
        }
        CHECK(t.n > 0 && memchr(t.text, '\n', t.n) == NULL && utf8_find_invalid(t.text, t.n) == t.n,
              "paragraph");
        CHECK(strchr(" \t\r\v\f", t.text[0]) == NULL || t.text[0] == '\0', "space in front");
        CHECK(t.starts_document || n_paragraphs > 0, "the first paragraph starts a document");
        n_documents += t.starts_document;
        n_paragraphs++;
    }
    CHECK(d->n_documents == n_documents && documents_done_bytes(d) <= d->total_bytes, "counts");
    CHECK(!end || (documents_done_bytes(d) == d->total_bytes &&
                   (n_documents > 0 || d->n_empty_documents > 0 || d->format == DOCUMENTS_WIKI)),
          "the end");
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
    struct documents d;
    if (!failed(documents_open(&d, &input, 1, data[0] % DOCUMENTS_N_FORMATS, data[0] & 8))) {
        read_everything(&d);
        documents_close(&d);
    }
    return 0;
}
