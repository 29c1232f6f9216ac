#include "service/token_text.h"

#include "text/utf8.h"
#include "text/vocab.h"

#include <string.h>

void token_text_append_piece(struct buf *out, const char *piece, size_t n, bool is_first)
{
    bool continues = vocab_continues(piece, n), closes = n == 1 && strchr(".?!,", piece[0]) != NULL;
    size_t n_prefix = continues && !is_first ? VOCAB_PREFIX_BYTES : 0;
    if (!is_first && !continues && !closes) {
        buf_putc(out, ' ');
    }
    buf_append(out, piece + n_prefix, n - n_prefix);
}

static bool is_special(const struct tokenizer *t, int32_t id)
{
    bool is = false;
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        is = is || t->special[i] == id;
    }
    return is;
}

void token_text_append(struct buf *out, const struct tokenizer *t, const int32_t *ids, size_t n,
                       bool skips_special)
{
    bool is_first = true;
    for (size_t i = 0; i < n; i++) {
        size_t n_piece;
        if (skips_special && is_special(t, ids[i])) {
            continue;
        }
        if (t->kind->decodes_bytes) {
            t->kind->decode(t, out, &ids[i], 1);
            continue;
        }
        const char *piece = tokenizer_piece(t, ids[i], &n_piece);
        token_text_append_piece(out, piece, n_piece, is_first);
        is_first = false;
    }
}

json_t *token_text_to_json(struct buf *text)
{
    struct buf repaired = {0};
    utf8_repair(&repaired, buf_text(text), text->n);
    json_t *string = text->failed || repaired.failed ? NULL : json_stringn(buf_text(&repaired), repaired.n);
    buf_fini(&repaired);
    buf_fini(text);
    return string;
}
