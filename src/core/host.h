/* host: the names of the machine and of its processor, for logs and reports. */
#ifndef KILN_CORE_HOST_H
#define KILN_CORE_HOST_H

struct host_text {
    char text[128];
};

/* Name of this host; "localhost" if it has none. */
struct host_text host_name(void);

/* An identifier of this boot of the machine, the same in all its containers; "-" if there is none. */
struct host_text host_boot(void);

/* Name and boot id, for ranks to find out who is on the same node: containers of one machine have its boot
 * id, but names, networks and perhaps /dev/shm of their own. */
struct host_text host_node(void);

/* Name of the processor, as /proc/cpuinfo has it; "unknown" if it has none. */
struct host_text host_cpu_name(void);

#endif
