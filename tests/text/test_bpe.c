/* Tests of text/bpe: pieces by the patterns of GPT-2 and BLOOM, merges in the order of their ranks, short and
 * long pieces alike, bytes that come back, and files that are refused by name. */
#include "test.h"

#include "core/rng.h"
#include "io/file.h"
#include "text/bpe_json.h"
#include "text/bpe_tokenizer.h"
#include "text/special_tokens.h"
#include "text/tokenizer_open.h"

#include <unistd.h>

/* The pieces of a text with bars between them; a bar in the text is written as #. */
static void expect_pieces(enum bpe_pattern pattern, const char *text, const char *wanted)
{
    struct buf pieces = {0};
    size_t n = strlen(text);
    for (size_t at = 0, end; at < n; at = end) {
        end = bpe_split_end(pattern, text, n, at);
        EXPECT(end > at && end <= n, "'%s': a piece from %zu to %zu", text, at, end);
        for (size_t i = at; i < end; i++) {
            buf_putc(&pieces, text[i] == '|' ? '#' : text[i]);
        }
        buf_puts(&pieces, end < n ? "|" : "");
    }
    EXPECT(strcmp(buf_text(&pieces), wanted) == 0, "'%s': '%s', not '%s'", text, buf_text(&pieces), wanted);
    buf_fini(&pieces);
}

