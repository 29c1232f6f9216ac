/* Texts as ids, texts that are cut at either end or not at all, and vectors of tokens, against the vectors of
 * texts that say the same. */
#define _GNU_SOURCE
#include "serve/embed.h"
#include "session_case.h"

#include <math.h>

static struct session s;

static struct embed_plan plan_of(enum text_cut cut, int64_t max_length)
{
    struct embed_plan plan;
    EXPECT_OK(embed_plan_make(&plan, &s, &(struct embed_options){.cut = cut, .max_length = max_length}));
    return plan;
}

static void expect_near(const float *a, const float *b, const char *what)
{
    for (int c = 0; c < SESSION_CASE_WIDTH; c++) {
        EXPECT(fabsf(a[c] - b[c]) < 1e-6F, "%s: number %d is %g, not %g", what, c, (double)a[c],
               (double)b[c]);
    }
}

static void embed(float *vector, const char *text, enum text_cut cut, int64_t max_length, int64_t cuts)
{
    struct embed_plan plan = plan_of(cut, max_length);
    int64_t n_cut;
    EXPECT_OK(embed_texts(&s, vector, &n_cut, &(struct text_bytes){text, strlen(text)}, 1, &plan));
    EXPECT(n_cut == cuts, "%s: %lld texts were cut", text, (long long)n_cut);
}

static void test_cuts(void)
{
    float cut[SESSION_CASE_WIDTH], same[SESSION_CASE_WIDTH];
    struct embed_plan plan = plan_of(TEXT_CUT_NOTHING, 5);
    struct embed_job j;
    embed(cut, "a b c d e", TEXT_CUT_END, 5, 1);
    embed(same, "a b c", TEXT_CUT_NOTHING, 5, 0);
    expect_near(cut, same, "the beginning is kept");
    embed(cut, "a b c d e", TEXT_CUT_BEGINNING, 5, 1);
    embed(same, "c d e", TEXT_CUT_NOTHING, 5, 0);
    expect_near(cut, same, "the end is kept");
    EXPECT_ERROR(embed_job_make(&j, &s, &s.scratch, cut, &(struct text_bytes){"a b c d e", 9}, 1, &plan),
                 STATUS_DATA, "text 0 has 7 tokens, special ones included, but the model reads at most 5");
    embed_job_fini(&j);
}

static void embed_ids(float *vector, const int32_t *ids, size_t n)
{
    struct embed_plan plan = plan_of(TEXT_CUT_END, 0);
    struct embed_input in;
    struct embed_job j;
    EXPECT_OK(embed_input_init(&in, &s, &s.scratch, &plan, 1));
    EXPECT_OK(embed_input_add_ids(&in, &s.scratch, ids, n));
    EXPECT_OK(embed_job_make_of(&j, &s, vector, &in, false));
    EXPECT_OK(packer_answer(&s.packer, &j.request));
    embed_job_fini(&j);
}

/* Ids with and without the special tokens around them. */
static void test_ids(void)
{
    struct embed_plan plan = plan_of(TEXT_CUT_END, 0);
    struct embed_input in;
    struct id_list ids = {0};
    float vector[SESSION_CASE_WIDTH], same[SESSION_CASE_WIDTH];
    int32_t unknown = s.tokenizer->n;
    EXPECT_OK(input_specials_append(&ids, &s.frame.one.before));
    EXPECT_OK(tokenizer_encode_ids(&s.scratch, &ids, "a mad dog", 9));
    EXPECT_OK(input_specials_append(&ids, &s.frame.one.after));
    embed(same, "a mad dog", TEXT_CUT_END, 0, 0);
    embed_ids(vector, ids.ids, ids.n);
    expect_near(vector, same, "ids with special tokens");
    embed_ids(vector, ids.ids + 1, ids.n - 2);
    expect_near(vector, same, "ids without");
    EXPECT_OK(embed_input_init(&in, &s, &s.scratch, &plan, 1));
    EXPECT_ERROR(embed_input_add_ids(&in, &s.scratch, &unknown, 1), STATUS_DATA, "is none of the model's");
    embed_input_fini(&in);
    id_list_fini(&ids);
}

/* The mean of a text's rows is its vector. */
static void test_tokens(void)
{
    struct embed_plan plan = plan_of(TEXT_CUT_END, 0);
    struct embed_input in;
    struct embed_job j;
    EXPECT_OK(embed_input_init(&in, &s, &s.scratch, &plan, SESSION_CASE_TEXTS));
    for (int i = 0; i < SESSION_CASE_TEXTS; i++) {
        EXPECT_OK(embed_input_add(&in, &s.scratch, &session_case_texts[i]));
    }
    float *rows_of_all = calloc((size_t)in.texts.n_rows * SESSION_CASE_WIDTH, sizeof *rows_of_all);
    EXPECT_OK(embed_job_make_of(&j, &s, rows_of_all, &in, true));
    EXPECT_OK(packer_answer(&s.packer, &j.request));
    for (int i = 0; i < SESSION_CASE_TEXTS; i++) {
        float mean[SESSION_CASE_WIDTH] = {0}, vector[SESSION_CASE_WIDTH];
        const float *rows = rows_of_all + encoded_texts_get(&j.input.texts, i)->row * SESSION_CASE_WIDTH;
        int64_t n_rows = encoded_texts_length(&j.input.texts, i);
        for (int64_t r = 0; r < n_rows; r++) {
            for (int c = 0; c < SESSION_CASE_WIDTH; c++) {
                mean[c] += rows[r * SESSION_CASE_WIDTH + c] / (float)n_rows;
            }
        }
        embed(vector, session_case_texts[i].bytes, TEXT_CUT_END, 0, 0);
        expect_near(mean, vector, session_case_texts[i].bytes);
    }
    embed_job_fini(&j);
    free(rows_of_all);
}

int main(void)
{
    char directory[64], path[SESSION_CASE_PATH];
    struct session_options options = session_defaults();
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
    snprintf(path, sizeof path, "%s/encoder", directory);
    EXPECT_OK(session_open(&s, path, MODEL_TASK_ENCODER, &options));
    test_cuts();
    test_ids();
    test_tokens();
    session_close(&s);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
