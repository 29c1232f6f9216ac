/* tokenizer_open: the one place that chooses a kind of tokenizer, by the files that exist: WordPiece by
 * vocab.txt, byte-level BPE by tokenizer.json, or by vocab.json and merges.txt.  Where a path is one of a
 * GGUF file, its keys have all (gguf_tokenizer.h). */
#ifndef KILN_TEXT_TOKENIZER_OPEN_H
#define KILN_TEXT_TOKENIZER_OPEN_H

#include "io/file.h"
#include "text/tokenizer.h"

/* Opens the tokenizer of a vocabulary file.  STATUS_DATA if the file is missing or no vocabulary,
 * STATUS_USAGE if its kind cannot lower the case of text. */
struct status tokenizer_open_vocabulary(struct tokenizer *t, const char *path, bool lower_case);

/* Opens a byte-level BPE by vocab.json and merges.txt.  STATUS_DATA. */
struct status tokenizer_open_merges(struct tokenizer *t, const char *vocab_path, const char *merges_path);

/* Opens a tokenizer.json, whose top is `root`, of n bytes, which are copied, with the tokens that were
 * added, if it is of a kind that it describes alone; else *found is false. */
struct status tokenizer_open_json(struct tokenizer *t, struct added_tokens *added, bool *found,
                                  const json_t *root, const char *text, size_t n, const char *source);

/* The flags that name a vocabulary. */
struct vocab_flags {
    const char *vocab_file;
    /* merges.txt of a vocab_file that is vocab.json; NULL: the one beside it, or vocab_file is complete */
    const char *merge_file;
    bool do_lower_case;
    const char *chat_template; /* file of the template of the model that is trained; NULL: its own */
};

/* Opens the one that they name.  STATUS_DATA, STATUS_USAGE as above. */
struct status tokenizer_open_flags(struct tokenizer *t, const struct vocab_flags *f);

/* Opens a vocabulary file as tokenizer_open_vocabulary does, with the letter case of the
 * tokenizer_config.json next to the file; a file named vocab.json with the merges.txt next to it, if there is
 * one. */
struct status tokenizer_open_beside(struct tokenizer *t, const char *path);

/* vocab.txt of a directory; if there is none, *found is false and the path is the one that was
 * looked for.  STATUS_USAGE: the path is too long. */
struct status tokenizer_open_find(char path[FILE_PATH_BYTES], bool *found, const char *directory);

/* Finds the file of any kind of tokenizer: vocab.txt, tokenizer.json or vocab.json. */
struct status tokenizer_open_find_any(char path[FILE_PATH_BYTES], bool *found, const char *directory);

/* The tokenizer of data for training: of the file in their directory, where `kiln prepare` puts it, or of a
 * vocab.txt next to it.  *found is false, and `t` is not opened, if there is none; `path` gets its name. */
struct status tokenizer_open_near(struct tokenizer *t, char path[FILE_PATH_BYTES], bool *found,
                                  const char *directory);

/* Opens the tokenizer of a model directory, or of a GGUF file: vocab.txt, tokenizer.json, or vocab.json and
 * merges.txt, with the settings of the latter and of tokenizer_config.json. *max_length gets the number of
 * tokens that the model can read; INT64_MAX if no file says. */
struct status tokenizer_open_directory(struct tokenizer *t, int64_t *max_length, const char *directory);

/* For tokens that another program made with an unknown vocabulary: n is 0, its file is empty. */
void tokenizer_open_unknown(struct tokenizer *t);

/* Whether a kind of tokenizer writes a file of that name to a model directory. */
bool tokenizer_open_writes(const char *name);

#endif
