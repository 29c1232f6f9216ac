/* perplexity_report: how `kiln eval` and `kiln ngram` print what they measured, in one form. */
#ifndef KILN_CMD_PERPLEXITY_REPORT_H
#define KILN_CMD_PERPLEXITY_REPORT_H

#include "serve/perplexity.h"

/* Prints a line of words, or of JSON. */
struct status perplexity_report(const struct perplexity *p, const char *name, bool json);

#endif
