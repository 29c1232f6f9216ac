/* squad_examples: questions about texts, in the SQuAD format (v1.1 and v2.0), from a file or from memory.
 *
 * The rule: a context is split into words at space, tab, CR, LF and U+202F, and answers are words of it; the
 * questions kept are those that run_squad.py keeps, in the order of the file. answer_start counts characters
 * in the file, and bytes here.  Memory is proportional to the file. Source: Rajpurkar et al. 2016
 * (arXiv:1606.05250), 2018 (arXiv:1806.03822); the example reader of run_squad.py. */
#ifndef KILN_DATA_SQUAD_EXAMPLES_H
#define KILN_DATA_SQUAD_EXAMPLES_H

#include "core/buf.h"
#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

struct squad_word {
    int32_t start, end; /* bytes of its context */
};

struct squad_context {
    size_t text; /* offset in squad_examples.text */
    int32_t n_bytes;
    int64_t first_word; /* in squad_examples.words */
    int32_t n_words;    /* at least 1 */
};

struct squad_answer {
    size_t text; /* offset in squad_examples.text */
    int32_t n_bytes;
    int32_t start; /* byte of the context; -1 if the file has none, or one outside the context */
};

struct squad_example {
    size_t id, question; /* offsets in squad_examples.text */
    int32_t id_bytes, question_bytes;
    int32_t context; /* index */
    int64_t first_answer;
    int32_t n_answers;
    bool is_impossible; /* the context does not answer it */
    /* words of the first answer, both included; -1 if impossible or not for training */
    int32_t start_word, end_word;
};

struct squad_examples {
    struct buf text; /* contexts, questions, ids and answers, each ended by a NUL */
    struct squad_context *contexts;
    int64_t n_contexts;
    struct squad_word *words; /* words of all contexts */
    int64_t n_words;
    struct squad_answer *answers;
    int64_t n_answers;
    struct squad_example *examples;
    int64_t n;
    bool has_impossible;    /* a v2.0 file: it says so, or a question has no answer */
    int64_t n_misaligned;   /* left out of training: the answer is not where answer_start says */
    int64_t n_more_answers; /* trained on the first of several answers */
};

struct squad_read_options {
    bool training;        /* every question needs an answer that is found in its context, or is impossible */
    bool version_2;       /* questions may be impossible; without it, training on one is an error */
    const char *encoding; /* encoding of a file: corpus/text_file.h's; NULL: UTF-8 */
};

/* Reads a file.  STATUS_DATA names the file, the element (`data[3].paragraphs[0].qas[2]`) and the key: not
 * JSON, larger than 1 GiB, a missing key or wrong type, a context without words, an id that occurs twice,
 * training on a question without an answer, no questions at all.  Questions left out are counted and reported
 * in one warning. */
struct status squad_examples_open(struct squad_examples *e, const char *path, struct squad_read_options o);

/* Reads json[0..n) as squad_examples_open reads a file; `source` names it in messages. */
struct status squad_examples_parse(struct squad_examples *e, const char *json, size_t n, const char *source,
                                   struct squad_read_options o);

/* Questions about one context, with ids "0", "1", ...: what `kiln ask` answers. Copies both. */
struct status squad_examples_ask(struct squad_examples *e, const char *context, size_t n,
                                 const char *const *questions, int64_t n_questions);
void squad_examples_fini(struct squad_examples *e);

/* Texts of an example or an answer, borrowed and NUL-terminated. */
const char *squad_example_id(const struct squad_examples *e, int64_t i);
const char *squad_example_question(const struct squad_examples *e, int64_t i);
const char *squad_answer_text(const struct squad_examples *e, int64_t answer);

/* The context of an example and its text. */
const struct squad_context *squad_example_context(const struct squad_examples *e, int64_t i);
const char *squad_context_text(const struct squad_examples *e, const struct squad_context *c);

/* Bytes of the white space that separates words at the start of text[0..n), 0 if there is none. */
size_t squad_space_bytes(const char *text, size_t n);

#endif
