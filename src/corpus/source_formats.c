#include "corpus/source_formats.h"

#include "corpus/dump_index.h"
#include "corpus/not_text.h"
#include "text/utf8.h"

#include <string.h>

const struct source_format *const source_formats[SOURCE_N_FORMATS] = {
    &text_source, &lines_source, &wiki_source, &json_source, &dump_source};

bool source_formats_find(const struct source_format **format, const char *name)
{
    *format = NULL;
    for (int i = 0; i < SOURCE_N_FORMATS; i++) {
        if (strcmp(name, source_formats[i]->name) == 0) {
            *format = source_formats[i];
        }
    }
    return *format != NULL || strcmp(name, "auto") == 0;
}

int source_formats_index(const struct source_format *format)
{
    int i = SOURCE_N_FORMATS - 1;
    while (i > 0 && source_formats[i] != format) {
        i--;
    }
    return i;
}

static bool ends_with(const char *path, size_t n, const char *ending)
{
    size_t n_ending = strlen(ending);
    return n >= n_ending && memcmp(path + n - n_ending, ending, n_ending) == 0;
}

bool source_formats_names_json(const char *path)
{
    static const char *const packed[] = {".gz", ".bz2", ".xz", ".zst"}, *const lines[] = {".json", ".jsonl",
                                                                                          ".ndjson"};
    size_t n = strlen(path);
    bool is = false;
    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++) {
        n -= ends_with(path, n, packed[i]) ? strlen(packed[i]) : 0;
    }
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        is = is || ends_with(path, n, lines[i]);
    }
    return is;
}

/* One that corpus_open has not looked for. */
static const struct not_text index_of_dump = {
    "the index of a multistream dump", "leave it out, or put \"index\" into its name, and kiln uses it",
    true};

/* The user may choose to read a file that consists of characters as prose. */
static struct status check_text(const struct source_format *wanted, const char *path, const char *head,
                                size_t n)
{
    const struct not_text *found = not_text_find(head, n);
    found = found == NULL && dump_index_recognises(head, n) ? &index_of_dump : found;
    if (found == NULL || (found->is_readable && wanted != NULL && wanted->is_prose)) {
        found = not_text_find_binary(head, n);
    }
    return found == NULL
               ? status_ok()
               : not_text_refuse(found, path,
                                 found->is_readable ? "; --input_format text reads it as text anyway" : "");
}

/* The last row, of those that convert or of the others, that recognises the beginning of a file; NULL:
 * none. */
static const struct source_format *recognise(const char *head, size_t n, bool converts)
{
    for (int i = SOURCE_N_FORMATS - 1; i > 0; i--) {
        const struct source_format *f = source_formats[i];
        if ((f->convert != NULL) == converts && f->recognises(head, n)) {
            return f;
        }
    }
    return NULL;
}

struct status source_formats_choose(const struct source_format **format, const struct source_format *wanted,
                                    const char *path, const char *head, size_t n)
{
    if (n == 0) {
        *format = source_formats[0]; /* an empty file is an empty document, whatever format was asked for */
        return status_ok();
    }
    size_t mark = utf8_mark_bytes(head, n);
    size_t n_head = n < mark + TEXT_READER_HEAD_BYTES ? n - mark : TEXT_READER_HEAD_BYTES;
    *format = wanted == NULL ? recognise(head + mark, n_head, true) : wanted;
    if (*format != NULL && (*format)->convert != NULL) { /* the format checks each document */
        const struct not_text *found = not_text_find(head, n);
        return found == NULL || found->is_readable ? status_ok() : not_text_refuse(found, path, "");
    }
    TRY(check_text(wanted, path, head, n));
    *format = *format == NULL ? recognise(head + mark, n_head, false) : *format;
    *format = *format == NULL ? source_formats[0] : *format;
    return status_ok();
}
