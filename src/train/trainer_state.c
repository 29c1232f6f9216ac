#include "train/trainer_state.h"

#include "dev/host_view.h"

struct status trainer_state_extras(struct trainer *t, struct checkpoint_contents *contents)
{
    char *choices;
    size_t n;
    TRY(exec_choices(&t->x, &choices, &n));
    contents->owned = choices;
    if (n > 0) {
        contents->extras[contents->n_extras++] = (struct checkpoint_extra){
            .file = TRAINER_STATE_CHOICES_FILE, .data = tensor_1d(choices, DTYPE_U8, (int64_t)n)};
    }
    if (!tensor_is_null(t->stage.histories)) {
        contents->extras[contents->n_extras++] =
            (struct checkpoint_extra){.file = TRAINER_STATE_HISTORIES_FILE,
                                      .tensor = TRAINER_STATE_HISTORIES,
                                      .data = t->stage.histories};
    }
    return status_ok();
}

/* Behind the ops before. */
static struct status resume_histories(struct trainer *t, const struct checkpoint *c)
{
    struct host_view histories;
    if (tensor_is_null(t->stage.histories)) {
        return status_ok();
    }
    TRY(host_view_open_blank(&histories, &t->x, t->stage.histories));
    struct status s =
        checkpoint_read_extra(c, TRAINER_STATE_HISTORIES_FILE, TRAINER_STATE_HISTORIES, histories.host);
    if (!failed(s)) {
        host_view_commit(&histories, &t->x, t->stage.histories);
    }
    host_view_close(&histories);
    return s;
}

struct status trainer_state_resume(struct trainer *t, const struct checkpoint *c)
{
    struct host_view master = {0}, m = {0}, v = {0};
    const struct checkpoint_file *choices = checkpoint_find(c, TRAINER_STATE_CHOICES_FILE);
    if (choices != NULL && choices->map.n > 0) { /* before anything is timed */
        exec_take_choices(&t->x, choices->map.data, choices->map.n, c->path);
    }
    struct status s = host_view_open(&master, &t->x, t->master);
    if (!failed(s)) {
        s = host_view_open(&m, &t->x, t->exp_avg);
    }
    if (!failed(s)) {
        s = host_view_open(&v, &t->x, t->exp_avg_sq);
    }
    if (!failed(s)) {
        s = checkpoint_read_weights(c, &t->params, 0, master.host);
    }
    if (!failed(s)) {
        s = checkpoint_read_moments(c, &t->params, t->update.shard.begin, m.host, v.host);
    }
    if (!failed(s)) {
        s = resume_histories(t, c);
    }
    if (!failed(s)) {
        host_view_commit(&master, &t->x, t->master);
        host_view_commit(&m, &t->x, t->exp_avg);
        host_view_commit(&v, &t->x, t->exp_avg_sq);
        trainer_weights_changed(t);
        s = t->x.status;
    }
    host_view_close(&v);
    host_view_close(&m);
    host_view_close(&master);
    return s;
}

struct status trainer_state_load(struct trainer *t, const struct model_dir *m, int task, unsigned may_be_new,
                                 struct load_report *report)
{
    struct host_view master;
    struct status s = host_view_open(&master, &t->x, t->master);
    if (!failed(s)) {
        s = model_dir_read_weights(m, &t->params, master.host, task, may_be_new, report);
    }
    if (!failed(s)) {
        host_view_commit(&master, &t->x, t->master);
        trainer_weights_changed(t);
        exec_synchronize(&t->x); /* trainers over these weights have streams of their own */
        s = t->x.status;
    }
    host_view_close(&master);
    return s;
}

struct status trainer_state_export(struct trainer *t, const char *path, struct model_dir_contents *contents)
{
    struct host_view master;
    struct status s = host_view_open(&master, &t->x, t->master);
    contents->params = &t->params;
    contents->master = master.host;
    if (!failed(s)) {
        s = model_dir_save(path, contents);
    }
    host_view_close(&master);
    return s;
}
