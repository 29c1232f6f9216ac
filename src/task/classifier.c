#include "task/classifier.h"

#include "core/log.h"
#include "data/label_match.h"

struct status classifier_find(const struct finetune *f, enum model_task task, bool *has)
{
    const struct model_dir *m = &f->model;
    enum model_task held = (enum model_task)m->task;
    *has = held == task;
    return *has || !model_task_has_labels(held)
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s is a %s, but this task trains a %s, whose labels are of another kind",
                              m->path, m->family->class_of(held), m->family->class_of(task));
}

void classifier_set_labels(struct finetune *f, const struct label_names *labels, enum label_problem problem)
{
    struct buf names = {0};
    *model_dir_labels(&f->model) = (struct model_labels){.n = labels->n, .problem = problem, .names = labels};
    label_match_list(&names, labels);
    log_info("a new classifier for %s: %lld labels: %s", label_problem_name(problem), (long long)labels->n,
             buf_text(&names));
    buf_fini(&names);
}

void classifier_set_optimizer(struct optimizer *o, double weight_decay)
{
    o->weight_decay = weight_decay;
    o->eps = 1e-8;
}
