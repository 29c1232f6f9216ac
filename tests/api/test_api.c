/* The public library (include/kiln): the same answers as from serve, the same bits from threads that share a
 * model, calls that are cancelled at every layer, and arguments that are wrong.
 *
 * With arguments it is a tool for tests/cli: `test_api unpack DIR` writes the models of
 * tests/golden/hf_dirs.safetensors and classify.safetensors into DIR. */
#define _GNU_SOURCE
#include "expect_kiln.h"
#include "session_case.h"

#include "api/api.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { PATH = 512, N_MODELS = 4, N_TEXTS = 5, TOP_K = 7, N_THREADS = 4, N_ROUNDS = 20 };

static const char *const models[N_MODELS] = {"pretraining", "masked_lm", "question_answering", "encoder"};
/* The vocabulary knows the letters from a to p. */
static const char *const texts[N_TEXTS] = {"a mad dog", "", "a man and a dog, in a big cage", "\xff\x00\xfe",
                                           "caf\xc3\xa9"};
static const size_t lengths[N_TEXTS] = {9, 0, 30, 3, 5};
static const char masked[] = "a [MASK] had a [MASK]";
static const char question[] = "had a man?";
static const char context[] =
    "A man had a dog. A big dog had bad food and ran off, and a mad man had an old cab: no food, "
    "no home, in a lake of ice and black ink. A child made a cake.";

static char directory[128]; /* a model in each folder of it */

static void make_models(void)
{
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
}

static struct kiln_model *open_model(const char *name)
{
    char path[PATH];
    struct kiln_model *m;
    snprintf(path, PATH, "%s/%s", directory, name);
    EXPECT_KILN_OK(kiln_model_open(&m, path));
    return m;
}

static struct kiln_session *open_session(struct kiln_model *m, enum kiln_task task)
{
    struct kiln_session *s;
    EXPECT_KILN_OK(kiln_session_open(&s, m, task));
    return s;
}

/* A session of serve with weights of its own: the oracle. */
static void open_oracle(struct session *s, const char *name, enum model_task task)
{
    char path[PATH];
    snprintf(path, PATH, "%s/%s", directory, name);
    struct session_options o = session_defaults();
    EXPECT_OK(session_open(s, path, task, &o));
}

static struct kiln_vectors embed_all(struct kiln_session *s)
{
    struct kiln_text in[N_TEXTS];
    struct kiln_vectors v;
    for (int i = 0; i < N_TEXTS; i++) {
        in[i] = (struct kiln_text){texts[i], lengths[i]};
    }
    EXPECT_KILN_OK(kiln_embed(s, &v, in, N_TEXTS, NULL));
    EXPECT(v.n == N_TEXTS && v.width == 16 && v.n_cut == 0, "%lld vectors of %lld, %lld cut", (long long)v.n,
           (long long)v.width, (long long)v.n_cut);
    return v;
}

static bool same_vectors(const struct kiln_vectors *a, const float *b)
{
    return memcmp(a->values, b, (size_t)(a->n * a->width) * sizeof *b) == 0;
}

static void test_embed(void)
{
    struct text_bytes in[N_TEXTS];
    float wanted[N_TEXTS * 16];
    for (int i = 0; i < N_TEXTS; i++) {
        in[i] = (struct text_bytes){texts[i], lengths[i]};
    }
    for (int i = 0; i < N_MODELS; i++) {
        struct kiln_model *m = open_model(models[i]);
        struct kiln_session *s = open_session(m, KILN_EMBED);
        kiln_model_close(m); /* the session holds it */
        struct kiln_vectors v = embed_all(s);
        struct session oracle;
        open_oracle(&oracle, models[i], MODEL_TASK_ENCODER);
        EXPECT_OK(session_case_embed(&oracle, wanted, in, N_TEXTS));
        EXPECT(same_vectors(&v, wanted), "vectors of %s differ", models[i]);
        session_close(&oracle);
        kiln_vectors_free(&v);
        EXPECT_KILN_OK(kiln_embed(s, &v, NULL, 0, NULL));
        EXPECT(v.n == 0, "vectors of nothing");
        kiln_vectors_free(&v);
        kiln_vectors_free(&v);
        kiln_session_close(s);
    }
}

