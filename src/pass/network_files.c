#include "pass/network_files.h"

#include "dev/host_view.h"
#include "pass/weight_window.h"

struct status network_files_load(struct network *n, const struct model_dir *m, enum model_task task,
                                 unsigned may_be_new, struct load_report *report)
{
    struct weight_window window;
    TRY(weight_window_open(&window, n));
    struct weight_sink sink = weight_window_sink(&window);
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
