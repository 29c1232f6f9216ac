/* host_check: asks every host of a list, over ssh, how many cores it has: so that one that cannot be reached
 * is named before anything starts. */
#ifndef KILN_LAUNCH_HOST_CHECK_H
#define KILN_LAUNCH_HOST_CHECK_H

#include "launch/child.h"
#include "launch/host_list.h"

/* Why a job of ssh failed, by its message, and the command that mends it, in one line: "CAUSE: CURE". */
struct ssh_problem {
    char text[400];
};
struct ssh_problem host_check_explain(const struct child_job *job, const char *host, int64_t ssh_port);

/* Whether the name is this machine's. */
bool host_check_is_here(const char *name);

/* Appends the words that run a shell's command on a host: over ssh, or without it on this one. */
void host_check_add_shell(struct words *line, const char *host, int64_t ssh_port, const char *command);

/* Warns where this machine's own name has no address: mpirun then asks the resolver again and again, for
 * minutes. */
void host_check_own_name(void);

struct host_answer {
    bool reached;
    int64_t cores;              /* processor cores that a process there may use; 0: it did not say */
    struct ssh_problem problem; /* if it was not reached */
};

/* Asks all hosts at once, for at most limit_s; `answers` is [l->n]. */
struct status host_check_ask(struct host_answer *answers, const struct host_list *l, int64_t ssh_port,
                             double limit_s);

#endif
