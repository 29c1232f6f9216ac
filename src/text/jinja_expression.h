/* jinja_expression: the parser of expressions, from the operators that bind least to values. */
#ifndef KILN_TEXT_JINJA_EXPRESSION_H
#define KILN_TEXT_JINJA_EXPRESSION_H

#include "text/jinja_parser.h"

/* Its node; 0: the parse has failed. */
int jinja_expression_parse(struct jinja_parser *p);

/* The same without an "if" of its own, as the items of a loop, whose "if" is the loop's. */
int jinja_expression_parse_or(struct jinja_parser *p);

#endif