/* A bare model's vector of a text is the mean of its tokens'. */
static void test_embed_tokens(void)
{
    struct kiln_model *m = open_model(models[0]);
    struct kiln_session *s = open_session(m, KILN_EMBED);
    struct kiln_text text = {texts[0], lengths[0]};
    struct kiln_vectors v;
    struct kiln_rows r;
    EXPECT_KILN_OK(kiln_embed(s, &v, &text, 1, NULL));
    EXPECT_KILN_OK(kiln_embed_tokens(s, &r, texts[0], lengths[0]));
    EXPECT(r.width == v.width && r.n > 2, "%lld tokens of %lld numbers", (long long)r.n, (long long)r.width);
    for (int64_t c = 0; c < r.width; c++) {
        double sum = 0;
        for (int64_t i = 0; i < r.n; i++) {
            sum += r.values[i * r.width + c];
        }
        EXPECT_NEAR(sum / (double)r.n, v.values[c], 1e-6);
    }
    kiln_rows_free(&r);
    kiln_vectors_free(&v);
    kiln_session_close(s);
    kiln_model_close(m);
}

static void test_fill(void)
{
    for (int i = 0; i < 2; i++) {
        struct kiln_model *m = open_model(models[i]);
        struct kiln_session *s = open_session(m, KILN_FILL);
        struct session oracle;
        struct fill_result wanted;
        struct kiln_words got;
        open_oracle(&oracle, models[i], MODEL_TASK_MASKED_LM);
        EXPECT_OK(fill_mask(&oracle, masked, strlen(masked), TOP_K, &wanted));
        EXPECT_KILN_OK(kiln_fill(s, &got, masked, strlen(masked), TOP_K));
        EXPECT(got.n_masks == 2 && got.top_k == TOP_K, "%lld masks, %lld words", (long long)got.n_masks,
               (long long)got.top_k);
        for (int k = 0; k < 2 * TOP_K; k++) {
            size_t n;
            const char *piece = kiln_model_piece(m, got.words[k].id, &n);
            EXPECT(got.words[k].id == wanted.candidates[k].id &&
                       got.words[k].probability == wanted.candidates[k].probability,
                   "word %d differs", k);
            EXPECT(strlen(got.words[k].piece) == n && memcmp(got.words[k].piece, piece, n) == 0,
                   "piece of word %d", k);
        }
        kiln_words_free(&got);
        EXPECT_KILN_OK(kiln_fill(s, &got, "[MASK]", 6, INT32_MAX));
        EXPECT(got.top_k == kiln_model_vocab_size(m), "%lld words", (long long)got.top_k);
        kiln_words_free(&got);
        fill_result_fini(&wanted);
        session_close(&oracle);
        kiln_session_close(s);
        kiln_model_close(m);
    }
}

static void test_ask(void)
{
    struct kiln_model *m = open_model("question_answering");
    struct kiln_session *s = open_session(m, KILN_ASK);
    struct session oracle;
    struct ask_result wanted;
    struct kiln_answers got;
    struct ask_options o = ask_defaults();
    struct kiln_ask_options options = kiln_ask_defaults();
    o.top_k = options.top_k = TOP_K;
    EXPECT(s->session.net.master.data == m->weights.net.master.data && s->session.net.plan.weight_bytes == 0,
           "the session has weights of its own");
    open_oracle(&oracle, "question_answering", MODEL_TASK_QUESTION_ANSWERING);
    EXPECT_OK(ask_question(&oracle, question, context, strlen(context), &o, &wanted));
    EXPECT_KILN_OK(kiln_ask(s, &got, question, context, strlen(context), &options));
    EXPECT(got.n == wanted.n && got.n == TOP_K && got.n_windows == wanted.n_windows && got.n_windows > 1,
           "%lld answers from %lld windows", (long long)got.n, (long long)got.n_windows);
    for (int64_t k = 0; k < got.n; k++) {
        const struct kiln_answer *a = &got.answers[k];
        EXPECT(strcmp(a->text, wanted.texts.data + wanted.answers[k].text) == 0, "answer '%s'", a->text);
        EXPECT(a->probability == wanted.answers[k].probability, "probability of '%s'", a->text);
        EXPECT(a->start >= 0 && a->end <= (int64_t)strlen(context) &&
                   memcmp(context + a->start, a->text, strlen(a->text)) == 0,
               "'%s' is not at %lld", a->text, (long long)a->start);
    }
    kiln_answers_free(&got);
    ask_result_fini(&wanted);
    session_close(&oracle);
    kiln_session_close(s);
    kiln_model_close(m);
}

