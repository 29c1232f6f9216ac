#include "corpus/corpus.h"

#include "core/log.h"
#include "corpus/dump_index.h"
#include "corpus/source_formats.h"

#include <stdlib.h>

struct status corpus_open(struct corpus *c, const char *const *inputs, int n_inputs,
                          struct source_options options)
{
    *c = (struct corpus){.options = options};
    source_init(&c->source, &c->counts);
    TRY(input_files_list(&c->files, inputs, n_inputs));
    if (options.format == NULL || options.format == &dump_source) {
        dump_index_find(&c->files);
    }
    c->file_counts = calloc((size_t)c->files.n + 1, sizeof *c->file_counts);
    FAIL_IF(c->file_counts == NULL, STATUS_MEMORY, "out of memory for the counts of %lld files",
            (long long)c->files.n);
    return status_ok();
}

void corpus_close(struct corpus *c)
{
    source_fini(&c->source);
    input_files_fini(&c->files);
    free(c->file_counts);
    c->file_counts = NULL;
}

/* Opens the next file, or leaves it out: then no source is open. */
static struct status open_file(struct corpus *c)
{
    const struct input_file *f = &c->files.files[c->n_opened++];
    struct status s = source_open(&c->source, f->path, f->n_bytes, &c->options);
    c->source_is_open = !failed(s);
    if (s.code == STATUS_DATA && c->options.leaves_out_others && f->in_directory) {
        if (!c->options.quiet) {
            log_warning("%s; it is left out", s.message);
        }
        c->counts.n_other_files++;
        c->old_bytes += f->n_bytes;
        return status_ok();
    }
    return s;
}

/* Compares the number of pages that were read with that of the dump's index; warns if they differ. */
static void compare_pages(struct corpus *c)
{
    const struct byte_stream *stream = &c->source.reader.stream;
    int64_t listed = c->files.files[c->n_opened - 1].n_listed, n = c->source.n_pages;
    if (listed == 0 || n == listed) {
        return;
    }
    c->counts.n_missing_pages += listed > n ? listed - n : 0;
    if (!c->options.quiet) {
        log_warning("the index lists %lld pages of %s, and %lld were read whole: %s", (long long)listed,
                    stream->path, (long long)n,
                    n > listed ? "the index is cut short, or belongs to another dump; all pages are used"
                    : stream->ends_early ? "the dump is cut short; download the rest"
                                         : "the dump has lost pages; download it again");
    }
}

static struct status close_file(struct corpus *c)
{
    const struct byte_stream *stream = &c->source.reader.stream;
    struct status s = c->options.allow_truncated ? status_ok() : text_reader_check_end(&c->source.reader);
    compare_pages(c);
    c->counts.n_damaged_parts += stream->n_damaged;
    c->counts.n_cut_files += stream->ends_early;
    c->old_unpacked_bytes += text_reader_offset(&c->source.reader);
    source_close(&c->source);
    c->source_is_open = false;
    c->old_bytes += c->files.files[c->n_opened - 1].n_bytes;
    return s;
}

static void count_file(struct corpus *c)
{
    c->counts.n_files += c->source_is_open;
    if (c->source_is_open && c->source.reader.stream.file_bytes > 0) {
        c->counts.n_by_format[source_formats_index(c->source.format)]++;
    }
}

struct status corpus_next(struct corpus *c, struct document *out, bool *end)
{
    for (;;) {
        *end = c->most_unpacked_bytes > 0 && corpus_unpacked_bytes(c) >= c->most_unpacked_bytes;
        if (*end) {
            return status_ok();
        }
        if (c->source_is_open) {
            bool file_ended;
            TRY(source_next(&c->source, out, &file_ended));
            if (!file_ended) {
                return status_ok();
            }
            TRY(close_file(c));
        }
        if (c->n_opened == c->files.n) {
            *end = true;
            return status_ok();
        }
        if (c->files.files[c->n_opened].is_index) {
            c->n_opened++;
            continue;
        }
        TRY(open_file(c));
        count_file(c);
    }
}

struct corpus_place corpus_place(const struct corpus *c)
{
    return c->source_is_open ? (struct corpus_place){c->n_opened - 1, source_place(&c->source)}
                             : (struct corpus_place){.file = c->n_opened};
}

struct source_counts corpus_counts(const struct corpus *c)
{
    struct source_counts counts = c->counts;
    counts.n_damaged_parts += c->source_is_open ? c->source.reader.n_gaps : 0;
    return counts;
}

struct status corpus_seek(struct corpus *c, struct corpus_place place)
{
    FAIL_IF(place.file > c->files.n, STATUS_DATA,
            "the inputs have %lld files, so reading cannot continue in file %lld", (long long)c->files.n,
            (long long)place.file + 1);
    source_close(&c->source);
    c->source_is_open = false;
    c->old_bytes = c->old_unpacked_bytes = 0;
    for (c->n_opened = 0; c->n_opened < place.file; c->n_opened++) {
        const struct input_file *f = &c->files.files[c->n_opened];
        c->old_bytes += f->is_index ? 0 : f->n_bytes;
    }
    if (place.in_file.text.offset == 0) {
        return status_ok();
    }
    TRY(open_file(c));
    return source_seek(&c->source, place.in_file);
}

uint64_t corpus_done_bytes(const struct corpus *c)
{
    return c->old_bytes + (c->source_is_open ? text_reader_done_bytes(&c->source.reader) : 0);
}

uint64_t corpus_unpacked_bytes(const struct corpus *c)
{
    return c->old_unpacked_bytes + (c->source_is_open ? text_reader_offset(&c->source.reader) : 0);
}

int64_t corpus_n_documents(const struct corpus *c)
{
    return c->counts.n_documents + c->fates[DOCUMENT_KEPT];
}

bool corpus_help(struct corpus *c)
{
    return byte_stream_help(&c->source.reader.stream);
}

/* ---- counts of files ---- */

void corpus_count(struct corpus *c, const struct corpus_place *place, bool begins, bool is_kept,
                  int64_t n_tokens)
{
    struct file_counts *f = &c->file_counts[place->file];
    f->n_documents += begins && is_kept;
    f->n_left_out += begins && !is_kept;
    f->n_tokens += n_tokens;
}

json_t *corpus_file_counts_json(const struct corpus *c)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < c->files.n; i++) {
        const struct file_counts *f = &c->file_counts[i];
        if (f->n_documents + f->n_left_out > 0) {
            json_array_append_new(list,
                                  json_pack("{s:o, s:I, s:I, s:I}", "path", json_text(c->files.files[i].path),
                                            "documents", (json_int_t)f->n_documents, "left_out",
                                            (json_int_t)f->n_left_out, "tokens", (json_int_t)f->n_tokens));
        }
    }
    return list;
}

void corpus_save_file_counts(const struct corpus *c, struct buf *out)
{
    buf_append(out, c->file_counts, (size_t)c->files.n * sizeof *c->file_counts);
}

struct status corpus_load_file_counts(struct corpus *c, struct span *in)
{
    const void *counts = bytes_take_items(in, (uint64_t)c->files.n, sizeof *c->file_counts);
    FAIL_IF(in->failed, STATUS_DATA, "the counts of the files of an earlier run are damaged");
    memcpy(c->file_counts, counts, (size_t)c->files.n * sizeof *c->file_counts);
    return status_ok();
}
