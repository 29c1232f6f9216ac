/* CoNLL columns as they are published: what the words and labels are, what is a comment, and what is refused
 * by its line. */
#define _GNU_SOURCE
#include "test.h"

#include "data/conll_file.h"

#include <unistd.h>

static char directory[64];

static const char *write_file(const char *text, size_t n)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/a.conll", directory);
    EXPECT_OK(file_write_atomic(path, text, n));
    return path;
}

#define ID(row) row "\t_\t_\t_\t_\t_\n"

/* Words and labels as word/label, sentences ended by |. */
static const struct {
    const char *text;
    struct conll_columns columns;
    const char *wanted;
} cases[] = {
    {"EU NNP B-ORG\nrejects VBZ O\n\nPeter NNP B-PER\n", {0}, "EU/B-ORG rejects/O | Peter/B-PER "},
    {"-DOCSTART- -X- O\n\nEU\tNNP\tB-ORG\n", {0}, "| | EU/B-ORG "},
    {"EU  NNP   B-ORG \r\nrejects VBZ O\r\n\r\n", {0}, "EU/B-ORG rejects/O | "},
    {"EU\tB-ORG\rrejects\tO\r\rPeter\tB-PER\r", {0}, "EU/B-ORG rejects/O | Peter/B-PER "},
    {"\xEF\xBB\xBF"
     "EU\nrejects\n",
     {0},
     "EU/ rejects/ "},
    {"Merkel merkel NNP B-PER\n", {0}, "Merkel/B-PER "},
    {"1,000\n,\n", {0}, "1,000/ ,/ "},
    {"EU\tB-ORG\t\nrejects\tO\t\n", {0}, "EU/B-ORG rejects/O "},
    {"New York\tB-LOC\nis\tO\n", {0}, "New York/B-LOC is/O "},
    {"EU NNP B-ORG\nrejects VBZ O\n", {.label = "2"}, "EU/NNP rejects/VBZ "},
    {"B-ORG EU\nO rejects\n", {"2", "1", NULL}, "EU/B-ORG rejects/O "},
    /* comments, and words that begin like one */
    {"# id 5\nEU NNP B-ORG\n", {0}, "EU/B-ORG "},
    {"# text = EU rejects\nEU\tO\n#tag\tO\n#\tO\n\n#tag\tO\n", {0}, "EU/O #tag/O #/O | #tag/O "},
    {"EU\n\n# a comment\n#word\n", {0}, "EU/ | #word/ "},
    /* CoNLL-U, as case reports/10, with ranges and empty nodes */
    {"# sent_id = 1\n" ID("1-2\tvámonos\t_\t_\t_") ID("1\tvamos\tir\tVERB\t_") ID("2\tnos\tnosotros\tPRON\t_")
         ID("2.1\tx\t_\t_\t_") "\n"
                               "# sent_id = 2\n" ID("1\tthe\tthe\tDET\tDT") ID("2\t_\t_\t_\tX"),
     {0},
     "vamos/VERB nos/PRON | the/DET _/ "},
    {ID("1\tthe\tthe\tDET\tDT") ID("2\tman\tman\tNOUN\tNN"), {.label = "xpos"}, "the/DT man/NN "},
    {ID("1\tthe\tthe\tDET\tDT") ID("2\tmen\tman\tNOUN\tNN"), {"lemma", "10", NULL}, "the/_ man/_ "},
    {"# global.columns = ID FORM UPOS NER\n1\tthe\tDET\tO\n", {.label = "NER"}, "the/O "},
    /* GermEval: numbered rows, comments */
    {"#\tn-tv.de\n1\tSchartau\tB-PER\tO\n2\tsagte\tO\tO\n\n#\thttp\n1\tIch\tO\tO\n",
     {.label = "3"},
     "Schartau/B-PER sagte/O | Ich/O "},
    {"1\tthe\n2\tman\n\n1\ta\n", {0}, "the/ man/ | a/ "},
    /* numbers that are words */
    {"1 CD O\n7 CD O\n", {0}, "1/O 7/O "},
};

static void test_rows(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct conll_file f;
        struct conll_row row;
        struct buf all = {0};
        EXPECT_OK(conll_file_open(&f, write_file(cases[i].text, strlen(cases[i].text)), &cases[i].columns));
        while (conll_file_next(&f, &row)) {
            if (row.ends_sentence) {
                buf_puts(&all, "| ");
            } else {
                buf_printf(&all, "%.*s/%.*s ", (int)row.word.n, row.word.text, (int)row.label.n,
                           row.label.text);
            }
        }
        EXPECT(strcmp(buf_text(&all), cases[i].wanted) == 0, "case %zu: '%s', not '%s'", i, buf_text(&all),
               cases[i].wanted);
        buf_fini(&all);
        conll_file_close(&f);
    }
}