static void test_tokenize(void)
{
    static const char text[] = "  Man  dog, man CAGE";
    static const char *const pieces[] = {"Man", "dog", "man", "CAGE"};
    struct kiln_model *m = open_model("pretraining");
    struct kiln_session *s = open_session(m, KILN_EMBED);
    struct kiln_tokens t;
    EXPECT_KILN_OK(kiln_tokenize(s, &t, text, strlen(text)));
    size_t word = 0;
    for (size_t i = 0; i < t.n; i++) {
        size_t n;
        EXPECT(kiln_model_piece(m, t.tokens[i].id, &n) != NULL, "token %zu", i);
        EXPECT(t.tokens[i].start < t.tokens[i].end && t.tokens[i].end <= strlen(text), "place of token %zu",
               i);
        if (word < 4 && text + t.tokens[i].start == strstr(text, pieces[word])) {
            word++;
        }
    }
    EXPECT(word == 4, "only %zu words begin where they stand", word);
    EXPECT(t.n == 14 && t.tokens[0].id == t.tokens[7].id, "%zu tokens",
           t.n); /* letters, and [UNK] for the comma */
    kiln_tokens_free(&t);
    EXPECT_KILN_OK(kiln_tokenize(s, &t, NULL, 0));
    EXPECT(t.n == 0, "tokens of nothing");
    kiln_tokens_free(&t);
    size_t n;
    EXPECT(kiln_model_piece(m, -1, &n) == NULL && kiln_model_piece(m, kiln_model_vocab_size(m), &n) == NULL,
           "pieces of no id");
    EXPECT(kiln_model_max_tokens(m) == 24 && kiln_model_width(m) == 16, "sizes of the model");
    kiln_session_close(s);
    kiln_model_close(m);
}

/* What one thread computes, again and again, in sessions of its own over shared models. */
struct worker {
    struct kiln_model *pretrained, *answerer;
    pthread_t thread;
    struct kiln_vectors vectors;
    struct kiln_words words;
    struct kiln_answers answers;
};

static void compute(struct worker *w, struct kiln_session *embed, struct kiln_session *fill,
                    struct kiln_session *ask)
{
    kiln_vectors_free(&w->vectors);
    kiln_words_free(&w->words);
    kiln_answers_free(&w->answers);
    w->vectors = embed_all(embed);
    EXPECT_KILN_OK(kiln_fill(fill, &w->words, masked, strlen(masked), TOP_K));
    EXPECT_KILN_OK(kiln_ask(ask, &w->answers, question, context, strlen(context), NULL));
}

static bool same_results(const struct worker *a, const struct worker *b)
{
    bool same = same_vectors(&a->vectors, b->vectors.values) && a->answers.n == b->answers.n &&
                a->answers.answers[0].probability == b->answers.answers[0].probability &&
                a->answers.answers[0].start == b->answers.answers[0].start;
    for (int k = 0; k < 2 * TOP_K; k++) {
        same = same && a->words.words[k].id == b->words.words[k].id &&
               a->words.words[k].probability == b->words.words[k].probability;
    }
    return same;
}

static void *work(void *argument)
{
    struct worker *w = argument, first = *w;
    struct kiln_session *embed = open_session(w->pretrained, KILN_EMBED);
    struct kiln_session *fill = open_session(w->pretrained, KILN_FILL);
    struct kiln_session *ask = open_session(w->answerer, KILN_ASK);
    compute(&first, embed, fill, ask);
    for (int i = 0; i < N_ROUNDS; i++) {
        compute(w, embed, fill, ask);
        EXPECT(same_results(w, &first), "round %d differs from the first", i);
    }
    kiln_vectors_free(&first.vectors);
    kiln_words_free(&first.words);
    kiln_answers_free(&first.answers);
    kiln_session_close(embed);
    kiln_session_close(fill);
    kiln_session_close(ask);
    return NULL;
}

