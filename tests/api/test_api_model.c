/* What the library says of a model: its special tokens, what it answers, texts of ids; how much of its
 * weights is read, and the log, which is silent until the program asks for it. */
#define _GNU_SOURCE
#include "expect_kiln.h"
#include "session_case.h"

#include "core/log.h"

#include <omp.h>

static char directory[64];

static struct kiln_model *open_model(const char *name)
{
    char path[128];
    struct kiln_model *m;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    EXPECT_KILN_OK(kiln_model_open(&m, path));
    return m;
}

static void test_special(void)
{
    struct kiln_model *bert = open_model("encoder"), *gpt = open_model("gpt2");
    size_t n;
    const char *piece = kiln_model_piece(bert, kiln_model_special(bert, KILN_TOKEN_MASK), &n);
    EXPECT(n == 6 && memcmp(piece, "[MASK]", n) == 0, "the mask is '%.*s'", (int)n, piece);
    EXPECT(kiln_model_special(bert, KILN_TOKEN_CLS) >= 0 && kiln_model_special(bert, KILN_TOKEN_SEP) >= 0 &&
               kiln_model_special(bert, KILN_TOKEN_BEGIN) == -1,
           "BERT's tokens");
    EXPECT(kiln_model_special(gpt, KILN_TOKEN_END) >= 0 && kiln_model_special(gpt, KILN_TOKEN_MASK) == -1,
           "GPT's tokens");
    EXPECT(kiln_model_special(bert, (enum kiln_special)7) == -1 &&
               kiln_model_special(bert, (enum kiln_special) - 1) == -1,
           "no such token");
    kiln_model_close(gpt);
    kiln_model_close(bert);
}

static void test_tasks(void)
{
    static const struct {
        const char *name;
        unsigned tasks;
    } models[] = {
        {"encoder", 1U << KILN_EMBED},
        {"masked_lm", 1U << KILN_EMBED | 1U << KILN_FILL},
        {"pretraining", 1U << KILN_EMBED | 1U << KILN_FILL},
        {"question_answering", 1U << KILN_EMBED | 1U << KILN_ASK},
        {"single", 1U << KILN_EMBED | 1U << KILN_CLASSIFY},
        {"tokens", 1U << KILN_EMBED | 1U << KILN_TAG},
        {"gpt2", 1U << KILN_GENERATE},
    };
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        struct kiln_model *m = open_model(models[i].name);
        struct kiln_session *s;
        unsigned tasks = kiln_model_tasks(m);
        EXPECT(tasks == models[i].tasks, "%s answers %x", models[i].name, tasks);
        for (int t = 0; t <= KILN_GENERATE; t++) {
            bool opens = kiln_session_open(&s, m, (enum kiln_task)t).code == KILN_OK;
            EXPECT(opens == ((tasks >> t & 1) == 1), "%s, task %d", models[i].name, t);
            kiln_session_close(s);
        }
        kiln_model_close(m);
    }
}

/* Text to ids and back. */
static void expect_text(struct kiln_model *m, enum kiln_task task, const char *text)
{
    struct kiln_session *s;
    struct kiln_tokens tokens;
    struct kiln_string back;
    int32_t ids[40];
    EXPECT_KILN_OK(kiln_session_open(&s, m, task));
    EXPECT_KILN_OK(kiln_tokenize(s, &tokens, text, strlen(text)));
    for (size_t i = 0; i < tokens.n && i < 39; i++) {
        ids[i] = tokens.tokens[i].id;
    }
    EXPECT_KILN_OK(kiln_decode(m, &back, ids, tokens.n, false));
    EXPECT(back.n == strlen(text) && strcmp(back.bytes, text) == 0, "'%s' came back as '%s'", text,
           back.bytes);
    kiln_string_free(&back);
    ids[tokens.n] = kiln_model_special(m, task == KILN_EMBED ? KILN_TOKEN_SEP : KILN_TOKEN_END);
    EXPECT_KILN_OK(kiln_decode(m, &back, ids, tokens.n + 1, false));
    EXPECT(back.n > strlen(text), "no special token in '%s'", back.bytes);
    kiln_string_free(&back);
    EXPECT_KILN_OK(kiln_decode(m, &back, ids, tokens.n + 1, true));
    EXPECT(strcmp(back.bytes, text) == 0, "a special token in '%s'", back.bytes);
    kiln_string_free(&back);
    kiln_string_free(&back);
    ids[0] = kiln_model_vocab_size(m);
    EXPECT_KILN_ERROR(kiln_decode(m, &back, ids, 1, true), KILN_DATA, "id");
    EXPECT_KILN_OK(kiln_decode(m, &back, NULL, 0, true));
    EXPECT(back.n == 0 && back.bytes[0] == '\0', "the text of nothing");
    kiln_string_free(&back);
    kiln_tokens_free(&tokens);
    kiln_session_close(s);
}

