#include "corpus/documents.h"

#include "corpus/not_text.h"
#include "text/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const format_names[DOCUMENTS_N_FORMATS] = {"auto", "text", "lines", "wiki"};

bool documents_find_format(const char *name, enum documents_format *format)
{
    for (int i = 0; i < DOCUMENTS_N_FORMATS; i++) {
        if (strcmp(name, format_names[i]) == 0) {
            *format = (enum documents_format)i;
            return true;
        }
    }
    return false;
}

const char *documents_format_name(enum documents_format format)
{
    return format_names[format];
}

/* ---- the list of files ---- */

static struct status add_file(struct documents *d, const char *path, uint64_t n_bytes)
{
    if (d->n_files == d->capacity) {
        int64_t capacity = d->capacity == 0 ? 64 : 2 * d->capacity;
        struct documents_file *files = realloc(d->files, (size_t)capacity * sizeof *files);
        if (files == NULL) {
            return status_error(STATUS_MEMORY, "out of memory for a list of %lld files", (long long)capacity);
        }
        d->files = files;
        d->capacity = capacity;
    }
    char *copy = strdup(path);
    if (copy == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the path %s", path);
    }
    d->files[d->n_files++] = (struct documents_file){copy, n_bytes};
    d->total_bytes += n_bytes;
    return status_ok();
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static struct status add_tree(struct documents *d, const char *path, int depth);

static struct status add_entry(struct documents *d, const char *directory, const char *name, int depth)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path) {
        return status_error(STATUS_DATA, "a path in %.60s... is longer than %zu bytes", directory,
                            sizeof path - 1);
    }
    struct stat info;
    if (stat(path, &info) != 0) {
        return status_error(STATUS_DATA, "cannot read %s: %s", path, strerror(errno));
    }
    if (S_ISDIR(info.st_mode)) {
        return add_tree(d, path, depth + 1);
    }
    return S_ISREG(info.st_mode) ? add_file(d, path, (uint64_t)info.st_size) : status_ok();
}

static struct status add_tree(struct documents *d, const char *path, int depth)
{
    enum { MAX_DEPTH = 64 }; /* deeper is a loop of symbolic links */
    if (depth > MAX_DEPTH) {
        return status_error(STATUS_DATA, "%.200s... is more than %d directories deep; is it a loop of links?",
                            path, MAX_DEPTH);
    }
    struct dirent **entries;
    int n = scandir(path, &entries, is_visible, by_bytes);
    if (n < 0) {
        return status_error(STATUS_DATA, "cannot list the directory %s: %s", path, strerror(errno));
    }
    struct status s = status_ok();
    for (int i = 0; i < n; i++) {
        if (!failed(s)) {
            s = add_entry(d, path, entries[i]->d_name, depth);
        }
        free(entries[i]);
    }
    free(entries);
    return s;
}

static struct status add_input(struct documents *d, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return status_error(STATUS_DATA, "cannot read the input %s: %s", path, strerror(errno));
    }
    if (S_ISDIR(info.st_mode)) {
        int64_t n_before = d->n_files;
        TRY(add_tree(d, path, 0));
        return d->n_files > n_before ? status_ok()
                                     : status_error(STATUS_DATA, "the directory %s has no files", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return status_error(STATUS_DATA, "the input %s is neither a file nor a directory", path);
    }
    if (info.st_size == 0) {
        return status_error(STATUS_DATA, "the input %s is empty", path);
    }
    return add_file(d, path, (uint64_t)info.st_size);
}

struct status documents_open(struct documents *d, const char *const *inputs, int n_inputs,
                             enum documents_format format, bool replace_invalid_utf8)
{
    *d = (struct documents){.wanted = format, .replace_invalid_utf8 = replace_invalid_utf8};
    for (int i = 0; i < n_inputs; i++) {
        struct status s = add_input(d, inputs[i]);
        if (failed(s)) {
            documents_close(d);
            return s;
        }
    }
    return status_ok();
}

void documents_close(struct documents *d)
{
    for (int64_t i = 0; i < d->n_files; i++) {
        free(d->files[i].path);
    }
    free(d->files);
    file_map_close(&d->map);
    buf_fini(&d->paragraph);
    buf_fini(&d->repaired);
    *d = (struct documents){0};
}

/* ---- lines ---- */

