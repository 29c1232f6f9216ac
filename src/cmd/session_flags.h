/* session_flags: flags of the commands that open a model for inference, and the functions that apply them. */
#ifndef KILN_CMD_SESSION_FLAGS_H
#define KILN_CMD_SESSION_FLAGS_H

#include "core/option.h"
#include "serve/answer_kind.h"
#include "serve/session.h"

struct session_flags {
    const char *model, *device, *dtype;
    struct model_dir_given given;
    struct command_flags common;
};

/* The number formats of a session. */
#define SESSION_DTYPES "fp32|bf16|fp16|int8"
#define SESSION_DTYPE_HELP                                                                                   \
    "compute in this number format; fp16 only on cuda; int8 only on the cpu: the matrices of an encoder's "  \
    "layers, what meets them too, and all else in fp32; of a decoder all matrices, and all else in bf16"

/* The flags, with the struct at `at` in the command's own; the model's has the command's own help. */
#define SESSION_FLAG_ROWS(at, model_help)                                                                    \
    OPTION_REQUIRED_ROW("model", (at) + offsetof(struct session_flags, model), "PATH", model_help),          \
        OPTION_ROWS_OF(session_flags, at)
extern const struct option session_flags[];

/* The options of a session for the answers. */
struct status session_flags_options(struct session_options *o, const struct session_flags *f,
                                    enum answer answer);

/* Whether the model is a decoder, by its files. */
struct status session_flags_is_decoder(bool *is_decoder, const struct session_flags *f);

/* session_open as the flags say. */
struct status session_flags_open(struct session *s, const struct session_flags *f, enum answer answer);

/* Checks, for --dry-run, the model directory for the answers and prints its parameters, memory and work;
 * reads no weights. */
struct status session_flags_plan(const struct session_flags *f, enum answer answer);

/* Like session_flags_plan, with options that were changed. */
struct status session_flags_plan_options(const struct session_flags *f, enum answer answer,
                                         const struct session_options *o);

#endif
