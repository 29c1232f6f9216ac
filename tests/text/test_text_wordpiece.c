/* Tests of vocabularies and of the WordPiece tokenizer, against tests/golden/text_cases.json and by hand. */
#include "test.h"

#include "core/hash.h"
#include "core/json.h"
#include "text/wordpiece.h"

#define SPECIALS "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"

static struct vocab vocab_of(const char *text)
{
    struct vocab v;
    EXPECT_OK(vocab_init(&v, text, strlen(text), "test"));
    return v;
}

static void vocabularies_are_read(void)
{
    static const char text[] = SPECIALS "un\r\n##able\n##a\nu\n##\nlast";
    struct vocab v = vocab_of(text);
    EXPECT(v.n == 11 && v.pad == 0 && v.unk == 1 && v.cls == 2 && v.sep == 3 && v.mask == 4, "%d pieces",
           v.n);
    EXPECT(v.hash == hash_fnv1a(text, strlen(text)), "the hash is that of the file");
    for (int32_t id = 0; id < v.n; id++) {
        size_t n;
        const char *piece = vocab_piece(&v, id, &n);
        EXPECT(vocab_find(&v, piece, n) == id, "piece %d is found again", id);
    }
    EXPECT(vocab_find(&v, "able", 4) == -1 && vocab_find(&v, "##ab", 4) == -1 && vocab_find(&v, "", 0) == -1,
           "what is not a piece is not found");
    size_t n_matched = 0;
    EXPECT(vocab_match(&v, true, "ably", 4, &n_matched) == 7 && n_matched == 1, "the longest match is ##a");
    vocab_fini(&v);
}

static void bad_vocabularies_are_refused(void)
{
    char long_line[VOCAB_PIECE_MAX_BYTES + 64] = SPECIALS;
    memset(long_line + strlen(SPECIALS), 'x', VOCAB_PIECE_MAX_BYTES + 1);
    char cr_ends[VOCAB_PIECE_MAX_BYTES + 64] = "";
    for (size_t i = 0; i + 2 < sizeof cr_ends; i += 2) {
        memcpy(cr_ends + i, "x\r", 3);
    }
    const struct {
        const char *text, *message;
    } cases[] = {
        {cr_ends, "its lines end in CR alone; convert them (tr '\\r' '\\n')"},
        {"\xFF\xFE" SPECIALS, "it is UTF-16; convert it (iconv -f UTF-16 -t UTF-8)"},
        {"\xFE\xFF" SPECIALS, "it is UTF-16; convert it"},
        {"", "is empty"},
        {"\n\n", "is empty"},
        {"[PAD]\n[CLS]\n[SEP]\na\n", "lacks the piece [UNK]"},
        {SPECIALS "a\nb\xFF\n", "line 7 is not valid UTF-8 at its byte 2 (value 0xff)"},
        {long_line, "line 6 has 513 bytes, but at most 512"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct vocab v;
        EXPECT_ERROR(vocab_init(&v, cases[i].text, strlen(cases[i].text), "test"), STATUS_DATA,
                     cases[i].message);
    }
    struct vocab v;
    EXPECT_ERROR(vocab_open(&v, "/dev/null/vocab.txt"), STATUS_DATA, "/dev/null/vocab.txt");
}

/* Lines that published files have, and Hugging Face's BertTokenizer takes: a line keeps its id, the last of
 * two pieces counts. */
static void odd_vocabularies_keep_their_ids(void)
{
    static const char text[] = "\xEF\xBB\xBF[UNK]\n[CLS]\r\n\n[SEP]\na\nb\n\n##a\na\n\xE2\x80\xA8\nc";
    struct vocab v;
    size_t n;
    EXPECT_OK(vocab_init(&v, text, sizeof text - 1, "test"));
    EXPECT(v.n == 11 && v.unk == 0 && v.cls == 1 && v.sep == 3 && v.pad == -1 && v.mask == -1,
           "%d pieces, [UNK] %d, [CLS] %d, [SEP] %d", v.n, v.unk, v.cls, v.sep);
    EXPECT(vocab_find(&v, "a", 1) == 8 && vocab_find(&v, "b", 1) == 5 && vocab_find(&v, "c", 1) == 10,
           "a piece has another id");
    EXPECT(vocab_find(&v, "\xE2\x80\xA8", 3) == 9 && vocab_find(&v, "", 0) == -1, "U+2028, or an empty line");
    EXPECT(vocab_match(&v, false, "ab", 2, &n) == 8 && vocab_match(&v, true, "ab", 2, &n) == 7,
           "matched otherwise");
    EXPECT(vocab_piece(&v, 2, &n) != NULL && n == 0, "an empty piece of %zu bytes", n);
    vocab_fini(&v);
}

/* Encodes with offsets and without: the ids must be the same. */
static void encode_both(struct wordpiece_scratch *t, struct token_list *tokens, const char *text, size_t n)
{
    struct id_list ids = {0};
    tokens->n = 0;
    EXPECT_OK(wordpiece_encode(t, tokens, text, n));
    for (int again = 0; again < 2; again++) { /* the second time from memory */
        ids.n = 0;
        EXPECT_OK(wordpiece_encode_ids(t, &ids, text, n));
        EXPECT(ids.n == tokens->n, "%zu ids, %zu tokens", ids.n, tokens->n);
        for (size_t i = 0; i < ids.n; i++) {
            EXPECT(ids.ids[i] == tokens->tokens[i].id, "id %zu: %d or %d", i, ids.ids[i],
                   tokens->tokens[i].id);
        }
    }
    id_list_fini(&ids);
}

static struct buf vocab_text_of(const json_t *pieces)
{
    struct buf b = {0};
    size_t i;
    const json_t *piece;
    json_array_foreach(pieces, i, piece)
    {
        buf_append(&b, json_string_value(piece), json_string_length(piece));
        buf_putc(&b, '\n');
    }
    EXPECT_OK(buf_status(&b));
    return b;
}

static size_t from_hex(char *out, const char *hex)
{
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        EXPECT(sscanf(hex + 2 * i, "%2x", &byte) == 1, "hexadecimal digits: %s", hex);
        out[i] = (char)byte;
    }
    return n;
}