static void test_threads(void)
{
    struct worker workers[N_THREADS + 1] = {{0}};
    struct kiln_model *pretrained = open_model("pretraining"), *answerer = open_model("question_answering");
    for (int i = 0; i <= N_THREADS; i++) {
        workers[i].pretrained = pretrained;
        workers[i].answerer = answerer;
    }
    work(&workers[N_THREADS]); /* alone */
    for (int i = 0; i < N_THREADS; i++) {
        EXPECT(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "no thread %d", i);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        EXPECT(same_results(&workers[i], &workers[N_THREADS]), "thread %d differs from one alone", i);
    }
    for (int i = 0; i <= N_THREADS; i++) {
        kiln_vectors_free(&workers[i].vectors);
        kiln_words_free(&workers[i].words);
        kiln_answers_free(&workers[i].answers);
    }
    kiln_model_close(pretrained);
    kiln_model_close(answerer);
}

/* Cancels its session when it is asked for the `at`-th time, as another thread would at that moment. */
struct countdown {
    struct kiln_session *session;
    int n_asked, at;
};

static bool cancel_at(const void *argument)
{
    struct countdown *c = (struct countdown *)(uintptr_t)argument;
    if (c->n_asked++ == c->at) {
        kiln_session_cancel(c->session);
    }
    return atomic_load(&c->session->cancelled);
}

static void test_cancel(void)
{
    struct kiln_model *m = open_model("question_answering");
    struct kiln_session *s = open_session(m, KILN_ASK);
    struct kiln_answers answers;
    struct countdown c = {.session = s, .at = -1};
    kiln_session_cancel(s);
    EXPECT_KILN_ERROR(kiln_ask(s, &answers, question, context, strlen(context), NULL), KILN_CANCELLED,
                      "cancelled");
    EXPECT(answers.n == 0 && answers.answers == NULL, "a cancelled call has a result");
    kiln_session_resume(s);

    s->session.net.x.interrupted = cancel_at;
    s->session.net.x.interrupt_context = &c;
    EXPECT_KILN_OK(kiln_ask(s, &answers, question, context, strlen(context), NULL));
    double probability = answers.answers[0].probability;
    int n_asked = c.n_asked;
    EXPECT(n_asked >= 4, "only %d chances to cancel", n_asked);
    kiln_answers_free(&answers);
    for (int at = 0; at < n_asked; at++) {
        c = (struct countdown){.session = s, .at = at};
        EXPECT_KILN_ERROR(kiln_ask(s, &answers, question, context, strlen(context), NULL), KILN_CANCELLED,
                          "cancelled before the next layer");
        EXPECT(answers.n == 0 && c.n_asked == at + 1, "went on for %d layers", c.n_asked - at - 1);
        kiln_session_resume(s);
        c.at = -1;
        EXPECT_KILN_OK(kiln_ask(s, &answers, question, context, strlen(context), NULL));
        EXPECT(answers.answers[0].probability == probability, "another answer after a cancelled call");
        kiln_answers_free(&answers);
    }
    kiln_session_close(s);
    kiln_model_close(m);
}

static void *cancel_soon(void *session)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* time: the call would never end */
    kiln_session_cancel(session);
    return NULL;
}

/* A call that would never end, from outside. */
static void test_cancel_thread(void)
{
    struct kiln_model *m = open_model("pretraining");
    struct kiln_session *s = open_session(m, KILN_FILL);
    struct kiln_status status;
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, cancel_soon, s) == 0, "no thread");
    do {
        struct kiln_words words;
        status = kiln_fill(s, &words, masked, strlen(masked), 1);
        kiln_words_free(&words);
    } while (status.code == KILN_OK);
    EXPECT(status.code == KILN_CANCELLED, "%s", status.message);
    pthread_join(thread, NULL);
    kiln_session_close(s);
    kiln_model_close(m);
}

