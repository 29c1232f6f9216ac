/* Tests of corpus/cleaning and corpus/document_facts: what is left out, and that saving and continuing at any
 * document changes no decision. */
#include "fixture_store.h"

#include "corpus/cleaning.h"
#include "text/script.h"

enum { N_DOCUMENTS = 20000, N_DIFFERENT = 7000 }; /* more than the first table holds */

static const struct cleaning_place BEGINNING;

static void make(struct document *d, const char *text)
{
    document_clear(d);
    d->begins = true;
    buf_puts(&d->text, text);
    EXPECT_OK(document_end_paragraph(d));
}

static struct document_facts facts_of(struct document *d, const char *text,
                                      const struct cleaning_config *config)
{
    struct document_facts facts;
    struct document_facts_config wanted = cleaning_facts(config);
    make(d, text);
    EXPECT_OK(cleaning_make_facts(&facts, &wanted, d));
    return facts;
}

static void facts_are_of_the_text(void)
{
    struct document d = {0};
    struct cleaning_config config = {.drop_duplicates = true,
                                     .min_document_chars = 1,
                                     .scripts = UINT64_C(1) << script_find("cyrillic", 8)};
    struct document_facts f =
        facts_of(&d, "\xd0\x94\xd0\xb0, ab 1!", &config); /* two letters, then two others */
    EXPECT(f.n_chars == 9 && f.n_letters == 4 && f.n_wanted == 2,
           "%lld characters, %lld letters, %lld of them Cyrillic", (long long)f.n_chars,
           (long long)f.n_letters, (long long)f.n_wanted);
    /* md5sum of "ab\n" is daa8075d6ac5ff8d0c6d4650adb4ef29 */
    f = facts_of(&d, "ab", &config);
    EXPECT(f.hash[0] == 0xda && f.hash[1] == 0xa8 && f.hash[15] == 0x29, "%02x %02x", f.hash[0], f.hash[1]);
    config = (struct cleaning_config){0};
    f = facts_of(&d, "ab", &config);
    EXPECT(f.n_chars == 0 && f.hash[0] == 0, "something was counted that nobody asked for");
    EXPECT(!cleaning_is_on(&config), "cleaning is on");
    document_fini(&d);
}

/* A document stays if at least half of its letters are of the wanted scripts; one without letters goes. */
static void half_of_the_letters_is_enough(void)
{
    struct document d = {0};
    struct cleaning c;
    struct cleaning_config config = {.scripts = UINT64_C(1) << script_find("cyrillic", 8)};
    enum document_fate fate;
    static const struct {
        const char *text;
        bool kept;
    } cases[] = {{"\xd0\x94\xd0\xb0", true},
                 {"\xd0\x94\xd0\xb0 ab", true},
                 {"\xd0\x94\xd0\xb0 abc", false},
                 {"\xd0\x94\xd0\xb0 a", true},
                 {"\xd0\x94 ab", false},
                 {"abcd", false},
                 {"1 2 3", false},
                 {"\xd0\x94 1, 2, 3!", true}};
    EXPECT_OK(cleaning_open(&c, config, NULL, &BEGINNING, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct document_facts facts = facts_of(&d, cases[i].text, &config);
        EXPECT_OK(cleaning_judge(&c, &fate, &facts, true));
        EXPECT((fate == DOCUMENT_KEPT) == cases[i].kept, "'%s' is %s", cases[i].text,
               cases[i].kept ? "dropped" : "kept");
    }
    cleaning_close(&c);
    document_fini(&d);
}

static void pieces_follow_the_first(void)
{
    struct document d = {0};
    struct cleaning c;
    struct cleaning_config config = {.drop_duplicates = true};
    enum document_fate fate;
    struct document_facts one = facts_of(&d, "one", &config), two = facts_of(&d, "two", &config);
    EXPECT_OK(cleaning_open(&c, config, NULL, &BEGINNING, NULL));
    const struct {
        const struct document_facts *facts;
        bool begins, kept;
    } pieces[] = {
        {&one, true, true},   {&two, false, true}, {&one, true, false},
        {&two, false, false}, {&two, true, true},  {&one, false, true},
    };
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        EXPECT_OK(cleaning_judge(&c, &fate, pieces[i].facts, pieces[i].begins));
        EXPECT((fate == DOCUMENT_KEPT) == pieces[i].kept, "piece %zu", i);
    }
    EXPECT(c.counts.documents[DOCUMENT_DUPLICATE] == 1, "%lld documents",
           (long long)c.counts.documents[DOCUMENT_DUPLICATE]);
    cleaning_close(&c);
    document_fini(&d);
}

/* The text of 300 words, of which each `every`-th is another; 0: none. */
static void write_words(char *text, size_t n_text, int first, int every)
{
    size_t n = 0;
    for (int i = 0; i < 300; i++) {
        bool is_other = every > 0 && i % every == every - 1;
        n += (size_t)snprintf(text + n, n_text - n, "%s%d, ", is_other ? "x" : "Word", (first + i) * 7919);
    }
}