struct line {
    const char *text;
    size_t n;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static struct line trim(struct line l)
{
    while (l.n > 0 && is_blank(l.text[l.n - 1])) {
        l.n--;
    }
    while (l.n > 0 && is_blank(l.text[0])) {
        l.text++;
        l.n--;
    }
    return l;
}

/* The trimmed line at *at of text[0..n), *at < n. */
static struct line take_line(const char *text, size_t n, size_t *at)
{
    const char *begin = text + *at;
    const char *end = memchr(begin, '\n', n - *at);
    size_t length = end == NULL ? n - *at : (size_t)(end - begin);
    *at += length + (end != NULL);
    return trim((struct line){begin, length});
}

static bool starts_with(struct line l, const char *prefix)
{
    size_t n = strlen(prefix);
    return l.n >= n && memcmp(l.text, prefix, n) == 0;
}

/* Whether a line ends like a sentence: a full stop or its kin, or a closing quote or bracket. */
static bool ends_sentence(struct line l)
{
    static const char *const ends[] = {".",      "!",      "?",      ":",      ";",
                                       "\"",     "'",      ")",      "\u201d", "\u2019",
                                       "\u00bb", "\u2026", "\u3002", "\uff01", "\uff1f"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t n = strlen(ends[i]);
        if (l.n >= n && memcmp(l.text + l.n - n, ends[i], n) == 0) {
            return true;
        }
    }
    return false;
}

static enum documents_format detect_format(const char *text, size_t n)
{
    enum { LOOK_BYTES = 1 << 16 };
    n = n < LOOK_BYTES ? n : LOOK_BYTES;
    int64_t n_lines = 0, n_blocks = 0, n_ended = 0;
    bool in_block = false;
    for (size_t at = 0; at < n;) {
        struct line l = take_line(text, n, &at);
        if (l.n == 0) {
            in_block = false;
            continue;
        }
        if (n_lines == 0 && starts_with(l, "<doc id=")) {
            return DOCUMENTS_WIKI;
        }
        n_lines++;
        n_blocks += !in_block;
        n_ended += ends_sentence(l);
        in_block = true;
    }
    return n_lines > n_blocks && 3 * n_ended >= 2 * n_lines ? DOCUMENTS_LINES : DOCUMENTS_TEXT;
}

/* ---- files and documents ---- */

static const char *current_path(const struct documents *d)
{
    return d->files[d->n_opened - 1].path;
}

static const char *current_text(const struct documents *d)
{
    return (const char *)d->map.data;
}

static void begin_document(struct documents *d)
{
    d->inside = true;
    d->n_paragraphs = 0;
}

static void end_document(struct documents *d)
{
    d->n_empty_documents += d->inside && d->n_paragraphs == 0;
    d->inside = false;
}

/* Refuses what is not text; what is characters throughout may be asked for as prose. */
static struct status check_text(const struct documents *d)
{
    bool prose = d->wanted == DOCUMENTS_TEXT || d->wanted == DOCUMENTS_LINES;
    const struct not_text *found = not_text_find(current_text(d), d->map.n);
    if (found == NULL || (found->is_readable && prose)) {
        found = not_text_find_binary(current_text(d), d->map.n);
    }
    return found == NULL
               ? status_ok()
               : not_text_refuse(found, current_path(d),
                                 found->is_readable ? "; --input_format text reads it as prose all the same"
                                                    : "");
}

static struct status check_utf8(struct documents *d)
{
    size_t bad = utf8_find_invalid(current_text(d), d->map.n);
    d->has_invalid_utf8 = bad < d->map.n;
    if (!d->has_invalid_utf8 || d->replace_invalid_utf8) {
        return status_ok();
    }
    return status_error(
        STATUS_DATA,
        "%s is not UTF-8: byte %zu is 0x%02x; convert it with iconv, or replace such bytes by "
        "U+FFFD with --replace_invalid_utf8",
        current_path(d), bad, d->map.data[bad]);
}

static struct status open_next_file(struct documents *d)
{
    static const char BYTE_ORDER_MARK[] = "\xef\xbb\xbf";
    TRY(file_map_open(&d->map, d->files[d->n_opened++].path));
    d->line = 0;
    d->at = 0;
    d->title_next = false;
    if (d->map.n == 0) {
        d->format = DOCUMENTS_TEXT; /* an empty document */
        begin_document(d);
        return status_ok();
    }
    TRY(check_text(d));
    TRY(check_utf8(d));
    if (d->map.n >= 3 && memcmp(d->map.data, BYTE_ORDER_MARK, 3) == 0) {
        d->at = 3;
    }
    d->format = d->wanted;
    if (d->wanted == DOCUMENTS_AUTO) {
        d->format = detect_format(current_text(d) + d->at, d->map.n - d->at);
    }
    d->n_by_format[d->format]++;
    if (d->format != DOCUMENTS_WIKI) {
        begin_document(d);
    }
    return status_ok();
}

static struct status close_file(struct documents *d)
{
    TRY(file_map_check(&d->map, current_path(d)));
    if (d->format == DOCUMENTS_WIKI && d->inside) {
        return status_error(STATUS_DATA,
                            "%s ends inside a <doc>: it is cut short; close it with a line </doc>",
                            current_path(d));
    }
    end_document(d);
    d->old_bytes += d->files[d->n_opened - 1].n_bytes;
    file_map_close(&d->map);
    d->at = 0;
    return status_ok();
}

/* ---- paragraphs: each function returns an empty line at the end of the file ---- */

static struct line next_line(struct documents *d)
{
    d->line++;
    return take_line(current_text(d), d->map.n, &d->at);
}

static struct line next_of_text(struct documents *d)
{
    buf_clear(&d->paragraph);
    while (d->at < d->map.n) {
        struct line l = next_line(d);
        if (l.n > 0) {
            if (d->paragraph.n > 0) {
                buf_putc(&d->paragraph, ' ');
            }
            buf_append(&d->paragraph, l.text, l.n);
        } else if (d->paragraph.n > 0) {
            break;
        }
    }
    return (struct line){buf_text(&d->paragraph), d->paragraph.n};
}

static struct line next_of_lines(struct documents *d)
{
    while (d->at < d->map.n) {
        struct line l = next_line(d);
        if (l.n > 0) {
            if (!d->inside) {
                begin_document(d);
            }
            return l;
        }
        if (d->n_paragraphs > 0) {
            end_document(d);
        }
    }
    return (struct line){"", 0};
}

static struct status next_of_wiki(struct documents *d, struct line *out)
{
    *out = (struct line){"", 0};
    while (d->at < d->map.n) {
        struct line l = next_line(d);
        if (starts_with(l, "<doc id=")) {
            if (d->inside) {
                return status_error(STATUS_DATA, "%s line %lld: <doc> inside a <doc>", current_path(d),
                                    (long long)d->line);
            }
            begin_document(d);
            d->title_next = true;
        } else if (starts_with(l, "</doc>")) {
            end_document(d);
        } else if (d->title_next) {
            d->title_next = false;
        } else if (l.n > 0 && !d->inside) {
            return status_error(STATUS_DATA,
                                "%s line %lld is outside of <doc> and </doc>; if this is not the output of "
                                "WikiExtractor, give another --input_format",
                                current_path(d), (long long)d->line);
        } else if (l.n > 0) {
            *out = l;
            return status_ok();
        }
    }
    return status_ok();
}

/* The paragraph with U+FFFD for each ill-formed sequence. */
static struct line repair(struct documents *d, struct line l)
{
    buf_clear(&d->repaired);
    for (size_t bad; (bad = utf8_find_invalid(l.text, l.n)) < l.n;) {
        buf_append(&d->repaired, l.text, bad);
        buf_puts(&d->repaired, "\xef\xbf\xbd");
        uint32_t replacement;
        size_t skip = bad + (size_t)utf8_decode(&replacement, l.text + bad, l.n - bad);
        l.text += skip;
        l.n -= skip;
        d->n_replaced++;
    }
    buf_append(&d->repaired, l.text, l.n);
    return (struct line){buf_text(&d->repaired), d->repaired.n};
}

static struct status next_of_file(struct documents *d, struct line *out)
{
    if (d->format == DOCUMENTS_WIKI) {
        TRY(next_of_wiki(d, out));
    } else {
        *out = d->format == DOCUMENTS_TEXT ? next_of_text(d) : next_of_lines(d);
        TRY(buf_status(&d->paragraph));
    }
    if (d->has_invalid_utf8) {
        *out = repair(d, *out);
        TRY(buf_status(&d->repaired));
    }
    return status_ok();
}

struct status documents_next(struct documents *d, struct documents_text *out, bool *end)
{
    *end = false;
    for (;;) {
        if (d->at < d->map.n) {
            struct line l;
            TRY(next_of_file(d, &l));
            if (l.n > 0) {
                *out = (struct documents_text){l.text, l.n, d->n_paragraphs++ == 0};
                d->n_documents += out->starts_document;
                return status_ok();
            }
        }
        if (d->n_opened > 0 && (d->map.data != NULL || d->inside)) {
            TRY(close_file(d));
        }
        if (d->n_opened == d->n_files) {
            *end = true;
            return status_ok();
        }
        TRY(open_next_file(d));
    }
}

uint64_t documents_done_bytes(const struct documents *d)
{
    return d->old_bytes + d->at;
}
