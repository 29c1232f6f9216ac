/* host_filter: which of the hosts and slots of a list a job uses, in DeepSpeed's words (launcher/runner.py,
 * parse_resource_filter):
 *
 *     --include host1@host2:0,2     all of host1, slots 0 and 2 of host2
 *     --exclude host2:1             all but slot 1 of host2
 *     --num_nodes 2 --num_gpus 4    the first 2 hosts, the first 4 slots of each
 *
 * The order is that of the list. */
#ifndef KILN_LAUNCH_HOST_FILTER_H
#define KILN_LAUNCH_HOST_FILTER_H

#include "launch/host_list.h"

struct host_filter {
    const char *include, *exclude; /* NULL: not given */
    int64_t num_nodes, num_gpus;   /* 0 or -1: all */
};

/* Applies the filter to the list.  STATUS_USAGE: flags that exclude each other, a host or slot that the list
 * lacks, nothing left; the list is then partly filtered. */
struct status host_filter_apply(const struct host_filter *f, struct host_list *l);

#endif
