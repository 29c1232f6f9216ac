/* chat_template: how a decoder's model directory says that messages become the text of its prompt: a template
 * of Jinja, which is read and rendered as by transformers' apply_chat_template
 * (https://huggingface.co/docs/transformers/chat_templating).  jinja_tree says which part of Jinja kiln
 * reads.
 *
 * Its variables are messages, add_generation_prompt, the special tokens' texts (bos_token and so on), and
 * tools and documents, which are none. */
#ifndef KILN_TEXT_CHAT_TEMPLATE_H
#define KILN_TEXT_CHAT_TEMPLATE_H

#include "text/jinja_renderer.h"
#include "text/tokenizer.h"

struct chat_template {
    struct jinja_tree tree;
    json_t *special; /* the texts of special tokens, by their names */
};

/* Gives a tokenizer the text of the template of its directory: chat_template.jinja, else "chat_template" in
 * tokenizer_config.json, a string or the one of a list that is named "default"; nothing where there is none.
 * STATUS_DATA: a file is no JSON. */
struct status chat_template_find(struct tokenizer *t, const char *directory);

/* Gives it the text of this file instead.  STATUS_DATA: it cannot be read. */
struct status chat_template_give(struct tokenizer *t, const char *path);

/* Parses the tokenizer's template, whose special tokens are the tokenizer's.  *exists is false where it has
 * none.  STATUS_DATA names the line, and the part that is wrong or not read by kiln. */
struct status chat_template_open(struct chat_template *t, bool *exists, const struct tokenizer *tokenizer);

/* Parses the text of a template, with special tokens as {"bos_token": "<s>", ...}, which are taken over. */
struct status chat_template_parse(struct chat_template *t, const char *text, size_t n, json_t *special);

/* Safe on a zeroed struct and after a failed open. */
void chat_template_fini(struct chat_template *t);

/* Appends the prompt of messages, a list of {"role": ..., "content": ...}; it holds its special tokens.
 * STATUS_DATA: the template refuses them, or reaches a limit. */
struct status chat_template_render(struct buf *out, const struct chat_template *t, const json_t *messages,
                                   bool add_generation_prompt);

/* Appends a whole conversation, and to `spans` a struct jinja_span for each message of the assistant: what
 * the template marks by {% generation %} or, where it marks nothing, what the message adds to the prompt
 * that asks for it.  *are_apart: the template writes a message in another way once others follow, so nothing
 * is appended, and each answer is to be rendered by itself.  STATUS_DATA as above, or: the parts cannot be
 * told. */
struct status chat_template_render_answers(struct buf *out, struct buf *spans, bool *are_apart,
                                           const struct chat_template *t, const json_t *messages);

/* Appends messages up to number i, and finds what that one of the assistant adds to the prompt that asks for
 * it. */
struct status chat_template_render_answer(struct buf *out, struct jinja_span *span,
                                          const struct chat_template *t, const json_t *messages, size_t i);

/* Makes of messages in OpenAI's format what a template sees: {"role": ..., "content": ...} with strings,
 * which the caller owns.  Parts of type text are joined by a line's end, as vLLM joins them.  STATUS_DATA
 * names the place: "messages[2].content must be ...". */
struct status chat_messages_read(json_t **out, const json_t *messages);

/* Whether a message is what an assistant said. */
bool chat_messages_answers(const json_t *message);

#endif
