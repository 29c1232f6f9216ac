/* Tests of corpus/sentence_learning: what is learned is that of the beginning of the corpus, on any number of
 * threads and from any place, and the pass behind it finds the corpus as it was. */
#include "fixture_store.h"

#include "core/parallel.h"
#include "core/stop.h"
#include "corpus/corpus_pass.h"
#include "corpus/sentence_learning.h"

#include <omp.h>
#include <signal.h>
#include <sys/stat.h>

enum { DOCUMENT_LINES = 400 };

/* Documents, n_bytes of them, in which the word, with a full stop, is an abbreviation. */
static void write_text(const char *name, const char *word, size_t n_bytes, const char *end)
{
    struct buf text = {0};
    for (int i = 0; text.n < n_bytes; i++) {
        buf_printf(&text,
                   "In %d they met the %s. people of the town, and %s. Smith said that there he was. He was "
                   "there.\n",
                   1800 + i % 90, word, word);
        buf_puts(&text, i % DOCUMENT_LINES == 0 ? "\n" : "");
    }
    buf_puts(&text, end);
    fixture_write(name, text.data, text.n);
    buf_fini(&text);
}

static void open_corpus(struct corpus *c, const char *name)
{
    const char *input = fixture_path(name);
    EXPECT_OK(corpus_open(c, &input, 1, (struct source_options){0}));
}

static bool knows(const struct punkt *p, const char *word)
{
    return (word_counts_find(&p->words, word, strlen(word)) & PUNKT_ABBREVIATION) != 0;
}

static void the_place_and_the_threads_do_not_matter(void)
{
    struct punkt wanted = {0};
    write_text("text", "vx", 3 << 20, "");
    for (int n_threads = 1; n_threads < 4; n_threads++) {
        struct punkt found = {0};
        struct corpus c;
        struct document d = {0};
        bool end = false;
        omp_set_num_threads(n_threads);
        open_corpus(&c, "text");
        for (int i = 1; i < 4 * n_threads; i++) {
            EXPECT_OK(corpus_next(&c, &d, &end));
        }
        struct corpus_place place = corpus_place(&c);
        int64_t n_documents = c.counts.n_documents, n_files = c.counts.n_files;
        EXPECT_OK(
            sentence_learning_run(&c, n_threads == 1 ? &wanted : &found, SENTENCE_LEARNING_INPUT_BYTES));
        EXPECT(c.counts.n_documents == n_documents && c.counts.n_files == n_files, "counts");
        EXPECT(corpus_place(&c).file == place.file &&
                   corpus_place(&c).in_file.text.offset == place.in_file.text.offset,
               "place");
        struct punkt *p = n_threads == 1 ? &wanted : &found;
        EXPECT(p->has_learned && knows(p, "vx") && !knows(p, "there"), "vx. was not learned");
        EXPECT(p->words.n == wanted.words.n && p->words.text_bytes == wanted.words.text_bytes &&
                   memcmp(p->words.text, wanted.words.text, wanted.words.text_bytes) == 0,
               "%d threads learn something else", n_threads);
        punkt_fini(&found);
        document_fini(&d);
        corpus_close(&c);
    }
    punkt_fini(&wanted);
}

static void only_the_beginning_is_read(void)
{
    struct punkt p = {0};
    struct corpus c;
    EXPECT(mkdir(fixture_path("long"), 0777) == 0, "mkdir");
    write_text("long/1", "vx", SENTENCE_LEARNING_BYTES + (1 << 20), "");
    write_text("long/2", "wz", 1 << 20, "\n\xFF is no UTF-8\n");
    open_corpus(&c, "long");
    EXPECT_OK(sentence_learning_run(&c, &p, SENTENCE_LEARNING_INPUT_BYTES));
    EXPECT(knows(&p, "vx") && !knows(&p, "wz"), "what was learned is not that of the beginning");
    EXPECT(corpus_done_bytes(&c) == 0, "it does not begin again");
    punkt_fini(&p);
    corpus_close(&c);
    open_corpus(&c, "long/2");
    EXPECT_ERROR(sentence_learning_run(&c, &p, SENTENCE_LEARNING_INPUT_BYTES), STATUS_DATA, "UTF-8");
    EXPECT(!p.has_learned, "learned in spite of an error");
    corpus_close(&c);
}

