/* Which work is recorded and which is replayed, with a runtime that only counts: first met, second met,
 * later; recordings in segments; recordings that give way, and that do not; failures on the way. */
#include "dev/graph_cache.h"

#include "test.h"

struct fake {
    int n_begun, n_ended, n_launched, n_alive;
    bool fail_begin, fail_end;
};

static struct status fake_begin(void *self)
{
    struct fake *f = self;
    f->n_begun++;
    return f->fail_begin ? status_error(STATUS_INTERNAL, "no recording begins") : status_ok();
}

static struct status fake_end(void *self, void **graph)
{
    struct fake *f = self;
    f->n_ended++;
    *graph = NULL;
    if (f->fail_end) {
        return status_error(STATUS_INTERNAL, "the recording is broken");
    }
    f->n_alive++;
    *graph = f;
    return status_ok();
}

static struct status fake_launch(void *self, void *graph)
{
    struct fake *f = self;
    EXPECT(graph == self, "another graph");
    f->n_launched++;
    return status_ok();
}

static void fake_destroy(void *self, void *graph)
{
    struct fake *f = self;
    EXPECT(graph == self, "another graph");
    f->n_alive--;
}

static const struct graph_runtime runtime = {fake_begin, fake_end, fake_launch, fake_destroy};

static struct graph_cache cache_of(struct fake *f)
{
    *f = (struct fake){0};
    return (struct graph_cache){.runtime = &runtime, .self = f};
}

/* One turn of the work of a key. */
static enum device_work turn(struct graph_cache *c, int64_t key)
{
    enum device_work work;
    EXPECT_OK(graph_cache_begin(c, &key, sizeof key, &work));
    if (work == DEVICE_WORK_RECORD) {
        EXPECT_OK(graph_cache_end(c, false));
    }
    return work;
}

static void expect_turn(struct graph_cache *c, int64_t key, enum device_work wanted)
{
    enum device_work work = turn(c, key);
    EXPECT(work == wanted, "key %lld: %d, not %d", (long long)key, (int)work, (int)wanted);
}

static void work_is_recorded_the_second_time(void)
{
    struct fake f;
    struct graph_cache c = cache_of(&f);
    for (int64_t key = 0; key < 3; key++) {
        expect_turn(&c, key, DEVICE_WORK_RUN);
        expect_turn(&c, key, DEVICE_WORK_RECORD);
        expect_turn(&c, key, DEVICE_WORK_REPLAYED);
    }
    expect_turn(&c, 0, DEVICE_WORK_REPLAYED);
    EXPECT(c.n_recorded == 3 && c.n_replayed == 4 && f.n_launched == 7 && f.n_alive == 3,
           "%lld recorded, %lld replayed, %d launched, %d alive", (long long)c.n_recorded,
           (long long)c.n_replayed, f.n_launched, f.n_alive);
    graph_cache_clear(&c);
    EXPECT(f.n_alive == 0, "%d graphs are left", f.n_alive);
    expect_turn(&c, 0, DEVICE_WORK_RUN);
}

/* Keys of other lengths are other keys, even where one begins as the other. */
static void keys_are_compared_whole(void)
{
    struct fake f;
    struct graph_cache c = cache_of(&f);
    unsigned char key[GRAPH_CACHE_KEY_BYTES] = {1, 2, 3};
    enum device_work work;
    for (size_t n = 1; n <= sizeof key; n += 9) {
        EXPECT_OK(graph_cache_begin(&c, key, n, &work));
        EXPECT(work == DEVICE_WORK_RUN, "a key of %zu bytes was met", n);
    }
}

/* As many recordings as there may be, of keys 0 to GRAPH_CACHE_GRAPHS - 1. */
static void fill(struct graph_cache *c)
{
    for (int64_t key = 0; key < GRAPH_CACHE_GRAPHS; key++) {
        expect_turn(c, key, DEVICE_WORK_RUN);
        expect_turn(c, key, DEVICE_WORK_RECORD);
    }
}

static void recordings_give_way_to_what_is_met_more_often(void)
{
    struct fake f;
    struct graph_cache c = cache_of(&f);
    fill(&c);
    expect_turn(&c, 0, DEVICE_WORK_REPLAYED);
    expect_turn(&c, 1000, DEVICE_WORK_RUN);
    expect_turn(&c, 1000, DEVICE_WORK_RUN); /* all others were met twice too */
    EXPECT(f.n_alive == GRAPH_CACHE_GRAPHS, "%d alive", f.n_alive);
    expect_turn(&c, 1000, DEVICE_WORK_RECORD); /* in the place of key 1 */
    EXPECT(f.n_alive == GRAPH_CACHE_GRAPHS, "%d alive", f.n_alive);
    expect_turn(&c, 0, DEVICE_WORK_REPLAYED);
    expect_turn(&c, 2, DEVICE_WORK_REPLAYED);
    expect_turn(&c, 1, DEVICE_WORK_RECORD); /* the third time that it is met; in the place of key 3 */
    expect_turn(&c, 3, DEVICE_WORK_RECORD);
    graph_cache_clear(&c);
    EXPECT(f.n_alive == 0 && c.n_graphs == 0, "%d graphs are left", f.n_alive);
}

