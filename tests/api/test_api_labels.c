/* kiln_classify and kiln_tag of the public library, on classifiers of Hugging Face's classes
 * (tests/golden/make_classify.py): they say what the prediction files of `kiln classify` and `kiln tag` say,
 * in every order of texts, cut and split as those are; and what is wrong is an error. */
#define _GNU_SOURCE
#include "expect_kiln.h"
#include "session_case.h"

#include "core/json.h"
#include "data/tag_score.h"
#include "task/example_task.h"

#define ROUNDING 1e-5
enum { N_TEXTS = 6, N_WORDS = 21, PATH = SESSION_CASE_PATH + 64 };

/* The vocabulary knows the letters from a to p, and the models read 24 tokens. */
static const char *const texts[N_TEXTS] = {
    "a mad dog", "caf\xc3\xa9", "a", "a man and a dog, in a big cage, in a lake of ice and black ink",
    "",          "no home"};
static const char *const pairs[N_TEXTS] = {
    "had a man", "a man had a big black dog in a big cage, and ice",
    "",          "a mad man and a big dog in a cage of black ice on a lake",
    "a",         "b"};
/* "" ends a sentence; the second is longer than the model reads. */
static const char *const words[N_WORDS + 2] = {"a",    "mad", "xyz", "",      "had",  "man", "and", "a",
                                               "big",  "dog", "in",  "black", "cage", "of",  "ice", "on",
                                               "lake", "and", "a",   "child", "made", "",    "cake"};

static char directory[SESSION_CASE_PATH];

static struct kiln_session *open_session(const char *name, enum kiln_task task)
{
    char path[PATH];
    struct kiln_model *m;
    struct kiln_session *s;
    snprintf(path, PATH, "%s/%s", directory, name);
    EXPECT_KILN_OK(kiln_model_open(&m, path));
    EXPECT_KILN_OK(kiln_session_open(&s, m, task));
    kiln_model_close(m);
    return s;
}

static struct kiln_text text_of(const char *bytes)
{
    return (struct kiln_text){bytes, strlen(bytes)};
}

/* Paths of one prediction; what the command writes is `output`. */
struct paths {
    char model[PATH], input[PATH], folder[PATH], output[PATH + 32];
};

static struct paths paths_of(const char *name, const char *input, const char *output)
{
    struct paths p;
    snprintf(p.model, PATH, "%s/%s", directory, name);
    snprintf(p.input, PATH, "%s/%s", directory, input);
    snprintf(p.folder, PATH, "%s/predicted", directory);
    snprintf(p.output, sizeof p.output, "%s/%s", p.folder, output);
    return p;
}

static struct finetune_options options_of(const struct paths *p)
{
    return (struct finetune_options){
        .run =
            {
                .init_checkpoint = p->model,
                .common.output_dir = p->folder,
                .device = "cpu",
                .batch.max_seq_length = 24,
                .log_freq = 1,
                .profile = {.steps = "1:2"},
                .common.disable_progress_bar = true,
            },
        .predict_file = p->input,
        .predict_batch_size = 4,
        .do_predict = true,
    };
}

static void write_file(const char *path, const struct buf *text)
{
    EXPECT_OK(buf_status(text));
    EXPECT_OK(file_write_atomic(path, text->data, text->n));
}

/* ---- texts ---- */

/* The lines that `kiln classify` writes for the texts, as an array. */
static json_t *command_labels(const char *name, bool with_pairs)
{
    struct paths p = paths_of(name, "texts.jsonl", "predictions.jsonl");
    struct buf text = {0};
    for (int i = 0; i < N_TEXTS; i++) {
        buf_printf(&text, "{\"sentence%s\": \"%s\"", with_pairs ? "1" : "", texts[i]);
        if (with_pairs) {
            buf_printf(&text, ", \"sentence2\": \"%s\"", pairs[i]);
        }
        buf_puts(&text, "}\n");
    }
    write_file(p.input, &text);
    struct example_options o = {.run = options_of(&p), .problem_type = "auto"};
    EXPECT_OK(finetune_run(&classify_task, &o));
    struct file_map map;
    json_t *lines = json_array();
    EXPECT_OK(file_map_open(&map, p.output));
    buf_clear(&text);
    buf_append(&text, map.data, map.n);
    for (char *at = text.data, *end; at < text.data + text.n; at = end + 1) {
        json_t *line;
        end = memchr(at, '\n', (size_t)(text.data + text.n - at));
        EXPECT_OK(json_parse(&line, at, (size_t)(end - at), p.output));
        json_array_append_new(lines, line);
    }
    file_map_close(&map);
    buf_fini(&text);
    EXPECT(json_array_size(lines) == N_TEXTS, "%zu lines", json_array_size(lines));
    return lines;
}

