/* Tables: CSV by RFC 4180, TSV and JSON lines with named columns, and what is wrong with them; and how texts,
 * pairs and labels are found in them and cut. */
#define _GNU_SOURCE
#include "test.h"

#include "data/class_examples.h"
#include "data/table_open.h"
#include "data/tag_examples.h"
#include "io/file.h"

#include <unistd.h>

static char directory[64];

static const char *write_file(const char *name, const char *text)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    EXPECT_OK(file_write_atomic(path, text, strlen(text)));
    return path;
}

static void expect_cell(const struct table_file *t, int64_t row, const char *column, const char *wanted)
{
    struct table_cell c = table_file_cell(t, row, table_file_column(t, column));
    EXPECT(c.is_there && c.n == strlen(wanted) && strcmp(c.text, wanted) == 0, "row %lld, %s: '%s', not '%s'",
           (long long)row, column, c.text, wanted);
}

static void test_csv(void)
{
    struct table_file t;
    EXPECT_OK(
        table_open(&t,
                   write_file("a.csv", "\xEF\xBB\xBFtext,\"the \"\"label\"\"\",id\r\n"
                                       "\"one, two\",a,1\r\n\"two\nlines \"\"x\"\"\",,2\n\nplain \"y\",c,3"),
                   &(struct table_options){0}));
    EXPECT(t.n_rows == 3 && t.n_columns == 3, "%lld rows", (long long)t.n_rows);
    expect_cell(&t, 0, "text", "one, two");
    expect_cell(&t, 0, "the \"label\"", "a");
    expect_cell(&t, 1, "text", "two\nlines \"x\"");
    expect_cell(&t, 1, "the \"label\"", "");
    expect_cell(&t, 2, "text", "plain \"y\"");
    expect_cell(&t, 2, "id", "3");
    EXPECT(table_file_line(&t, 0) == 2 && table_file_line(&t, 1) == 3 && table_file_line(&t, 2) == 6,
           "lines");
    EXPECT(table_file_column(&t, "other") == -1 && !table_file_cell(&t, 0, -1).is_there, "no such column");
    table_file_close(&t);
}

static void test_others(void)
{
    struct table_file t;
    EXPECT_OK(table_open(&t, write_file("a.tsv", "sentence\tlabel\n\"a, b\t1\nc\"\t0\r\n"),
                         &(struct table_options){0}));
    expect_cell(&t, 0, "sentence", "\"a, b");
    expect_cell(&t, 1, "sentence", "c\"");
    expect_cell(&t, 1, "label", "0");
    table_file_close(&t);

    EXPECT_OK(table_open(&t,
                         write_file("a.jsonl", "{\"text\": \"a\\nb\", \"label\": 1}\n\n"
                                               "{\"text\": \"c\", \"more\": [\"x\", 2, true], \"none\": []}\n"
                                               "{\"text\": null, \"label\": 0.5}"),
                         &(struct table_options){0}));
    EXPECT(t.n_rows == 3 && t.n_columns == 4, "%lld columns", (long long)t.n_columns);
    expect_cell(&t, 0, "text", "a\nb");
    expect_cell(&t, 0, "label", "1");
    expect_cell(&t, 2, "label", "0.5");
    struct table_cell list = table_file_cell(&t, 1, table_file_column(&t, "more"));
    EXPECT(list.is_list && list.n_items == 3 && strcmp(list.text + 2, "2") == 0 &&
               strcmp(list.text + 4, "true") == 0,
           "%lld items", (long long)list.n_items);
    list = table_file_cell(&t, 1, table_file_column(&t, "none"));
    EXPECT(list.is_there && list.is_list && list.n_items == 0, "an empty list");
    EXPECT(!table_file_cell(&t, 2, 0).is_there && !table_file_cell(&t, 0, 2).is_there, "null, and absent");
    EXPECT(table_file_line(&t, 1) == 3, "line %lld", (long long)table_file_line(&t, 1));
    table_file_close(&t);
}

