/* special_flags: what a command does with special tokens that stand in the texts of a decoder. */
#ifndef KILN_CMD_SPECIAL_FLAGS_H
#define KILN_CMD_SPECIAL_FLAGS_H

#include "core/option.h"

#define NO_PARSE_SPECIAL_ROW(at)                                                                             \
    OPTION_FLAG_ROW(                                                                                         \
        "no_parse_special_tokens", at,                                                                       \
        "read \"<|endoftext|>\" and other special tokens that stand in a text as text; by default "          \
        "they are these tokens, as in transformers")

#endif
