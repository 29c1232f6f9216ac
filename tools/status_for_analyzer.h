/* status_for_analyzer: what the functions of core/status.h return, for clang-tidy, which sees one file at a
 * time and would otherwise believe that status_error can return STATUS_OK.  Only tools/tidy.sh includes this,
 * never the program; macros, because the analyzer does not look into variadic functions. */
#ifndef KILN_TOOLS_STATUS_FOR_ANALYZER_H
#define KILN_TOOLS_STATUS_FOR_ANALYZER_H

#include "core/status.h"

#define status_ok()                ((struct status){.code = STATUS_OK})
#define status_error(code_, ...)   ((struct status){.code = (code_)})
#define status_context(inner, ...) (inner)

#endif