/* What may be a text is one; what is not is refused by its line. */
static void test_texts(void)
{
    struct table_file t;
    struct table_cell c;
    EXPECT_OK(
        table_open(&t,
                   write_file("t.jsonl", "{\"text\": \"\"}\n{\"text\": 5}\n{\"text\": null}\n{\"b\": 1}\n"
                                         "{\"text\": [\"a\"]}\n{\"text\": {\"a\": 1}}\n"),
                   &(struct table_options){0}));
    EXPECT_OK(table_file_text(&t, 0, 0, &c));
    EXPECT(c.n == 0 && *c.text == '\0', "an empty text has %zu bytes", c.n);
    EXPECT_OK(table_file_text(&t, 1, 0, &c));
    EXPECT(c.n == 1 && *c.text == '5', "a number is %s", c.text);
    c = table_file_cell(&t, 2, 0);
    EXPECT(c.n == 0 && c.n_items == 0 && *c.text == '\0', "null has %zu bytes", c.n);
    EXPECT_ERROR(table_file_text(&t, 2, 0, &c), STATUS_DATA, "line 3: \"text\" is missing or null");
    EXPECT_ERROR(table_file_text(&t, 3, 0, &c), STATUS_DATA, "line 4: \"text\" is missing or null");
    EXPECT_ERROR(table_file_text(&t, 4, 0, &c), STATUS_DATA, "line 5: \"text\" is a list");
    EXPECT_ERROR(table_file_text(&t, 5, 0, &c), STATUS_DATA, "line 6: \"text\" is an object");
    table_file_close(&t);
}

/* A word that is null is no word "null". */
static void test_words(void)
{
    static const char *const bad[] = {"[\"a\", null], \"tags\": [\"O\", \"O\"]", "[\"a\", [\"b\"]]",
                                      "[\"a\"], \"tags\": [{}]"};
    struct tag_examples e;
    char text[128];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(text, sizeof text, "\n{\"tokens\": %s}\n", bad[i]);
        EXPECT_ERROR(tag_examples_read(&e, write_file("w.json", text), &(struct conll_columns){0}),
                     STATUS_DATA, "line 2: a word");
    }
    EXPECT_OK(tag_examples_read(&e, write_file("w.json", "{\"tokens\": [\"a\", 5], \"tags\": [null, 3]}"),
                                &(struct conll_columns){0}));
    EXPECT(e.n_words == 2 && !tag_examples_word(&e, 0)->has_label && tag_examples_word(&e, 1)->has_label,
           "null is a label");
    tag_examples_fini(&e);
}

static void test_errors(void)
{
    static const struct {
        const char *name, *text, *message;
    } bad[] = {
        {"b.csv", "a,b\n1,2,3\n", "line 2 has 3 fields"},
        {"b.csv", "a,b\n\"1,2\n", "ends inside quotes"},
        {"b.csv", "a,b\n\"1\"x,2\n", "line 2: text after the closing quote"},
        {"b.csv", "a,a\n", "two columns are called \"a\""},
        {"b.csv", "", "is empty"},
        {"b.csv", "\n\r\n", "only empty lines"},
        {"b.json", "{\"a\": 1}\n[2]\n", "line 2: each line must be a JSON object"},
        {"b.json", "{\"a\": \n", "b.json line 1"},
    };
    struct table_file t;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        EXPECT_ERROR(table_open(&t, write_file(bad[i].name, bad[i].text), &(struct table_options){0}),
                     STATUS_DATA, bad[i].message);
    }
    EXPECT_ERROR(table_open(&t, write_file("b.txt", "a"), &(struct table_options){0}), STATUS_USAGE,
                 "end in .csv");
    EXPECT_ERROR(table_open(&t, "/nothing.csv", &(struct table_options){0}), STATUS_DATA, "nothing.csv");
}

static void expect_names(const char *name, const char *text, enum label_problem wanted, const char *labels)
{
    struct class_examples e;
    struct label_names names = {0};
    struct buf all = {0};
    EXPECT_OK(class_examples_open(&e, write_file(name, text), &(struct class_columns){.separator = ';'}));
    EXPECT(class_examples_problem(&e) == wanted || *name == 's', "%s: problem %d", text,
           class_examples_problem(&e));
    EXPECT_OK(class_examples_names(&e, wanted, &names));
    for (int64_t i = 0; i < names.n; i++) {
        buf_printf(&all, "%s ", label_names_get(&names, i));
        EXPECT(label_names_find(&names, label_names_get(&names, i), strlen(label_names_get(&names, i))) == i,
               "label %lld is not found", (long long)i);
    }
    EXPECT(strcmp(buf_text(&all), labels) == 0, "labels '%s', not '%s'", buf_text(&all), labels);
    EXPECT(label_names_find(&names, "nobody", 6) == -1, "a label that is not there");
    buf_fini(&all);
    label_names_fini(&names);
    class_examples_fini(&e);
}