/* The pieces that `tokenizers` 0.23 finds. */
static void texts_are_cut_as_by_the_patterns(void)
{
    static const struct {
        const char *text, *gpt2, *bloom;
    } cases[] = {
        {"a.  b", "a|.| | b", "a|. | b"},
        {"f(x|y)=1", "f|(|x|#|y|)=|1", "f|(|x|#|y|)|=1"},
        {"I'Ll'd '' 's", "I|'|Ll|'d| ''| '|s", "I'Ll'd| ''| 's"},
        {"we're don't 've", "we|'re| don|'t| '|ve", "we're| don't| 've"},
        {"x1000y", "x|1000|y", "x1000y"},
        {"trail  ", "trail|  ", "trail|  "},
        {"tab\tx\n\n y", "tab|\t|x|\n\n| y", "tab|\t|x|\n\n| y"},
        {"a\xC2\xA0"
         "b",
         "a|\xC2\xA0|b", "a|\xC2\xA0|b"},
        {"\xC2\xB2\xC2\xBD \xD9\xA3x", "\xC2\xB2\xC2\xBD| \xD9\xA3|x", "\xC2\xB2\xC2\xBD| \xD9\xA3x"},
        {"e\xCC\x81", "e|\xCC\x81", "e\xCC\x81"},
        {"a\x1C\xE2\x80\x8B", "a|\x1C\xE2\x80\x8B", "a\x1C\xE2\x80\x8B"},
        {" \xE3\x80\x82 \xD8\x8C", " \xE3\x80\x82| \xD8\x8C", " \xE3\x80\x82 \xD8\x8C"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_pieces(BPE_GPT2, cases[i].text, cases[i].gpt2);
        expect_pieces(BPE_BLOOM, cases[i].text, cases[i].bloom);
    }
}

/* Wherever a piece begins, whatever the text: the quick way ends where the other does, or leaves it to it. */
static void quick_pieces_end_as_others(void)
{
    static const char alphabet[] = " aZz\x60{@[09.'st\n\t\xC3\xA9\x00\x80";
    char text[64];
    struct rng_stream random = rng_stream(rng_key(8, 0));
    int64_t n_quick = 0;
    for (int round = 0; round < 20000; round++) {
        size_t n = 1 + (size_t)rng_below(&random, sizeof text);
        for (size_t i = 0; i < n; i++) {
            bool is_any = rng_below(&random, 3) == 0;
            text[i] = is_any ? alphabet[rng_below(&random, sizeof alphabet - 1)] : 'e';
        }
        for (size_t at = 0; at < n; at++) {
            size_t quick = bpe_split_quick(text, n, at), end = bpe_split_end(BPE_GPT2, text, n, at);
            EXPECT(quick == 0 || quick == end, "text %d, at %zu: %zu, not %zu", round, at, quick, end);
            n_quick += quick > 0;
        }
    }
    EXPECT(n_quick > 100000, "%lld pieces were quick", (long long)n_quick);
}

/* A vocabulary of all bytes, whose ids are their values, and of these merges, in their order. */
static const char *const merges[] = {"l o", "lo w",  "e r", "\xC4\xA0 low",  "low er",
                                     "a a", "aa aa", "n e", "\xC4\xA0low er"};
enum { N_MERGES = sizeof merges / sizeof merges[0] };

static json_t *vocabulary(void)
{
    json_t *pieces = json_object();
    struct buf text = {0};
    for (int b = 0; b < 256 + N_MERGES; b++) {
        char byte = (char)b;
        buf_clear(&text);
        if (b < 256) {
            bpe_merges_write(&text, &byte, 1);
        } else {
            const char *merge = merges[b - 256], *space = strchr(merge, ' ');
            buf_append(&text, merge, (size_t)(space - merge));
            buf_puts(&text, space + 1);
        }
        json_object_set_new(pieces, buf_text(&text), json_integer(b));
    }
    json_object_set_new(pieces, "<|endoftext|>", json_integer(256 + N_MERGES));
    buf_fini(&text);
    return pieces;
}

static json_t *document(void)
{
    json_t *list = json_array();
    for (int i = 0; i < N_MERGES; i++) {
        json_array_append_new(list, json_string(merges[i]));
    }
    return json_pack("{s:n, s:{s:s, s:b}, s:{s:s, s:o, s:o}}", "normalizer", "pre_tokenizer", "type",
                     "ByteLevel", "add_prefix_space", 0, "model", "type", "BPE", "vocab", vocabulary(),
                     "merges", list);
}

static struct status open_document(struct tokenizer *t, const json_t *root)
{
    struct added_tokens none = {0};
    char *text = json_dumps(root, 0);
    struct status s = bpe_tokenizer_init(t, &none, root, text, strlen(text), "test");
    if (!failed(s)) {
        tokenizer_take_added(t, &none);
        EXPECT_OK(special_tokens_find(t, NULL));
    }
    free(text);
    return s;
}

static void open_small(struct tokenizer *t)
{
    json_t *root = document();
    EXPECT_OK(open_document(t, root));
    json_decref(root);
}

static void expect_ids(struct tokenizer_scratch *s, const char *text, size_t n, const int32_t *wanted,
                       size_t n_wanted)
{
    struct id_list ids = {0};
    EXPECT_OK(tokenizer_encode_ids(s, &ids, text, n));
    EXPECT(ids.n == n_wanted, "'%s' has %zu ids, not %zu", text, ids.n, n_wanted);
    for (size_t i = 0; i < n_wanted; i++) {
        EXPECT(ids.ids[i] == wanted[i], "'%s': id %zu is %d, not %d", text, i, ids.ids[i], wanted[i]);
    }
    id_list_fini(&ids);
}

static void merges_go_by_rank(void)
{
    struct tokenizer t;
    struct tokenizer_scratch s;
    open_small(&t);
    EXPECT_OK(tokenizer_scratch_init(&s, &t));
    for (int again = 0; again < 2; again++) { /* the second time from the cache */
        expect_ids(&s, "lower", 5, (const int32_t[]){260}, 1);
        expect_ids(&s, "lower lower", 11, (const int32_t[]){260, 264}, 2);
        expect_ids(&s, "newer", 5, (const int32_t[]){263, 'w', 258}, 3);
        expect_ids(&s, "aaaaaaa", 7, (const int32_t[]){262, 261, 'a'}, 3);
        expect_ids(&s, "<|endoftext|>a", 14, (const int32_t[]){256 + N_MERGES, 'a'}, 2);
        t.parses_special = false;
        expect_ids(&s, "<|endoftext|>", 13,
                   (const int32_t[]){'<', '|', 'e', 'n', 'd', 'o', 'f', 't', 'e', 'x', 't', '|', '>'}, 13);
        t.parses_special = true;
        expect_ids(&s, "a\0a", 3, (const int32_t[]){'a', 0, 'a'}, 3);
        expect_ids(&s, "", 0, NULL, 0);
    }
    EXPECT(t.special[SPECIAL_END] == 256 + N_MERGES && t.special[SPECIAL_PAD] == -1, "end is %d",
           t.special[SPECIAL_END]);
    tokenizer_scratch_fini(&s);
    tokenizer_fini(&t);
}

/* The slow definition: the leftmost pair of the lowest rank, until there is none. */
static size_t merge_by_definition(const struct bpe_merges *m, int32_t *ids, size_t n)
{
    for (;;) {
        size_t best = n;
        const struct bpe_merge *first = NULL;
        for (size_t i = 0; i + 1 < n; i++) {
            const struct bpe_merge *merge = bpe_merges_find(m, ids[i], ids[i + 1]);
            if (merge != NULL && (first == NULL || merge->rank < first->rank)) {
                first = merge;
                best = i;
            }
        }
        if (first == NULL) {
            return n;
        }
        ids[best] = first->id;
        memmove(ids + best + 1, ids + best + 2, (--n - best - 1) * sizeof *ids);
    }
}

static void pieces_of_all_lengths_are_merged_alike(void)
{
    enum { MOST = 300 };
    struct bpe bpe;
    struct bpe_scratch s;
    struct added_tokens none = {0};
    json_t *root = document();
    EXPECT_OK(bpe_json_read(&bpe, &none, root, "test"));
    EXPECT_OK(bpe_scratch_init(&s, &bpe));
    for (uint32_t k = 0; k < 400; k++) {
        char text[MOST];
        int32_t wanted[MOST];
        size_t n = 1 + k * 7 % MOST;
        struct rng_stream random = rng_stream(rng_key(k, 0));
        for (size_t i = 0; i < n; i++) {
            text[i] = "lower"[rng_below(&random, 5)];
            text[i] = k % 3 == 0 ? 'a' : text[i];
            wanted[i] = (unsigned char)text[i];
        }
        struct id_list ids = {0};
        EXPECT_OK(bpe_encode_ids(&s, &ids, text, n));
        size_t n_wanted = merge_by_definition(&bpe.merges, wanted, n);
        EXPECT(ids.n == n_wanted && memcmp(ids.ids, wanted, n_wanted * sizeof *wanted) == 0,
               "%zu bytes: %zu ids, not %zu", n, ids.n, n_wanted);
        id_list_fini(&ids);
    }
    bpe_scratch_fini(&s);
    bpe_merges_fini(&bpe.merges);
    added_tokens_fini(&none);
    json_decref(root);
}

/* Any bytes come back, and tokens lie end to end. */
static void bytes_come_back(void)
{
    enum { N = 200000 };
    struct tokenizer t;
    struct tokenizer_scratch s;
    struct token_list tokens = {0};
    struct id_list ids = {0};
    struct buf back = {0};
    char *text = malloc(N);
    struct rng_stream random = rng_stream(rng_key(7, 0));
    EXPECT(text != NULL, "memory");
    open_small(&t);
    EXPECT_OK(tokenizer_scratch_init(&s, &t));
    for (size_t i = 0; i < N; i++) {
        uint32_t r = rng_u32(&random);
        text[i] = r % 4 == 0 ? (char)(r >> 8) : "lower a\xCC\x81"[r % 9];
    }
    EXPECT_OK(tokenizer_encode(&s, &tokens, text, N));
    EXPECT_OK(tokenizer_encode_ids(&s, &ids, text, N));
    EXPECT(ids.n == tokens.n && tokens.tokens[0].start == 0 && tokens.tokens[ids.n - 1].end == N,
           "%zu tokens", ids.n);
    for (size_t i = 0; i < ids.n; i++) {
        EXPECT(tokens.tokens[i].id == ids.ids[i], "token %zu", i);
        EXPECT(i == 0 || tokens.tokens[i].start == tokens.tokens[i - 1].end, "a gap before token %zu", i);
    }
    EXPECT_OK(tokenizer_decode(&t, &back, ids.ids, ids.n));
    EXPECT(back.n == N && memcmp(back.data, text, N) == 0, "%zu bytes come back", back.n);
    buf_fini(&back);
    id_list_fini(&ids);
    token_list_fini(&tokens);
    tokenizer_scratch_fini(&s);
    tokenizer_fini(&t);
    free(text);
}

/* The number of the merge of the n bytes at `text` from its first `left`, N_MERGES if there is none. */
static int rank_of(const char *text, size_t left, size_t n)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%.*s %.*s", (int)left, text, (int)(n - left), text + left);
    int rank = 0;
    while (rank < N_MERGES && strcmp(merges[rank], wanted) != 0) {
        rank++;
    }
    return rank;
}