/* The command may have had other texts beside it: nine digits, less rounding. */
static void expect_score(const json_t *wanted, double score, const char *what)
{
    EXPECT(json_is_real(wanted), "%s has no score", what);
    EXPECT_NEAR(score, json_real_value(wanted), ROUNDING * fmax(1, fabs(score)));
}

static bool names_label(const json_t *said, const struct kiln_label *l, enum kiln_problem problem)
{
    size_t i;
    const json_t *one;
    if (problem == KILN_ONE_LABEL) {
        return strcmp(json_string_value(said), l->name) == 0;
    }
    json_array_foreach(said, i, one)
    {
        if (strcmp(json_string_value(one), l->name) == 0) {
            return true;
        }
    }
    return false;
}

static void expect_labels(const struct kiln_labels *got, int64_t i, const json_t *line)
{
    const json_t *scores = json_object_get(line, "scores"), *said = json_object_get(line, "label");
    double sum = 0;
    EXPECT((int64_t)json_object_size(scores) == got->n_labels, "%zu scores", json_object_size(scores));
    for (int64_t k = 0; k < got->n_labels; k++) {
        const struct kiln_label *l = &got->labels[i * got->n_labels + k];
        expect_score(json_object_get(scores, l->name), l->score, l->name);
        sum += l->score;
        if (got->problem == KILN_NUMBERS) {
            expect_score(said, l->score, "the number");
            EXPECT(l->holds && l->id == k, "number %lld is that of %lld", (long long)k, (long long)l->id);
        } else {
            EXPECT(names_label(said, l, got->problem) == l->holds, "text %lld, label %s", (long long)i,
                   l->name);
            EXPECT(k == 0 || l[-1].score >= l->score, "label %lld is out of order", (long long)k);
        }
    }
    if (got->problem == KILN_ONE_LABEL) {
        EXPECT_NEAR(sum, 1, 1e-12);
        EXPECT(got->labels[i * got->n_labels].holds, "the first label is not the one that holds");
    }
}

static void test_classify(const char *name, enum kiln_problem problem, bool with_pairs)
{
    struct kiln_session *s = open_session(name, KILN_CLASSIFY);
    struct kiln_text in[N_TEXTS], behind[N_TEXTS];
    struct kiln_labels all, one;
    json_t *wanted = command_labels(name, with_pairs);
    for (int i = 0; i < N_TEXTS; i++) {
        in[i] = text_of(texts[i]);
        behind[i] = text_of(pairs[i]);
    }
    EXPECT_KILN_OK(kiln_classify(s, &all, in, with_pairs ? behind : NULL, N_TEXTS));
    EXPECT(all.n == N_TEXTS && all.problem == problem && all.n_cut == (with_pairs ? 2 : 1),
           "%lld texts of problem %d, %lld cut", (long long)all.n, (int)all.problem, (long long)all.n_cut);
    for (int64_t i = 0; i < N_TEXTS; i++) {
        expect_labels(&all, i, json_array_get(wanted, (size_t)i));
        EXPECT_KILN_OK(kiln_classify(s, &one, in + i, with_pairs ? behind + i : NULL, 1));
        for (int64_t k = 0; k < all.n_labels; k++) {
            double among = all.labels[i * all.n_labels + k].score;
            EXPECT_NEAR(one.labels[k].score, among, ROUNDING * fmax(1, fabs(among)));
        }
        kiln_labels_free(&one);
    }
    kiln_session_close(s); /* a result outlives model and session */
    EXPECT(all.labels[0].name[0] != '\0', "no name");
    kiln_labels_free(&all);
    json_decref(wanted);
}

/* ---- words ---- */

