/* ask_passages: the passages of several texts, of which those that fit a question best are read: by the
 * vectors of a retriever, else by the words that they share with it. */
#ifndef KILN_CMD_ASK_PASSAGES_H
#define KILN_CMD_ASK_PASSAGES_H

#include "cmd/passage_files.h"
#include "cmd/retriever.h"
#include "serve/ask.h"

struct ask_passages_flags {
    const char *context, *encoding, *model; /* a file or folder; of it; the retriever's model */
    struct option_words contexts;
    struct retriever_flags retriever;
    int64_t n; /* passages to read; 0: all of one text, else ASK_PASSAGES */
};

enum { ASK_PASSAGES = 20 };

struct ask_passages {
    struct passage_files files;
    struct retriever retriever;
    struct search_index index; /* instead of files */
    bool by_vectors, of_index;
    float *vectors;          /* [n, retriever's width] of the files' passages; NULL: none */
    int64_t n, n_read;       /* passages, and those that are read for a question */
    struct buf text, pieces; /* text that is read for the present question, and its pieces: struct piece */
    json_t *lines;           /* lines of the index that are read for it */
};

/* Whether the flags name more than one text, or one that is not to be read completely. */
bool ask_passages_wanted(const struct ask_passages_flags *f);

/* Opens the texts of the flags, to be read by the session `s`, and says how passages are chosen.  Must not be
 * moved.  Close is safe on a zeroed struct and after a failed open. */
struct status ask_passages_open(struct ask_passages *p, struct session *s, const struct ask_options *o,
                                const struct session_flags *session, const struct ask_passages_flags *f);
void ask_passages_close(struct ask_passages *p);

/* Answers a question by its passages, and prints the answers with their files and places in characters. */
struct status ask_passages_answer(struct ask_passages *p, struct session *s, const char *question,
                                  const struct ask_options *o, bool json);

#endif