/* Of every 100th word another one, 0.95 of the sequences are the same; of every 5th, none is. */
static void near_duplicates_are_found(void)
{
    static const struct {
        int first, every;
        enum document_fate fate;
    } cases[] = {{0, 0, DOCUMENT_KEPT}, {0, 0, DOCUMENT_DUPLICATE}, {0, 100, DOCUMENT_NEAR_DUPLICATE},
                 {0, 5, DOCUMENT_KEPT}, {1000, 0, DOCUMENT_KEPT},   {1002, 0, DOCUMENT_NEAR_DUPLICATE}};
    static char text[1 << 14];
    struct document d = {0};
    struct cleaning c;
    struct cleaning_config config = {.drop_duplicates = true, .drop_near_duplicates = true};
    enum document_fate fate;
    EXPECT_OK(cleaning_open(&c, config, NULL, &BEGINNING, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_words(text, sizeof text, cases[i].first, cases[i].every);
        struct document_facts facts = facts_of(&d, text, &config);
        EXPECT_OK(cleaning_judge(&c, &fate, &facts, true));
        EXPECT(fate == cases[i].fate, "document %zu is %s", i, document_fate_names[fate]);
    }
    struct document_facts one = facts_of(&d, "Chinese: \xe4\xb8\xad\xe6\x96\x87 a b c", &config);
    struct document_facts two = facts_of(&d,
                                         "chinese\xe4\xb8\xad \xe6\x96\x87, a\xe2\x80\x94"
                                         "b; C!",
                                         &config);
    EXPECT(memcmp(one.near, two.near, sizeof one.near) == 0, "case or punctuation counts");
    cleaning_close(&c);
    document_fini(&d);
}

/* Decides on N_DOCUMENTS; saves and goes on from there every `every` documents (0: never). */
static void decide(unsigned char kept[N_DOCUMENTS], int every, const char *directory)
{
    struct cleaning c;
    struct cleaning_config config = {
        .drop_duplicates = true, .drop_near_duplicates = true, .drop_repeated_lines = 2};
    struct cleaning_place place = BEGINNING;
    struct document d = {0};
    struct buf saved = {0};
    EXPECT_OK(cleaning_open(&c, config, directory, &place, NULL));
    for (int i = 0; i < N_DOCUMENTS; i++) {
        char text[32], line[32];
        enum document_fate fate;
        snprintf(text, sizeof text, "text %d", (int)((int64_t)i * 7919 % N_DIFFERENT));
        snprintf(line, sizeof line, "line %d", i % 5000);
        struct document_facts facts = facts_of(&d, text, &config);
        EXPECT_OK(cleaning_judge(&c, &fate, &facts, true));
        bool keeps_line = cleaning_keeps_line(&c, repeats_hash(line, strlen(line)), line, strlen(line));
        kept[i] = (unsigned char)((fate == DOCUMENT_KEPT) + 2 * keeps_line);
        if (every > 0 && i % every == 0) {
            buf_clear(&saved);
            EXPECT_OK(cleaning_save(&c, &place, &saved));
            cleaning_judge(&c, &fate, &facts, true); /* what is decided behind the state is forgotten */
            cleaning_close(&c);
            struct span in = bytes_span(saved.data, saved.n);
            EXPECT_OK(cleaning_open(&c, config, directory, &place, &in));
            EXPECT(bytes_left(&in) == 0, "%zu bytes are left", bytes_left(&in));
        }
    }
    EXPECT(c.counts.documents[DOCUMENT_DUPLICATE] == N_DOCUMENTS - N_DIFFERENT, "%lld duplicates",
           (long long)c.counts.documents[DOCUMENT_DUPLICATE]);
    EXPECT(c.counts.n_lines == N_DOCUMENTS - 2 * 5000, "%lld lines", (long long)c.counts.n_lines);
    cleaning_close(&c);
    buf_fini(&saved);
    document_fini(&d);
}

static void interruptions_change_nothing(const char *directory)
{
    static unsigned char whole[N_DOCUMENTS], parts[N_DOCUMENTS];
    decide(whole, 0, NULL);
    decide(parts, 1711, directory);
    EXPECT(memcmp(whole, parts, sizeof whole) == 0, "other decisions");
}

static void damaged_states_are_refused(const char *directory)
{
    struct cleaning c;
    struct buf saved = {0};
    struct cleaning_place place;
    EXPECT_OK(cleaning_open(&c, (struct cleaning_config){0}, NULL, &BEGINNING, NULL));
    cleaning_keeps_line(&c, 7, "a", 1);
    EXPECT_OK(cleaning_save(&c, &place, &saved));
    cleaning_close(&c);
    for (size_t n = 0; n < saved.n; n += 13) {
        struct span in = bytes_span(saved.data, n);
        EXPECT_ERROR(cleaning_open(&c, (struct cleaning_config){0}, NULL, &place, &in), STATUS_DATA,
                     "damaged");
    }
    place.documents.n_bytes = 1 << 30;
    struct span in = bytes_span(saved.data, saved.n);
    EXPECT_ERROR(cleaning_open(&c, (struct cleaning_config){.drop_duplicates = true}, directory, &place, &in),
                 STATUS_DATA, "has changed since an earlier run wrote its first");
    buf_fini(&saved);
}

int main(void)
{
    char directory[512];
    snprintf(directory, sizeof directory, "%s", fixture_path("."));
    facts_are_of_the_text();
    half_of_the_letters_is_enough();
    pieces_follow_the_first();
    near_duplicates_are_found();
    interruptions_change_nothing(directory);
    damaged_states_are_refused(directory);
    fixture_remove();
    return 0;
}
