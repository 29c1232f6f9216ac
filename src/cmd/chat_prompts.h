/* chat_prompts: prompts that a decoder's chat template makes of messages. */
#ifndef KILN_CMD_CHAT_PROMPTS_H
#define KILN_CMD_CHAT_PROMPTS_H

#include "text/chat_template.h"

struct chat_prompts {
    struct chat_template template;
    struct status why_not; /* failure of each prompt, where there is no template that kiln reads */
};

/* Opens the tokenizer's template, or the one of a file, which the tokenizer gets; NULL: its own.
 * STATUS_DATA: the file cannot be read.  Fini is safe on a zeroed struct. */
struct status chat_prompts_open(struct chat_prompts *c, struct tokenizer *tokenizer, const char *file);
void chat_prompts_fini(struct chat_prompts *c);

/* Append the prompt that asks for an answer to messages in OpenAI's format; and to one message of a user. */
struct status chat_prompts_of(struct buf *out, const struct chat_prompts *c, const json_t *messages);
struct status chat_prompts_of_user(struct buf *out, const struct chat_prompts *c, const char *text, size_t n);

#endif