/* The definition: of all pairs the first merge, and of equal ones the leftmost, until there is none.  Returns
 * the number of ids. */
static size_t merge_plainly(int32_t *ids, const char *text, size_t n)
{
    size_t ends[512], n_parts = n;
    CHECK(n <= 512, "%zu bytes", n);
    for (size_t i = 0; i < n; i++) {
        ids[i] = (unsigned char)text[i];
        ends[i] = i + 1;
    }
    for (;;) {
        int best = N_MERGES;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n_parts; i++) {
            size_t begin = i == 0 ? 0 : ends[i - 1];
            int rank = rank_of(text + begin, ends[i] - begin, ends[i + 1] - begin);
            at = rank < best ? i : at;
            best = rank < best ? rank : best;
        }
        if (best == N_MERGES) {
            return n_parts;
        }
        ids[at] = 256 + best;
        n_parts--;
        memmove(&ids[at + 1], &ids[at + 2], (n_parts - at - 1) * sizeof *ids);
        memmove(&ends[at], &ends[at + 1], (n_parts - at) * sizeof *ends);
    }
}

static void long_pieces_merge_in_order(void)
{
    enum { N = 300, ROUNDS = 20 };
    static const char letters[] = "loweraan";
    struct rng_stream random = rng_stream(rng_key(9, 0));
    struct tokenizer t;
    struct tokenizer_scratch s;
    open_small(&t);
    EXPECT_OK(tokenizer_scratch_init(&s, &t));
    for (int round = 0; round < ROUNDS; round++) {
        char text[N];
        int32_t wanted[N];
        struct id_list ids = {0};
        for (size_t i = 0; i < N; i++) {
            text[i] = letters[rng_below(&random, sizeof letters - 1)];
        }
        size_t n = merge_plainly(wanted, text, N);
        EXPECT_OK(tokenizer_encode_ids(&s, &ids, text, N));
        EXPECT(ids.n == n && memcmp(ids.ids, wanted, n * sizeof *wanted) == 0, "piece %d: other ids", round);
        id_list_fini(&ids);
    }
    tokenizer_scratch_fini(&s);
    tokenizer_fini(&t);
}

