/* Tests of the sentence splitter: cases by hand, and what holds for any bytes. */
#include "test.h"

#include "core/buf.h"
#include "text/sentence.h"

#include <time.h>

/* `wanted` is the text with a bar wherever it is to be cut. */
static void expect_sentences(const char *wanted)
{
    struct buf text = {0}, found = {0};
    for (const char *p = wanted; *p != '\0'; p++) {
        if (*p != '|') {
            buf_putc(&text, *p);
        }
    }
    size_t at = 0, behind = 0;
    struct sentence s;
    while (sentence_next(&s, &at, NULL, buf_text(&text), text.n)) {
        buf_append(&found, text.data + behind, s.start - behind);
        buf_puts(&found, found.n > 0 ? "|" : "");
        buf_append(&found, text.data + s.start, s.end - s.start);
        behind = s.end;
    }
    EXPECT(strcmp(buf_text(&found), wanted) == 0, "'%s', not '%s'", buf_text(&found), wanted);
    buf_fini(&text);
    buf_fini(&found);
}

static void sentences_end_where_readers_end_them(void)
{
    static const char *const cases[] = {
        "One. |Two! |Three? |Four",
        "Mr. J. R. R. Smith of the U.S. Army met Dr. Who. |He left.",
        "He lived in the U.S. |He left at 5 p.m. |The end.",
        "It cost 3.14 dollars, i.e. nothing. |No. 5 is alive. |No. |It is not.",
        "See fig. 3, pp. 4 and Smith et al. 2016. |Good.",
        "\"Why?\" |he asked. |\"Go!\" |(She went.) |Then ... nothing... and so on... |The end",
        "He said \"No.\" |'Yes.' |\xE2\x80\x9CMaybe.\xE2\x80\x9D |\xC2\xBFQu\xC3\xA9? |\xC2\xA1No!",
        "It was built c. 1820 by Roe (d. 1830). |Roe v. Wade it is.",
        "1. The first. |2. The second.",
        "So it is.|[1] It was.\"|:23 (So.) |a.:b (so).|[citation needed] Mr.[2] Who?|[3]",
        "www.example.com/a.b?c=d. |Next line.",
        "Wait?! |What?!? |End.",
        /* Hindi; Arabic and Urdu; Amharic, Armenian, Khmer and Burmese; Korean */
        "\xE0\xA4\x95\xE0\xA5\xA4 |\xE0\xA4\x96\xE0\xA5\xA5 |\xE0\xA4\x97",
        "\xD8\xA7\xD8\x9F |\xD8\xA8\xDB\x94 |\xD8\xA8",
        "\xE1\x88\x80\xE1\x8D\xA2 |\xD4\xB1\xD6\x89 |\xE1\x9E\x80\xE1\x9F\x94 |\xE1\x80\x80\xE1\x81\x8B |A",
        "\xED\x95\x9C\xEA\xB8\x80\xEC\x9D\xB4\xEB\x8B\xA4. |\xEB\x81\x9D",
        /* an ellipsis, and two marks in one character */
        "A\xE2\x80\xA6 |B\xE2\x80\xBC |C\xE2\x81\x87 |D\xE2\x81\x88 |E\xE2\x81\x89 |F",
        /* full and half width */
        "\xE4\xB8\x80\xEF\xBC\x9F|\xE4\xB8\x80\xEF\xBC\x8E|\xE4\xB8\x80\xEF\xBD\xA1|\xE4\xB8\x80",
        /* Thai has no full stops, so a paragraph is one sentence */
        "\xE0\xB8\x81\xE0\xB8\x82 \xE0\xB8\x83",
        "U.S. A. B.",
        "...",
        "a",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_sentences(cases[i]);
    }
    size_t at = 0;
    struct sentence s;
    EXPECT(!sentence_next(&s, &at, NULL, " \t\n\xE3\x80\x80 ", 7), "white space is no sentence");
    EXPECT(!sentence_next(&s, &at, NULL, "", at = 0), "nothing is no sentence");
}

/* Bytes are skipped in words of 8: each mark is found at each place of one, and none of the bytes that differ
 * from it in a bit is. */