/* Labels are sorted, numbers as numbers; what they look like says the problem. */
static void test_labels(void)
{
    expect_names("l.csv", "text,label\na,10\nb,9\nc,10\n", PROBLEM_SINGLE_LABEL, "9 10 ");
    expect_names("l.csv", "text,label\na,no\nb,yes\nc,9\n", PROBLEM_SINGLE_LABEL, "9 no yes ");
    expect_names("l.csv", "text,label\na,1.5\nb,9\n", PROBLEM_REGRESSION, "LABEL_0 ");
    expect_names("l.json",
                 "{\"text\": \"a\", \"labels\": [\"y\", \"x\"]}\n{\"text\": \"b\", \"labels\": []}\n",
                 PROBLEM_MULTI_LABEL, "x y ");
    expect_names("separated.tsv", "text\tlabels\na\ty;x\nb\t\nc\tz\n", PROBLEM_MULTI_LABEL, "x y z ");
    struct class_examples e;
    struct class_columns given = {.text = "body", .label = "class"};
    EXPECT_ERROR(class_examples_open(&e, write_file("l.csv", "text,label\na,1\n"), &given), STATUS_DATA,
                 "has no column body; it has text, label");
    EXPECT_ERROR(class_examples_open(&e, write_file("l.csv", "a,label\na,1\n"), &(struct class_columns){0}),
                 STATUS_DATA, "--text_column_name");
    EXPECT_OK(class_examples_open(&e, write_file("l.csv", "question,sentence,label\na,b,1\n"),
                                  &(struct class_columns){0}));
    EXPECT(e.text == 0 && e.pair == 1 && e.label == 2, "columns %lld, %lld", (long long)e.text,
           (long long)e.pair);
    class_examples_fini(&e);
}

