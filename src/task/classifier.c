#include "task/classifier.h"

#include "core/log.h"
#include "data/label_match.h"

struct status classifier_find(const struct finetune *f, enum bert_task task, bool *has)
{
    const struct model_dir *m = &f->model;
    enum bert_task held = (enum bert_task)m->task;
    *has = held == task;
    return *has || !bert_task_has_classifier(held)
               ? status_ok()
               : status_error(STATUS_DATA, "%s is a %s, whose labels are of another kind than those of a %s",
                              m->path, bert_task_class(held), bert_task_class(task));
}

void classifier_set_labels(struct finetune *f, const struct label_names *labels, enum bert_problem problem)
{
    struct buf names = {0};
    struct bert_config *config = bert_family_config(&f->model);
    config->labels = labels;
    config->num_labels = labels->n;
    config->problem = problem;
    label_match_list(&names, labels);
    log_info("a new classifier for %s: %lld labels: %s", bert_problem_name(problem), (long long)labels->n,
             buf_text(&names));
    buf_fini(&names);
}

void classifier_set_optimizer(struct optimizer *o, double weight_decay)
{
    o->weight_decay = weight_decay;
    o->eps = 1e-8;
}
