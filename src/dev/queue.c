#include "dev/queue.h"

static void take(struct exec *x, const char *what, struct status s)
{
    if (failed(s)) {
        exec_fail(x, s.code, what, "%s", s.message);
    }
}

void *queue_stage(struct exec *x, void *on_device, size_t bytes)
{
    void *on_host = NULL;
    if (x->device->is_host) {
        return failed(x->status) ? NULL : on_device;
    }
    if (!failed(x->status)) {
        take(x, "a copy", x->device->stage(x->context, &on_host, bytes));
    }
    return on_host;
}

void queue_send(struct exec *x, void *on_device, const void *on_host, size_t bytes)
{
    if (x->device->is_host || failed(x->status)) {
        return;
    }
    if (x->sending != NULL) {
        x->sending(x->sending_context, bytes, false);
    }
    take(x, "a copy", x->device->send(x->context, on_device, on_host, bytes));
    if (x->sending != NULL) {
        x->sending(x->sending_context, bytes, true);
    }
}

/* Makes the calls that a recording has kept after a replayed segment, and replays the segments after them.  A
 * call that fails ends the replay. */
static void replay_calls(struct exec *x)
{
    const struct device_graphs *graphs = x->device->graphs;
    const struct device_call *call = NULL;
    enum device_work work;
    exec_queued(x, "a replayed op");
    while (!failed(x->status) && graphs->kept != NULL && (call = graphs->kept(x->context)) != NULL) {
        call->function(call->self, x, call->t);
        if (!failed(x->status)) {
            take(x, "a recording", graphs->next(x->context, &work));
            exec_queued(x, "a replayed op");
        }
    }
}

bool queue_graph_begin(struct exec *x, const void *key, size_t key_bytes)
{
    const struct device_graphs *graphs = x->device->graphs;
    enum device_work work = DEVICE_WORK_RUN;
    if (failed(x->status)) {
        return false;
    }
    if (graphs != NULL) {
        take(x, "a recording", graphs->begin(x->context, key, key_bytes, &work));
    }
    x->recording = !failed(x->status) && work == DEVICE_WORK_RECORD;
    if (work == DEVICE_WORK_REPLAYED) {
        replay_calls(x);
    }
    return !failed(x->status) && work != DEVICE_WORK_REPLAYED;
}

void queue_graph_end(struct exec *x)
{
    if (x->recording || x->between) {
        x->recording = x->between = false;
        take(x, "a recording", x->device->graphs->end(x->context, failed(x->status)));
    }
}

/* Cuts a recording; one that a failure ended is not resumed. */
void queue_graph_cut(struct exec *x)
{
    queue_join(x, 0);
    if (x->recording) {
        x->recording = false;
        take(x, "a recording", x->device->graphs->cut(x->context, failed(x->status)));
        x->between = !failed(x->status);
    }
}

void queue_graph_resume(struct exec *x)
{
    enum device_work work = DEVICE_WORK_RUN;
    if (x->between && !failed(x->status)) {
        take(x, "a recording", x->device->graphs->next(x->context, &work));
        x->recording = !failed(x->status);
        x->between = !x->recording;
    }
}

void queue_graph_replay(struct exec *x)
{
    enum device_work work = DEVICE_WORK_RUN;
    if (!failed(x->status)) {
        take(x, "a recording", x->device->graphs->next(x->context, &work));
        replay_calls(x);
    }
}

void queue_call(struct exec *x, queue_function *function, void *self, tensor t)
{
    bool cuts = x->recording;
    CHECK(!x->beside, "a call of the host within work that runs beside");
    if (cuts) {
        queue_graph_cut(x);
    }
    if (cuts && x->between) {
        x->device->graphs->keep(x->context, &(struct device_call){function, self, t});
    }
    function(self, x, t);
    if (cuts) {
        queue_graph_resume(x);
    }
}

void queue_beside(struct exec *x)
{
    if (x->device->beside == NULL || failed(x->status)) {
        return;
    }
    x->beside = true;
    if (x->recording) {
        take(x, "work beside", x->device->beside->begin(x->context));
    }
}

void queue_back(struct exec *x)
{
    if (x->beside && x->recording) { /* after a failure too, so that later work is not beside */
        take(x, "work beside", x->device->beside->end(x->context));
    }
    x->beside = false;
}

void queue_join(struct exec *x, int n_left)
{
    if (x->device->beside != NULL && x->recording && !failed(x->status)) {
        take(x, "work beside", x->device->beside->join(x->context, n_left));
    }
}
