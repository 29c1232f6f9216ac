/* label_texts: `kiln classify` and `kiln tag` with a model alone: they label texts from arguments or from
 * lines of standard input. */
#ifndef KILN_CMD_LABEL_TEXTS_H
#define KILN_CMD_LABEL_TEXTS_H

#include "cmd/session_flags.h"

struct label_texts_flags {
    const char *labels, *hypothesis_template; /* of the caller; NULL: labels are the model's */
    const char *strategy;                     /* one of TAG_STRATEGIES */
    int64_t stride;                           /* tokens that two windows have in common; -1: a quarter */
    const char *dtype;                        /* NULL: that of the flags of training */
    bool multi_label, pairs, json;
};

/* Labels the texts; with no arguments, each line of standard input is one. */
struct status label_texts_classify(const struct session_flags *session, const struct label_texts_flags *f,
                                   int n_texts, const char *const *texts);
struct status label_texts_tag(const struct session_flags *session, const struct label_texts_flags *f,
                              int n_texts, const char *const *texts);

#endif