static void test_bad_models(void)
{
    struct kiln_model *m = open_model("pretraining");
    struct kiln_session *s;
    EXPECT_KILN_ERROR(kiln_session_open(&s, m, KILN_ASK), KILN_DATA,
                      "has no head of a BertForQuestionAnswering");
    EXPECT(s == NULL, "a failed open leaves a session");
    EXPECT_KILN_ERROR(kiln_session_open(&s, m, (enum kiln_task)9), KILN_USAGE, "task");
    EXPECT_KILN_ERROR(kiln_session_open(&s, NULL, KILN_ASK), KILN_USAGE, "model");
    EXPECT_KILN_ERROR(kiln_session_open(NULL, m, KILN_ASK), KILN_USAGE, "session");
    kiln_model_close(m);
    m = open_model("encoder");
    EXPECT_KILN_ERROR(kiln_session_open(&s, m, KILN_FILL), KILN_DATA, "has no head of a BertForMaskedLM");
    kiln_model_close(m);
    EXPECT_KILN_ERROR(kiln_model_open(&m, "/nowhere"), KILN_DATA, "/nowhere");
    EXPECT(m == NULL, "a failed open leaves a model");
    EXPECT_KILN_ERROR(kiln_model_open(&m, NULL), KILN_USAGE, "path");
    struct kiln_model_options o = kiln_model_defaults();
    o.device = "abacus";
    EXPECT_KILN_ERROR(kiln_model_open_on(&m, "/nowhere", &o), KILN_USAGE, "abacus");
    o = (struct kiln_model_options){.size = sizeof o, .dtype = "fp3"};
    EXPECT_KILN_ERROR(kiln_model_open_on(&m, "/nowhere", &o), KILN_USAGE, "fp3");
    EXPECT_KILN_ERROR(kiln_model_open(NULL, "/"), KILN_USAGE, "model");
    kiln_model_close(NULL);
    kiln_session_close(NULL);
}

static void test_bad_texts(void)
{
    struct kiln_model *m = open_model("pretraining");
    struct kiln_session *s = open_session(m, KILN_FILL);
    struct kiln_words words;
    struct kiln_vectors vectors;
    struct kiln_tokens tokens;
    char many[1200];
    memset(many, 'a', sizeof many);
    for (size_t i = 1; i < sizeof many; i += 2) {
        many[i] = ' ';
    }
    memcpy(many, "[MASK]", 6);
    EXPECT_KILN_ERROR(kiln_fill(NULL, &words, masked, 1, 1), KILN_USAGE, "session");
    EXPECT_KILN_ERROR(kiln_fill(s, NULL, masked, 1, 1), KILN_USAGE, "words");
    EXPECT_KILN_ERROR(kiln_fill(s, &words, NULL, 1, 1), KILN_USAGE, "text is NULL");
    EXPECT_KILN_ERROR(kiln_fill(s, &words, masked, strlen(masked), 0), KILN_USAGE, "top_k is 0");
    EXPECT_KILN_ERROR(kiln_fill(s, &words, masked, 3, 1), KILN_DATA, "no [MASK]");
    EXPECT_KILN_ERROR(kiln_fill(s, &words, many, sizeof many, 1), KILN_DATA, "reads at most 24");
    EXPECT(words.words == NULL && words.n_masks == 0, "a failed call has a result");
    EXPECT_KILN_ERROR(kiln_embed(s, &vectors, NULL, 0, NULL), KILN_USAGE, "opened to fill cannot embed");
    EXPECT_KILN_ERROR(kiln_tokenize(s, NULL, masked, 1), KILN_USAGE, "tokens");
    EXPECT_KILN_ERROR(kiln_tokenize(s, &tokens, NULL, 7), KILN_USAGE, "has 7 bytes");
    EXPECT_KILN_OK(kiln_fill(s, &words, masked, strlen(masked), 1));
    kiln_words_free(&words);
    kiln_session_close(s);

    s = open_session(m, KILN_EMBED);
    struct kiln_embed_options o = {.size = sizeof o, .pooling = (enum kiln_pooling)7};
    struct kiln_text text = {many, sizeof many}, nothing = {NULL, 3};
    EXPECT_KILN_ERROR(kiln_embed(s, &vectors, &text, 1, &o), KILN_USAGE, "pooling");
    o = (struct kiln_embed_options){.size = sizeof o, .length = (enum kiln_length)3};
    EXPECT_KILN_ERROR(kiln_embed(s, &vectors, &text, 1, &o), KILN_USAGE, "length");
    o = (struct kiln_embed_options){.size = sizeof o, .max_tokens = 25};
    EXPECT_KILN_ERROR(kiln_embed(s, &vectors, &text, 1, &o), KILN_USAGE, "reads 2 to 24 tokens");
    o = (struct kiln_embed_options){.size = sizeof o, .prompt_name = "query"};
    EXPECT_KILN_ERROR(kiln_embed(s, &vectors, &text, 1, &o), KILN_USAGE, "called 'query'");
    EXPECT_KILN_ERROR(kiln_embed(s, &vectors, &nothing, 1, NULL), KILN_USAGE, "a text is NULL");
    EXPECT_KILN_ERROR(kiln_embed(s, &vectors, NULL, 2, NULL), KILN_USAGE, "texts is NULL");
    EXPECT_KILN_ERROR(kiln_embed(s, NULL, &text, 1, NULL), KILN_USAGE, "vectors");
    EXPECT_KILN_OK(kiln_embed(s, &vectors, &text, 1, NULL));
    EXPECT(vectors.n_cut == 1, "a text of 600 tokens was not cut");
    kiln_vectors_free(&vectors);
    kiln_session_close(s);
    kiln_model_close(m);
}

