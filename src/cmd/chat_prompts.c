#include "cmd/chat_prompts.h"

struct status chat_prompts_open(struct chat_prompts *c, struct tokenizer *tokenizer, const char *file)
{
    bool exists;
    TRY(file != NULL ? chat_template_give(tokenizer, file) : status_ok());
    c->why_not = chat_template_open(&c->template, &exists, tokenizer);
    if (!failed(c->why_not) && !exists) {
        c->why_not =
            status_error(STATUS_DATA, "the model has no chat template, which makes a prompt of messages: "
                                      "give one by --chat_template");
    }
    return c->why_not.code == STATUS_MEMORY ? c->why_not : status_ok();
}

void chat_prompts_fini(struct chat_prompts *c)
{
    chat_template_fini(&c->template);
}

struct status chat_prompts_of(struct buf *out, const struct chat_prompts *c, const json_t *messages)
{
    json_t *read;
    TRY(c->why_not);
    TRY(chat_messages_read(&read, messages));
    struct status s = chat_template_render(out, &c->template, read, true);
    json_decref(read);
    return failed(s) ? s : buf_status(out);
}

struct status chat_prompts_of_user(struct buf *out, const struct chat_prompts *c, const char *text, size_t n)
{
    json_t *messages = json_pack("[{s:s, s:s%}]", "role", "user", "content", text, n);
    struct status s = messages != NULL ? chat_prompts_of(out, c, messages)
                                       : status_error(STATUS_DATA, "the prompt is not UTF-8");
    json_decref(messages);
    return s;
}