/* The share of turns that are replayed, of all keys from `first` on, one after the other. */
static double replayed(struct graph_cache *c, int64_t first, int64_t n_keys, int64_t n_turns)
{
    int64_t n = 0;
    for (int64_t i = 0; i < n_turns; i++) {
        n += turn(c, first + i % n_keys) == DEVICE_WORK_REPLAYED;
    }
    return (double)n / (double)n_turns;
}

/* Work of a few more sizes than there are recordings comes back in the worst order: each is met when all
 * others were. */
static void more_sizes_than_recordings(void)
{
    enum { N_KEYS = GRAPH_CACHE_GRAPHS + GRAPH_CACHE_GRAPHS / 8, N_TURNS = 100 * N_KEYS };
    struct fake f;
    struct graph_cache c = cache_of(&f);
    double share = replayed(&c, 0, N_KEYS, N_TURNS), most = (double)GRAPH_CACHE_GRAPHS / N_KEYS;
    EXPECT(share > 0.95 * most, "%.3f of the turns were replayed, of %.3f", share, most);
    EXPECT(c.n_recorded < N_TURNS / 50, "%lld recordings", (long long)c.n_recorded);

    /* Other work takes over, however often the first was met. */
    share = replayed(&c, 1000, GRAPH_CACHE_GRAPHS, 20 * GRAPH_CACHE_LATE);
    EXPECT(share > 0.8, "%.3f of the turns of later work were replayed", share);
    graph_cache_clear(&c);
}

/* Keys that are met once push each other out, and no recording. */
static void work_that_never_comes_back(void)
{
    struct fake f;
    struct graph_cache c = cache_of(&f);
    fill(&c);
    for (int64_t key = 0; key < 2 * GRAPH_CACHE_KEYS; key++) {
        expect_turn(&c, 1000 + key, DEVICE_WORK_RUN);
    }
    for (int64_t key = 0; key < GRAPH_CACHE_GRAPHS; key++) {
        expect_turn(&c, key, DEVICE_WORK_REPLAYED);
    }
    graph_cache_clear(&c);
}

static void failures_leave_nothing(void)
{
    struct fake f;
    struct graph_cache c = cache_of(&f);
    int64_t key = 1;
    enum device_work work;
    expect_turn(&c, key, DEVICE_WORK_RUN);
    f.fail_begin = true;
    EXPECT_ERROR(graph_cache_begin(&c, &key, sizeof key, &work), STATUS_INTERNAL, "no recording begins");
    f.fail_begin = false;
    f.fail_end = true;
    EXPECT_OK(graph_cache_begin(&c, &key, sizeof key, &work));
    EXPECT_ERROR(graph_cache_end(&c, false), STATUS_INTERNAL, "the recording is broken");
    f.fail_end = false;
    expect_turn(&c, key, DEVICE_WORK_RUN); /* forgotten */
    EXPECT_OK(graph_cache_begin(&c, &key, sizeof key, &work));
    EXPECT(work == DEVICE_WORK_RECORD, "%d", (int)work);
    EXPECT_OK(graph_cache_end(&c, true));
    EXPECT(f.n_alive == 0 && f.n_launched == 0, "%d alive, %d launched", f.n_alive, f.n_launched);
}

/* One turn of work in so many segments. */
static enum device_work segmented_turn(struct graph_cache *c, int64_t key, int n_segments)
{
    enum device_work work, next;
    EXPECT_OK(graph_cache_begin(c, &key, sizeof key, &work));
    for (int i = 1; i < n_segments && work != DEVICE_WORK_RUN; i++) {
        if (work == DEVICE_WORK_RECORD) {
            EXPECT_OK(graph_cache_cut(c, false));
        }
        EXPECT_OK(graph_cache_next(c, &next));
        EXPECT(next == work, "segment %d: %d, not %d", i, (int)next, (int)work);
    }
    if (work == DEVICE_WORK_RECORD) {
        EXPECT_OK(graph_cache_end(c, false));
    }
    return work;
}

