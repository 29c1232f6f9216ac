#include "pass/network_files.h"

#include "dev/host_view.h"
#include "pass/weight_window.h"

/* A sink that tells what goes into another. */
struct watched_sink {
    struct weight_sink inner;
    const struct load_watch *watch;
    int64_t n_done, n; /* elements */
};

static struct status place(void *self, const struct param *p, tensor *values)
{
    struct watched_sink *w = self;
    return w->inner.place(w->inner.self, p, values);
}

static struct status put(void *self, const struct param *p, tensor values)
{
    struct watched_sink *w = self;
    TRY(w->inner.put(w->inner.self, p, values));
    w->n_done += tensor_count(values);
    return w->watch->told(w->watch->self, (double)w->n_done / (double)w->n)
               ? status_ok()
               : status_error(STATUS_PREEMPTED, "the caller has stopped the reading of weights");
}

static struct status current(void *self, const struct param *p, tensor *values)
{
    struct watched_sink *w = self;
    return w->inner.current(w->inner.self, p, values);
}

struct status network_files_load(struct network *n, const struct model_dir *m, enum model_task task,
                                 unsigned may_be_new, const struct load_watch *watch,
                                 struct load_report *report)
{
    struct weight_window window;
    TRY(weight_window_open(&window, n));
    struct watched_sink watched = {weight_window_sink(&window), watch, 0, param_table_count(&n->params)};
    struct weight_sink sink =
        watch == NULL
            ? watched.inner
            : (struct weight_sink){.self = &watched, .place = place, .put = put, .current = current};
    struct status s = model_dir_read_into(m, &n->params, &sink, task, may_be_new, report);
    struct status written = weight_window_close(&window);
    return failed(s) ? s : written;
}

struct status network_files_export(struct network *n, const char *path, struct model_dir_contents *contents)
{
    struct host_view master;
    CHECK(network_has_master(n), "a network without a whole master is saved");
    struct status s = host_view_open(&master, &n->x, n->master);
    contents->params = &n->params;
    contents->master = master.host;
    if (!failed(s)) {
        s = model_dir_save(path, contents);
    }
    host_view_close(&master);
    return s;
}
