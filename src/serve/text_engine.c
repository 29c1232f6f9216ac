#include "serve/text_engine.h"

#include "core/clock.h"
#include "core/signals.h"

#include <pthread.h>
#include <stdlib.h>

/* A session, and the works that it has begun or may begin. */
struct lane {
    struct text_engine *engine;
    struct session *session;
    struct work *works; /* the next to begin something first */
    bool generates;
    struct generator generator; /* state of a decoder's lane */
    struct lane *next;
};

struct text_engine {
    struct text_engine_options options;
    struct lane *lanes;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    struct work *incoming; /* the oldest first */
    bool ends;
    struct text_engine_load load;
};

/* ---- works ---- */

static void append(struct work **list, struct work *w)
{
    while (*list != NULL) {
        list = &(*list)->next;
    }
    *list = w;
    w->next = NULL;
}

static void forget(struct text_engine *e, const struct work *w)
{
    pthread_mutex_lock(&e->lock);
    e->load.n_works--;
    e->load.n_tokens -= w->n_tokens;
    pthread_mutex_unlock(&e->lock);
}

static struct status status_of(const struct work *w)
{
    for (int64_t i = 0; i < w->n_requests; i++) {
        TRY(w->requests[i]->status);
    }
    return status_ok();
}

static void end(struct text_engine *e, struct work *w, struct status why)
{
    forget(e, w);
    w->ended_ns = clock_ns();
    w->done(w->self, why);
}

static bool is_wanted(struct work *w)
{
    w->timed_out = w->timed_out || (w->deadline_ns > 0 && clock_ns() > w->deadline_ns);
    return !w->timed_out && (w->is_wanted == NULL || w->is_wanted(w->self));
}

/* Cancels a work: the part that has begun leaves at the next step; the rest does not begin. */
static void cancel(struct work *w)
{
    w->is_cancelled = true;
    w->n_wanted = w->n_begun;
    for (int64_t i = 0; i < w->n_begun && w->n_requests > 0; i++) {
        w->requests[i]->cancelled = true;
    }
    for (int64_t i = 0; i < w->n_begun && w->n_generations > 0; i++) {
        w->generations[i]->cancelled = true;
    }
}

static void cancel_unwanted(struct lane *l)
{
    for (struct work *w = l->works; w != NULL; w = w->next) {
        if (!w->is_cancelled && !is_wanted(w)) {
            cancel(w);
        }
    }
}

/* Ends the works of which nothing is left. */
static void end_over(struct lane *l)
{
    for (struct work **at = &l->works; *at != NULL;) {
        struct work *w = *at;
        if (w->n_ended < w->n_wanted) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        end(l->engine, w,
            w->is_cancelled ? status_error(STATUS_PREEMPTED, "the request was cancelled") : status_of(w));
    }
}

/* The next work that has something to begin, which goes to the end of the queue; NULL: none has. */
static struct work *rotate(struct lane *l)
{
    for (struct work **at = &l->works; *at != NULL; at = &(*at)->next) {
        struct work *w = *at;
        if (w->n_begun < w->n_wanted) {
            *at = w->next;
            append(&l->works, w);
            w->begun_ns = w->begun_ns == 0 ? clock_ns() : w->begun_ns;
            return w;
        }
    }
    return NULL;
}

/* ---- a lane of an encoder ---- */

/* Tokens of a request that are not in a batch yet, as far as they are fewer than `most`. */
static int64_t tokens_left(const struct request *r, int64_t most)
{
    int64_t n = 0;
    for (int64_t i = r->n_packed; i < r->source.n && n < most; i++) {
        n += r->source.length(r->source.self, r->order == NULL ? i : r->order[i]);
    }
    return n;
}

static int64_t tokens_in_packer(const struct lane *l, int64_t most)
{
    int64_t n = 0;
    for (const struct work *w = l->works; w != NULL; w = w->next) {
        for (int64_t i = w->n_ended; i < w->n_begun && n < most; i++) {
            n += tokens_left(w->requests[i], most);
        }
    }
    return n;
}

/* Requests for a batch or two, one of each work in rotation; what has not begun waits in the queue. */
static void feed(struct lane *l)
{
    struct packer *p = &l->session->packer;
    int64_t most = 2 * p->limits.n_tokens, n = tokens_in_packer(l, most);
    for (struct work *w; n < most && (w = rotate(l)) != NULL;) {
        struct request *r = w->requests[w->n_begun++];
        packer_add(p, r);
        n += tokens_left(r, most);
    }
}