static void test_refused(void)
{
    static const struct {
        const char *text, *message;
        struct conll_columns columns;
    } bad[] = {
        {"EU NNP B-ORG\nrejects O\n", "line 2 has 2 columns, but line 1 has 3", {0}},
        {"\nEU\tB-ORG\nrejects\n", "line 3 has 1 column, but line 2 has 2", {0}},
        {"EU\tO\nrejects O\n", "line 2 has 1 column,", {0}},
        {"the man went home.\n", "line 1 is a sentence", {0}},
        {"the man went home\n", "line 1 is a sentence", {0}},
        {"The man went home .\n\nThe dog ran away !\n", "line 1 is a sentence", {0}},
        {"the man went\n\nthe dog ran\n", "line 1 is a sentence", {0}},
        {"He was born 1809\n\nShe was old 1900\n", "line 1 is a sentence", {0}}, /* two small words */
        {"caf\xe9 O\n", "line 1 is not UTF-8: byte 4 of the line is 0xe9", {0}},
        {"EU O\ncaf\xe9 O\n", "line 2 is not UTF-8: byte 4 of the line is 0xe9", {0}},
        {"EU,O\nrejects,O\n", "line 1 has commas between its columns", {0}},
        {"EU;O\n\nrejects;O\n", "line 1 has commas between its columns", {0}},
        {"EU O\n", "--label_column 1 is the column of the words", {.label = "1"}},
        {"EU O\n",
         "has no column 3; it has 2 columns: give --label_column a number from 1 to 2",
         {.label = "3"}},
        {"EU O\n", "has no column ner", {.label = "ner"}},
        {"EU O\n", "has no column 0", {.text = "0"}},
        {"EU O\n", "which this machine does not know", {.encoding = "klingon"}},
    };
    struct conll_file f;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct status s = conll_file_open(&f, write_file(bad[i].text, strlen(bad[i].text)), &bad[i].columns);
        EXPECT(failed(s) && strstr(s.message, bad[i].message) != NULL, "case %zu: %s", i, s.message);
    }
}

/* The same rows in other encodings. */
static void test_encodings(void)
{
    static const struct {
        const char *name, *text;
        size_t n;
    } same[] = {
        {"latin-1", "caf\xe9 O\n", 7},
        {"cp1252", "caf\xe9 O\n", 7},
        {"utf-16",
         "\xff\xfe"
         "c\0a\0f\0\xe9\0 \0O\0\n\0",
         16},
        {"utf-16",
         "\xfe\xff"
         "\0c\0a\0f\0\xe9\0 \0O\0\n",
         16},
        {"UTF-16LE",
         "\xff\xfe"
         "c\0a\0f\0\xe9\0 \0O\0\n\0",
         16},
        {"utf-8-sig",
         "\xEF\xBB\xBF"
         "caf\xc3\xa9 O\n",
         11},
    };
    struct conll_row row;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        struct conll_file f;
        EXPECT_OK(conll_file_open(&f, write_file(same[i].text, same[i].n),
                                  &(struct conll_columns){.encoding = same[i].name}));
        EXPECT(conll_file_next(&f, &row) && row.word.n == 5 && memcmp(row.word.text, "caf\xc3\xa9", 5) == 0,
               "%s: %.*s", same[i].name, (int)row.word.n, row.word.text);
        conll_file_close(&f);
    }
    struct conll_file f;
    EXPECT_ERROR(conll_file_open(&f, write_file(same[2].text, same[2].n), &(struct conll_columns){0}),
                 STATUS_DATA, "UTF-16");
    EXPECT_ERROR(
        conll_file_open(&f, write_file("a O\n\x81 O\n", 8), &(struct conll_columns){.encoding = "cp1252"}),
        STATUS_DATA, "line 2 is not cp1252: byte 5 of the file is 0x81");
    EXPECT_ERROR(conll_file_open(&f,
                                 write_file("\xff\xfe"
                                            "c",
                                            3),
                                 &(struct conll_columns){.encoding = "utf-16"}),
                 STATUS_DATA, "line 1 is not utf-16: byte 3 of the file");
    EXPECT_ERROR(conll_file_open(&f, write_file("a O\0b\n", 6), &(struct conll_columns){0}), STATUS_DATA,
                 "NUL");
}

int main(void)
{
    snprintf(directory, sizeof directory, "/tmp/kiln_conll_XXXXXX");
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    test_rows();
    test_refused();
    test_encodings();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
