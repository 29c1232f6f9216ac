/* Tests of text/tokenizer: WordPiece and a tokenizer of another kind behind one interface, their hashes and
 * their files in directories. */
#include "built_store.h"
#include "fixture_bytes.h"
#include "fixture_store.h"

#include "core/hash.h"
#include "data/shard_set.h"
#include "data/squad_features.h"
#include "data/tag_examples.h"
#include "io/json_file.h"
#include "text/tokenizer_files.h"
#include "text/special_tokens.h"
#include "text/tokenizer_open.h"
#include "text/wordpiece.h"

static const char VOCAB[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##able\nA\na\n";

static void wordpiece(struct tokenizer *t, bool lower_case)
{
    EXPECT_OK(wordpiece_tokenizer_init(t, VOCAB, sizeof VOCAB - 1, "test", lower_case));
}

static void expect_ids(struct tokenizer_scratch *scratch, const json_t *of, const char *key)
{
    const json_t *wanted = json_object_get(of, key);
    const char *text = json_string_value(json_object_get(of, "text"));
    struct id_list ids = {0};
    struct token_list tokens = {0};
    EXPECT_OK(tokenizer_encode_ids(scratch, &ids, text, strlen(text)));
    EXPECT_OK(tokenizer_encode(scratch, &tokens, text, strlen(text)));
    EXPECT(ids.n == json_array_size(wanted) && tokens.n == ids.n, "'%s', %s: %zu ids, not %zu", text, key,
           ids.n, json_array_size(wanted));
    for (size_t i = 0; i < ids.n; i++) {
        EXPECT(ids.ids[i] == json_integer_value(json_array_get(wanted, i)) &&
                   tokens.tokens[i].id == ids.ids[i],
               "'%s', %s: id %zu is %d", text, key, i, ids.ids[i]);
        EXPECT(tokens.tokens[i].end <= strlen(text) &&
                   (i == 0 || tokens.tokens[i].start >= tokens.tokens[i - 1].end),
               "'%s': places of token %zu", text, i);
    }
    id_list_fini(&ids);
    token_list_fini(&tokens);
}

/* Ids of BertTokenizerFast (tests/golden/make_added_tokens.py), with special tokens as text and as tokens. */
static void added_tokens_are_hugging_faces(void)
{
    json_t *root, *a_case, *text;
    size_t i, k;
    struct buf vocab = {0};
    EXPECT_OK(json_read_object(&root, KILN_SOURCE_DIR "/tests/golden/added_tokens.json"));
    json_array_foreach(json_object_get(root, "pieces"), i, text)
    {
        buf_printf(&vocab, "%s\n", json_string_value(text));
    }
    json_array_foreach(json_object_get(root, "cases"), i, a_case)
    {
        struct tokenizer t;
        struct tokenizer_scratch scratch;
        struct added_tokens added = {0};
        EXPECT_OK(wordpiece_tokenizer_init(&t, vocab.data, vocab.n, "test",
                                           json_is_true(json_object_get(a_case, "lower_case"))));
        EXPECT_OK(added_tokens_read_json(&added, json_object_get(a_case, "added_tokens"), "test"));
        tokenizer_take_added(&t, &added);
        EXPECT_OK(special_tokens_find(&t, NULL));
        EXPECT(t.n > t.n_own && t.n_files == 2, "%d pieces, %d files", t.n, t.n_files);
        EXPECT_OK(tokenizer_scratch_init(&scratch, &t));
        json_array_foreach(json_object_get(a_case, "texts"), k, text)
        {
            expect_ids(&scratch, text, "as_text");
            t.parses_special = true;
            expect_ids(&scratch, text, "special");
            t.parses_special = false;
        }
        tokenizer_scratch_fini(&scratch);
        tokenizer_fini(&t);
    }
    buf_fini(&vocab);
    json_decref(root);
}

static void put_file(const char *directory, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    EXPECT_OK(file_write_atomic(path, text, strlen(text)));
}

/* added_tokens.json and "added_tokens_decoder" are read, the latter first, and what kiln writes is read back
 * alike. */
static void added_tokens_stay(void)
{
    char directory[] = "test_tokenizer.XXXXXX", again[64];
    struct tokenizer t, back;
    int64_t max_length;
    size_t n;
    EXPECT(mkdtemp(directory) != NULL, "a directory");
    put_file(directory, "vocab.txt", VOCAB);
    put_file(directory, "added_tokens.json", "{\"<url>\": 9, \"<e>\": 11}");
    put_file(directory, "tokenizer_config.json",
             "{\"added_tokens_decoder\": {\"9\": {\"content\": \"<url>\", \"single_word\": true}}}");
    EXPECT_OK(tokenizer_open_directory(&t, &max_length, directory));
    EXPECT(t.n == 12 && t.n_files == 2 && added_tokens_of(&t.added, 9)->single_word &&
               strcmp(tokenizer_piece(&t, 11, &n), "<e>") == 0,
           "%d pieces", t.n);
    EXPECT(*tokenizer_piece(&t, 10, &n) == '\0' && n == 0, "a piece without a token");
    snprintf(again, sizeof again, "%s/again", directory);
    EXPECT_OK(file_make_directories(again));
    EXPECT_OK(tokenizer_files_write_all(&t, again, max_length));
    EXPECT_OK(tokenizer_open_directory(&back, &max_length, again));
    EXPECT(back.n == t.n && back.hash == t.hash && back.added.n == t.added.n &&
               added_tokens_of(&back.added, 9)->single_word,
           "read back otherwise");
    tokenizer_fini(&back);
    tokenizer_fini(&t);
    put_file(directory, "added_tokens.json", "{\"<url>\": -1}");
    put_file(directory, "tokenizer_config.json", "{}");
    EXPECT_ERROR(tokenizer_open_directory(&t, &max_length, directory), STATUS_DATA, "added token '<url>'");
    EXPECT_OK(file_remove_tree(directory));
}

static void bytes_go_both_ways(void)
{
    static const char text[] = "an \xFFid";
    struct tokenizer t;
    struct tokenizer_scratch scratch;
    struct token_list tokens = {0};
    struct id_list ids = {0};
    struct buf back = {0};
    bytes_tokenizer_init(&t);
    EXPECT_OK(tokenizer_scratch_init(&scratch, &t));
    EXPECT_OK(tokenizer_encode(&scratch, &tokens, text, 6));
    EXPECT_OK(tokenizer_encode_ids(&scratch, &ids, text, 6));
    EXPECT(tokens.n == 6 && ids.n == 6 && ids.ids[3] == 0xFF, "%zu tokens, %zu ids", tokens.n, ids.n);
    for (size_t i = 0; i < 6; i++) {
        const struct token *k = &tokens.tokens[i];
        size_t n;
        EXPECT(k->id == ids.ids[i] && k->start == i && k->end == i + 1, "token %zu", i);
        EXPECT(*tokenizer_piece(&t, k->id, &n) == text[i] && n == 1, "piece of token %zu", i);
        EXPECT(tokenizer_continues_word(&t, k->id) == (i != 2), "token %zu", i);
    }
    EXPECT_OK(tokenizer_decode(&t, &back, ids.ids, ids.n));
    EXPECT(strcmp(buf_text(&back), text) == 0, "'%s'", buf_text(&back));
    EXPECT_ERROR(tokenizer_decode(&t, &back, &(int32_t){256}, 1), STATUS_DATA,
                 "token 0 has the id 256, but the vocabulary has 256 pieces");
    EXPECT_ERROR(tokenizer_decode(&t, &back, &(int32_t){-1}, 1), STATUS_DATA, "the id -1");
    tokenizer_scratch_fini(&scratch);
    EXPECT(bytes_scratches == 0, "%d scratches are left", bytes_scratches);
    buf_fini(&back);
    token_list_fini(&tokens);
    id_list_fini(&ids);
    tokenizer_fini(&t);
}

static void wordpiece_says_what_it_has(void)
{
    static const int32_t special[SPECIAL_COUNT] = {0, 1, 2, 3, 4, -1, -1};
    struct tokenizer t;
    wordpiece(&t, true);
    EXPECT(t.n == 9 && memcmp(t.special, special, sizeof special) == 0, "%d pieces", t.n);
    EXPECT(tokenizer_continues_word(&t, 6) && !tokenizer_continues_word(&t, 5) &&
               !tokenizer_continues_word(&t, t.special[SPECIAL_MASK]),
           "words go on with ## only");
    EXPECT_OK(tokenizer_require(&t, (1U << SPECIAL_BEGIN) - 1, "BERT"));
    EXPECT_ERROR(tokenizer_require(&t, 1U << SPECIAL_END, "a decoder"), STATUS_DATA, "no end token");
    tokenizer_fini(&t);
}

/* The letter case is the tokenizer's, and a scratch takes it over. */
static void letter_case_is_chosen_before_encoding(void)
{
    struct tokenizer t;
    for (int lower = 0; lower < 2; lower++) {
        struct tokenizer_scratch scratch;
        struct id_list ids = {0};
        wordpiece(&t, !lower);
        EXPECT_OK(tokenizer_set_lower_case(&t, lower));
        EXPECT_OK(tokenizer_scratch_init(&scratch, &t));
        EXPECT_OK(tokenizer_encode_ids(&scratch, &ids, "A", 1));
        EXPECT(ids.n == 1 && ids.ids[0] == (lower ? 8 : 7), "lower case %d: %d", lower, ids.ids[0]);
        id_list_fini(&ids);
        tokenizer_scratch_fini(&scratch);
        tokenizer_fini(&t);
    }
    bytes_tokenizer_init(&t);
    EXPECT_OK(tokenizer_set_lower_case(&t, false));
    EXPECT_ERROR(tokenizer_set_lower_case(&t, true), STATUS_USAGE, "a byte tokenizer keeps the case of text");
    EXPECT(!t.lower_case, "what was refused was done");
    tokenizer_fini(&t);
}

static void what_is_lacking_is_named(void)
{
    struct tokenizer t;
    bytes_tokenizer_init(&t);
    EXPECT_OK(tokenizer_require(&t, 0, "nothing"));
    EXPECT_ERROR(tokenizer_require(&t, 1U << SPECIAL_MASK, "predicting masked tokens"), STATUS_DATA,
                 "of this byte tokenizer has no mask token, which predicting masked tokens needs");
    t.special[SPECIAL_MASK] = 0;
    EXPECT_OK(tokenizer_require(&t, 1U << SPECIAL_MASK, "predicting masked tokens"));
    EXPECT_ERROR(tokenizer_require(&t, 1U << SPECIAL_MASK | 1U << SPECIAL_SEPARATOR, "a pair"), STATUS_DATA,
                 "no separator token, which a pair needs");
    tokenizer_fini(&t);
}

/* Text becomes a store with any tokenizer; samples with masks want one that has them. */
static void stores_take_any_tokenizer(void)
{
    struct tokenizer t;
    struct store_builder b;
    struct bert_loader_config samples = {.vocab_size = -7};
    char directory[512];
    bytes_tokenizer_init(&t);
    snprintf(directory, sizeof directory, "%s", fixture_path("."));
    EXPECT_OK(store_builder_open(&b, (struct store_builder_config){.tokenizer = &t, .directory = directory}));
    struct built_store store = built_store_open(&(struct document_ids_config){.tokenizer = &t});
    built_store_add(&store, &b, "One. Two!", true);
    built_store_close(&store);
    EXPECT_OK(store_builder_commit(&b));
    const struct token_store_info *info = &b.infos[STORE_TRAIN];
    EXPECT(info->vocab_hash == t.hash && info->vocab_size == BYTES_N && !info->lower_case &&
               info->n_sentences == 2 && info->n_tokens == 8,
           "%lld tokens", (long long)info->n_tokens);
    EXPECT(bytes_scratches == 0, "%d scratches are left", bytes_scratches);

    struct shard_set_config shards = {.directory = directory, .tokenizer = &t};
    EXPECT_ERROR(shard_set_check(&shards), STATUS_DATA, "which predicting masked tokens needs");
    t.special[SPECIAL_PAD] = t.special[SPECIAL_CLASS] = t.special[SPECIAL_SEPARATOR] = 0;
    EXPECT_ERROR(bert_loader_set_tokens(&samples, &t), STATUS_DATA,
                 "of this byte tokenizer has no mask token, which predicting masked tokens needs");
    EXPECT(samples.vocab_size == -7, "what was refused was set");
    t.special[SPECIAL_MASK] = 9;
    EXPECT_OK(bert_loader_set_tokens(&samples, &t));
    EXPECT(samples.vocab_size == BYTES_N && samples.mask_id == 9 && samples.cls_id == 0, "the ids are taken");
    tokenizer_fini(&t);
}

static void questions_want_a_separator(void)
{
    static const char *const question = "one?";
    struct tokenizer t;
    struct squad_examples e;
    struct squad_features f;
    const struct squad_feature_options options = {64, 16, 8, false};
    bytes_tokenizer_init(&t);
    EXPECT_OK(squad_examples_ask(&e, "a text", 6, &question, 1));
    t.special[SPECIAL_CLASS] = 1;
    EXPECT_ERROR(squad_features_build(&f, &e, &t, options), STATUS_DATA,
                 "has no separator token, which a question with its context needs");
    t.special[SPECIAL_SEPARATOR] = 2;
    EXPECT_OK(squad_features_build(&f, &e, &t, options));
    EXPECT(f.n == 1 && encoded_texts_length(&f.texts, 0) == 3 + 4 + 5, "%lld features", (long long)f.n);
    int32_t ids[12];
    encoded_texts_write(&f.texts, 0, ids);
    EXPECT(ids[0] == 1 && ids[1] == 'o' && ids[5] == 2 && ids[6] == 'a' && ids[7] == 't' && ids[11] == 2,
           "other tokens");
    squad_features_fini(&f);
    squad_examples_fini(&e);
    tokenizer_fini(&t);
}

/* Stores and checkpoints hold the hash of vocab.txt, so it stays what it was. */
static void one_hash_is_of_all_files(void)
{
    struct tokenizer t, other;
    wordpiece(&t, true);
    wordpiece(&other, false);
    EXPECT(t.hash == hash_fnv1a(VOCAB, sizeof VOCAB - 1) && other.hash == t.hash, "the hash is the file's");
    tokenizer_fini(&t);
    tokenizer_fini(&other);

    bytes_tokenizer_init(&t);
    bytes_tokenizer_init(&other);
    EXPECT(t.hash == other.hash && t.hash != hash_fnv1a(t.files[0].bytes, BYTES_N), "of both files");
    const struct tokenizer_file changes[][2] = {
        {t.files[0], {"merges.txt", "some\n", 5}},
        {t.files[0], {"merges.bin", "none\n", 5}},
        {t.files[1], t.files[0]},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        tokenizer_set_files(&other, changes[i], 2);
        EXPECT(other.hash != t.hash, "change %zu is not seen", i);
    }
    tokenizer_fini(&t);
    tokenizer_fini(&other);
}

static void expect_copy(const struct tokenizer *t, enum tokenizer_copy wanted, const char *wanted_name)
{
    enum tokenizer_copy copy;
    const char *name = "";
    EXPECT_OK(tokenizer_files_compare(&copy, &name, t, fixture_path("files")));
    EXPECT(copy == wanted && strcmp(name, wanted_name) == 0, "copy %d of %s", (int)copy, name);
}

static void files_are_written_by_their_list(void)
{
    struct tokenizer t;
    bytes_tokenizer_init(&t);
    EXPECT_OK(file_make_directories(fixture_path("files")));
    expect_copy(&t, TOKENIZER_COPY_ABSENT, "");
    EXPECT_OK(tokenizer_files_write(&t, fixture_path("files")));
    expect_copy(&t, TOKENIZER_COPY_SAME, "");
    fixture_write("files/merges.txt", "some\n", 5);
    expect_copy(&t, TOKENIZER_COPY_OTHER, "merges.txt");
    fixture_write("files/pieces.bin", "", 0);
    expect_copy(&t, TOKENIZER_COPY_OTHER, "pieces.bin");
    EXPECT_OK(tokenizer_files_write(&t, fixture_path("files")));
    EXPECT(unlink(fixture_path("files/pieces.bin")) == 0, "pieces.bin");
    expect_copy(&t, TOKENIZER_COPY_OTHER, "merges.txt");
    EXPECT_OK(tokenizer_files_write_all(&t, fixture_path("files"), 7));
    expect_copy(&t, TOKENIZER_COPY_SAME, "");
    for (const char *const *name = bytes_file_names; *name != NULL; name++) {
        char path[64];
        snprintf(path, sizeof path, "files/%s", *name);
        EXPECT(file_exists(fixture_path(path)), "%s is missing", path);
        EXPECT(unlink(fixture_path(path)) == 0, "%s", path);
    }
    EXPECT(rmdir(fixture_path("files")) == 0, "more files were written than its list has");
    EXPECT_ERROR(tokenizer_files_write(&t, fixture_path("files")), STATUS_IO, "files");
    tokenizer_fini(&t);
}

/* A directory that was written is opened as what it was. */
static void directories_are_opened(void)
{
    struct tokenizer t, read;
    int64_t max_length;
    for (int lower = 0; lower < 2; lower++) {
        wordpiece(&t, lower);
        EXPECT_OK(file_make_directories(fixture_path("model")));
        EXPECT_OK(tokenizer_files_write_all(&t, fixture_path("model"), 7));
        for (int whole = 1; whole >= 0; whole--) {
            EXPECT_OK(tokenizer_open_directory(&read, &max_length, fixture_path("model")));
            EXPECT(read.hash == t.hash && read.n == t.n && read.lower_case == lower && max_length == 7,
                   "lower case %d: %lld tokens", read.lower_case, (long long)max_length);
            tokenizer_fini(&read);
            unlink(fixture_path("model/vocab.txt"));
        }
        EXPECT(tokenizer_open_writes("tokenizer.json") && !tokenizer_open_writes("config.json"), "names");
        EXPECT_OK(tokenizer_files_write(&t, fixture_path("model")));
        EXPECT_OK(tokenizer_open_beside(&read, fixture_path("model/vocab.txt")));
        EXPECT(read.lower_case == lower, "the letter case beside it");
        tokenizer_fini(&read);
        EXPECT_OK(file_remove_tree(fixture_path("model")));
        tokenizer_fini(&t);
    }
    EXPECT_OK(file_make_directories(fixture_path("model")));
    EXPECT_ERROR(tokenizer_open_directory(&read, &max_length, fixture_path("model")), STATUS_DATA,
                 "neither vocab.txt nor tokenizer.json");
    EXPECT(read.kind == NULL, "what failed is closed");
}

/* A model directory of VOCAB whose tokenizer.json has this post_processor. */
static struct status open_framed(struct tokenizer *t, const char *post_processor)
{
    char path[256];
    json_t *root;
    int64_t max_length;
    struct tokenizer plain;
    EXPECT_OK(file_make_directories(fixture_path("framed")));
    wordpiece(&plain, false);
    EXPECT_OK(tokenizer_files_write_all(&plain, fixture_path("framed"), 32));
    tokenizer_fini(&plain);
    snprintf(path, sizeof path, "%s/tokenizer.json", fixture_path("framed"));
    EXPECT_OK(json_read_object(&root, path));
    json_object_set_new(root, "post_processor", json_loads(post_processor, JSON_DECODE_ANY, NULL));
    EXPECT_OK(json_file_write(path, root));
    return tokenizer_open_directory(t, &max_length, fixture_path("framed"));
}

/* The last of the texts. */
static void expect_frame(const struct encoded_texts *texts, const char *wanted, int64_t wanted_first)
{
    struct buf line = {0};
    int64_t last = texts->n - 1, n_first = encoded_texts_first_length(texts, last);
    int32_t ids[32];
    encoded_texts_write(texts, last, ids);
    for (int64_t i = 0; i < encoded_texts_length(texts, last); i++) {
        buf_printf(&line, "%s%d", i == 0 ? "" : " ", ids[i]);
    }
    EXPECT(strcmp(buf_text(&line), wanted) == 0 && n_first == wanted_first,
           "%s, %lld of segment 0; not %s, %lld", buf_text(&line), (long long)n_first, wanted,
           (long long)wanted_first);
    buf_fini(&line);
}

/* The window "A a" of the question "un". */
static void expect_window(const struct tokenizer *t, const char *wanted, int64_t n_first)
{
    static const char *const question = "un";
    struct squad_examples e;
    struct squad_features f;
    EXPECT_OK(squad_examples_ask(&e, "A a", 3, &question, 1));
    EXPECT_OK(squad_features_build(&f, &e, t, (struct squad_feature_options){32, 16, 8, false}));
    expect_frame(&f.texts, wanted, n_first);
    EXPECT(squad_feature_word(&f, 0, encoded_texts_second_at(&f.texts, 0) + 1) == 1,
           "the place of the window");
    squad_features_fini(&f);
    squad_examples_fini(&e);
}

/* Texts and pairs as the frame lays them out, and so again once kiln has written it. */
static void frame_is(const char *post_processor, const char *one, int64_t one_first, const char *pair,
                     int64_t pair_first)
{
    struct tokenizer t, back;
    EXPECT_OK(open_framed(&t, post_processor));
    for (int again = 0; again < 2; again++) {
        struct tokenizer_scratch scratch;
        struct encoded_texts texts;
        struct text_bytes a = {"un", 2}, b = {"A a", 3};
        int64_t max_length;
        EXPECT_OK(tokenizer_scratch_init(&scratch, &t));
        EXPECT_OK(encoded_texts_init(&texts, &t, 32, "a text"));
        EXPECT_OK(encoded_texts_add(&texts, &scratch, a, NULL));
        expect_frame(&texts, one, one_first);
        EXPECT_OK(encoded_texts_add(&texts, &scratch, a, &b));
        expect_frame(&texts, pair, pair_first);
        expect_window(&t, pair, pair_first);
        encoded_texts_fini(&texts);
        tokenizer_scratch_fini(&scratch);
        EXPECT_OK(tokenizer_files_write_all(&t, fixture_path("framed"), 32));
        EXPECT_OK(tokenizer_open_directory(&back, &max_length, fixture_path("framed")));
        EXPECT(back.frame.given && (!t.frame.given || input_frame_equal(&t.frame, &back.frame)),
               "read back otherwise");
        tokenizer_fini(&t);
        t = back;
    }
    tokenizer_fini(&t);
}

#define A(type)    "{\"Sequence\": {\"id\": \"A\", \"type_id\": " #type "}}"
#define B(type)    "{\"Sequence\": {\"id\": \"B\", \"type_id\": " #type "}}"
#define CLS(type)  "{\"SpecialToken\": {\"id\": \"[CLS]\", \"type_id\": " #type "}}"
#define SEP(type)  "{\"SpecialToken\": {\"id\": \"[SEP]\", \"type_id\": " #type "}}"
#define TOKENS     "{\"[CLS]\": {\"id\": \"[CLS]\", \"ids\": [2]}, " LAST_TOKEN "}"
#define LAST_TOKEN "\"[SEP]\": {\"id\": \"[SEP]\", \"ids\": [3]}"
#define TEMPLATE(single, pair)                                                                               \
    "{\"type\": \"TemplateProcessing\", \"single\": [" single "], \"pair\": [" pair                          \
    "], \"special_tokens\": " TOKENS "}"
#define PAIR CLS(0) "," A(0) "," SEP(0) "," B(1) "," SEP(1)

#define ROBERTA "{\"type\": \"RobertaProcessing\", \"cls\": [\"[CLS]\", 2], \"sep\": [\"[SEP]\", 3]}"

static void frames_are_honoured(void)
{
    frame_is("null", "2 5 3", 3, "2 5 3 7 8 3", 3);
    frame_is(TEMPLATE(CLS(0) "," A(0) "," SEP(0), PAIR), "2 5 3", 3, "2 5 3 7 8 3", 3);
    frame_is("{\"type\": \"BertProcessing\", \"cls\": [\"[CLS]\", 2], \"sep\": [\"[SEP]\", 3]}", "2 5 3", 3,
             "2 5 3 7 8 3", 3);
    frame_is(ROBERTA, "2 5 3", 3, "2 5 3 3 7 8 3", 7);
    frame_is("{\"type\": \"ByteLevel\"}", "5", 1, "5 7 8", 3);
    frame_is("{\"type\": \"Sequence\", \"processors\": [{\"type\": \"ByteLevel\"}, " ROBERTA "]}", "2 5 3", 3,
             "2 5 3 3 7 8 3", 7);
    frame_is(TEMPLATE(A(0), A(0) "," B(1)), "5", 1, "5 7 8", 1);
    frame_is(TEMPLATE(A(0) "," SEP(0) "," CLS(1), A(0) "," SEP(0) "," B(0) "," SEP(0) "," CLS(1)), "5 3 2", 2,
             "5 3 7 8 3 2", 5);
    frame_is(TEMPLATE(CLS(0) "," CLS(0) "," A(1) "," SEP(1), CLS(0) "," A(0) "," SEP(1) "," B(1)), "2 2 5 3",
             2, "2 5 3 7 8", 2);
}

static void strange_frames_are_named(void)
{
    static const struct {
        const char *processor, *message;
    } cases[] = {
        {"{\"type\": \"Digits\"}", "post_processor is a Digits"},
        {"{\"type\": \"Sequence\"}", "\"processors\" must be a list"},
        {"{\"type\": \"Sequence\", \"processors\": [" ROBERTA ", " ROBERTA "]}", "two steps"},
        {"{\"cls\": 1}", "\"type\""},
        {"{\"type\": \"RobertaProcessing\", \"cls\": [\"[CLS]\", 2]}", "\"sep\" must be a token and its id"},
        {"{\"type\": \"BertProcessing\", \"cls\": [\"[CLS]\", -2], \"sep\": [\"[SEP]\", 3]}",
         "\"cls\" must be"},
        {"{\"type\": \"BertProcessing\", \"cls\": [\"[CLS]\", 99], \"sep\": [\"[SEP]\", 3]}", "the id 99"},
        {"{\"type\": \"TemplateProcessing\"}", "\"single\" must be a list"},
        {TEMPLATE(CLS(0), PAIR), "\"single\" must have the text A"},
        {TEMPLATE(A(0), A(0)), "\"pair\" must have the texts A and B"},
        {TEMPLATE(B(0), PAIR), "but has B"},
        {TEMPLATE(A(0), B(0) "," A(1)), "but has B"},
        {TEMPLATE(A(0), A(0) "," B(1) "," A(1)), "but has A"},
        {TEMPLATE(A(0) "," CLS(2), PAIR), "type_id 2"},
        {TEMPLATE(A(1) "," SEP(0), PAIR), "type_id 0 after a 1"},
        {TEMPLATE("{\"SpecialToken\": {\"id\": \"<s>\"}}," A(0), PAIR), "does not list: <s>"},
        {TEMPLATE("{}," A(0), PAIR), "neither a Sequence nor a SpecialToken"},
        {TEMPLATE(CLS(0) "," CLS(0) "," CLS(0) "," CLS(0) "," CLS(0) "," A(0), PAIR),
         "more than 4 special tokens"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tokenizer t;
        EXPECT_ERROR(open_framed(&t, cases[i].processor), STATUS_DATA, cases[i].message);
    }
}

static void unknown_vocabularies_encode_nothing(void)
{
    struct tokenizer t;
    struct tokenizer_scratch scratch;
    tokenizer_open_unknown(&t);
    EXPECT(t.n == 0 && t.n_files == 1 && t.files[0].n == 0 && t.hash == hash_fnv1a("", 0), "%d pieces", t.n);
    EXPECT_ERROR(tokenizer_scratch_init(&scratch, &t), STATUS_DATA, "the model has no vocabulary");
    tokenizer_scratch_fini(&scratch);
    tokenizer_fini(&t);
}

int main(void)
{
    bytes_go_both_ways();
    added_tokens_stay();
    added_tokens_are_hugging_faces();
    wordpiece_says_what_it_has();
    letter_case_is_chosen_before_encoding();
    what_is_lacking_is_named();
    one_hash_is_of_all_files();
    stores_take_any_tokenizer();
    questions_want_a_separator();
    files_are_written_by_their_list();
    directories_are_opened();
    frames_are_honoured();
    strange_frames_are_named();
    unknown_vocabularies_encode_nothing();
    fixture_remove();
    return 0;
}
