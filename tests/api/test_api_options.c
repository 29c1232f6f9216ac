/* Structs of options of other ages: an older program's, which are shorter, are read with the defaults for the
 * rest; sizes of 0, or larger than the library knows, are errors. */
#define _GNU_SOURCE
#include "expect_kiln.h"
#include "session_case.h"

#include <kiln/engine.h>

#include <stddef.h>

static char directory[64];

/* The defaults, for a program whose struct has `size` bytes, are those bytes and no others. */
#define TEST_INIT(X)                                                                                         \
    do {                                                                                                     \
        const size_t whole = sizeof(struct kiln_##X##_options);                                              \
        struct kiln_##X##_options now = kiln_##X##_defaults();                                               \
        char room[sizeof now + 64], all[sizeof now];                                                         \
        EXPECT(now.size == whole, #X ": %zu bytes", now.size);                                               \
        kiln_##X##_options_init((void *)all, whole);                                                         \
        for (size_t size = sizeof size; size <= whole + 32; size += 8) {                                     \
            memset(room, 7, sizeof room);                                                                    \
            kiln_##X##_options_init((void *)room, size);                                                     \
            EXPECT(memcmp(room, &size, sizeof size) == 0 && room[size] == 7, #X ": %zu bytes written",       \
                   size);                                                                                    \
            size_t same = size < whole ? size : whole;                                                       \
            EXPECT(memcmp(room + sizeof size, all + sizeof size, same - sizeof size) == 0,                   \
                   #X ": other defaults in %zu bytes", size);                                                \
            EXPECT(size <= whole || room[size - 1] == 0, #X ": what is not known is 0");                     \
        }                                                                                                    \
        kiln_##X##_options_init(NULL, whole);                                                                \
        room[0] = 7;                                                                                         \
        kiln_##X##_options_init((void *)room, 3);                                                            \
        EXPECT(room[0] == 7, #X ": no size has room");                                                       \
    } while (0)

/* `call` with options `o` of wrong sizes. */
#define TEST_SIZES(o, call)                                                                                  \
    do {                                                                                                     \
        (o).size = 0;                                                                                        \
        EXPECT_KILN_ERROR(call, KILN_USAGE, "size of the options is 0");                                     \
        (o).size = 5;                                                                                        \
        EXPECT_KILN_ERROR(call, KILN_USAGE, "size of the options is 5");                                     \
        (o).size = sizeof(o) + 8;                                                                            \
        EXPECT_KILN_ERROR(call, KILN_USAGE, "built with a newer header");                                    \
    } while (0)

static struct kiln_session *open_session(const char *name, enum kiln_task task)
{
    char path[128];
    struct kiln_model *m;
    struct kiln_session *s;
    struct kiln_model_options o = kiln_model_defaults();
    snprintf(path, sizeof path, "%s/%s", directory, name);
    TEST_SIZES(o, kiln_model_open_on(&m, path, &o));
    o.size = offsetof(struct kiln_model_options, dtype); /* of a program that knows no dtype */
    o.dtype = "nonsense";
    EXPECT_KILN_OK(kiln_model_open_on(&m, path, &o));
    EXPECT_KILN_OK(kiln_session_open(&s, m, task));
    kiln_model_close(m);
    return s;
}

static void test_ask(void)
{
    struct kiln_session *s = open_session("question_answering", KILN_ASK);
    struct kiln_answers a;
    struct kiln_ask_options o = kiln_ask_defaults();
    TEST_SIZES(o, kiln_ask(s, &a, "a dog?", "a mad dog", 9, &o));
    o.size = offsetof(struct kiln_ask_options, max_query_length);
    o.max_query_length = -1;
    EXPECT_KILN_OK(kiln_ask(s, &a, "a dog?", "a mad dog", 9, &o));
    kiln_answers_free(&a);
    kiln_session_close(s);
}

static void test_embed(void)
{
    struct kiln_session *s = open_session("encoder", KILN_EMBED);
    struct kiln_vectors v;
    struct kiln_text text = {"a dog", 5};
    struct kiln_embed_options o = kiln_embed_defaults();
    TEST_SIZES(o, kiln_embed(s, &v, &text, 1, &o));
    kiln_session_close(s);
}

static void test_generate(void)
{
    struct kiln_session *s = open_session("gpt2", KILN_GENERATE);
    struct kiln_continuations c;
    struct kiln_text text = {"and", 3};
    struct kiln_generate_options o = kiln_generate_defaults();
    struct kiln_score_options score = kiln_score_defaults();
    struct kiln_scores scores;
    TEST_SIZES(o, kiln_generate(s, &c, &text, 1, &o));
    TEST_SIZES(score, kiln_score(s, &scores, &text, 1, &score));
    o.size = offsetof(struct kiln_generate_options, temperature);
    o.max_new_tokens = 3;
    o.temperature = -1;
    EXPECT_KILN_OK(kiln_generate(s, &c, &text, 1, &o));
    EXPECT(c.texts[0].n_ids <= 3, "%zu tokens", c.texts[0].n_ids);
    kiln_continuations_free(&c);
    kiln_session_close(s);
}

static void test_engine(void)
{
    struct kiln_engine *e;
    struct kiln_parameter p = {.name = "w", .n_dims = 1, .dims = {1}};
    struct kiln_engine_options o = kiln_engine_defaults();
    TEST_SIZES(o, kiln_engine_open(&e, "none.json", &p, 1, &o));
}

int main(void)
{
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
    session_case_unpack_golden(directory, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors");
    TEST_INIT(model);
    TEST_INIT(ask);
    TEST_INIT(embed);
    TEST_INIT(generate);
    TEST_INIT(generator);
    TEST_INIT(score);
    TEST_INIT(engine);
    test_ask();
    test_embed();
    test_generate();
    test_engine();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
