/* text_ids: the token ids of documents, one document at a time, from what a decoder is measured on: a store
 * of tokens (the prefix of a .bin and .idx), lines of JSON with a "text" each, or a file of text. That is
 * one document or, where lines have nothing but the token that ends one ("<|endoftext|>"), those between
 * them.  Files may be compressed. */
#ifndef KILN_DATA_TEXT_IDS_H
#define KILN_DATA_TEXT_IDS_H

#include "corpus/text_line.h"
#include "text/tokenizer.h"

/* Takes a document's ids[n], and the bytes of text of its tokens after the first; the end of a document in a
 * store is a token of no bytes.  A failure ends the reading. */
typedef struct status text_ids_take(void *self, const int32_t *ids, int64_t n, int64_t n_bytes);

/* Takes a text. */
typedef struct status text_ids_take_text(void *self, const char *text, size_t n);

/* Takes a line that is not empty. */
typedef struct status text_ids_take_line(void *self, struct text_line line);

/* Each line of a file of lines of JSON.  The failure of a line is returned with file and number. */
struct status text_ids_json_lines(const char *path, text_ids_take_line *take, void *self);

/* The "text" of each line of JSON.  STATUS_DATA names the line. */
struct status text_ids_lines(const char *path, text_ids_take_text *take, void *self);

/* The same of a file whose name is that of lines of JSON; of another file each line that is not empty. */
struct status text_ids_each_line(const char *path, text_ids_take_text *take, void *self);

/* A text that is a document. */
struct status text_ids_of_text(struct tokenizer_scratch *s, const char *text, size_t n, text_ids_take *take,
                               void *self);

/* Whether a path is the prefix of a store. */
bool text_ids_is_store(const char *path);

/* Checks the paths.  STATUS_DATA: one is neither the prefix of a store nor a file that can be read. */
struct status text_ids_check(const char *const *paths, int n);

/* STATUS_DATA: the file is not text, by its first bytes. */
struct status text_ids_look(const char *path);

/* All documents of `path`, lines of JSON by its name (source_formats_names_json), whose text is in `field`;
 * NULL: "text".  STATUS_DATA names
 * what is wrong and where: a store of another tokenizer, an id that it does not have, a line without
 * "text". */
struct status text_ids_read(struct tokenizer_scratch *s, const char *path, const char *field,
                            text_ids_take *take, void *self);

#endif