/* The column of labels that `kiln tag` writes, a label a line. */
static struct buf command_tags(void)
{
    struct paths p = paths_of("tokens", "words.conll", "predictions.conll");
    struct buf text = {0}, labels = {0};
    struct file_map map;
    for (int i = 0; i < N_WORDS + 2; i++) {
        buf_printf(&text, "%s\n", words[i]);
    }
    write_file(p.input, &text);
    struct example_options o = {.run = options_of(&p)};
    EXPECT_OK(finetune_run(&tag_task, &o));
    EXPECT_OK(file_map_open(&map, p.output));
    buf_clear(&text);
    buf_append(&text, map.data, map.n);
    for (char *line = strtok(text.data, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        buf_printf(&labels, "%s\n", strchr(line, '\t') + 1);
    }
    EXPECT_OK(buf_status(&labels));
    file_map_close(&map);
    buf_fini(&text);
    return labels;
}

/* The words as sentences; returns how many. */
static size_t make_sentences(struct kiln_sentence *sentences, struct kiln_text *all)
{
    size_t n = 0, n_words = 0;
    sentences[n] = (struct kiln_sentence){all, 0};
    for (int i = 0; i < N_WORDS + 2; i++) {
        if (words[i][0] == '\0') {
            sentences[++n] = (struct kiln_sentence){all + n_words, 0};
            continue;
        }
        all[n_words++] = text_of(words[i]);
        sentences[n].n++;
    }
    return n + 1;
}

/* What the labels of one sentence mark, by data/tag_score.h. */
static void expect_entities(const struct kiln_tags *t, const struct kiln_sentence *sentences, size_t n)
{
    int64_t at = 0, k = 0;
    for (size_t i = 0; i < n; i++) {
        const char *names[N_WORDS];
        struct tag_entity found[N_WORDS];
        for (size_t w = 0; w < sentences[i].n; w++) {
            names[w] = t->words[at + (int64_t)w].name;
        }
        int64_t n_found = tag_score_entities(found, names, (int64_t)sentences[i].n);
        for (int64_t e = 0; e < n_found; e++, k++) {
            EXPECT(k < t->n_entities && t->entities[k].start == at + found[e].begin &&
                       t->entities[k].end == at + found[e].end &&
                       strcmp(t->entities[k].type, found[e].type) == 0,
                   "entity %lld", (long long)k);
        }
        at += (int64_t)sentences[i].n;
    }
    EXPECT(k == t->n_entities && k > 0, "%lld entities, not %lld", (long long)t->n_entities, (long long)k);
}

static void test_tag(void)
{
    struct kiln_session *s = open_session("tokens", KILN_TAG);
    struct kiln_text all[N_WORDS];
    struct kiln_sentence sentences[4], none = {NULL, 0};
    struct kiln_tags tags, one;
    struct buf wanted = command_tags(), got = {0};
    size_t n = make_sentences(sentences, all);
    EXPECT_KILN_OK(kiln_tag(s, &tags, sentences, n));
    EXPECT(n == 3 && tags.n == N_WORDS && tags.n_cut == 1, "%lld words, %lld in parts", (long long)tags.n,
           (long long)tags.n_cut);
    for (int64_t i = 0; i < tags.n; i++) {
        buf_printf(&got, "%s\n", tags.words[i].name);
        EXPECT(tags.words[i].probability > 0.2 && tags.words[i].probability <= 1, "probability %g",
               tags.words[i].probability);
    }
    EXPECT(strcmp(buf_text(&got), buf_text(&wanted)) == 0, "labels are\n%s, not\n%s", buf_text(&got),
           buf_text(&wanted));
    expect_entities(&tags, sentences, n);
    EXPECT_KILN_OK(kiln_tag(s, &one, &sentences[2], 1));
    EXPECT(one.n == 1, "%lld words", (long long)one.n);
    EXPECT_NEAR(one.words[0].probability, tags.words[N_WORDS - 1].probability, ROUNDING);
    kiln_tags_free(&one);
    sentences[3] = none;
    EXPECT_KILN_OK(kiln_tag(s, &one, sentences + 2, 2));
    EXPECT(one.n == 1, "an empty sentence has %lld words", (long long)one.n - 1);
    kiln_tags_free(&one);
    EXPECT_KILN_OK(kiln_tag(s, &one, &none, 1));
    EXPECT(one.n == 0 && one.n_entities == 0, "words of nothing");
    kiln_tags_free(&one);
    kiln_session_close(s);
    kiln_tags_free(&tags);
    buf_fini(&wanted);
    buf_fini(&got);
}

/* The first token of a word has the word's label, by its logits, and its place in the text. */
static void test_tag_tokens(void)
{
    static const char text[] = "a mad dog had a cab";
    struct kiln_session *s = open_session("tokens", KILN_TAG);
    struct kiln_text all[] = {text_of("a"),   text_of("mad"), text_of("dog"),
                              text_of("had"), text_of("a"),   text_of("cab")};
    struct kiln_tags tags;
    struct kiln_rows r;
    int64_t word = 0;
    EXPECT_KILN_OK(kiln_tag(s, &tags, &(struct kiln_sentence){all, 6}, 1));
    EXPECT_KILN_OK(kiln_tag_tokens(s, &r, text, sizeof text - 1));
    for (int64_t i = 0; i < r.n; i++) {
        size_t at = r.tokens[i].start;
        if (at > 0 && text[at - 1] != ' ') {
            continue;
        }
        double sum = 0, best = r.values[i * r.width + tags.words[word].id];
        for (int64_t k = 0; k < r.width; k++) {
            sum += exp(r.values[i * r.width + k] - best);
        }
        EXPECT_NEAR(1 / sum, tags.words[word].probability, ROUNDING);
        word++;
    }
    EXPECT(word == tags.n, "%lld words of %lld have a token", (long long)word, (long long)tags.n);
    kiln_rows_free(&r);
    kiln_tags_free(&tags);
    kiln_session_close(s);
}

/* A word may be any bytes: one without a piece is unknown, and a NUL ends none. */
static void test_odd_words(void)
{
    struct kiln_session *s = open_session("tokens", KILN_TAG);
    struct kiln_text odd[] = {{"ab", 2}, {"a\0b", 3}, {"a", 1}, {"", 0}, {"\xf0\x9f\x98\x80", 4}};
    struct kiln_tags t[5];
    for (int i = 0; i < 5; i++) {
        EXPECT_KILN_OK(kiln_tag(s, &t[i], &(struct kiln_sentence){&odd[i], 1}, 1));
        EXPECT(t[i].n == 1, "word %d has %lld labels", i, (long long)t[i].n);
    }
    EXPECT(t[0].words[0].probability == t[1].words[0].probability, "a NUL changes a word");
    EXPECT(t[1].words[0].probability != t[2].words[0].probability, "a NUL ends a word");
    EXPECT(t[3].words[0].probability == t[4].words[0].probability, "words without a piece differ");
    for (int i = 0; i < 5; i++) {
        kiln_tags_free(&t[i]);
    }
    kiln_session_close(s);
}

static void test_errors(void)
{
    char path[PATH];
    struct kiln_model *m;
    struct kiln_session *s;
    struct kiln_labels labels;
    struct kiln_tags tags;
    snprintf(path, PATH, "%s/tokens", directory);
    EXPECT_KILN_OK(kiln_model_open(&m, path));
    EXPECT_KILN_ERROR(kiln_session_open(&s, m, KILN_CLASSIFY), KILN_DATA,
                      "is a BertForTokenClassification and has no head of a BertForSequenceClassification");
    EXPECT_KILN_ERROR(kiln_session_open(&s, m, KILN_ASK), KILN_DATA, "is a BertForTokenClassification");
    EXPECT_KILN_OK(kiln_session_open(&s, m, KILN_TAG));
    EXPECT_KILN_ERROR(kiln_classify(s, &labels, NULL, NULL, 0), KILN_USAGE,
                      "a session opened to tag cannot classify");
    kiln_session_cancel(s);
    EXPECT_KILN_ERROR(kiln_tag(s, &tags, NULL, 0), KILN_CANCELLED, "cancelled");
    kiln_session_close(s);
    kiln_model_close(m);
    snprintf(path, PATH, "%s/single", directory);
    EXPECT_KILN_OK(kiln_model_open(&m, path));
    EXPECT_KILN_ERROR(kiln_session_open(&s, m, KILN_TAG), KILN_DATA,
                      "is a BertForSequenceClassification and has no head of a BertForTokenClassification");
    EXPECT_KILN_OK(kiln_session_open(&s, m, KILN_CLASSIFY));
    EXPECT_KILN_ERROR(kiln_tag(s, &tags, NULL, 0), KILN_USAGE, "a session opened to classify cannot tag");
    EXPECT_KILN_OK(kiln_classify(s, &labels, NULL, NULL, 0));
    EXPECT(labels.n == 0 && labels.n_labels == 3, "labels of nothing");
    kiln_labels_free(&labels);
    kiln_session_close(s);
    EXPECT_KILN_OK(kiln_session_open(&s, m, KILN_EMBED)); /* below its head it is a BERT */
    kiln_session_close(s);
    kiln_model_close(m);
}

int main(void)
{
    session_case_directory(directory, sizeof directory);
    session_case_unpack_classifiers(directory);
    test_classify("single", KILN_ONE_LABEL, false);
    test_classify("single", KILN_ONE_LABEL, true);
    test_classify("multi", KILN_ANY_LABELS, false);
    test_classify("multi", KILN_ANY_LABELS, true);
    test_classify("regression", KILN_NUMBERS, false);
    test_tag();
    test_tag_tokens();
    test_odd_words();
    test_errors();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