static void little_text_teaches_nothing(void)
{
    struct punkt p = {0};
    struct corpus c;
    write_text("short", "vx", SENTENCE_LEARNING_LEAST_BYTES / 2, "");
    open_corpus(&c, "short");
    EXPECT_OK(sentence_learning_run(&c, &p, SENTENCE_LEARNING_INPUT_BYTES));
    EXPECT(!p.has_learned && p.words.n == 0, "learned");
    corpus_close(&c);
}

/* A file of lines of JSON, n_bytes of them: with the text that is learned from, or without any. */
static void write_json(const char *name, const char *field, size_t n_bytes)
{
    struct buf text = {0};
    while (text.n < n_bytes) {
        buf_printf(&text, "{\"%s\": \"They met the vx. people, and vx. Smith said that he was. He left.\"}\n",
                   field);
    }
    fixture_write(name, text.data, text.n);
    buf_fini(&text);
}

/* Raw documents, which a pass converts and counts, are not counted twice. */
static void raw_documents_are_counted_once(void)
{
    struct punkt p = {0};
    struct corpus c;
    write_json("lines.jsonl", "text", 2 * SENTENCE_LEARNING_LEAST_BYTES);
    open_corpus(&c, "lines.jsonl");
    EXPECT_OK(sentence_learning_run(&c, &p, SENTENCE_LEARNING_INPUT_BYTES));
    EXPECT(knows(&p, "vx") && corpus_n_documents(&c) == 0, "%lld documents",
           (long long)corpus_n_documents(&c));
    punkt_fini(&p);
    corpus_close(&c);
}

/* Reading ends at the limit, which counts files that were read and closed, on any number of threads. */
static void what_becomes_no_text_is_not_read_forever(void)
{
    enum { FILE_BYTES = 1 << 20 };
    EXPECT(mkdir(fixture_path("dropped"), 0777) == 0, "mkdir");
    write_json("dropped/1.jsonl", "other", FILE_BYTES);
    write_json("dropped/2.jsonl", "other", FILE_BYTES);
    write_json("dropped/3.jsonl", "text", FILE_BYTES);
    for (int n_threads = 1; n_threads < 4; n_threads++) {
        static const uint64_t limits[] = {2 * FILE_BYTES, 3 * FILE_BYTES, SENTENCE_LEARNING_INPUT_BYTES};
        omp_set_num_threads(n_threads);
        for (int i = 0; i < 3; i++) {
            struct punkt p = {0};
            struct corpus c;
            open_corpus(&c, "dropped");
            EXPECT_OK(sentence_learning_run(&c, &p, limits[i]));
            EXPECT(p.has_learned == (i > 0), "limit %d, learned: %d", i, p.has_learned);
            EXPECT(corpus_done_bytes(&c) == 0 && c.fates[DOCUMENT_WITHOUT_FIELD] == 0,
                   "it does not begin again");
            struct document d = {0};
            bool end = false;
            int64_t n_documents = 0;
            while (!end) {
                EXPECT_OK(corpus_next(&c, &d, &end));
                n_documents += !end;
            }
            EXPECT(n_documents > 3 * FILE_BYTES / 100, "the pass behind it has the limit: %lld",
                   (long long)n_documents);
            document_fini(&d);
            punkt_fini(&p);
            corpus_close(&c);
        }
    }
}

/* The last test, since a signal is not forgotten. */
static void a_signal_ends_it(void)
{
    struct punkt p = {0};
    struct corpus c;
    write_text("text", "vx", 3 << 20, "");
    open_corpus(&c, "text");
    stop_install();
    EXPECT(raise(SIGTERM) == 0, "raise");
    EXPECT_ERROR(sentence_learning_run(&c, &p, SENTENCE_LEARNING_INPUT_BYTES), STATUS_PREEMPTED, "signal");
    EXPECT(!p.has_learned, "learned in spite of a signal");
    corpus_close(&c);
}

int main(void)
{
    the_place_and_the_threads_do_not_matter();
    only_the_beginning_is_read();
    little_text_teaches_nothing();
    raw_documents_are_counted_once();
    what_becomes_no_text_is_not_read_forever();
    a_signal_ends_it();
    fixture_remove();
    return 0;
}
