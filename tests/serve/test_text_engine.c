/* The engine: threads hand over works of two lanes, which join, leave, fail and are cancelled at every turn;
 * those that stay have the bits that they have alone.  Nothing here waits for time. */
#define _GNU_SOURCE
#include "serve/text_engine.h"
#include "serve/classify_texts.h"
#include "session_case.h"

#include "core/clock.h"

#include <pthread.h>
#include <stdatomic.h>

enum { N_PROMPTS = 8, N_TOKENS = 12, N_THREADS = 4 };

static const char *const prompts[N_PROMPTS] = {
    "the end and the hand", "a",   "and the sea and the land", "the hand that", "of",
    "the end of the hand",  "sea", "the end and the sea"};

static const struct generate_options options = {
    .max_new_tokens = N_TOKENS,
    .choice = {.temperature = 1, .top_k = 20, .top_p = 1, .repetition_penalty = 1},
    .ignore_eos = true,
    .seed = 7};

/* What waits for a work. */
struct client {
    struct work work;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_ended;
    struct status status;
    atomic_bool has_left;
    int told, leave_after; /* tokens; < 0: never */
    struct generation texts[N_PROMPTS], *generations[N_PROMPTS];
};

static bool is_wanted(void *self)
{
    return !atomic_load(&((struct client *)self)->has_left);
}

static void told(void *self, struct generation *g)
{
    struct client *c = self;
    (void)g;
    if (c->told++ == c->leave_after) {
        atomic_store(&c->has_left, true);
    }
}

static void done(void *self, struct status s)
{
    struct client *c = self;
    pthread_mutex_lock(&c->lock);
    c->status = s;
    c->has_ended = true;
    pthread_cond_signal(&c->ended);
    pthread_mutex_unlock(&c->lock);
}

static void client_init(struct client *c, struct lane *lane)
{
    *c = (struct client){
        .leave_after = -1,
        .work = {.lane = lane, .is_wanted = is_wanted, .told = told, .done = done, .self = c}};
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->ended, NULL);
}