static void collect(struct lane *l)
{
    for (struct work *w = l->works; w != NULL; w = w->next) {
        while (w->n_requests > 0 && w->n_ended < w->n_begun && w->requests[w->n_ended]->ended) {
            w->n_ended++;
        }
    }
}

static struct status step_encoder(struct lane *l)
{
    bool more;
    feed(l);
    struct status s = packer_step(&l->session->packer, &more);
    collect(l);
    return s;
}

/* ---- a lane of a decoder ---- */

static struct status next(void *self, bool may_wait, struct generation **g)
{
    struct work *w = rotate(self);
    (void)may_wait;
    *g = w == NULL ? NULL : w->generations[w->n_begun++];
    if (w != NULL) {
        (*g)->owner = w;
    }
    return status_ok();
}

static struct status told(void *self, struct generation *g)
{
    struct work *w = g->owner;
    (void)self;
    if (w->told != NULL) {
        w->told(w->self, g);
    }
    w->n_ended += g->end != GENERATION_GOES_ON;
    return status_ok();
}

static void init_generator(struct lane *l)
{
    const struct generation_source source = {.next = next, .told = told, .self = l};
    generator_init(&l->generator, l->session, &source);
}

/* ---- the thread ---- */

/* Ends all works of a lane, whose packer and generator hold none of them any more. */
static void end_all(struct lane *l, struct status why)
{
    for (struct work *w; (w = l->works) != NULL;) {
        l->works = w->next;
        end(l->engine, w, why);
    }
}

/* The rate of the last second counts as much as all before. */
static void measure_rate(struct text_engine_load *load, double seconds)
{
    double rate = (double)load->last_batch_tokens / seconds, weight = seconds < 1 ? seconds / 2 : 0.5;
    load->tokens_per_s = load->tokens_per_s > 0 ? (1 - weight) * load->tokens_per_s + weight * rate : rate;
}

/* Counts the step that a lane has done, in which a decoder's texts got their next tokens, or a batch was
 * begun. */
static void count_step(struct lane *l, struct generate_times before, int64_t began_ns)
{
    const struct packer *p = &l->session->packer;
    const struct batch *b = &p->turns[1 - p->turn].batch;
    const struct generate_times *now = &l->generator.times;
    struct text_engine_load *load = &l->engine->load;
    int64_t n_prompt = now->prompt_tokens - before.prompt_tokens, n_new = now->new_tokens - before.new_tokens;
    pthread_mutex_lock(&l->engine->lock);
    load->prompt_tokens += n_prompt;
    load->new_tokens += n_new;
    load->last_batch_tokens = l->generates ? n_prompt + n_new : b->n_real_tokens;
    load->last_batch_texts = l->generates ? l->generator.n_running : b->n_sequences;
    if (load->last_batch_tokens > 0) {
        load->n_batches++;
        load->n_batch_tokens += load->last_batch_tokens;
        measure_rate(load, clock_since_s(began_ns));
    }
    pthread_mutex_unlock(&l->engine->lock);
}

/* A failure of the device is that of all works in the lane. */
static void step(struct lane *l)
{
    int64_t began = clock_ns();
    struct generate_times before = l->generator.times;
    bool more;
    cancel_unwanted(l);
    struct status s = l->generates ? generator_step(&l->generator, false, &more) : step_encoder(l);
    count_step(l, before, began);
    end_over(l);
    if (failed(s) && l->generates) {
        generator_fini(&l->generator);
        init_generator(l);
    }
    if (failed(s)) {
        end_all(l, s);
    }
}

static bool has_work(const struct text_engine *e)
{
    for (const struct lane *l = e->lanes; l != NULL; l = l->next) {
        if (l->works != NULL) {
            return true;
        }
    }
    return false;
}

/* Moves what has come to its lanes, waiting if nothing else is to be done.  False: the engine ends. */
static bool receive(struct text_engine *e)
{
    pthread_mutex_lock(&e->lock);
    while (e->incoming == NULL && !e->ends && !has_work(e)) {
        pthread_cond_wait(&e->changed, &e->lock);
    }
    for (struct work *w; (w = e->incoming) != NULL;) {
        e->incoming = w->next;
        append(&w->lane->works, w);
    }
    bool goes_on = !e->ends;
    pthread_mutex_unlock(&e->lock);
    return goes_on;
}