static void expect_case(struct wordpiece_scratch *t, const json_t *c, size_t number)
{
    char text[4096];
    const char *hex = json_string_value(json_object_get(c, "text"));
    EXPECT(strlen(hex) / 2 <= sizeof text, "case %zu is too long", number);
    size_t n = from_hex(text, hex);
    struct token_list tokens = {0};
    encode_both(t, &tokens, text, n);
    const json_t *ids = json_object_get(c, "ids");
    const json_t *spans = json_object_get(c, "spans");
    EXPECT(tokens.n == json_array_size(ids), "case %zu: %zu tokens, not %zu: %s", number, tokens.n,
           json_array_size(ids), hex);
    for (size_t i = 0; i < tokens.n; i++) {
        const struct token *k = &tokens.tokens[i];
        const json_t *span = json_array_get(spans, i);
        json_int_t start = json_integer_value(json_array_get(span, 0));
        json_int_t end = json_integer_value(json_array_get(span, 1));
        EXPECT(k->id == json_integer_value(json_array_get(ids, i)), "case %zu, token %zu: id %d: %s", number,
               i, k->id, hex);
        EXPECT((json_int_t)k->start == start && (json_int_t)k->end == end,
               "case %zu, token %zu: bytes %zu to %zu, not %lld to %lld: %s", number, i, k->start, k->end,
               (long long)start, (long long)end, hex);
    }
    token_list_fini(&tokens);
}

static void ids_and_offsets_are_those_of_tokenizers(void)
{
    json_t *root;
    EXPECT_OK(json_read_object(&root, KILN_SOURCE_DIR "/tests/golden/text_cases.json"));
    struct buf text = vocab_text_of(json_object_get(root, "vocab"));
    struct vocab v;
    EXPECT_OK(vocab_init(&v, text.data, text.n, "text_cases.json"));
    struct wordpiece_scratch uncased, cased;
    EXPECT_OK(wordpiece_scratch_init(&uncased, &v, true));
    EXPECT_OK(wordpiece_scratch_init(&cased, &v, false));
    const json_t *cases = json_object_get(root, "cases");
    EXPECT(json_array_size(cases) >= 200, "%zu cases", json_array_size(cases));
    size_t i;
    const json_t *c;
    json_array_foreach(cases, i, c)
    {
        expect_case(json_is_true(json_object_get(c, "lower_case")) ? &uncased : &cased, c, i);
    }
    wordpiece_scratch_fini(&uncased);
    wordpiece_scratch_fini(&cased);
    vocab_fini(&v);
    buf_fini(&text);
    json_decref(root);
}

static void special_pieces_in_a_text_are_text(void)
{
    struct vocab v = vocab_of(SPECIALS "[\n]\nsep\n");
    struct wordpiece_scratch t;
    EXPECT_OK(wordpiece_scratch_init(&t, &v, true));
    struct token_list tokens = {0};
    encode_both(&t, &tokens, "[SEP]", 5);
    EXPECT(tokens.n == 3 && tokens.tokens[0].id == 5 && tokens.tokens[1].id == 7 && tokens.tokens[2].id == 6,
           "%zu tokens", tokens.n);
    token_list_fini(&tokens);
    wordpiece_scratch_fini(&t);
    vocab_fini(&v);
}

