/* cgroup: what the control groups of this process allow: a container's, a job's (man 7 cgroups; the kernel's
 * cgroup-v2 and sched-bwc pages). */
#ifndef KILN_CORE_CGROUP_H
#define KILN_CORE_CGROUP_H

/* Visits the directory of the process's own group and those of its visible parents, the root of the tree
 * last: of version 2 ("") or of a controller of version 1 ("cpu").  A directory may not exist. */
typedef void cgroup_visitor(void *context, const char *directory);
void cgroup_visit(const char *controller, cgroup_visitor *visitor, void *context);

/* The processors whose time the process may use, as a number that may have a fraction: the least quota of its
 * groups; 0: no limit. */
double cgroup_processors(void);

/* The processors that one group allows, by a directory with its files: cpu.max of version 2, or
 * cpu.cfs_quota_us of version 1; 0: no limit. */
double cgroup_processors_of(const char *directory);

#endif
