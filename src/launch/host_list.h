/* host_list: the hosts of a job and the slots, one for each rank, that it may use on them, in the order of
 * their ranks.
 *
 * Names come from files and flags and end up in command lines of ssh and mpirun, so only letters, digits and
 * .-_ are accepted, and no '-' in front: a name can be neither a flag nor a piece of shell.
 *
 * Sources: DeepSpeed's hostfile (launcher/runner.py, fetch_hostfile) and Open MPI's (mpirun(1), "Specifying
 * Host Nodes"). */
#ifndef KILN_LAUNCH_HOST_LIST_H
#define KILN_LAUNCH_HOST_LIST_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum { HOST_NAME_BYTES = 254, HOST_MAX_SLOTS = 256 };

struct host {
    char name[HOST_NAME_BYTES];
    int n_slots;
    int16_t slots[HOST_MAX_SLOTS]; /* [n_slots], rising: numbers of its devices */
};

struct host_list {
    struct host *hosts; /* [n] */
    int n;
    size_t capacity;
};

/* Frees the list; safe on a zeroed struct. */
void host_list_fini(struct host_list *l);

/* STATUS_USAGE if the text cannot be the name of a host; `source` begins the message. */
struct status host_list_check_name(const char *name, const char *source);

/* Appends a host with the slots 0 to n_slots - 1.  STATUS_USAGE: a bad or second name, or a number of slots
 * that is out of range; `source` begins the message. */
struct status host_list_add(struct host_list *l, const char *name, int64_t n_slots, const char *source);

/* Lines "HOST slots=N"; blank lines and what follows '#' are left out.  STATUS_DATA: no such file;
 * STATUS_USAGE names the line. */
struct status host_list_read(struct host_list *l, const char *path);

/* DeepSpeed's --world_info: base64 of {"HOST": [SLOT, ...], ...}. */
struct status host_list_decode(struct host_list *l, const char *world_info);

/* Index of the host; -1: it is not in the list. */
int host_list_find(const struct host_list *l, const char *name);

/* Number of ranks of all hosts together. */
int64_t host_list_n_ranks(const struct host_list *l);

/* Removes the host at this index. */
void host_list_remove(struct host_list *l, int index);

#endif
