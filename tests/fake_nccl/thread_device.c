#include "thread_device.h"

#include "fake_stream.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>

struct work {
    struct work *next;
    void (*run)(void *argument);
    void *argument;
};

struct line {
    struct fake_stream base; /* the first member: its address is the line's */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct work *first, **end;
    bool is_closing, is_idle;
};

static void *run_line(void *line)
{
    struct line *l = line;
    pthread_mutex_lock(&l->mutex);
    while (l->first != NULL || !l->is_closing) {
        struct work *w = l->first;
        if (w == NULL) {
            l->is_idle = true;
            pthread_cond_broadcast(&l->changed);
            pthread_cond_wait(&l->changed, &l->mutex);
            continue;
        }
        l->first = w->next;
        l->end = l->first == NULL ? &l->first : l->end;
        pthread_mutex_unlock(&l->mutex);
        w->run(w->argument);
        free(w);
        pthread_mutex_lock(&l->mutex);
    }
    pthread_mutex_unlock(&l->mutex);
    return NULL;
}

static void give(struct fake_stream *stream, void (*run)(void *argument), void *argument)
{
    struct line *l = (struct line *)stream;
    struct work *w = malloc(sizeof *w);
    EXPECT(w != NULL, "out of memory");
    *w = (struct work){NULL, run, argument};
    pthread_mutex_lock(&l->mutex);
    *l->end = w;
    l->end = &w->next;
    l->is_idle = false;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
}

static void open_line(struct line *l)
{
    *l = (struct line){.base = {give}, .end = &l->first};
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->changed, NULL);
    EXPECT(pthread_create(&l->thread, NULL, run_line, l) == 0, "no thread");
}

static void wait_for_line(struct line *l)
{
    pthread_mutex_lock(&l->mutex);
    while (!l->is_idle) {
        pthread_cond_wait(&l->changed, &l->mutex);
    }
    pthread_mutex_unlock(&l->mutex);
}

static void close_line(struct line *l)
{
    pthread_mutex_lock(&l->mutex);
    l->is_closing = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
    pthread_join(l->thread, NULL);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->mutex);
}

/* ---- the device ---- */

struct context {
    struct line line;
    const char *chip;
};

/* An event, as CUDA's: how often it was recorded, and reached. */
struct event {
    _Atomic int set, reached;
};

struct stream {
    struct line line;
    struct context *of;
    struct event before, after;
    int n_marks;
    struct event marks[];
};

static void reach(void *event)
{
    atomic_fetch_add(&((struct event *)event)->reached, 1);
}

struct wait {
    struct event *event;
    int until;
};

static void wait_for_event(void *argument)
{
    struct wait *w = argument;
    struct timespec pause = {.tv_nsec = 100000};
    while (atomic_load(&w->event->reached) < w->until) {
        nanosleep(&pause, NULL); /* time: between two looks, of any number */
    }
    free(w);
}

static void record(struct line *line, struct event *e)
{
    atomic_fetch_add(&e->set, 1);
    give(&line->base, reach, e);
}

static struct status order(struct line *first, struct line *second, struct event *e)
{
    struct wait *w = malloc(sizeof *w);
    EXPECT(w != NULL, "out of memory");
    record(first, e);
    *w = (struct wait){e, atomic_load(&e->set)};
    give(&second->base, wait_for_event, w);
    return status_ok();
}

static struct status open_stream(void **stream, void *context, int n_marks)
{
    struct stream *s = calloc(1, sizeof *s + (size_t)n_marks * sizeof s->marks[0]);
    EXPECT(s != NULL, "out of memory");
    s->of = context;
    s->n_marks = n_marks;
    open_line(&s->line);
    *stream = s;
    return status_ok();
}

/* The context may be waiting for an event of the stream. */
static void close_stream(void *stream)
{
    struct stream *s = stream;
    close_line(&s->line);
    wait_for_line(&s->of->line);
    free(s);
}

static void *handle(void *stream)
{
    return stream;
}

static struct status follow(void *stream)
{
    struct stream *s = stream;
    return order(&s->of->line, &s->line, &s->before);
}

static struct status lead(void *stream)
{
    struct stream *s = stream;
    return order(&s->line, &s->of->line, &s->after);
}

static struct status mark(void *stream, int i)
{
    struct stream *s = stream;
    EXPECT(i >= 0 && i < s->n_marks, "mark %d of %d", i, s->n_marks);
    record(&s->line, &s->marks[i]);
    return status_ok();
}

static struct status reached(void *stream, int i, bool *is_reached)
{
    struct event *e = &((struct stream *)stream)->marks[i];
    *is_reached = atomic_load(&e->reached) == atomic_load(&e->set);
    return status_ok();
}

static struct status chip(void *context, char name[DEVICE_CHIP_BYTES])
{
    snprintf(name, DEVICE_CHIP_BYTES, "%s", ((struct context *)context)->chip);
    return status_ok();
}

static const struct device_streams streams = {.open = open_stream,
                                              .close = close_stream,
                                              .handle = handle,
                                              .follow = follow,
                                              .lead = lead,
                                              .mark = mark,
                                              .reached = reached,
                                              .chip = chip};

static struct status synchronize(void *context)
{
    wait_for_line(&((struct context *)context)->line);
    return status_ok();
}

static struct status copy(void *context, void *to, const void *from, size_t bytes)
{
    wait_for_line(&((struct context *)context)->line);
    memcpy(to, from, bytes);
    return status_ok();
}

const struct device device_threads = {
    .name = "threads", .copy_in = copy, .copy_out = copy, .synchronize = synchronize, .streams = &streams};

struct exec thread_device_exec(const char *chip)
{
    struct context *c = calloc(1, sizeof *c);
    EXPECT(c != NULL, "out of memory");
    c->chip = chip;
    open_line(&c->line);
    return (struct exec){.device = &device_threads, .context = c, .layer_index = -1};
}

void thread_device_close(struct exec *x)
{
    close_line(&((struct context *)x->context)->line);
    free(x->context);
}

void thread_device_give(struct exec *x, void (*work)(void *argument), void *argument)
{
    give(&((struct context *)x->context)->line.base, work, argument);
}