/* Segments are recorded and replayed one by one, but count as one recording, and give way together. */
static void segments_are_one_recording(void)
{
    enum { SEGMENTS = 5 };
    struct fake f;
    struct graph_cache c = cache_of(&f);
    EXPECT(segmented_turn(&c, 1, SEGMENTS) == DEVICE_WORK_RUN, "not run");
    EXPECT(segmented_turn(&c, 1, SEGMENTS) == DEVICE_WORK_RECORD, "not recorded");
    EXPECT(f.n_begun == SEGMENTS && f.n_launched == SEGMENTS && f.n_alive == SEGMENTS && c.n_graphs == 1 &&
               c.n_recorded == 1,
           "%d begun, %d launched, %d alive, %d recordings", f.n_begun, f.n_launched, f.n_alive, c.n_graphs);
    EXPECT(segmented_turn(&c, 1, SEGMENTS) == DEVICE_WORK_REPLAYED, "not replayed");
    EXPECT(f.n_begun == SEGMENTS && f.n_launched == 2 * SEGMENTS && c.n_replayed == 1,
           "%d begun, %d launched, %lld replayed", f.n_begun, f.n_launched, (long long)c.n_replayed);
    for (int64_t key = 2; key <= GRAPH_CACHE_GRAPHS; key++) {
        expect_turn(&c, key, DEVICE_WORK_RUN);
        expect_turn(&c, key, DEVICE_WORK_RECORD);
        expect_turn(&c, key, DEVICE_WORK_REPLAYED);
        expect_turn(&c, key, DEVICE_WORK_REPLAYED);
    }
    EXPECT(f.n_alive == GRAPH_CACHE_GRAPHS - 1 + SEGMENTS, "%d alive", f.n_alive);
    for (int i = 0; i < 3; i++) {
        expect_turn(&c, 1000, DEVICE_WORK_RUN);
    }
    expect_turn(&c, 1000, DEVICE_WORK_RECORD); /* in the place of key 1 */
    EXPECT(f.n_alive == GRAPH_CACHE_GRAPHS && c.n_graphs == GRAPH_CACHE_GRAPHS, "%d alive, %d recordings",
           f.n_alive, c.n_graphs);
    graph_cache_clear(&c);
    EXPECT(f.n_alive == 0 && c.n_graphs == 0, "%d graphs are left", f.n_alive);
}

/* Begins a recording of two segments, and ends the first. */
static void cut_one(struct graph_cache *c, int64_t key)
{
    enum device_work work;
    expect_turn(c, key, DEVICE_WORK_RUN);
    EXPECT_OK(graph_cache_begin(c, &key, sizeof key, &work));
    EXPECT_OK(graph_cache_cut(c, false));
}

static void failed_segments_leave_nothing(void)
{
    struct fake f;
    struct graph_cache c = cache_of(&f);
    enum device_work work;
    cut_one(&c, 1);
    EXPECT_OK(graph_cache_end(&c, true)); /* the host failed between two segments */
    EXPECT(f.n_alive == 0 && c.n_graphs == 0, "%d alive, %d recordings", f.n_alive, c.n_graphs);
    cut_one(&c, 1);
    EXPECT_OK(graph_cache_next(&c, &work));
    EXPECT_OK(graph_cache_end(&c, true)); /* an op in the second */
    EXPECT(f.n_alive == 0 && c.n_graphs == 0, "%d alive, %d recordings", f.n_alive, c.n_graphs);
    cut_one(&c, 1);
    EXPECT_OK(graph_cache_next(&c, &work));
    f.fail_end = true;
    EXPECT_ERROR(graph_cache_cut(&c, false), STATUS_INTERNAL, "the recording is broken");
    f.fail_end = false;
    EXPECT(f.n_alive == 0 && c.n_graphs == 0, "%d alive, %d recordings", f.n_alive, c.n_graphs);
    cut_one(&c, 1);
    EXPECT_OK(graph_cache_next(&c, &work));
    EXPECT_OK(graph_cache_cut(&c, true)); /* an op in the second, before its cut */
    EXPECT(f.n_alive == 0 && c.n_graphs == 0, "%d alive, %d recordings", f.n_alive, c.n_graphs);
    cut_one(&c, 1);
    f.fail_begin = true;
    EXPECT_ERROR(graph_cache_next(&c, &work), STATUS_INTERNAL, "no recording begins");
    f.fail_begin = false;
    EXPECT_OK(graph_cache_end(&c, true));
    EXPECT(f.n_alive == 0 && c.n_graphs == 0, "%d alive, %d recordings", f.n_alive, c.n_graphs);
    EXPECT(segmented_turn(&c, 1, 2) == DEVICE_WORK_RUN, "not run");
    EXPECT(segmented_turn(&c, 1, 2) == DEVICE_WORK_RECORD, "not recorded");
    EXPECT(segmented_turn(&c, 1, 2) == DEVICE_WORK_REPLAYED, "not replayed");
    graph_cache_clear(&c);
}

int main(void)
{
    work_is_recorded_the_second_time();
    segments_are_one_recording();
    failed_segments_leave_nothing();
    keys_are_compared_whole();
    recordings_give_way_to_what_is_met_more_often();
    more_sizes_than_recordings();
    work_that_never_comes_back();
    failures_leave_nothing();
    return 0;
}
