/* Tests of the tokenizer against ids that others published: Hugging Face's of all SQuAD questions, and the
 * nasty texts of llama.cpp, of BERT and of GPT-2 (vocab-oracles.tar.xz of the shared data). */
#include "fixture_shared.h"

#include "core/json.h"
#include "text/tokenizer_open.h"
#include "text/wordpiece.h"

#include <unistd.h>

#define MARK "\n__ggml_vocab_test__\n"

static json_t *read_json_member(const char *name)
{
    struct buf text = shared_read_member("vocab-oracles.tar.xz", name);
    json_t *root;
    EXPECT_OK(json_parse(&root, text.data, text.n, name));
    buf_fini(&text);
    return root;
}

static void questions_have_the_ids_of_hugging_face(struct tokenizer_scratch *t)
{
    json_t *questions = read_json_member("oracles/squad-dev-questions.bert-uncased.tokens.json");
    json_t *wanted = read_json_member("oracles/squad-dev-questions.bert-uncased.ids.json");
    EXPECT(json_array_size(questions) == json_array_size(wanted) && json_array_size(wanted) > 10000,
           "%zu questions", json_array_size(questions));
    struct id_list ids = {0};
    size_t i;
    const json_t *question;
    json_array_foreach(questions, i, question)
    {
        const json_t *text = json_object_get(question, "original");
        const json_t *row = json_array_get(wanted, i);
        ids.n = 0;
        EXPECT_OK(tokenizer_encode_ids(t, &ids, json_string_value(text), json_string_length(text)));
        EXPECT(ids.n == json_array_size(row), "question %zu: %zu ids", i, ids.n);
        for (size_t k = 0; k < ids.n; k++) {
            EXPECT(ids.ids[k] == json_integer_value(json_array_get(row, k)), "question %zu, id %zu", i, k);
        }
    }
    id_list_fini(&ids);
    json_decref(questions);
    json_decref(wanted);
}

/* `name` is that of the vocabulary in llama.cpp. */
static void nasty_texts_have_the_ids_of_llama_cpp(struct tokenizer_scratch *t, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "oracles/llama.cpp-tokenizer/%s.inp", name);
    struct buf in = shared_read_member("vocab-oracles.tar.xz", path);
    snprintf(path, sizeof path, "oracles/llama.cpp-tokenizer/%s.out", name);
    struct buf out = shared_read_member("vocab-oracles.tar.xz", path);
    struct id_list ids = {0};
    const char *text = in.data;
    char *wanted = out.data;
    int n_texts = 0;
    for (const char *end = strstr(text, MARK); end != NULL; end = strstr(text, MARK)) {
        ids.n = 0;
        EXPECT_OK(tokenizer_encode_ids(t, &ids, text, (size_t)(end - text)));
        for (size_t k = 0; k < ids.n; k++) {
            EXPECT(strtol(wanted, &wanted, 10) == ids.ids[k], "text %d, id %zu", n_texts, k);
        }
        EXPECT(*wanted == '\n', "text %d has more than %zu ids", n_texts, ids.n);
        wanted++;
        text = end + strlen(MARK);
        n_texts++;
    }
    EXPECT(n_texts >= 40, "%d texts", n_texts);
    id_list_fini(&ids);
    buf_fini(&in);
    buf_fini(&out);
}

static void write_member(const char *path, const char *name)
{
    struct buf text = shared_read_member("vocab-oracles.tar.xz", name);
    EXPECT_OK(file_write_atomic(path, text.data, text.n));
    buf_fini(&text);
}

static void nasty_texts_have_the_ids_of_gpt2(void)
{
    char directory[] = "test_text_oracles.XXXXXX", vocab[64], merges[64];
    struct tokenizer t;
    struct tokenizer_scratch scratch;
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    snprintf(vocab, sizeof vocab, "%s/vocab.json", directory);
    snprintf(merges, sizeof merges, "%s/merges.txt", directory);
    write_member(vocab, "vocab/gpt2-vocab.json");
    write_member(merges, "vocab/gpt2-merges.txt");
    EXPECT_OK(tokenizer_open_merges(&t, vocab, merges));
    EXPECT(t.n == 50257 && t.special[SPECIAL_END] == 50256, "%d pieces", t.n);
    EXPECT_OK(tokenizer_scratch_init(&scratch, &t));
    nasty_texts_have_the_ids_of_llama_cpp(&scratch, "gpt-2");
    tokenizer_scratch_fini(&scratch);
    tokenizer_fini(&t);
    unlink(vocab);
    unlink(merges);
    rmdir(directory);
}

int main(void)
{
    struct buf text = shared_read_member("vocab-oracles.tar.xz", "vocab/bert-base-uncased-vocab.txt");
    struct tokenizer t;
    struct tokenizer_scratch scratch;
    EXPECT_OK(wordpiece_tokenizer_init(&t, text.data, text.n, "bert-base-uncased-vocab.txt", true));
    EXPECT_OK(tokenizer_scratch_init(&scratch, &t));
    questions_have_the_ids_of_hugging_face(&scratch);
    nasty_texts_have_the_ids_of_llama_cpp(&scratch, "bert-bge");
    tokenizer_scratch_fini(&scratch);
    tokenizer_fini(&t);
    buf_fini(&text);
    nasty_texts_have_the_ids_of_gpt2();
    return 0;
}