static void what_vanishes_has_no_tokens(void)
{
    static const char *const texts[] = {
        "", " \t\n", "\xFF", "\xE2\x82", "\xEF\xBF\xBD \x7F \xC2\xAD\xE2\x80\x8B", "\xCC\x81"};
    struct vocab v = vocab_of(SPECIALS "a\n");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct wordpiece_scratch t;
        EXPECT_OK(wordpiece_scratch_init(&t, &v, true));
        struct token_list tokens = {0};
        encode_both(&t, &tokens, texts[i], strlen(texts[i]));
        EXPECT(tokens.n == 0, "text %zu has %zu tokens", i, tokens.n);
        token_list_fini(&tokens);
        wordpiece_scratch_fini(&t);
    }
    vocab_fini(&v);
}

static void words_of_more_than_a_hundred_characters_are_unknown(void)
{
    struct vocab v = vocab_of(SPECIALS "a\n##a\n\xC3\xA9\n##\xC3\xA9\n");
    struct wordpiece_scratch t;
    EXPECT_OK(wordpiece_scratch_init(&t, &v, false));
    struct token_list tokens = {0};
    char text[202];
    memset(text, 'a', sizeof text);
    encode_both(&t, &tokens, text, 100);
    EXPECT(tokens.n == 100 && tokens.tokens[99].id == 6, "%zu tokens of 100 letters", tokens.n);
    encode_both(&t, &tokens, text, 101);
    EXPECT(tokens.n == 1 && tokens.tokens[0].id == v.unk && tokens.tokens[0].end == 101, "101 letters");
    for (size_t i = 0; i < sizeof text; i += 2) {
        memcpy(text + i, "\xC3\xA9", 2);
    }
    encode_both(&t, &tokens, text, 200);
    EXPECT(tokens.n == 100 && tokens.tokens[99].id == 8 && tokens.tokens[99].start == 198,
           "100 of two bytes");
    encode_both(&t, &tokens, text, 202);
    EXPECT(tokens.n == 1 && tokens.tokens[0].id == v.unk, "101 of two bytes");
    token_list_fini(&tokens);
    wordpiece_scratch_fini(&t);
    vocab_fini(&v);
}

/* A megabyte of marks on one letter, each to be ordered: neither slow nor a crash. */
static void endless_marks_are_ordered(void)
{
    enum { N_MARKS = 1 << 18 };
    struct vocab v = vocab_of(SPECIALS "a\n");
    struct wordpiece_scratch t;
    EXPECT_OK(wordpiece_scratch_init(&t, &v, true));
    char *text = malloc(1 + 4 * N_MARKS);
    EXPECT(text != NULL, "memory");
    text[0] = 'a';
    for (size_t i = 0; i < N_MARKS; i++) {
        memcpy(text + 1 + 4 * i, i % 2 == 0 ? "\xCC\x81\xCC\xA3" : "\xCC\xB4\xCD\x85", 4);
    }
    struct token_list tokens = {0};
    encode_both(&t, &tokens, text, 1 + 4 * N_MARKS);
    EXPECT(tokens.n == 1 && tokens.tokens[0].id == 5 && tokens.tokens[0].end == 1, "one letter stays");
    token_list_fini(&tokens);
    free(text);
    wordpiece_scratch_fini(&t);
    vocab_fini(&v);
}

static void ids_become_readable_text(void)
{
    static const char text[] = SPECIALS "un\n##able\n.\nis\n(\n)\n";
    static const int32_t ids[] = {2, 9, 5, 6, 10, 7, 8, 4, 3};
    struct tokenizer t;
    struct buf b = {0};
    EXPECT_OK(wordpiece_tokenizer_init(&t, text, strlen(text), "test", true));
    EXPECT_OK(tokenizer_decode(&t, &b, ids, sizeof ids / sizeof ids[0]));
    EXPECT(strcmp(buf_text(&b), "[CLS] (unable). is [MASK] [SEP]") == 0, "'%s'", buf_text(&b));
    static const int32_t outside[] = {5, 11};
    EXPECT_ERROR(tokenizer_decode(&t, &b, outside, 2), STATUS_DATA, "token 1 has the id 11");
    buf_fini(&b);
    tokenizer_fini(&t);
}

int main(void)
{
    vocabularies_are_read();
    bad_vocabularies_are_refused();
    odd_vocabularies_keep_their_ids();
    ids_and_offsets_are_those_of_tokenizers();
    special_pieces_in_a_text_are_text();
    what_vanishes_has_no_tokens();
    words_of_more_than_a_hundred_characters_are_unknown();
    endless_marks_are_ordered();
    ids_become_readable_text();
    return 0;
}
