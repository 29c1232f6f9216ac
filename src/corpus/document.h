/* document: paragraphs of the user's text, as a source returns them: a complete document, or a piece of a
 * long one.  Where that takes work, as with markup, the source returns a raw document, and any thread
 * converts it (corpus/corpus_pass.h).
 *
 * The rule: a paragraph is valid UTF-8, trimmed, not empty and without line ends; a piece ends where a
 * paragraph ends.  Of an exact document a paragraph is a complete text instead, or a piece of one, with its
 * line ends and blanks.  So a document takes little memory: about DOCUMENT_BYTES, and at most one paragraph
 * more; a raw one at most DOCUMENT_RAW_BYTES. */
#ifndef KILN_CORPUS_DOCUMENT_H
#define KILN_CORPUS_DOCUMENT_H

#include "core/buf.h"

enum {
    DOCUMENT_BYTES = 1 << 20, /* longest text; a longer document is returned in pieces: this is two books */
    DOCUMENT_PARAGRAPH_BYTES = 1 << 24, /* longer paragraphs are cut; no prose has a longer one */
    DOCUMENT_RAW_BYTES = 1 << 24,       /* longest page or line of JSON; a longer one is left out */
};

struct source_format;
struct wiki_site;

/* Whether a raw document has become text, or why not. */
enum document_fate {
    DOCUMENT_KEPT,
    DOCUMENT_WITHOUT_TEXT,
    DOCUMENT_REDIRECT,
    DOCUMENT_OTHER_NAMESPACE, /* page of a wiki that is no article: a talk page, a user's page, a template */
    DOCUMENT_OTHER_MODEL,     /* not wikitext: JSON, CSS */
    DOCUMENT_MALFORMED,       /* XML or JSON that is none */
    DOCUMENT_WITHOUT_FIELD,   /* JSON without the field of the text */
    DOCUMENT_TOO_LARGE,
    DOCUMENT_TOO_DEEP, /* markup nested beyond the limit */
    DOCUMENT_TOO_MUCH_WORK,
    DOCUMENT_CUT,       /* cut by the end of the file or a damaged part */
    DOCUMENT_TOO_SHORT, /* these are left out by cleaning (corpus/cleaning.h), if asked for */
    DOCUMENT_OTHER_SCRIPT,
    DOCUMENT_DUPLICATE,
    DOCUMENT_NEAR_DUPLICATE,
    DOCUMENT_NOT_UTF8,        /* the fates of a line of JSON whose text is kept exactly */
    DOCUMENT_NO_STRING,       /* the field of the text has another value */
    DOCUMENT_NUMBER_OF_WORDS, /* left out by cleaning, too: limits of corpus/quality.h */
    DOCUMENT_WORD_LENGTH,
    DOCUMENT_SYMBOLS,
    DOCUMENT_REPEATED_LINES,
    DOCUMENT_REPEATED_WORDS,
    DOCUMENT_CONTAMINATED, /* it has words of an evaluation (corpus/evaluation_words.h) */
    DOCUMENT_N_FATES,
};

/* "kept", "redirects", ...: what to call such documents in a report. */
extern const char *const document_fate_names[DOCUMENT_N_FATES];

/* "kept", "redirect", ...: what they are called in JSON. */
extern const char *const document_fate_keys[DOCUMENT_N_FATES];

struct paragraph {
    const char *text; /* [n] borrowed from the document */
    size_t n;
};

struct document {
    bool begins;          /* false: it continues the document of the piece before */
    bool is_exact;        /* the text is as the file has it; a line of JSON has a paragraph for each key */
    int64_t n_paragraphs; /* number of paragraphs, at least 1 when a source returns the document */
    struct buf id, title, url; /* set if the format has them, and only in the first piece; else empty */
    struct buf fields;         /* further fields of a line of JSON that are kept: , "name": value, ... */
    struct buf text;           /* the paragraphs end to end */
    size_t *ends, capacity;    /* [n_paragraphs] where paragraphs end in `text` */

    /* Fields of a raw document, which has no paragraphs before it is converted. */
    const struct source_format *format; /* format that converts it; NULL: the document is not raw */
    struct buf raw;                     /* bytes as the file has them */
    const struct wiki_site *site;       /* wiki of the page; borrowed from the corpus */
    enum document_fate fate;            /* not DOCUMENT_KEPT: it is left out */
};

/* A zeroed struct is empty. */
void document_fini(struct document *d);
void document_clear(struct document *d); /* keeps the memory */

/* Whether there is something to convert, to use or to count. */
bool document_is_there(const struct document *d);

/* Paragraph i of a document. */
struct paragraph document_paragraph(const struct document *d, int64_t i);

/* Bytes of the paragraph being written: those that were appended to `text` since the last end. */
size_t document_open_bytes(const struct document *d);

/* Ends the paragraph that was appended to `text`.  STATUS_MEMORY, also if an append has failed. */
struct status document_end_paragraph(struct document *d);

#endif
