/* fuzz_bpe: any text as tokenizer.json and as merges.txt of a byte-level BPE: refused with a reason, or a
 * vocabulary that gives back the bytes that it encodes.  The text itself is encoded too. */
#include "core/log.h"
#include "text/bpe_json.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_round_trip(const struct bpe *bpe, const char *text, size_t n)
{
    struct bpe_scratch s;
    struct token_list tokens = {0};
    size_t at = 0;
    CHECK(!failed(bpe_scratch_init(&s, bpe)) && !failed(bpe_encode(&s, &tokens, text, n)), "no memory");
    for (size_t i = 0; i < tokens.n; i++) {
        size_t n_piece;
        const char *piece = bpe_merges_piece(&bpe->merges, tokens.tokens[i].id, &n_piece);
        CHECK(tokens.tokens[i].start == at && at + n_piece <= n && memcmp(piece, text + at, n_piece) == 0,
              "token %zu is not the text's", i);
        at += n_piece;
    }
    CHECK(at == n, "%zu of %zu bytes have tokens", at, n);
    token_list_fini(&tokens);
    bpe_scratch_fini(&s);
}

/* Of any steps: ids and tokens agree, and places lie in the text. */
static void check_encoding(const struct bpe *bpe, const char *text, size_t n)
{
    struct bpe_scratch s;
    struct token_list tokens = {0};
    struct id_list ids = {0};
    CHECK(!failed(bpe_scratch_init(&s, bpe)), "no memory");
    if (!failed(bpe_encode(&s, &tokens, text, n))) { /* an expression may give up */
        CHECK(!failed(bpe_encode_ids(&s, &ids, text, n)) && ids.n == tokens.n, "%zu ids, %zu tokens", ids.n,
              tokens.n);
    }
    for (size_t i = 0; i < ids.n; i++) {
        CHECK(ids.ids[i] == tokens.tokens[i].id && tokens.tokens[i].end <= n, "token %zu", i);
    }
    token_list_fini(&tokens);
    id_list_fini(&ids);
    bpe_scratch_fini(&s);
}

/* The pieces of all bytes, and of all pairs of letters; made once. */
static json_t *make_pieces(void)
{
    static json_t *pieces;
    if (pieces != NULL) {
        return pieces;
    }
    pieces = json_object();
    struct buf text = {0};
    for (int id = 0; id < 256 + 26 * 26; id++) {
        char piece[2] = {(char)id, 0};
        if (id >= 256) {
            piece[0] = (char)('a' + (id - 256) / 26);
            piece[1] = (char)('a' + (id - 256) % 26);
        }
        buf_clear(&text);
        bpe_merges_write(&text, piece, 1 + (id >= 256));
        json_object_set_new(pieces, buf_text(&text), json_integer(id));
    }
    buf_fini(&text);
    return pieces;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct bpe bpe = {.pattern = n % 2 == 0 ? BPE_GPT2 : BPE_BLOOM};
    struct added_tokens added = {0};
    json_t *root;
    const char *text = (const char *)bytes;
    log_set_level(LOG_QUIET);
    CHECK(!failed(bpe_merges_init(&bpe.merges, make_pieces(), "own")), "kiln refuses all bytes");
    (void)failed(bpe_json_read_merges(&bpe.merges, text, n, "input")); /* those before a bad line stay */
    check_round_trip(&bpe, text, n);
    bpe_merges_fini(&bpe.merges);
    if (!failed(json_parse(&root, text, n, "input"))) {
        if (bpe_json_is_bpe(root) && !failed(bpe_json_read(&bpe, &added, root, "input"))) {
            check_encoding(&bpe, text, n);
            bpe_fini(&bpe);
        }
        added_tokens_fini(&added);
        json_decref(root);
    }
    return 0;
}
