/* passage_files: files of text and the files of folders, to be read in passages. */
#ifndef KILN_CMD_PASSAGE_FILES_H
#define KILN_CMD_PASSAGE_FILES_H

#include "corpus/input_files.h"
#include "corpus/text_file.h"
#include "serve/passages.h"

struct passage_files {
    struct input_files list;
    struct text_file *files; /* [list.n]; those that are no text are empty */
    struct passages passages;
};

/* Opens the files that the paths name.  A file of a folder that is no text is left out, with a warning.
 * Close is safe on a zeroed struct and after a failed open. */
struct status passage_files_open(struct passage_files *p, const char *const *paths, int n_paths,
                                 const char *encoding);
void passage_files_close(struct passage_files *p);

/* Cuts all of them (serve/passages.h).  STATUS_DATA: none has any text. */
struct status passage_files_cut(struct passage_files *p, struct tokenizer_scratch *scratch, int64_t room,
                                int64_t step);

/* STATUS_IO: a file has become shorter while it was read. */
struct status passage_files_check(const struct passage_files *p);

#endif
