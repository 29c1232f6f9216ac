/* session_flags: flags of the commands that open a model for inference, and the functions that apply them. */
#ifndef KILN_CMD_SESSION_FLAGS_H
#define KILN_CMD_SESSION_FLAGS_H

#include "cmd/settings.h"
#include "serve/answer_kind.h"
#include "serve/session.h"

struct session_flags {
    const char *model, *vocab_file, *device, *dtype;
    bool dry_run;
};

/* `at` is the offset of the struct in the command's own struct. */
#define SESSION_FLAG_ROWS(at, model_help)                                                                    \
    OPTION_REQUIRED_ROW("model", (at) + offsetof(struct session_flags, model), "PATH", model_help),          \
        OPTION_STRING_ROW("init_checkpoint", (at) + offsetof(struct session_flags, model), NULL, "PATH",     \
                          "the same as --model"),                                                            \
        OPTION_STRING_ROW("vocab_file", (at) + offsetof(struct session_flags, vocab_file), NULL, "FILE",     \
                          "read the vocabulary from this file, for a model that has none or an empty one"),  \
        DEVICE_ROW((at) + offsetof(struct session_flags, device)),                                           \
        OPTION_CHOICE_ROW("dtype", (at) + offsetof(struct session_flags, dtype), "fp32",                     \
                          "fp32|bf16|fp16|int8",                                                             \
                          "compute in this number format; fp16 only on cuda; int8 only for decoders on "     \
                          "the cpu: matrices in int8 with a scale for each row, all else in bf16"),          \
        DRY_RUN_ROW((at) + offsetof(struct session_flags, dry_run),                                          \
                    "check the model, print what it needs, and read no text")

/* The options of a session for the answers. */
struct status session_flags_options(struct session_options *o, const struct session_flags *f,
                                    enum answer answer);

/* session_open as the flags say. */
struct status session_flags_open(struct session *s, const struct session_flags *f, enum answer answer);

/* For --dry-run: checks the model directory for the answers and prints its parameters, memory and work; reads
 * no weights. */
struct status session_flags_plan(const struct session_flags *f, enum answer answer);

/* The same with options that were changed. */
struct status session_flags_plan_options(const struct session_flags *f, enum answer answer,
                                         const struct session_options *o);

#endif
