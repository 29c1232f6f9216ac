/* document_lines: the texts of JSON lines as token ids, a block of lines at a time, on all threads.
 *
 * The rule: the text of a field is encoded as it is, line ends and blanks included; what a block holds
 * depends on the file alone.  Memory is bounded: a block is about DOCUMENT_LINES_BYTES of text, or one line,
 * and its ids.  A line that cannot be used has a fault, and is no error here. */
#ifndef KILN_CORPUS_DOCUMENT_LINES_H
#define KILN_CORPUS_DOCUMENT_LINES_H

#include "corpus/text_reader.h"
#include "text/tokenizer.h"

enum {
    DOCUMENT_LINES_BYTES = 1 << 23, /* tens of milliseconds of encoding, far above the start of threads */
    DOCUMENT_LINES_MOST_KEYS = 8,
};

/* Whether the name of a file says that it is lines of JSON, packed or not. */
bool document_lines_are_named(const char *path);

enum document_fault {
    DOCUMENT_LINE_GOOD,
    DOCUMENT_LINE_TOO_LONG,
    DOCUMENT_LINE_NOT_UTF8,
    DOCUMENT_LINE_NOT_JSON,
    DOCUMENT_LINE_WITHOUT_KEY,
    DOCUMENT_LINE_NO_STRING,
};

/* Names of the faults of a line, for messages. */
extern const char *const document_fault_texts[];

struct document_lines_config {
    const struct tokenizer *tokenizer; /* borrowed */
    const char *const *keys;           /* [n_keys] */
    int n_keys;
    bool append_end;           /* the tokenizer's end token, to each text that has tokens */
    bool replace_invalid_utf8; /* replace it by U+FFFD; else it is a fault */
};

/* The ids of a text, in the list of the thread that encoded it. */
struct document_tokens {
    int part;
    size_t start, n;
};

struct document_line {
    size_t start, n; /* bytes of the block's text */
    int64_t number;  /* number of the line in its file */
    enum document_fault fault;
    struct document_tokens tokens[DOCUMENT_LINES_MOST_KEYS];
};

struct document_lines {
    struct document_lines_config config;
    struct buf text;
    struct document_line *lines; /* [n] */
    size_t n, capacity;
    struct document_encoder *encoders; /* [n_parts] */
    int n_parts;
    _Atomic size_t next; /* line to encode */
};

/* STATUS_MEMORY; STATUS_DATA: the tokenizer has no end token.  Fini is safe on a zeroed struct and after a
 * failed init. */
struct status document_lines_init(struct document_lines *d, struct document_lines_config config);
void document_lines_fini(struct document_lines *d);

/* Reads and encodes the next block; n is 0 at the end of the file. */
struct status document_lines_next(struct document_lines *d, struct text_reader *r);

/* The ids of a text of a good line. */
const int32_t *document_lines_ids(const struct document_lines *d, const struct document_line *line, int key,
                                  size_t *n);

#endif
