/* search_index: texts and their vectors in files that grow: FILE, an array of numpy with a row for each text,
 * and FILE.jsonl, whose first line says which model made the vectors and how, and whose other lines are the
 * texts, objects with "text" and whatever else the caller puts there.
 *
 * The rule: a text is there once the number of rows in FILE counts it.  Lines and rows after those are what
 * an interrupted append left: they are not read, and the next append replaces them. */
#ifndef KILN_SERVE_SEARCH_INDEX_H
#define KILN_SERVE_SEARCH_INDEX_H

#include "core/json.h"
#include "io/npy_file.h"
#include "serve/embed.h"

/* The maker of the vectors of an index: its model, and how it was asked. */
struct search_index_maker {
    char model[17];         /* a hash of weights and tokenizer, in hexadecimal */
    const char *model_path; /* path for messages; borrowed, like `vectors` */
    const char *vectors;    /* how they are made, in words: embed_plan_describe */
    int64_t width;
};

/* A session's model as a maker of vectors by a plan that `description` describes.  STATUS_MEMORY. */
struct status search_index_maker_of(struct search_index_maker *m, struct session *s,
                                    const struct embed_plan *plan, const char *description);

struct search_index {
    const char *path; /* borrowed */
    char texts_path[FILE_PATH_BYTES];
    int64_t n;
    struct npy_file vectors; /* [n, width]; empty: there are none yet */
    struct file_map texts;
    struct buf lines; /* size_t [n + 2]: where the lines begin, and where they end */
};

/* Opens an index for reading.  STATUS_DATA: there is none, it is damaged, or another maker's.  Close is safe
 * on a zeroed struct and after a failed open. */
struct status search_index_open(struct search_index *ix, const char *path,
                                const struct search_index_maker *m);
void search_index_close(struct search_index *ix);

/* The object of a text; the caller json_decref's it.  STATUS_DATA: the line is damaged. */
struct status search_index_text(json_t **text, const struct search_index *ix, int64_t row);

struct search_index_writer {
    struct search_index index; /* the texts that are there already, without their maps */
    struct npy_rows rows;
    int texts;  /* locked; -1: not open */
    int64_t at; /* end of the texts that count */
};

/* Opens an index for more texts, or makes an empty one.  STATUS_DATA as search_index_open; STATUS_IO, also
 * where another process appends to it. */
struct status search_index_writer_open(struct search_index_writer *w, const char *path,
                                       const struct search_index_maker *m);

/* Appends n texts, a line of JSON for each, and their vectors: all of them or none.  STATUS_IO. */
struct status search_index_put(struct search_index_writer *w, const struct buf *lines, const float *vectors,
                               int64_t n);
struct status search_index_writer_close(struct search_index_writer *w);

#endif
