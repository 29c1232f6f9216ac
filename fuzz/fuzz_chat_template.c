/* Any text as a chat template, and what is behind its first NUL as what a user says: refused with a reason,
 * or a prompt in UTF-8. */
#include "text/chat_template.h"
#include "text/utf8.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void render(const struct chat_template *t, const char *said, size_t n)
{
    struct buf out = {0};
    json_t *text = json_stringn(said, n); /* NULL: it is not UTF-8 */
    json_t *messages = json_pack("[{s:s, s:s}, {s:s, s:o}]", "role", "system", "content", " be \n\xC3\xA9 ",
                                 "role", "user", "content", text == NULL ? json_string("x") : text);
    for (int adds = 0; adds < 2; adds++) {
        buf_clear(&out);
        bool ok = !failed(chat_template_render(&out, t, messages, adds == 1));
        CHECK(!ok || utf8_find_invalid(buf_text(&out), out.n) == out.n, "a prompt is not UTF-8");
    }
    json_decref(messages);
    buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct chat_template t;
    const uint8_t *end = n == 0 ? NULL : memchr(bytes, '\0', n);
    size_t n_text = end == NULL ? n : (size_t)(end - bytes);
    json_t *special = json_pack("{s:s, s:s}", "bos_token", "<s>", "eos_token", "</s>");
    if (!failed(chat_template_parse(&t, (const char *)bytes, n_text, special))) {
        render(&t, end == NULL ? "" : (const char *)end + 1, end == NULL ? 0 : n - n_text - 1);
        chat_template_fini(&t);
    }
    return 0;
}
