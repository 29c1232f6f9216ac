/* corpus: the user's text: all documents of all inputs, in order.
 *
 * The rule: the documents and their order depend only on the names and the bytes of the files; memory does
 * not grow with the text, only the list of file names does. */
#ifndef KILN_CORPUS_CORPUS_H
#define KILN_CORPUS_CORPUS_H

#include "core/bytes.h"
#include "core/json.h"
#include "corpus/input_files.h"
#include "corpus/source.h"

/* A place after the documents returned so far: {0} is the beginning. */
struct corpus_place {
    int64_t file; /* index in files.files */
    struct source_place in_file;
};

/* Counts of the documents of a file. */
struct file_counts {
    int64_t n_documents,
        n_left_out; /* documents with text that are kept; documents left out, by format or cleaning */
    int64_t n_tokens;
};

struct corpus {
    struct source_options options;
    struct input_files files;
    struct file_counts *file_counts; /* [files.n], as the sink of a pass counts them */
    int64_t n_opened;                /* files opened so far, or skipped; the last of them is current */
    uint64_t old_bytes;              /* size of the files before the current one */
    uint64_t old_unpacked_bytes;     /* unpacked bytes read of files since closed */
    uint64_t most_unpacked_bytes;    /* limit after which the corpus ends; 0: it ends with its last file */
    struct source source;
    bool source_is_open;
    struct source_counts counts;     /* counts since the corpus was opened */
    int64_t fates[DOCUMENT_N_FATES]; /* numbers of raw documents, as corpus_pass counts them */
};

/* Lists the files of `inputs`, and finds the indexes of dumps among them, which are not read
 * (corpus/dump_index.h). `c` must not be moved while it is open.  STATUS_DATA: input_files_list. */
struct status corpus_open(struct corpus *c, const char *const *inputs, int n_inputs,
                          struct source_options options);
void corpus_close(struct corpus *c);

/* Fills `out` with the next document, or piece of one, or raw document; *end is true after the last.
 * STATUS_DATA: invalid UTF-8, or a file that is not in its format or is not text; STATUS_IO: a file that
 * cannot be read, or was truncated. */
struct status corpus_next(struct corpus *c, struct document *out, bool *end);

/* The place after the document or piece that corpus_next returned last. */
struct corpus_place corpus_place(const struct corpus *c);

/* The counts of everything that corpus_next returned so far, damaged parts of the current file included. */
struct source_counts corpus_counts(const struct corpus *c);

/* Continues at a place of the same inputs, from this run or an earlier one.  Counts are not reset. */
struct status corpus_seek(struct corpus *c, struct corpus_place place);

/* Bytes read so far, of files.total_bytes. */
uint64_t corpus_done_bytes(const struct corpus *c);

/* Unpacked bytes read since the corpus was opened, or went back to its beginning. */
uint64_t corpus_unpacked_bytes(const struct corpus *c);

/* Documents with text so far. */
int64_t corpus_n_documents(const struct corpus *c);

/* Counts a document, or a piece of one, that is kept or left out, of the file of `place`. */
void corpus_count(struct corpus *c, const struct corpus_place *place, bool begins, bool is_kept,
                  int64_t n_tokens);

/* The counts of the files that have any, as a list of {"path", "documents", "left_out", "tokens"}. */
json_t *corpus_file_counts_json(const struct corpus *c);

/* Appends the counts of all files; and the way back.  STATUS_DATA: they are not there. */
void corpus_save_file_counts(const struct corpus *c, struct buf *out);
struct status corpus_load_file_counts(struct corpus *c, struct span *in);

/* Unpacks a piece of the current file ahead of the thread that reads; any thread may call it.  False: there
 * is nothing to do now. */
bool corpus_help(struct corpus *c);

#endif
