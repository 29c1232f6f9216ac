/* text_groups: texts from arguments, or from lines of standard input, in groups that are answered
 * together: many enough for sorting by length to pay, and never held back while the next line has not
 * come. */
#ifndef KILN_CMD_TEXT_GROUPS_H
#define KILN_CMD_TEXT_GROUPS_H

#include "core/buf.h"
#include "core/status.h"
#include "data/encoded_texts.h"

enum { TEXT_GROUP_TEXTS = 1024 };

/* Calls `answer` with each group, of 1 to TEXT_GROUP_TEXTS texts, which are valid for the call; standard
 * output is flushed after it.  STATUS_DATA: a text is not UTF-8; those before it in its group are not
 * answered. */
struct status
text_groups_answer(int n_arguments, const char *const *arguments,
                   struct status (*answer)(void *self, const struct text_bytes *texts, size_t n), void *self);

/* Warns that n texts were cut, if any were, to the length that the model reads. */
void text_groups_warn_cut(int64_t n, int64_t max_length);

#endif
