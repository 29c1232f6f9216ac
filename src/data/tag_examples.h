/* tag_examples: sentences with a label or a number for each word, from a file or from a caller.
 *
 * The rule: the first piece of a word has its label, as in `transformers`' run_ner.py; a word without
 * pieces becomes the unknown token.  A sentence that is too long is split into several texts at word
 * boundaries, so every word gets a prediction.
 *
 * CoNLL: one word per line (data/conll_file.h).  JSON lines: {"tokens": [...], "labels": [...]}, also
 * "words", and "ner_tags" or "tags". */
#ifndef KILN_DATA_TAG_EXAMPLES_H
#define KILN_DATA_TAG_EXAMPLES_H

#include "data/conll_file.h"
#include "data/encoded_texts.h"
#include "data/label_kind.h"

struct tag_word {
    size_t text, label; /* in tag_examples.text, each ended by a NUL */
    size_t n;           /* bytes of the word */
    bool has_label;
    int64_t line;           /* line of the file, from 1 */
    int64_t example, token; /* set by encoding: its text, and its first piece in texts.ids */
};

struct tag_examples {
    const char *path;   /* borrowed, for messages */
    struct buf columns; /* where words and labels were found, for people */
    struct buf text;
    struct buf words;           /* struct tag_word */
    struct buf sentences;       /* int64_t: the first word of each */
    int64_t n_words, n;         /* n sentences */
    struct encoded_texts texts; /* filled by tag_examples_encode; n_cut counts sentences */
};

/* Begins as an empty list; `name` is for messages.  Then sentences are added, and words to the last one,
 * with a label that may be NULL and the line they stand in, or 0.  STATUS_MEMORY. */
void tag_examples_init(struct tag_examples *e, const char *name);
struct status tag_examples_add_sentence(struct tag_examples *e);
struct status tag_examples_add_word(struct tag_examples *e, const char *word, size_t n, const char *label,
                                    size_t n_label, int64_t line);
void tag_examples_fini(struct tag_examples *e);

/* Reads the file, as JSON lines if its name ends in .json, .jsonl or .ndjson.  Columns of JSON lines by
 * key. STATUS_DATA names the line.  The caller calls tag_examples_fini after success. */
struct status tag_examples_read(struct tag_examples *e, const char *path, const struct conll_columns *c);

/* Word i, counted over all sentences; borrowed until the next is added. */
struct tag_word *tag_examples_word(const struct tag_examples *e, int64_t i);

/* The first word of sentence i; its words are those up to tag_examples_first(e, i + 1). */
int64_t tag_examples_first(const struct tag_examples *e, int64_t i);

/* The problem that the labels suggest: numbers, or one label of each word. */
enum label_problem tag_examples_problem(const struct tag_examples *e);

/* Appends the names of all labels to `names`, which is zeroed, and sorts them.  STATUS_DATA: a word has no
 * label, unless labels are numbers: then a word may have none, or "_". */
struct status tag_examples_names(const struct tag_examples *e, enum label_problem problem,
                                 struct label_names *names);

/* Fills e->texts, with labels if they were read.  STATUS_DATA: a word has no label, or one that is not of the
 * kind.  STATUS_USAGE: max_seq_length leaves no token for a word. */
struct status tag_examples_encode(struct tag_examples *e, struct tokenizer_scratch *scratch,
                                  int64_t max_seq_length, const struct label_kind *kind);

/* The labels of an encoded word, [texts.width], as the batch holds them; and the row of its first piece
 * among the tokens of all texts. */
const int32_t *tag_examples_labels(const struct tag_examples *e, const struct tag_word *w);
int64_t tag_examples_row(const struct encoded_texts *texts, const struct tag_word *w);

#endif
