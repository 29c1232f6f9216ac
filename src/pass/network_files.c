#include "pass/network_files.h"

#include "dev/host_view.h"

struct status network_files_load(struct network *n, const struct model_dir *m, enum model_task task,
                                 unsigned may_be_new, struct load_report *report)
{
    struct host_view master;
    struct status s = host_view_open(&master, &n->x, n->master);
    if (!failed(s)) {
        s = model_dir_read_weights(m, &n->params, master.host, task, may_be_new, report);
    }
    if (!failed(s)) {
        host_view_commit(&master, &n->x, n->master);
        network_weights_changed(n);
        exec_synchronize(&n->x); /* networks over these weights have streams of their own */
        s = n->x.status;
    }
    host_view_close(&master);
    return s;
}

struct status network_files_export(struct network *n, const char *path, struct model_dir_contents *contents)
{
    struct host_view master;
    struct status s = host_view_open(&master, &n->x, n->master);
    contents->params = &n->params;
    contents->master = master.host;
    if (!failed(s)) {
        s = model_dir_save(path, contents);
    }
    host_view_close(&master);
    return s;
}
