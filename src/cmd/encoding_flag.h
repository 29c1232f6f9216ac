/* encoding_flag: --encoding of the commands that read text, for their option tables. */
#ifndef KILN_CMD_ENCODING_FLAG_H
#define KILN_CMD_ENCODING_FLAG_H

#include "core/option.h"

#define ENCODING_ROW(at, what)                                                                               \
    OPTION_STRING_ROW("encoding", at, NULL, "NAME",                                                          \
                      "encoding of " what ", such as latin-1, cp1252 or utf-16; default: UTF-8")

#endif
