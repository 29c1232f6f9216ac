/* commands: one per file of this folder. */
#ifndef KILN_CMD_COMMANDS_H
#define KILN_CMD_COMMANDS_H

#include "core/option.h"

/* X(NAME, GROUP): the commands in the order of `kiln --help`, and the group that begins there.  A line for
 * each: two branches that add a command do not meet. */
/* clang-format off */
#define COMMANDS(X) \
    X(fetch, "text and data")     \
    X(vocab, NULL)                \
    X(tokenize, NULL)             \
    X(prepare, NULL)              \
    X(pack, NULL)                 \
    X(train, "train")             \
    X(pretrain, NULL)             \
    X(pretrain_gpt, NULL)         \
    X(finetune_gpt, "fine-tune")  \
    X(squad, NULL)                \
    X(classify, NULL)             \
    X(tag, NULL)                  \
    X(embed_train, NULL)          \
    X(ask, "answer and serve")    \
    X(fill, NULL)                 \
    X(embed, NULL)                \
    X(rerank, NULL)               \
    X(search, NULL)               \
    X(generate, NULL)             \
    X(serve, NULL)                \
    X(eval, "measure")            \
    X(ngram, NULL)                \
    X(score, NULL)                \
    X(blimp, NULL)                \
    X(glue, NULL)                 \
    X(report, NULL)               \
    X(export, "models and files") \
    X(convert, NULL)              \
    X(inspect, NULL)              \
    X(doctor, "machines")         \
    X(bench, NULL)                \
    X(plan, NULL)                 \
    X(launch, NULL)               \
    X(netcheck, NULL)
/* clang-format on */

#define DECLARE_COMMAND(NAME, GROUP) extern const struct command command_##NAME;
COMMANDS(DECLARE_COMMAND)

#endif