static void test_decode(void)
{
    struct kiln_model *bert = open_model("encoder"), *gpt = open_model("gpt2");
    expect_text(bert, KILN_EMBED, "a mad dog in a big cage");
    expect_text(gpt, KILN_GENERATE, "and  the\n\tend \xff");
    kiln_model_close(gpt);
    kiln_model_close(bert);
}

static struct kiln_model *open_with(const char *name, const char *dtype, bool without_weights)
{
    struct kiln_model_options o = kiln_model_defaults();
    struct kiln_model *m;
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    o.dtype = dtype;
    o.without_weights = without_weights;
    EXPECT_KILN_OK(kiln_model_open_on(&m, path, &o));
    return m;
}

/* Without weights there are the same tokens and facts, and no sessions. */
static void test_without_weights(void)
{
    static const char text[] = "a mad dog";
    struct kiln_model *m = open_with("encoder", "fp32", true), *whole = open_model("encoder");
    struct kiln_session *s;
    struct kiln_tokens alone, with;
    EXPECT_KILN_OK(kiln_session_open(&s, whole, KILN_EMBED));
    EXPECT_KILN_OK(kiln_tokenize(s, &with, text, sizeof text - 1));
    kiln_session_close(s);
    EXPECT_KILN_OK(kiln_model_tokenize(m, &alone, text, sizeof text - 1));
    EXPECT(alone.n == with.n && memcmp(alone.tokens, with.tokens, with.n * sizeof *with.tokens) == 0,
           "%zu tokens, and %zu", alone.n, with.n);
    kiln_tokens_free(&alone);
    kiln_tokens_free(&with);
    EXPECT(kiln_model_width(m) == kiln_model_width(whole) && kiln_model_tasks(m) == kiln_model_tasks(whole) &&
               kiln_model_max_tokens(m) == kiln_model_max_tokens(whole),
           "other facts without weights");
    EXPECT_KILN_ERROR(kiln_session_open(&s, m, KILN_EMBED), KILN_USAGE, "without its weights");
    kiln_model_close(m);
    kiln_model_close(whole);
}

static struct kiln_memory memory_of(const struct kiln_model *m, enum kiln_task task,
                                    const struct kiln_generator_options *o)
{
    struct kiln_memory memory;
    EXPECT_KILN_OK(kiln_model_memory(m, &memory, task, o));
    EXPECT(memory.model_bytes > 0 && memory.session_bytes > 0, "%zu and %zu bytes", memory.model_bytes,
           memory.session_bytes);
    return memory;
}

/* The memory is the same before a model is opened as after it; less in bf16; more for more texts of a
 * generator. */
static void test_memory(void)
{
    struct kiln_model *m = open_with("gpt2", "fp32", true), *whole = open_model("gpt2");
    struct kiln_model *half = open_with("gpt2", "bf16", true);
    struct kiln_generator_options o = kiln_generator_defaults();
    struct kiln_memory memory = memory_of(m, KILN_GENERATE, NULL),
                       opened = memory_of(whole, KILN_GENERATE, NULL);
    EXPECT(memory.model_bytes == opened.model_bytes && memory.session_bytes == opened.session_bytes,
           "%zu and %zu bytes, then %zu and %zu", memory.model_bytes, memory.session_bytes,
           opened.model_bytes, opened.session_bytes);
    EXPECT(memory_of(half, KILN_GENERATE, NULL).model_bytes < memory.model_bytes, "bf16 takes as much");
    o.n_texts = 100;
    EXPECT(memory_of(m, KILN_GENERATE, &o).session_bytes > memory.session_bytes, "100 texts take as much");
    o.n_texts = 0;
    EXPECT_KILN_ERROR(kiln_model_memory(m, &memory, KILN_GENERATE, &o), KILN_USAGE, "n_texts");
    EXPECT_KILN_ERROR(kiln_model_memory(m, &memory, KILN_EMBED, NULL), KILN_DATA, "GPT2LMHeadModel");
    kiln_model_close(half);
    kiln_model_close(whole);
    kiln_model_close(m);
}

