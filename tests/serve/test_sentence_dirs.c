/* Vectors are those of sentence-transformers: directories that it wrote, in the spelling of its newest
 * version and of old ones (tests/golden/make_sentence_dirs.py), in kiln and through the library; what kiln
 * cannot do is refused by name.  `test_sentence_dirs unpack DIR` writes the directories for
 * tests/cli/test_embed.sh. */
#define _GNU_SOURCE
#include "session_case.h"

#include <kiln/kiln.h>

enum { MAX_TEXTS = 16, MAX_WIDTH = 64 };

static char directory[64];
static struct safetensors golden;
static struct text_bytes texts[MAX_TEXTS];
static struct kiln_text public_texts[MAX_TEXTS];
static size_t n_texts;

static const char *path_of(const char *name)
{
    static char path[SESSION_CASE_PATH];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void read_texts(void)
{
    const struct stored_tensor *e = safetensors_find(&golden, "texts");
    EXPECT(e != NULL, "no texts");
    for (size_t at = 0; at < e->bytes; at += texts[n_texts - 1].n + 1) {
        const char *text = (const char *)e->data + at;
        texts[n_texts] = (struct text_bytes){text, strlen(text)};
        public_texts[n_texts++] = (struct kiln_text){text, strlen(text)};
    }
    EXPECT(n_texts > 5 && n_texts <= MAX_TEXTS, "%zu texts", n_texts);
}

static void expect_golden(const char *name, const char *prompt, const float *vectors, int64_t width,
                          double bound)
{
    char key[64];
    double wanted[MAX_TEXTS * MAX_WIDTH], worst = 0;
    snprintf(key, sizeof key, "%s:%s", name, prompt == NULL ? "vectors" : prompt);
    const struct stored_tensor *e = safetensors_find(&golden, key);
    EXPECT(e != NULL && e->dims[0] == (int64_t)n_texts && e->dims[1] == width, "%s: %lld columns", key,
           (long long)width);
    EXPECT_OK(stored_tensor_read(e, tensor_2d(wanted, DTYPE_F64, e->dims[0], width)));
    for (int64_t i = 0; i < e->dims[0] * width; i++) {
        worst = fmax(worst, fabs(wanted[i] - vectors[i]));
    }
    printf("%-16s differs by at most %.2g\n", key, worst);
    EXPECT(worst <= bound, "%s differs by %g", key, worst);
}

struct prompted {
    const char *name, *prompt;
};
static const struct prompted cases[] = {{"mean", NULL},  {"cls", NULL},     {"cls", "query"},
                                        {"max", NULL},   {"prompts", NULL}, {"prompts", "passage"},
                                        {"dense", NULL}, {"many", NULL},    {"many", "query"}};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static void test_session(const struct prompted *c, enum dtype dtype, double bound)
{
    struct session s;
    struct session_options o = session_defaults();
    struct embed_plan plan;
    float vectors[MAX_TEXTS * MAX_WIDTH];
    int64_t n_cut;
    o.dtype = dtype;
    EXPECT_OK(session_open(&s, path_of(c->name), MODEL_TASK_ENCODER, &o));
    EXPECT_OK(embed_plan_make(&plan, &s, &(struct embed_options){.prompt_name = c->prompt}));
    EXPECT_OK(embed_texts(&s, vectors, &n_cut, texts, n_texts, &plan));
    EXPECT(n_cut > 0, "no text was cut");
    expect_golden(c->name, c->prompt, vectors, plan.width, bound);
    session_close(&s);
}

static void expect_kiln(struct kiln_status s)
{
    EXPECT(s.code == KILN_OK, "%s", s.message);
}

static void test_library(const struct prompted *c)
{
    struct kiln_model *m;
    struct kiln_session *s;
    struct kiln_vectors v;
    struct kiln_embed_options o = kiln_embed_defaults();
    o.prompt_name = c->prompt;
    expect_kiln(kiln_model_open(&m, path_of(c->name)));
    expect_kiln(kiln_session_open(&s, m, KILN_EMBED));
    expect_kiln(kiln_embed(s, &v, public_texts, n_texts, &o));
    EXPECT(v.width == kiln_model_width(m), "%lld numbers, not %lld", (long long)v.width,
           (long long)kiln_model_width(m));
    expect_golden(c->name, c->prompt, v.values, v.width, 1e-5);
    kiln_vectors_free(&v);
    kiln_session_close(s);
    kiln_model_close(m);
}

/* Choices of the caller's, against another directory's files or against what they mean. */
static void test_choices(void)
{
    struct session s;
    struct session_options o = session_defaults();
    struct embed_plan plan, same;
    float vectors[MAX_TEXTS * MAX_WIDTH], others[MAX_TEXTS * MAX_WIDTH];
    int64_t n_cut;
    EXPECT_OK(session_open(&s, path_of("prompts"), MODEL_TASK_ENCODER, &o));
    EXPECT_OK(embed_plan_make(&plan, &s, &(struct embed_options){.prompt = "cab "}));
    EXPECT_OK(embed_texts(&s, vectors, &n_cut, texts, n_texts, &plan));
    expect_golden("prompts", "passage", vectors, plan.width, 1e-5);
    EXPECT_OK(embed_plan_make(&plan, &s, &(struct embed_options){.prompt = "", .normalize = EMBED_NO}));
    EXPECT_OK(embed_texts(&s, vectors, &n_cut, texts, n_texts, &plan));
    EXPECT_OK(embed_plan_make(&same, &s, &(struct embed_options){.prompt = "", .normalize = EMBED_YES}));
    EXPECT_OK(embed_texts(&s, others, &n_cut, texts, n_texts, &same));
    double squares = 0;
    for (int c = 0; c < plan.width; c++) {
        squares += (double)vectors[c] * vectors[c];
    }
    EXPECT(fabs(squares - 1) > 0.1, "normalised all the same");
    for (int c = 0; c < plan.width; c++) {
        EXPECT_NEAR(others[c], vectors[c] / sqrt(squares), 1e-6);
    }
    EXPECT_ERROR(embed_plan_make(&plan, &s, &(struct embed_options){.prompt_name = "book"}), STATUS_USAGE,
                 "called 'book'; it has 3: document, passage, query");
    EXPECT_ERROR(embed_plan_make(&plan, &s, &(struct embed_options){.max_length = 41}), STATUS_USAGE,
                 "reads 2 to 40 tokens");
    session_close(&s);
    EXPECT_OK(session_open(&s, path_of("many"), MODEL_TASK_ENCODER, &o));
    EXPECT_ERROR(embed_plan_make(&plan, &s, &(struct embed_options){.has_pooling = EMBED_YES}), STATUS_USAGE,
                 "Dense module takes vectors of 48 numbers");
    session_close(&s);
}

/* A length of the file that the tokenizer's does not limit, and one that the positions do. */
static void test_lengths(void)
{
    static const struct {
        const char *file, *old, *new;
        int64_t length;
    } edits[] = {{"mean/tokenizer_config.json", "\"model_max_length\": 40", "\"model_max_length\": 7", 12},
                 {"mean/sentence_bert_config.json", "12", "900", 40},
                 {"mean/sentence_bert_config.json", "900", "null", 7}};
    struct session_options o = session_defaults();
    for (int i = 0; i < 3; i++) {
        struct session s;
        session_case_edit(path_of(edits[i].file), edits[i].old, edits[i].new);
        EXPECT_OK(session_open(&s, path_of("mean"), MODEL_TASK_ENCODER, &o));
        EXPECT(s.text_length == edits[i].length, "%lld tokens, not %lld", (long long)s.text_length,
               (long long)edits[i].length);
        session_close(&s);
    }
    session_case_write(&golden, directory, "mean");
}

static void move(const char *from, const char *to)
{
    char path[SESSION_CASE_PATH];
    snprintf(path, sizeof path, "%s", path_of(from));
    EXPECT(rename(path, path_of(to)) == 0, "%s to %s", from, to);
}

/* The oldest directories have the transformer in a folder of its own. */
static void test_folder(void)
{
    struct session s;
    struct session_options o = session_defaults();
    float vectors[MAX_TEXTS * MAX_WIDTH];
    EXPECT_OK(file_make_directories(path_of("folder")));
    move("max", "folder/0_Transformer");
    move("folder/0_Transformer/modules.json", "folder/modules.json");
    move("folder/0_Transformer/1_Pooling", "folder/1_Pooling");
    session_case_edit(path_of("folder/modules.json"), "\"path\": \"\"", "\"path\": \"0_Transformer\"");
    EXPECT_OK(session_open(&s, path_of("folder"), MODEL_TASK_ENCODER, &o));
    EXPECT_OK(session_case_embed(&s, vectors, texts, n_texts));
    expect_golden("max", NULL, vectors, 16, 1e-5);
    session_close(&s);
    session_case_write(&golden, directory, "max");
}

static const struct {
    const char *model, *file, *old, *new, *error;
} faults[] = {
    {"cls", "modules.json", "sentence_transformers.models.Pooling",
     "sentence_transformers.models.WordWeights", "module 1 is sentence_transformers.models.WordWeights"},
    {"cls", "modules.json", "sentence_transformers.models.Normalize", "my_package.Normalize",
     "module 2 is my_package.Normalize"},
    {"cls", "modules.json", "1_Pooling", "../Pooling", "not in the model's directory"},
    {"cls", "modules.json", "[", "{", "not valid JSON"},
    {"cls", "1_Pooling/config.json", "pooling_mode_mean_tokens", "pooling_mode_median_tokens",
     "\"pooling_mode_median_tokens\" is a mode that kiln does not know"},
    {"max", "1_Pooling/config.json", "\"max\"", "\"median\"", "median, which kiln does not know"},
    {"max", "sentence_bert_config.json", "feature-extraction", "fill-mask",
     "\"transformer_task\" is fill-mask"},
    {"max", "sentence_bert_config.json", "last_hidden_state", "pooler_output",
     "\"method_output_name\" is pooler_output"},
    {"mean", "sentence_bert_config.json", "\"max_seq_length\": 12", "\"max_seq_length\": 1", "is 1; [CLS]"},
    {"mean", "sentence_bert_config.json", "\"do_lower_case\": false", "\"tokenizer_args\": {\"a\": 1}",
     "\"tokenizer_args\" is not empty"},
    {"dense", "2_Dense/config.json", "activation.Tanh", "activation.Mish", "activation.Mish, which kiln"},
    {"dense", "2_Dense/config.json", "\"in_features\": 16", "\"in_features\": 15",
     "linear.weight is missing or not"},
    {"dense", "2_Dense/config.json", "\"sentence_embedding\"", "\"token_embeddings\"",
     "is token_embeddings; only"},
    {"dense", "modules.json", "2_Dense", "3_Dense", "3_Dense/config.json"},
    {"prompts", "config_sentence_transformers.json", "\"default_prompt_name\": \"query\"",
     "\"default_prompt_name\": \"book\"", "called 'book'"},
    {"prompts", "config_sentence_transformers.json", "\"SentenceTransformer\"", "\"SparseEncoder\"",
     "\"model_type\" is SparseEncoder"},
};

/* A session for vectors is refused, by name; the library opens the model all the same, for other tasks. */
static void test_faults(void)
{
    struct session_options o = session_defaults();
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct session s;
        struct kiln_model *m;
        struct kiln_session *k;
        char file[128];
        snprintf(file, sizeof file, "%s/%s", faults[i].model, faults[i].file);
        session_case_edit(path_of(file), faults[i].old, faults[i].new);
        EXPECT_ERROR(session_open(&s, path_of(faults[i].model), MODEL_TASK_ENCODER, &o), STATUS_DATA,
                     faults[i].error);
        expect_kiln(kiln_model_open(&m, path_of(faults[i].model)));
        EXPECT(kiln_model_width(m) == 0, "a width");
        struct kiln_status status = kiln_session_open(&k, m, KILN_EMBED);
        EXPECT(status.code == KILN_DATA && strstr(status.message, faults[i].error) != NULL, "%s",
               status.message);
        kiln_model_close(m);
        session_case_write(&golden, directory, faults[i].model);
    }
}

int main(int argc, char **argv)
{
    EXPECT_OK(safetensors_open(&golden, KILN_SOURCE_DIR "/tests/golden/sentence_dirs.safetensors"));
    if (argc == 3 && strcmp(argv[1], "unpack") == 0) {
        session_case_write(&golden, argv[2], NULL);
        return 0;
    }
    session_case_directory(directory, sizeof directory);
    session_case_write(&golden, directory, NULL);
    read_texts();
    for (int i = 0; i < N_CASES; i++) {
        test_session(&cases[i], DTYPE_F32, 1e-5);
        test_library(&cases[i]);
    }
    test_session(&cases[0], DTYPE_BF16, 0.05);
    test_choices();
    test_lengths();
    test_folder();
    test_faults();
    EXPECT_OK(file_remove_tree(directory));
    safetensors_close(&golden);
    return 0;
}
