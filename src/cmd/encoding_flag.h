/* encoding_flag: flags of the commands that read text, for their option tables. */
#ifndef KILN_CMD_ENCODING_FLAG_H
#define KILN_CMD_ENCODING_FLAG_H

#include "core/option.h"

#define ENCODING_ROW(at, what)                                                                               \
    OPTION_STRING_ROW("encoding", at, NULL, "NAME",                                                          \
                      "encoding of " what ", such as latin-1, cp1252 or utf-16; default: UTF-8")

#define ALLOW_TRUNCATED_ROW(at)                                                                              \
    OPTION_FLAG_ROW("allow_truncated_input", at,                                                             \
                    "use what is there of a .gz or .bz2 without its end, instead of ending with an error")

#endif