/* Where no span of the context is among those that the model takes for likely, there is no answer: not a word
 * that is not in the context. */
static void test_no_answer(void)
{
    static const char long_question[] = "a b c d e f g h i j k l m n o p a b c d";
    struct kiln_model *m = open_model("question_answering");
    struct kiln_session *s = open_session(m, KILN_ASK);
    struct kiln_answers answers;
    const struct network *n = &m->weights.net;
    tensor w = param_view(param_table_find(&n->params, "qa_outputs.weight"), n->master);
    memset(w.data, 0, tensor_bytes(w)); /* all places are equal, and the first 20 are in the question */
    EXPECT_KILN_OK(kiln_ask(s, &answers, long_question, "dog", 3, NULL));
    EXPECT(answers.n == 1 && answers.answers[0].text[0] == '\0' && answers.answers[0].start == -1 &&
               answers.answers[0].end == -1,
           "%lld answers, the first '%s' at %lld", (long long)answers.n, answers.answers[0].text,
           (long long)answers.answers[0].start);
    kiln_answers_free(&answers);
    kiln_session_close(s);
    kiln_model_close(m);
}

static void test_bad_questions(void)
{
    struct kiln_model *m = open_model("question_answering");
    struct kiln_session *s = open_session(m, KILN_ASK);
    struct kiln_answers answers;
    struct kiln_ask_options o = kiln_ask_defaults();
    static char question_of_2_mib[(2 << 20) + 1];
    memset(question_of_2_mib, 'q', 2 << 20);
    EXPECT_KILN_ERROR(kiln_ask(s, NULL, question, context, 9, NULL), KILN_USAGE, "answers");
    EXPECT_KILN_ERROR(kiln_ask(s, &answers, NULL, context, 9, NULL), KILN_USAGE, "question");
    EXPECT_KILN_ERROR(kiln_ask(s, &answers, question, NULL, 9, NULL), KILN_USAGE, "context");
    EXPECT_KILN_ERROR(kiln_ask(s, &answers, question, NULL, 0, NULL), KILN_DATA, "");
    EXPECT_KILN_ERROR(kiln_ask(s, &answers, question, " \n ", 3, NULL), KILN_DATA, "");
    EXPECT_KILN_ERROR(kiln_ask(s, &answers, question_of_2_mib, context, 9, NULL), KILN_DATA, "question");
    o.top_k = 0;
    EXPECT_KILN_ERROR(kiln_ask(s, &answers, question, context, 9, &o), KILN_USAGE, "top_k is 0");
    o = kiln_ask_defaults();
    o.doc_stride = INT64_MAX;
    EXPECT_KILN_ERROR(kiln_ask(s, &answers, question, context, 9, &o), KILN_USAGE, "doc_stride");
    o = kiln_ask_defaults();
    o.top_k = 1000;
    o.max_answer_length = 65536;
    o.may_be_none = true;
    EXPECT_KILN_OK(kiln_ask(s, &answers, question, context, strlen(context), &o));
    kiln_answers_free(&answers);
    EXPECT_KILN_OK(kiln_ask(s, &answers, "", "dog\0dog \xff", 9, NULL));
    kiln_answers_free(&answers);
    kiln_session_close(s);
    kiln_model_close(m);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "unpack") == 0) {
        session_case_unpack(argv[2]);
        session_case_unpack_classifiers(argv[2]);
        return 0;
    }
    make_models();
    EXPECT(strcmp(kiln_version(), KILN_VERSION) == 0, "version %s", kiln_version());
    test_embed();
    test_embed_tokens();
    test_fill();
    test_ask();
    test_tokenize();
    test_threads();
    test_cancel();
    test_cancel_thread();
    test_bad_models();
    test_bad_texts();
    test_bad_questions();
    test_no_answer();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