/* A megabyte of one letter is one piece: a quadratic time would not end. */
static void long_pieces_take_little_time(void)
{
    enum { N = 1000003 };
    struct tokenizer t;
    struct tokenizer_scratch s;
    struct id_list ids = {0};
    char *text = malloc(N);
    EXPECT(text != NULL, "memory");
    memset(text, 'a', N);
    open_small(&t);
    EXPECT_OK(tokenizer_scratch_init(&s, &t));
    EXPECT_OK(tokenizer_encode_ids(&s, &ids, text, N));
    EXPECT(ids.n == N / 4 + 2 && ids.ids[0] == 262 && ids.ids[ids.n - 1] == 'a', "%zu ids", ids.n);
    id_list_fini(&ids);
    tokenizer_scratch_fini(&s);
    tokenizer_fini(&t);
    free(text);
}

/* The document with this value under `key`, of `part` or of its part `inner`, is refused. */
static void refuse(const char *part, const char *inner, const char *key, json_t *value, const char *message)
{
    struct tokenizer t;
    json_t *root = document(), *at = part == NULL ? root : json_object_get(root, part);
    at = inner == NULL ? at : json_object_get(at, inner);
    json_object_set_new(at, key, value);
    EXPECT_ERROR(open_document(&t, root), STATUS_DATA, message);
    tokenizer_fini(&t);
    json_decref(root);
}

static void other_settings_are_refused_by_name(void)
{
    refuse(NULL, NULL, "normalizer", json_pack("{s:s}", "type", "Lowercase"), "normalizer is Lowercase");
    refuse("model", NULL, "dropout", json_real(0.1), "dropout");
    refuse("model", NULL, "ignore_merges", json_integer(1), "ignore_merges");
    refuse("model", NULL, "byte_fallback", json_true(), "byte_fallback");
    refuse("model", NULL, "continuing_subword_prefix", json_string("##"), "continuing_subword_prefix");
    refuse("pre_tokenizer", NULL, "add_prefix_space", json_true(), "add_prefix_space");
    refuse("pre_tokenizer", NULL, "type", json_string("Digits"), "pre_tokenizer");
    refuse(NULL, NULL, "pre_tokenizer",
           json_pack("{s:s, s:[{s:s, s:{s:s}, s:s}, {s:s, s:b, s:b}]}", "type", "Sequence", "pretokenizers",
                     "type", "Split", "pattern", "Regex", "\\bx", "behavior", "Isolated", "type", "ByteLevel",
                     "add_prefix_space", 0, "use_regex", 0),
           "'\\bx': at byte 0 it has an escape of another kind");
    refuse("model", NULL, "vocab", json_pack("{s:i}", "a", 0), "byte 0x00");
    refuse("model", "vocab", "lo", json_integer(3), "same id 3");
    refuse("model", "vocab", "lo", json_integer(1000000), "whole number");
    refuse("model", NULL, "merges", json_pack("[s]", "l"), "two pieces with a space");
    refuse("model", NULL, "merges", json_pack("[[s, s]]", "l", "q"), "makes a piece that is not in");
    refuse("model", NULL, "merges", json_pack("[i]", 3), "entry 1");
}

