/* network_files: the weights of a network from and to model directories, whatever memory its device has. */
#ifndef KILN_PASS_NETWORK_FILES_H
#define KILN_PASS_NETWORK_FILES_H

#include "model/model_dir.h"
#include "pass/network.h"

/* Who is told how much of the weights is there, from 0 to 1; false: no more is wanted. */
struct load_watch {
    bool (*told)(void *self, double fraction);
    void *self;
};

/* Reads the weights of a model directory for the network's task, one of its family.  `may_be_new` as for
 * model_dir_read_weights: those keep their values.  With a watch, which may be NULL, STATUS_PREEMPTED where
 * no more is wanted. */
struct status network_files_load(struct network *n, const struct model_dir *m, enum model_task task,
                                 unsigned may_be_new, const struct load_watch *watch,
                                 struct load_report *report);

/* Saves the weights, whose fp32 master must be complete, as the model directory PATH; contents->params and
 * ->master are set here. */
struct status network_files_export(struct network *n, const char *path, struct model_dir_contents *contents);

#endif
