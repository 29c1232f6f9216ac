/* train_kinds: the kinds of models that `kiln train` makes: a row for each, with what is its own in the
 * commands that it runs. */
#ifndef KILN_CMD_TRAIN_KINDS_H
#define KILN_CMD_TRAIN_KINDS_H

#include "cmd/train_choice.h"
#include "core/json.h"

#define TRAIN_KIND_NAMES   "gpt|bert"
#define TRAIN_KIND_DEFAULT "gpt"
#define TRAIN_KIND_HELP                                                                                      \
    "choose what the model does. gpt: continues a text; bert: fills gaps, and is what labels, vectors and "  \
    "answers are fine-tuned from"

struct train_kind {
    const char *name, *title;               /* "gpt", "GPT" */
    bool masked;                            /* it fills gaps, and may lower case */
    const char *vocab_written, *vocab_read; /* files of the vocabulary: the one to write, the one to read */
    const char *const *vocab, *const *prepare, *const *pretrain; /* words of the commands; NULL ends them */

    /* The config.json of a model of this size; the caller json_decref's it. */
    json_t *(*config)(const struct train_choice *c, double dropout);

    const char *const *tries; /* commands to try, in which %s is the model's directory; NULL ends them */
};

/* The kind of this name, which is one of TRAIN_KIND_NAMES. */
const struct train_kind *train_kind_find(const char *name);

#endif