/* Threads of this process. */
static int n_threads(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    int n = 0;
    while (fgets(line, sizeof line, f) != NULL && sscanf(line, "Threads: %d", &n) != 1) {
    }
    fclose(f);
    return n;
}

/* A session of one thread starts no others, and computes the same bits as with three. */
static void test_threads(void)
{
    static const struct kiln_text texts[] = {{"a mad dog had a man", 19}, {"no home", 7}};
    struct kiln_model *m = open_model("encoder");
    struct kiln_session *s;
    struct kiln_vectors one, three;
    EXPECT_KILN_OK(kiln_session_open(&s, m, KILN_EMBED));
    omp_set_num_threads(3);
    kiln_session_set_threads(s, 1);
    int before = n_threads();
    EXPECT_KILN_OK(kiln_embed(s, &one, texts, 2, NULL));
    EXPECT(n_threads() == before, "%d threads, then %d", before, n_threads());
    kiln_session_set_threads(s, 0);
    EXPECT_KILN_OK(kiln_embed(s, &three, texts, 2, NULL));
    EXPECT(n_threads() > before, "still %d threads", before);
    EXPECT(memcmp(one.values, three.values, (size_t)(one.n * one.width) * sizeof *one.values) == 0,
           "other vectors of one thread");
    kiln_vectors_free(&one);
    kiln_vectors_free(&three);
    kiln_session_close(s);
    kiln_model_close(m);
}

struct loading {
    double last;
    int n, most; /* calls so far, and those after which it stops; 0: never */
};

static bool loaded(void *context, double fraction)
{
    struct loading *l = context;
    EXPECT(fraction > l->last && fraction <= 1, "%g after %g", fraction, l->last);
    l->last = fraction;
    return ++l->n != l->most;
}

static void test_progress(void)
{
    struct kiln_model *m;
    struct loading all = {0}, some = {.most = 3};
    struct kiln_model_options o = kiln_model_defaults();
    char path[128];
    snprintf(path, sizeof path, "%s/gpt2", directory);
    o.progress = loaded;
    o.context = &all;
    EXPECT_KILN_OK(kiln_model_open_on(&m, path, &o));
    EXPECT(all.last == 1 && all.n > 3, "%d calls up to %g", all.n, all.last);
    kiln_model_close(m);
    o.context = &some;
    EXPECT_KILN_ERROR(kiln_model_open_on(&m, path, &o), KILN_CANCELLED, "weights");
    EXPECT(some.n == 3 && m == NULL, "%d calls", some.n);
}

struct lines {
    char last[200];
    enum kiln_log_level level;
    int n;
};

static void note(void *context, enum kiln_log_level level, const char *line)
{
    struct lines *l = context;
    snprintf(l->last, sizeof l->last, "%s", line);
    l->level = level;
    l->n++;
}

static void test_log(void)
{
    struct lines all = {0};
    log_warning("nobody hears %d", 1);
    kiln_log_to(note, &all, KILN_LOG_INFO);
    log_info("a %s", "line");
    EXPECT(all.n == 1 && strcmp(all.last, "a line") == 0 && all.level == KILN_LOG_INFO, "'%s'", all.last);
    log_warning("a fault");
    EXPECT(all.n == 2 && strcmp(all.last, "a fault") == 0 && all.level == KILN_LOG_WARNING, "'%s'", all.last);
    kiln_log_to(note, &all, KILN_LOG_WARNING);
    log_info("less");
    kiln_log_to(NULL, NULL, KILN_LOG_INFO);
    log_warning("more");
    EXPECT(all.n == 2, "'%s'", all.last);
}

int main(void)
{
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
    session_case_unpack_classifiers(directory);
    session_case_unpack_golden(directory, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors");
    test_threads(); /* before others start threads */
    test_special();
    test_tasks();
    test_decode();
    test_without_weights();
    test_memory();
    test_progress();
    test_log();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