static void marks_are_found_at_every_place(void)
{
    static const char *const marks[] = {".", "!", "?", "\xE3\x80\x82"};
    static const char others[] = "/,*&>=;#\x01\x7F";
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        for (int before = 1; before < 20; before++) {
            char text[80];
            snprintf(text, sizeof text, "%.*s%s |ab", before, "abcdefghijklmnopqrst", marks[i]);
            expect_sentences(text);
            memset(text, others[before % (sizeof others - 1)], (size_t)before);
            expect_sentences(text);
        }
    }
}

/* The rules of text/sentence.h for marks that English does not have. */
static void marks_of_other_scripts_end_sentences(void)
{
    static const char *const cases[] = {
        "今日。|明日！|はい。」|と",
        "他说：“好。”|我走了？！|是的。』|他（说。）|走",
        "３．|ｅｎｄ｡|次",
        "그는 갔다. |나는 남았다. |정말? |네! |끝",
        "Он. |Да. |да.",
        "لماذا؟ |ذهب. |عاد؟لا ۔ |نعم",
        "वह गया। |वह आया॥|अब। |हाँ",
        "Նա գնաց։ |Նա եկավ։",
        "ሄደ። |መጣ።አሁን፧ |አዎ",
        "គាត់ទៅ។|គាត់មក៕ |ទេ",
        "သူသွား။|သူလာ။ |ဟုတ်",
        "พ.ศ. ๒๕๐๐ ก.พ. มา", /* abbreviations of single letters */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_sentences(cases[i]);
    }
}

/* 12 letters and a blank, repeated: the sentence ends at the first blank behind 60 letters of Thai. */
static void thai_sentences_end_at_blanks(void)
{
    expect_sentences("ประเทศไทยมีค ประเทศไทยมีค ประเทศไทยมีค ประเทศไทยมีค ประเทศไทยมีค |ประเทศไทยมีค ประเทศไทยมีค");
    expect_sentences("ประเทศไทยมีค ประเทศไทยมีค ประเทศไทยมีค ประเทศไทยมีค ประเทศไทยมี ประเทศไทยมีค |ประเทศไทยมีค");
    expect_sentences("ประเทศไทยมีคประเทศไทยมีคประเทศไทยมีคประเทศไทยมีคประเทศไทยมีคประเทศไทยมีค (2500) abc");
}

/* Any bytes: sentences come in order, are not empty, and only white space lies between them. */
static void nothing_is_lost_from_any_bytes(void)
{
    static const char alphabet[] = "ab.A!? \n\"')(1\xE3\x80\x82\xC2\xA0\xFF\0Mr";
    uint32_t state = 7;
    for (int round = 0; round < 20000; round++) {
        char text[40];
        size_t n = 0;
        for (; n < sizeof text; n++) {
            state = state * 1664525U + 1013904223U;
            text[n] = alphabet[(state >> 16) % (sizeof alphabet - 1)];
        }
        size_t at = 0, behind = 0;
        struct sentence s;
        while (sentence_next(&s, &at, NULL, text, n)) {
            EXPECT(s.start >= behind && s.end > s.start && s.end <= n && at >= s.end, "round %d", round);
            for (size_t i = behind; i < s.start; i++) {
                EXPECT(strchr(" \n\xC2\xA0\xE3\x80\x82", text[i]) != NULL && text[i] != '\0',
                       "round %d: a byte is lost", round);
            }
            behind = s.end;
        }
        EXPECT(at == n, "round %d ends at %zu", round, at);
    }
}

static void time_is_linear(void)
{
    enum { N = 4 << 20 };
    static const char *const patterns[] = {". ", ".", " ", "(", ". (", "a.b", "\". ", "x"};
    char *text = malloc(N);
    EXPECT(text != NULL, "memory");
    for (size_t k = 0; k < sizeof patterns / sizeof patterns[0]; k++) {
        size_t n_pattern = strlen(patterns[k]);
        for (size_t i = 0; i < N; i++) {
            text[i] = patterns[k][i % n_pattern];
        }
        clock_t start = clock(); /* of this process alone */
        size_t at = 0;
        struct sentence s;
        while (sentence_next(&s, &at, NULL, text, N)) {
        }
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        EXPECT(seconds < 10, "pattern '%s' took %.1f s", patterns[k], seconds);
    }
    free(text);
}

int main(void)
{
    sentences_end_where_readers_end_them();
    marks_are_found_at_every_place();
    marks_of_other_scripts_end_sentences();
    thai_sentences_end_at_blanks();
    nothing_is_lost_from_any_bytes();
    time_is_linear();
    return 0;
}