/* Ends a lane with the engine: nobody waits for its works any more. */
static void end_lane(struct lane *l)
{
    bool more = l->works != NULL && !l->generates;
    for (struct work *w = l->works; w != NULL; w = w->next) {
        cancel(w);
    }
    while (more && !failed(packer_step(&l->session->packer, &more))) {
    }
    if (l->generates) {
        generator_fini(&l->generator);
    }
    end_all(l, status_error(STATUS_UNAVAILABLE, "the server is ending"));
}

static void *run(void *self)
{
    struct text_engine *e = self;
    while (receive(e)) {
        for (struct lane *l = e->lanes; l != NULL; l = l->next) {
            if (l->works != NULL) {
                step(l);
            }
        }
    }
    for (struct lane *l = e->lanes; l != NULL; l = l->next) {
        end_lane(l);
    }
    return NULL;
}

/* ---- the engine ---- */

struct status text_engine_create(struct text_engine **engine, const struct text_engine_options *o)
{
    struct text_engine *e = calloc(1, sizeof *e);
    *engine = e;
    FAIL_IF(e == NULL, STATUS_MEMORY, "out of memory for what computes");
    e->options = *o;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    return status_ok();
}

struct status text_engine_start(struct text_engine *e)
{
    sigset_t before;
    signals_block(&before);
    e->has_thread = pthread_create(&e->thread, NULL, run, e) == 0;
    signals_restore(&before);
    return e->has_thread ? status_ok()
                         : status_error(STATUS_MEMORY, "out of memory for the thread that computes");
}

static void free_lanes(struct text_engine *e)
{
    for (struct lane *l; (l = e->lanes) != NULL;) {
        e->lanes = l->next;
        if (l->generates) {
            generator_fini(&l->generator);
        }
        free(l);
    }
}

void text_engine_stop(struct text_engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->ends = true;
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
    if (e->has_thread) {
        pthread_join(e->thread, NULL);
        e->has_thread = false;
    }
}

void text_engine_destroy(struct text_engine *e)
{
    if (e == NULL) {
        return;
    }
    text_engine_stop(e);
    free_lanes(e);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

struct status text_engine_add_lane(struct text_engine *e, struct lane **lane, struct session *s)
{
    struct lane *l = calloc(1, sizeof *l);
    *lane = l;
    FAIL_IF(l == NULL, STATUS_MEMORY, "out of memory for a session's works");
    *l = (struct lane){.engine = e, .session = s, .next = e->lanes, .generates = s->pages.n > 0};
    e->lanes = l;
    if (l->generates) {
        init_generator(l);
    }
    return status_ok();
}

/* A work is admitted where it fits completely, and one that is alone always. */
static bool has_room(const struct text_engine *e, const struct work *w)
{
    const struct text_engine_load *load = &e->load;
    bool fits =
        load->n_works < e->options.max_works && load->n_tokens + w->n_tokens <= e->options.max_queue_tokens;
    return !e->ends && (load->n_works == 0 || fits);
}

bool text_engine_submit(struct text_engine *e, struct work *w, double *retry_after_s)
{
    pthread_mutex_lock(&e->lock);
    bool admitted = has_room(e, w);
    if (admitted) {
        w->timed_out = w->is_cancelled = false;
        w->n_begun = w->n_ended = 0;
        w->n_wanted = w->n_requests + w->n_generations;
        w->queued_ns = clock_ns();
        w->begun_ns = w->ended_ns = 0;
        e->load.n_works++;
        e->load.n_tokens += w->n_tokens;
        append(&e->incoming, w);
        pthread_cond_signal(&e->changed);
    } else {
        double rate = e->load.tokens_per_s;
        *retry_after_s = rate > 0 ? (double)e->load.n_tokens / rate : 1;
    }
    pthread_mutex_unlock(&e->lock);
    return admitted;
}

struct text_engine_load text_engine_load(struct text_engine *e)
{
    pthread_mutex_lock(&e->lock);
    struct text_engine_load load = e->load;
    pthread_mutex_unlock(&e->lock);
    return load;
}
