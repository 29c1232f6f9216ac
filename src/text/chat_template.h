/* chat_template: how a decoder's model directory says that messages become the text of its prompt: a template
 * of Jinja, which is read and rendered as by transformers' apply_chat_template
 * (https://huggingface.co/docs/transformers/chat_templating).  jinja_tree says which part of Jinja kiln
 * reads.
 *
 * Its variables are messages, add_generation_prompt, the special tokens' texts (bos_token and so on), and
 * tools and documents, which are none. */
#ifndef KILN_TEXT_CHAT_TEMPLATE_H
#define KILN_TEXT_CHAT_TEMPLATE_H

#include "text/jinja_tree.h"
#include "text/tokenizer.h"

struct chat_template {
    struct jinja_tree tree;
    json_t *special; /* the texts of special tokens, by their names */
};

/* The template of chat_template.jinja, else of "chat_template" in tokenizer_config.json: a string, or the one
 * that is named "default" of a list.  *exists is false where there is none.  STATUS_DATA names the line, and
 * the part that is wrong or not read by kiln.  The special tokens are the tokenizer's. */
struct status chat_template_open(struct chat_template *t, bool *exists, const char *directory,
                                 const struct tokenizer *tokenizer);

/* Parses the text of a template, with special tokens as {"bos_token": "<s>", ...}, which are taken over. */
struct status chat_template_parse(struct chat_template *t, const char *text, size_t n, json_t *special);

/* Safe on a zeroed struct and after a failed open. */
void chat_template_fini(struct chat_template *t);

/* Appends the prompt of messages, a list of {"role": ..., "content": ...}; it holds its special tokens.
 * STATUS_DATA: the template refuses them, or reaches a limit. */
struct status chat_template_render(struct buf *out, const struct chat_template *t, const json_t *messages,
                                   bool add_generation_prompt);

#endif
