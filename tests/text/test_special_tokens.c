/* Tests of text/special_tokens: which file counts for which token, the ids and the names where none says, and
 * what kiln writes is read back alike. */
#include "test.h"

#include "io/file.h"
#include "text/bpe_json.h"
#include "text/bpe_merges.h"
#include "text/special_tokens.h"
#include "text/tokenizer_files.h"
#include "text/tokenizer_open.h"

#include <stdlib.h>
#include <unistd.h>

static char directory[] = "test_special_tokens.XXXXXX";

/* The ids of a vocabulary whose first 256 pieces are the bytes. */
enum { END = 256, PAD, STOP, EOT, N_PIECES };
static const char *const specials[] = {"<end>", "<pad>", "</s>", "<|endoftext|>", NULL};

static void put_file(const char *name, const char *text)
{
    char path[FILE_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    EXPECT_OK(file_write_atomic(path, text, strlen(text)));
}

/* A directory with tokenizer.json alone, of the first n special tokens. */
static void begin(int n)
{
    const char *some[N_PIECES - END + 1] = {NULL};
    json_t *pieces = json_object(), *merges = json_array();
    struct buf name = {0};
    for (int b = 0; b < 256; b++) {
        char byte = (char)b;
        buf_clear(&name);
        bpe_merges_write(&name, &byte, 1);
        json_object_set_new(pieces, buf_text(&name), json_integer(b));
    }
    for (int i = 0; i < n; i++) {
        some[i] = specials[i];
        json_object_set_new(pieces, specials[i], json_integer(256 + i));
    }
    json_t *root = bpe_json_make(pieces, merges, some, BPE_GPT2);
    char *text = json_dumps(root, 0);
    EXPECT_OK(file_remove_tree(directory));
    EXPECT_OK(file_make_directories(directory));
    put_file("tokenizer.json", text);
    free(text);
    json_decref(root);
    json_decref(pieces);
    json_decref(merges);
    buf_fini(&name);
}

/* What the directory says. */
static void expect(int32_t begin_id, int32_t end_id, int32_t pad_id, int n_ends, int32_t first_end)
{
    struct tokenizer t;
    int64_t max_length;
    EXPECT_OK(tokenizer_open_directory(&t, &max_length, directory));
    EXPECT(t.special[SPECIAL_BEGIN] == begin_id && t.special[SPECIAL_END] == end_id &&
               t.special[SPECIAL_PAD] == pad_id,
           "begin %d, end %d, pad %d", t.special[SPECIAL_BEGIN], t.special[SPECIAL_END],
           t.special[SPECIAL_PAD]);
    EXPECT(t.n_ends == n_ends && (n_ends == 0 || t.ends[0] == first_end), "%d ends, the first %d", t.n_ends,
           t.ends[0]);
    EXPECT(n_ends == 0 || tokenizer_ends(&t, first_end), "%d ends no text", first_end);
    EXPECT(!tokenizer_ends(&t, 'a'), "a letter ends a text");
    tokenizer_fini(&t);
}

static void names_count_where_no_file_says(void)
{
    begin(2);
    expect(-1, -1, PAD, 0, -1);
    begin(3);
    expect(-1, STOP, PAD, 1, STOP);
    begin(4); /* both "</s>" and "<|endoftext|>" */
    expect(EOT, -1, PAD, 0, -1);
}

static void the_tokenizers_files_count_by_their_age(void)
{
    begin(4);
    put_file("tokenizer_config.json",
             "{\"eos_token\": \"<end>\", \"bos_token\": {\"content\": \"<end>\"}, \"pad_token\": null}");
    expect(END, END, PAD, 1, END);
    put_file("special_tokens_map.json",
             "\xEF\xBB\xBF{\"eos_token\": {\"content\": \"</s>\", \"lstrip\": false}}");
    expect(END, STOP, PAD, 1, STOP);
    put_file("tokenizer_config.json",
             "{\"eos_token\": \"<end>\", \"model_max_length\": 1000000000000000019884624838656, "
             "\"added_tokens_decoder\": {}}");
    expect(EOT, END, PAD, 1, END);
    put_file("tokenizer_config.json", "{\"eos_token\": \"<unheard>\", \"added_tokens_decoder\": {}}");
    expect(EOT, -1, PAD, 0, -1);
}

static void a_models_files_say_what_ends_a_text(void)
{
    begin(4);
    put_file("config.json",
             "\xEF\xBB\xBF{\"eos_token_id\": 258, \"bos_token_id\": 256, \"pad_token_id\": 259}");
    expect(END, STOP, EOT, 1, STOP);
    put_file("generation_config.json", "{\"eos_token_id\": [257, 259], \"pad_token_id\": null}");
    expect(END, PAD, EOT, 2, PAD);
    put_file("tokenizer_config.json", "{\"eos_token\": \"</s>\"}");
    expect(END, STOP, EOT, 2, PAD);
    begin(3); /* GPT-2's, of another vocabulary */
    put_file("config.json", "{\"eos_token_id\": 50256, \"bos_token_id\": 50256}");
    expect(-1, STOP, PAD, 1, STOP);
    put_file("config.json",
             "{\"eos_token_id\": 2, \"bos_token_id\": 1}"); /* BLOOM's: pieces of this vocabulary */
    expect(-1, STOP, PAD, 1, 2);
    put_file("config.json", "{\"eos_token_id\":");
    struct tokenizer t;
    int64_t max_length;
    EXPECT_ERROR(tokenizer_open_directory(&t, &max_length, directory), STATUS_DATA,
                 "config.json is not valid JSON");
}

static void the_user_counts_most(void)
{
    struct tokenizer t;
    int64_t max_length;
    begin(4);
    EXPECT_OK(tokenizer_open_directory(&t, &max_length, directory));
    EXPECT_ERROR(special_tokens_set_end(&t, "<unheard>", "eod_token"), STATUS_USAGE,
                 "--eod_token is '<unheard>'");
    EXPECT_OK(special_tokens_set_end(&t, "<end>", "eod_token"));
    EXPECT(t.special[SPECIAL_END] == END && t.n_ends == 1 && tokenizer_ends(&t, END), "end %d",
           t.special[SPECIAL_END]);
    tokenizer_fini(&t);
}

/* Writes what the tokenizer of the directory says, and reads that back. */
static void rewrite(json_t **ids)
{
    struct tokenizer t;
    int64_t max_length;
    EXPECT_OK(tokenizer_open_directory(&t, &max_length, directory));
    *ids = json_object();
    special_tokens_put_ids(*ids, &t);
    char *text = json_dumps(*ids, 0);
    EXPECT_OK(file_remove_tree(directory));
    EXPECT_OK(file_make_directories(directory));
    EXPECT_OK(tokenizer_files_write_all(&t, directory, 64));
    put_file("config.json", text);
    free(text);
    tokenizer_fini(&t);
}

static void what_is_written_is_read_alike(void)
{
    json_t *ids;
    begin(4);
    put_file("generation_config.json", "{\"eos_token_id\": [257, 259]}");
    put_file("tokenizer_config.json", "{\"eos_token\": \"</s>\", \"bos_token\": \"<end>\"}");
    rewrite(&ids);
    expect(END, STOP, PAD, 2, PAD);
    EXPECT(json_array_size(json_object_get(ids, "eos_token_id")) == 2, "a list of ends");
    json_decref(ids);
    begin(2); /* transformers would take 50256 where nothing is said */
    rewrite(&ids);
    EXPECT(json_is_null(json_object_get(ids, "eos_token_id")) &&
               json_is_null(json_object_get(ids, "bos_token_id")),
           "no end and no begin are null");
    expect(-1, -1, PAD, 0, -1);
    json_decref(ids);
}

static void tokens_without_rows_are_text(void)
{
    struct tokenizer t;
    struct tokenizer_scratch s;
    struct id_list ids = {0};
    int64_t max_length;
    begin(2);
    put_file("added_tokens.json", "{\"<new>\": 258}");
    put_file("config.json", "{\"eos_token_id\": [257, 258]}");
    EXPECT_OK(tokenizer_open_directory(&t, &max_length, directory));
    EXPECT(t.n == 259 && t.n_ends == 2, "%d tokens", t.n);
    EXPECT(!tokenizer_cut(&t, 257) && tokenizer_cut(&t, 258), "pieces stay, added tokens may go");
    EXPECT(t.n == 258 && t.n_ends == 1 && t.ends[0] == PAD, "%d ends", t.n_ends);
    EXPECT_OK(tokenizer_scratch_init(&s, &t));
    EXPECT_OK(tokenizer_encode_ids(&s, &ids, "<new><pad>", 10));
    EXPECT(ids.n == 6 && ids.ids[0] == '<' && ids.ids[5] == PAD, "%zu ids", ids.n);
    id_list_fini(&ids);
    tokenizer_scratch_fini(&s);
    tokenizer_fini(&t);
}

/* With the ids of `tokenizers` 0.23. */
static void tokens_take_the_white_space_beside_them(void)
{
    static const char text[] = "a \xE2\x80\x83<l> b\xE2\x80\x8B<l> <r>\t\n c <r>";
    static const int32_t wanted[] = {'a', 258, ' ', 'b', 0xE2, 0x80, 0x8B, 258, ' ', 259, 'c', ' ', 259};
    struct tokenizer t;
    struct tokenizer_scratch s;
    struct id_list ids = {0};
    int64_t max_length;
    begin(2);
    put_file("tokenizer_config.json",
             "{\"added_tokens_decoder\": {\"258\": {\"content\": \"<l>\", \"lstrip\": true}, "
             "\"259\": {\"content\": \"<r>\", \"rstrip\": true}}}");
    EXPECT_OK(tokenizer_open_directory(&t, &max_length, directory));
    EXPECT_OK(tokenizer_scratch_init(&s, &t));
    EXPECT_OK(tokenizer_encode_ids(&s, &ids, text, sizeof text - 1));
    EXPECT(ids.n == sizeof wanted / sizeof *wanted, "%zu ids", ids.n);
    for (size_t i = 0; i < ids.n; i++) {
        EXPECT(ids.ids[i] == wanted[i], "id %zu is %d, not %d", i, ids.ids[i], wanted[i]);
    }
    id_list_fini(&ids);
    tokenizer_scratch_fini(&s);
    tokenizer_fini(&t);
}

int main(void)
{
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    names_count_where_no_file_says();
    the_tokenizers_files_count_by_their_age();
    a_models_files_say_what_ends_a_text();
    the_user_counts_most();
    what_is_written_is_read_alike();
    tokens_without_rows_are_text();
    tokens_take_the_white_space_beside_them();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