static void client_wait(struct client *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->has_ended) {
        pthread_cond_wait(&c->ended, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
}

static void submit(struct text_engine *e, struct client *c)
{
    double retry_after_s;
    EXPECT(text_engine_submit(e, &c->work, &retry_after_s), "a full queue");
}

/* ---- generations ---- */

/* The texts from `first` on, as they are numbered. */
static void take_prompts(struct client *c, const struct session *s, struct tokenizer_scratch *scratch,
                         int first, int n)
{
    for (int i = 0; i < n; i++) {
        const char *text = prompts[first + i];
        EXPECT_OK(generation_init(&c->texts[i], s, scratch, text, strlen(text), &options, first + i));
        c->generations[i] = &c->texts[i];
    }
    c->work.generations = c->generations;
    c->work.n_generations = n;
}

static void free_prompts(struct client *c)
{
    for (int i = 0; i < c->work.n_generations; i++) {
        generation_fini(&c->texts[i]);
    }
}

struct alone {
    int32_t ids[N_PROMPTS][64];
    size_t n[N_PROMPTS];
};

/* Each prompt with nothing beside it. */
static void run_alone(struct alone *a, struct text_engine *e, struct lane *lane, struct session *s)
{
    for (int i = 0; i < N_PROMPTS; i++) {
        struct client c;
        client_init(&c, lane);
        take_prompts(&c, s, &s->scratch, i, 1);
        submit(e, &c);
        client_wait(&c);
        EXPECT_OK(c.status);
        EXPECT(c.texts[0].end == GENERATION_AT_LENGTH, "prompt %d ends by %d", i, (int)c.texts[0].end);
        a->n[i] = c.texts[0].ids.n;
        memcpy(a->ids[i], c.texts[0].ids.ids, a->n[i] * sizeof(int32_t));
        free_prompts(&c);
    }
}

static void expect_alone(const struct client *c, const struct alone *a, int first)
{
    for (int i = 0; i < c->work.n_generations; i++) {
        const struct generation *g = &c->texts[i];
        EXPECT(g->ids.n == a->n[first + i] &&
                   memcmp(g->ids.ids, a->ids[first + i], g->ids.n * sizeof(int32_t)) == 0,
               "prompt %d has other tokens beside others", first + i);
    }
}

struct thread {
    struct text_engine *e;
    struct lane *lane;
    const struct session *s;
    const struct alone *alone;
    int number;
};

/* Works of all sizes, of which every third leaves after each number of its tokens. */
static void *ask(void *self)
{
    const struct thread *t = self;
    struct tokenizer_scratch scratch;
    EXPECT_OK(tokenizer_scratch_init(&scratch, t->s->tokenizer));
    for (int round = 0; round < 3 * N_TOKENS; round++) {
        struct client c;
        int first = (round + t->number) % N_PROMPTS, n = 1 + (round + t->number) % (N_PROMPTS - first);
        bool leaves = round % 3 == 0;
        client_init(&c, t->lane);
        take_prompts(&c, t->s, &scratch, first, n);
        c.leave_after = leaves ? round / 3 : -1;
        submit(t->e, &c);
        client_wait(&c);
        if (failed(c.status)) {
            EXPECT(leaves, "a work that stays: %s", c.status.message);
            EXPECT_ERROR(c.status, STATUS_PREEMPTED, "cancelled");
        } else {
            expect_alone(&c, t->alone, first);
        }
        free_prompts(&c);
    }
    tokenizer_scratch_fini(&scratch);
    return NULL;
}

static void check_company(struct text_engine *e, struct lane *lane, struct session *s)
{
    struct alone alone;
    struct thread threads[N_THREADS];
    pthread_t ids[N_THREADS];
    run_alone(&alone, e, lane, s);
    for (int i = 0; i < N_THREADS; i++) {
        threads[i] = (struct thread){e, lane, s, &alone, i};
        EXPECT(pthread_create(&ids[i], NULL, ask, &threads[i]) == 0, "no thread");
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(ids[i], NULL);
    }
    struct text_engine_load load = text_engine_load(e);
    EXPECT(load.n_works == 0 && load.n_tokens == 0, "%lld works are left", (long long)load.n_works);
    EXPECT(s->pages.n_free == s->pages.n, "%lld of %lld pages are free", (long long)s->pages.n_free,
           (long long)s->pages.n);
}

/* A deadline that has passed, and one that is far. */
static void check_deadline(struct text_engine *e, struct lane *lane, struct session *s)
{
    for (int far = 0; far < 2; far++) {
        struct client c;
        client_init(&c, lane);
        take_prompts(&c, s, &s->scratch, 0, 2);
        c.work.deadline_ns = far ? clock_ns() + (int64_t)3600 * 1000000000 : 1;
        submit(e, &c);
        client_wait(&c);
        EXPECT(c.work.timed_out == !far, "deadline %d", far);
        EXPECT(failed(c.status) == !far, "deadline %d: %s", far, c.status.message);
        free_prompts(&c);
    }
}

/* ---- an encoder's lane ---- */

/* A work of many requests, and one of one that comes later and ends earlier. */
static void check_rotation(struct text_engine *e, struct lane *lane, struct session *s)
{
    enum { MANY = 3000 };
    struct client many, one;
    struct classify_job *jobs = calloc(MANY + 1, sizeof *jobs);
    struct request **requests = calloc(MANY + 1, sizeof *requests);
    EXPECT(jobs != NULL && requests != NULL, "no memory");
    for (int i = 0; i <= MANY; i++) {
        EXPECT_OK(classify_job_make(&jobs[i], s, &s->scratch, &session_case_texts[i % SESSION_CASE_TEXTS],
                                    NULL, 1, TEXT_CUT_END));
        requests[i] = &jobs[i].request;
    }
    client_init(&many, lane);
    client_init(&one, lane);
    many.work.requests = requests;
    many.work.n_requests = MANY;
    one.work.requests = requests + MANY;
    one.work.n_requests = 1;
    submit(e, &many);
    submit(e, &one);
    client_wait(&many);
    client_wait(&one);
    EXPECT_OK(many.status);
    EXPECT_OK(one.status);
    EXPECT(one.work.ended_ns < many.work.ended_ns, "the small work waits for all of the large one");
    for (int i = 0; i <= MANY; i++) {
        struct classify_result r;
        EXPECT_OK(classify_job_read(&jobs[i], &r));
        classify_result_fini(&r);
        classify_job_fini(&jobs[i]);
    }
    free(jobs);
    free(requests);
}

/* ---- limits and ends ---- */

/* A queue for one work refuses the next one while the first is there: it is, until the engine is stopped,
 * since it was never started. */
static void check_limits(struct session *s)
{
    struct text_engine *e;
    struct lane *lane;
    struct client first, second;
    double retry_after_s = 0;
    EXPECT_OK(text_engine_create(&e, &(struct text_engine_options){.max_queue_tokens = 10, .max_works = 8}));
    EXPECT_OK(text_engine_add_lane(e, &lane, s));
    client_init(&first, lane);
    client_init(&second, lane);
    take_prompts(&first, s, &s->scratch, 0, 1);
    take_prompts(&second, s, &s->scratch, 1, 1);
    first.work.n_tokens = 11;
    second.work.n_tokens = 1;
    EXPECT(text_engine_submit(e, &first.work, &retry_after_s), "one work alone is refused");
    EXPECT(!text_engine_submit(e, &second.work, &retry_after_s), "a full queue takes more");
    EXPECT(retry_after_s >= 1, "retry after %g s", retry_after_s);
    EXPECT_OK(text_engine_start(e));
    client_wait(&first);
    EXPECT_OK(first.status);
    EXPECT(text_engine_submit(e, &second.work, &retry_after_s), "an empty queue is full");
    client_wait(&second);
    text_engine_stop(e);
    EXPECT(!text_engine_submit(e, &second.work, &retry_after_s), "a stopped engine takes work");
    text_engine_destroy(e);
    free_prompts(&first);
    free_prompts(&second);
}

/* Works that wait when the engine stops. */
static void check_stop(struct session *s)
{
    struct text_engine *e;
    struct lane *lane;
    struct client c;
    EXPECT_OK(
        text_engine_create(&e, &(struct text_engine_options){.max_queue_tokens = 1000, .max_works = 8}));
    EXPECT_OK(text_engine_add_lane(e, &lane, s));
    client_init(&c, lane);
    take_prompts(&c, s, &s->scratch, 0, 4);
    submit(e, &c);
    EXPECT_OK(text_engine_start(e));
    text_engine_destroy(e);
    EXPECT(c.has_ended, "a work that waits for ever");
    EXPECT(!failed(c.status) || c.status.code == STATUS_UNAVAILABLE, "%s", c.status.message);
    free_prompts(&c);
}

int main(void)
{
    char directory[64], path[SESSION_CASE_PATH];
    struct session_options o = session_defaults();
    struct session decoder, classifier;
    struct text_engine *e;
    struct lane *texts, *labels;
    session_case_directory(directory, sizeof directory);
    session_case_unpack_classifiers(directory);
    session_case_unpack_golden(directory, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors");
    o.n_prompts = 3;
    snprintf(path, sizeof path, "%s/gpt2", directory);
    EXPECT_OK(session_open(&decoder, path, MODEL_TASK_CAUSAL_LM, &o));
    snprintf(path, sizeof path, "%s/single", directory);
    EXPECT_OK(session_open(&classifier, path, MODEL_TASK_SEQUENCE_CLASSIFICATION, &o));
    EXPECT_OK(
        text_engine_create(&e, &(struct text_engine_options){.max_queue_tokens = 1000, .max_works = 64}));
    EXPECT_OK(text_engine_add_lane(e, &texts, &decoder));
    EXPECT_OK(text_engine_add_lane(e, &labels, &classifier));
    EXPECT_OK(text_engine_start(e));
    check_company(e, texts, &decoder);
    check_deadline(e, texts, &decoder);
    check_rotation(e, labels, &classifier);
    text_engine_destroy(e);
    check_limits(&decoder);
    check_stop(&decoder);
    session_close(&decoder);
    session_close(&classifier);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