/* A row without a label is named; blanks around a label are no part of it. */
static void test_missing_labels(void)
{
    static const struct {
        const char *name, *text;
        enum label_problem problem;
        int line;
    } bad[] = {
        {"m.csv", "text,label\na,1\nb,\n", PROBLEM_SINGLE_LABEL, 3},
        {"m.csv", "label,text\n,a\n1,b\n", PROBLEM_SINGLE_LABEL, 2},
        {"m.csv", "text,label\na,\"\"\n", PROBLEM_SINGLE_LABEL, 2},
        {"m.csv", "text,label\na,1\n\nb, \t\n", PROBLEM_SINGLE_LABEL, 4},
        {"m.tsv", "text\tlabel\na\t\n", PROBLEM_SINGLE_LABEL, 2},
        {"m.tsv", "text\tlabel\na\ty;;x\n", PROBLEM_MULTI_LABEL, 2},
        {"m.json", "{\"text\": \"a\", \"label\": \"\"}\n", PROBLEM_SINGLE_LABEL, 1},
        {"m.json", "{\"text\": \"a\", \"label\": 1}\n{\"text\": \"a\"}\n", PROBLEM_SINGLE_LABEL, 2},
        {"m.json", "{\"text\": \"a\", \"label\": null}\n", PROBLEM_SINGLE_LABEL, 1},
        {"m.json", "{\"text\": \"a\", \"label\": [\"\"]}\n", PROBLEM_MULTI_LABEL, 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct class_examples e;
        struct label_names names = {0};
        char message[64];
        snprintf(message, sizeof message, "line %d: there is no label", bad[i].line);
        EXPECT_OK(class_examples_open(&e, write_file(bad[i].name, bad[i].text),
                                      &(struct class_columns){.separator = ';'}));
        EXPECT_ERROR(class_examples_names(&e, bad[i].problem, &names), STATUS_DATA, message);
        label_names_fini(&names);
        class_examples_fini(&e);
    }
    expect_names("l.csv", "text,label\na, 10\nb,9 \nc,10\n", PROBLEM_SINGLE_LABEL, "9 10 ");
    struct class_examples e;
    struct label_names names = {0};
    EXPECT_OK(class_examples_open(&e, write_file("m.csv", "text,kind\na,1\n"), &(struct class_columns){0}));
    EXPECT_ERROR(class_examples_names(&e, PROBLEM_SINGLE_LABEL, &names), STATUS_DATA,
                 "m.csv has no column for labels");
    class_examples_fini(&e);
}

/* A model that names its labels LABEL_i takes numbers; what it does not have is said with both sets. */
static void test_match(void)
{
    static const struct {
        const char *model[3], *file[3];
        const char *find;
        int64_t wanted;
    } cases[] = {
        {{"LABEL_0", "LABEL_1"}, {"0", "1"}, "1", 1},
        {{"LABEL_0", "LABEL_1"}, {"-1", "1"}, "1", 1},
        {{"LABEL_0", "LABEL_1"}, {"0", "2"}, "0", -1},
        {{"LABEL_0", "LABEL_1"}, {"0", "x"}, "0", -1},
        {{"LABEL_1", "LABEL_0"}, {"0", "1"}, "0", -1},
        {{"no", "yes"}, {"0", "1"}, "0", -1},
        {{"0", "1"}, {"LABEL_0"}, "LABEL_0", -1},
        {{"LABEL_0", "LABEL_1"}, {"LABEL_1"}, "LABEL_1", 1},
        {{"LABEL_0", "x"}, {"0"}, "0", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct label_names model = {0}, file = {0};
        for (int k = 0; k < 3; k++) {
            EXPECT_OK(cases[i].model[k] == NULL
                          ? status_ok()
                          : label_names_add(&model, cases[i].model[k], strlen(cases[i].model[k])));
            EXPECT_OK(cases[i].file[k] == NULL
                          ? status_ok()
                          : label_names_add(&file, cases[i].file[k], strlen(cases[i].file[k])));
        }
        EXPECT_OK(label_names_index(&model));
        struct model_labels labels = {.n = model.n, .names = &model};
        struct label_kind k = {.model = &labels, .path = "file"};
        int32_t put = -1;
        label_kind_read(&k, &file);
        int64_t found = label_kind_find(&k, cases[i].find, strlen(cases[i].find));
        EXPECT(found == cases[i].wanted, "case %zu: %s is label %lld", i, cases[i].find, (long long)found);
        EXPECT_ERROR(label_kind_put(&k, &put, 0, "y", 1, 7), STATUS_DATA,
                     "file line 7: the model has no label y");
        label_kind_fini(&k);
        label_names_fini(&model);
    }
}

/* Tables as people have them: what is described is what was found. */
static const struct {
    const char *name, *text;
    struct class_columns columns;
    int64_t n_rows;
    const char *wanted; /* part of the description, or of the error */
} tables[] = {
    {"f.csv",
     "Text;Label\nthe man, old;0\n\"the \"\"sea\"\"; blue\";1\n",
     {0},
     2,
     "text in Text, label in Label; the first is \"the man, old\", label 0"},
    {"f.csv",
     "\xEF\xBB\xBFLABEL\tSENTENCE\r\n0\tthe man\r\n1\tthe sea\r\n",
     {0},
     2,
     "text in SENTENCE, label in LABEL"},
    {"f.csv",
     "sep=;\r\ntext;label\r\na;0\r\nb;1\r\n",
     {0},
     2,
     "text in text, label in label; the first is \"a\", label 0"},
    {"f.csv", "review | sentiment\ngood | pos\nbad | neg\n", {0}, 2, "label in  sentiment"},
    {"f.csv", "text,label\n\"two\nlines; here\",0\n\"one\",1\n", {0}, 2, "\"two lines; here\", label 0"},
    {"f.csv",
     ",Sentence1,SENTENCE2,label\n0,a,b,x\n1,c,d,y\n",
     {0},
     2,
     "text in Sentence1, second text in SENTENCE2, label in label"},
    {"f.csv",
     "stars,opinion\n1,bad\n5,good\n",
     {.text = "OPINION", .label = "stars"},
     2,
     "text in opinion, label in stars"},
    {"f.csv",
     "stars,opinion\n1,bad\n5,good\n",
     {.text = "2", .label = "1"},
     2,
     "text in opinion, label in stars"},
    /* without a line of names */
    {"f.csv",
     "the man went,0\nthe sea,1\nthe dog,0\n",
     {0},
     3,
     "text in column 1, label in column 2; the first is \"the man went\", label 0"},
    {"f.csv",
     "pos;the man, old\nneg;the sea, blue\npos;the dog, big\n",
     {0},
     3,
     "text in column 2, label in column 1; the first is \"the man, old\", label pos"},
    {"f.tsv", "the man\tpos\nthe sea\tpos\n", {0}, 2, "text in column 1, label in column 2"},
    {"f.csv",
     "a,the man,0\nb,the sea,1\n",
     {.text = "2", .label = "3"},
     2,
     "text in column 2, label in column 3"},
    {"f.csv", "the man,pos\nthe sea,neg\n", {.no_header = true}, 2, "text in column 1, label in column 2"},
    {"f.csv", "the man\nthe sea\n", {.no_header = true}, 2, "text in column 1; the first is \"the man\""},
    {"f.csv",
     "0,1\nthe man,1\nthe sea,0\n",
     {.text = "0", .label = "1"},
     2,
     "text in 0, label in 1"}, /* pandas */
    /* names that are joined twice */
    {"f.csv",
     "opinion,stars\nbad,few\nopinion,stars\ngood,many\n",
     {.text = "opinion", .label = "stars"},
     3,
     "text in opinion"},
    /* what cannot be told is asked for */
    {"f.csv",
     "the man,pos\nthe sea,neg\n",
     {0},
     -1,
     "has no column for texts with a usual name (sentence, text, sentence1 and sentence2); it has the "
     "man, pos: name one by"},
    {"f.csv",
     "a,the man,0\nb,the sea,0\n",
     {0},
     -1,
     "it has 1, 2, 3: name one by --text_column_name and --text_pair_column_name, by its number, since "
     "--no_header is given"},
    {"f.csv", "a;b\nthe man;pos;x\n", {0}, -1, "line 2 has 3 fields, but line 1 has 2"},
    {"f.csv", "text,label\n", {0}, -1, "f.csv has no texts"},
    {"f.json", "\n \n", {0}, -1, "f.json has no texts"},
    {"f.csv", "text,label\nthe man,0\n", {.text = "3"}, -1, "has no column 3; it has text, label"},
};

static void test_found(void)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        struct class_examples e;
        struct buf about = {0};
        struct status s =
            class_examples_open(&e, write_file(tables[i].name, tables[i].text), &tables[i].columns);
        EXPECT(failed(s) == (tables[i].n_rows < 0), "case %zu: %s", i, s.message);
        if (failed(s)) {
            EXPECT(strstr(s.message, tables[i].wanted) != NULL, "case %zu: %s", i, s.message);
            continue;
        }
        class_examples_describe(&about, &e);
        EXPECT(e.table.n_rows == tables[i].n_rows && strstr(buf_text(&about), tables[i].wanted) != NULL,
               "case %zu: %lld rows, %s", i, (long long)e.table.n_rows, buf_text(&about));
        buf_fini(&about);
        class_examples_fini(&e);
    }
}

/* Lengths from the crate tokenizers' truncation "longest_first". */
static void test_cut(void)
{
    static const int64_t cut[][5] = {{5, 5, 10, 5, 5},   {9, 3, 10, 7, 3},  {3, 9, 10, 3, 7},
                                     {20, 20, 11, 5, 6}, {20, 8, 11, 6, 5}, {8, 20, 11, 5, 6},
                                     {20, 0, 11, 11, 0}, {30, 15, 11, 6, 5}};
    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
        int64_t a = cut[i][0], b = cut[i][1];
        encoded_texts_cut(&a, &b, cut[i][2]);
        EXPECT(a == cut[i][3] && b == cut[i][4], "%lld and %lld in %lld: %lld and %lld", (long long)cut[i][0],
               (long long)cut[i][1], (long long)cut[i][2], (long long)a, (long long)b);
    }
}

int main(void)
{
    snprintf(directory, sizeof directory, "/tmp/kiln_table_XXXXXX");
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    test_csv();
    test_others();
    test_texts();
    test_words();
    test_errors();
    test_labels();
    test_missing_labels();
    test_found();
    test_match();
    test_cut();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
