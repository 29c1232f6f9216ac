#include "train/trainer_state.h"

#include "dev/host_view.h"

struct status trainer_state_extras(struct trainer *t, struct checkpoint_contents *contents)
{
    char *choices;
    size_t n;
    TRY(exec_choices(&t->net.x, &choices, &n));
    contents->owned = choices;
    if (n > 0) {
        contents->extras[contents->n_extras++] = (struct checkpoint_extra){
            .file = TRAINER_STATE_CHOICES_FILE, .data = tensor_1d(choices, DTYPE_U8, (int64_t)n)};
    }
    if (!tensor_is_null(t->net.stage.histories)) {
        contents->extras[contents->n_extras++] =
            (struct checkpoint_extra){.file = TRAINER_STATE_HISTORIES_FILE,
                                      .tensor = TRAINER_STATE_HISTORIES,
                                      .data = t->net.stage.histories};
    }
    return status_ok();
}

/* After the ops queued so far. */
static struct status resume_histories(struct trainer *t, const struct training_state *from)
{
    struct host_view histories;
    if (tensor_is_null(t->net.stage.histories)) {
        return status_ok();
    }
    TRY(host_view_open_blank(&histories, &t->net.x, t->net.stage.histories));
    struct status s = from->kind->read_extra(from->self, TRAINER_STATE_HISTORIES_FILE,
                                             TRAINER_STATE_HISTORIES, histories.host);
    if (!failed(s)) {
        host_view_commit(&histories, &t->net.x, t->net.stage.histories);
    }
    host_view_close(&histories);
    return s;
}

struct status trainer_state_resume(struct trainer *t, const struct training_state *from)
{
    struct host_view master = {0}, m = {0}, v = {0};
    const struct file_map *choices = from->kind->find_file(from->self, TRAINER_STATE_CHOICES_FILE);
    if (choices != NULL && choices->n > 0) { /* before anything is timed */
        exec_take_choices(&t->net.x, choices->data, choices->n, from->path);
    }
    struct status s = host_view_open(&master, &t->net.x, t->net.master);
    if (!failed(s)) {
        s = host_view_open(&m, &t->net.x, t->exp_avg);
    }
    if (!failed(s)) {
        s = host_view_open(&v, &t->net.x, t->exp_avg_sq);
    }
    if (!failed(s)) {
        s = from->kind->read_weights(from->self, &t->net.params, 0, master.host);
    }
    if (!failed(s)) {
        s = from->kind->read_moments(from->self, &t->net.params, t->update.shard.begin, m.host, v.host);
    }
    if (!failed(s)) {
        s = resume_histories(t, from);
    }
    if (!failed(s)) {
        host_view_commit(&master, &t->net.x, t->net.master);
        host_view_commit(&m, &t->net.x, t->exp_avg);
        host_view_commit(&v, &t->net.x, t->exp_avg_sq);
        network_weights_changed(&t->net);
        s = t->net.x.status;
    }
    host_view_close(&v);
    host_view_close(&m);
    host_view_close(&master);
    return s;
}
