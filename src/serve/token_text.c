#include "serve/token_text.h"

#include "serve/answer_json.h"
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

void token_text_append(struct buf *out, const struct tokenizer *t, const int32_t *ids, size_t n,
                       bool skips_special)
{
    bool is_first = true;
    for (size_t i = 0; i < n; i++) {
        size_t n_piece;
        if (skips_special && tokenizer_is_special(t, ids[i])) {
            continue;
        }
        if (t->kind->decodes_bytes) {
            out->failed |= failed(tokenizer_decode(t, out, &ids[i], 1));
            continue;
        }
        const char *piece = tokenizer_piece(t, ids[i], &n_piece);
        token_text_append_piece(out, piece, n_piece, is_first);
        is_first = false;
    }
}

json_t *token_text_to_json(struct buf *text)
{
    json_t *string = text->failed ? NULL : answer_json_said(buf_text(text), text->n);
    buf_fini(text);
    return string;
}