/* As in `tokenizers`: of a merge that is listed twice the later place counts, ids may have holes, and an
 * unknown token changes nothing where each byte has a piece. */
static void odd_vocabularies_are_read(void)
{
    struct tokenizer t;
    struct tokenizer_scratch s;
    size_t n;
    json_t *root = document(), *model = json_object_get(root, "model");
    json_object_set_new(model, "unk_token", json_string("<|endoftext|>"));
    json_array_append_new(json_object_get(model, "merges"), json_string("l o")); /* now behind "e r" */
    json_object_set_new(json_object_get(model, "vocab"), "<|endoftext|>", json_integer(300));
    EXPECT_OK(open_document(&t, root));
    EXPECT(t.n == 301 && t.special[SPECIAL_END] == 300, "%d pieces", t.n);
    EXPECT(*tokenizer_piece(&t, 290, &n) == '\0' || n == 0, "a piece without a token");
    EXPECT(bpe_tokenizer_view(&t)->merges.n_merges == N_MERGES, "%d merges",
           bpe_tokenizer_view(&t)->merges.n_merges);
    const struct bpe_merge **by_rank = bpe_merges_by_rank(&bpe_tokenizer_view(&t)->merges);
    EXPECT(by_rank != NULL && by_rank[N_MERGES - 1]->left == 'l' && by_rank[0]->right == 'w',
           "the last merge is 'l o'");
    free((void *)by_rank);
    EXPECT_OK(tokenizer_scratch_init(&s, &t));
    expect_ids(&s, "<|endoftext|>lo", 15, (const int32_t[]){300, 256}, 2);
    tokenizer_scratch_fini(&s);
    tokenizer_fini(&t);
    json_decref(root);
}

/* vocab.json and merges.txt give the same ids as tokenizer.json; a merge may begin with #. */
static void files_are_opened(void)
{
    char directory[] = "test_bpe.XXXXXX", vocab_path[64], merges_path[64], json_path[64];
    struct tokenizer t;
    struct tokenizer_scratch s;
    struct buf lines = {0};
    struct input_frame frame;
    int64_t max_length;
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    snprintf(vocab_path, sizeof vocab_path, "%s/vocab.json", directory);
    snprintf(merges_path, sizeof merges_path, "%s/merges.txt", directory);
    snprintf(json_path, sizeof json_path, "%s/tokenizer.json", directory);
    json_t *pieces = vocabulary(), *root = document();
    json_object_set_new(pieces, "##", json_integer(256 + N_MERGES + 1));
    EXPECT(json_dump_file(pieces, vocab_path, 0) == 0, "%s", vocab_path);
    buf_puts(&lines, "\xEF\xBB\xBF#version: 0.2\n"); /* a byte order mark is none of a piece */
    for (int i = 0; i < N_MERGES; i++) {
        buf_printf(&lines, "%s\r\n", merges[i]);
    }
    buf_puts(&lines, "# #");
    EXPECT_OK(file_write_atomic(merges_path, lines.data, lines.n));

    EXPECT_OK(tokenizer_open_merges(&t, vocab_path, merges_path));
    EXPECT_OK(tokenizer_scratch_init(&s, &t));
    expect_ids(&s, "lower## lower", 13, (const int32_t[]){260, 256 + N_MERGES + 1, 264}, 3);
    uint64_t hash = t.hash;
    tokenizer_scratch_fini(&s);
    tokenizer_fini(&t);
    EXPECT_OK(tokenizer_open_directory(&t, &max_length, directory));
    EXPECT(t.hash == hash && t.n_files == 2, "%d files", t.n_files);
    tokenizer_fini(&t);
    EXPECT_OK(tokenizer_open_beside(&t, vocab_path));
    EXPECT(t.hash == hash && t.n_files == 2, "%d files", t.n_files);
    tokenizer_fini(&t);
    EXPECT_ERROR(tokenizer_open_vocabulary(&t, vocab_path, false), STATUS_DATA, "--merge_file");

    EXPECT(json_dump_file(root, json_path, 0) == 0, "%s", json_path);
    EXPECT_OK(tokenizer_open_vocabulary(&t, json_path, false));
    EXPECT(t.hash != hash && t.n_files == 1, "%d files, or \"##\" is not in the hash", t.n_files);
    tokenizer_fini(&t);
    EXPECT_ERROR(tokenizer_open_vocabulary(&t, json_path, true), STATUS_USAGE, "leave out --do_lower_case");

    /* the frame of a RoBERTa */
    json_object_set_new(
        root, "post_processor",
        json_pack("{s:s, s:[s, i], s:[s, i]}", "type", "RobertaProcessing", "cls", "a", 97, "sep", "b", 98));
    EXPECT(json_dump_file(root, json_path, 0) == 0, "%s", json_path);
    EXPECT_OK(tokenizer_open_directory(&t, &max_length, directory));
    EXPECT_OK(tokenizer_frame(&frame, &t, "a text"));
    EXPECT(frame.given && frame.pair.before.ids[0] == 97 && frame.pair.between.n == 2 && frame.pair.b_first,
           "%d tokens between", frame.pair.between.n);
    tokenizer_fini(&t);

    json_decref(pieces);
    json_decref(root);
    buf_fini(&lines);
    unlink(vocab_path);
    unlink(merges_path);
    unlink(json_path);
    rmdir(directory);
}

