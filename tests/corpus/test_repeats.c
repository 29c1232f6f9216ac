/* Repeated lines are counted: exactly in a small text, and in one that does not fit the table those that
 * recur. */
#include "corpus/repeats.h"

#include "test.h"

static void add(struct repeats *r, const char *line)
{
    repeats_add(r, repeats_hash(line, strlen(line)), line, strlen(line));
}

static void small_texts_are_counted_exactly(void)
{
    struct repeats r;
    EXPECT_OK(repeats_init(&r));
    add(&r, "one");
    add(&r, "two");
    EXPECT(r.n_repeated == 0 && r.most == 0, "%lld bytes repeated", (long long)r.n_repeated);
    add(&r, "one");
    add(&r, "two");
    add(&r, "two");
    EXPECT(r.n_bytes == 15 && r.n_repeated == 9, "%lld of %lld bytes", (long long)r.n_repeated,
           (long long)r.n_bytes);
    EXPECT(r.most_count == 3 && strcmp(r.example, "two") == 0, "'%s' %u times", r.example,
           (unsigned)r.most_count);
    repeats_fini(&r);
}

static void examples_are_cut_between_characters(void)
{
    struct repeats r;
    char line[200] = "";
    EXPECT_OK(repeats_init(&r));
    memset(line, 'a', REPEATS_EXAMPLE_BYTES - 1);
    strcat(line, "\xc3\xa9 and more");
    add(&r, line);
    add(&r, line);
    EXPECT(strlen(r.example) == REPEATS_EXAMPLE_BYTES - 1, "%zu bytes", strlen(r.example));
    repeats_fini(&r);
}

/* Two million lines, every tenth of them the same. */
static void a_full_table_keeps_what_recurs(void)
{
    enum { LINES = 2000000, EVERY = 10 };
    struct repeats r;
    EXPECT_OK(repeats_init(&r));
    for (int i = 0; i < LINES; i++) {
        char line[32];
        snprintf(line, sizeof line, i % EVERY == 0 ? "again" : "line %d", i);
        add(&r, line);
    }
    EXPECT(r.n_repeated == (LINES / EVERY - 1) * strlen("again"), "%lld bytes repeated",
           (long long)r.n_repeated);
    EXPECT(strcmp(r.example, "again") == 0 && r.n_used < REPEATS_SLOTS, "'%s', %lld slots", r.example,
           (long long)r.n_used);
    repeats_fini(&r);
}

int main(void)
{
    small_texts_are_counted_exactly();
    examples_are_cut_between_characters();
    a_full_table_keeps_what_recurs();
    return 0;
}