static uint64_t hash_of_document(json_t *root)
{
    struct tokenizer t;
    EXPECT_OK(open_document(&t, root));
    uint64_t hash = t.hash;
    tokenizer_fini(&t);
    json_decref(root);
    return hash;
}

/* The hash is of what decides the ids: the same of vocab.json with merges.txt and of tokenizer.json, whatever
 * their bytes, and another where one piece, merge or the pattern is another. */
static void hashes_are_of_ids(void)
{
    char directory[] = "test_bpe.XXXXXX", vocab_path[64], merges_path[64];
    struct tokenizer t;
    struct buf lines = {0};
    json_t *pieces = vocabulary();
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    snprintf(vocab_path, sizeof vocab_path, "%s/vocab.json", directory);
    snprintf(merges_path, sizeof merges_path, "%s/merges.txt", directory);
    EXPECT(json_dump_file(pieces, vocab_path, JSON_INDENT(1)) == 0, "%s", vocab_path);
    for (int i = 0; i < N_MERGES; i++) {
        buf_printf(&lines, "%s\n", merges[i]);
    }
    EXPECT_OK(file_write_atomic(merges_path, lines.data, lines.n));
    EXPECT_OK(tokenizer_open_merges(&t, vocab_path, merges_path));
    uint64_t hash = t.hash;
    tokenizer_fini(&t);
    EXPECT(hash_of_document(document()) == hash, "the same tokenizer has two hashes");

    json_t *swapped = document(), *list = json_object_get(json_object_get(swapped, "model"), "merges");
    json_array_set_new(list, 5, json_string(merges[7]));
    json_array_set_new(list, 7, json_string(merges[5]));
    EXPECT(hash_of_document(swapped) != hash, "the order of merges is not in the hash");
    json_t *renamed = document(), *texts = json_object_get(json_object_get(renamed, "model"), "vocab");
    json_object_del(texts, "<|endoftext|>");
    json_object_set_new(texts, "<|end|>", json_integer(256 + N_MERGES));
    EXPECT(hash_of_document(renamed) != hash, "a piece is not in the hash");
    json_decref(pieces);
    buf_fini(&lines);
    EXPECT_OK(file_remove_tree(directory));
}

int main(void)
{
    texts_are_cut_as_by_the_patterns();
    quick_pieces_end_as_others();
    merges_go_by_rank();
    pieces_of_all_lengths_are_merged_alike();
    bytes_come_back();
    long_pieces_merge_in_order();
    long_pieces_take_little_time();
    other_settings_are_refused_by_name();
    odd_vocabularies_are_read();
    files_are_opened();
    hashes_are_of_ids();
    return 0;
}
