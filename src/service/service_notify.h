/* service_notify: what a server and systemd tell each other: the socket that systemd opened, and the state of
 * the server (sd_listen_fds(3), sd_notify(3)).  Nothing where systemd did not start it. */
#ifndef KILN_SERVICE_SERVICE_NOTIFY_H
#define KILN_SERVICE_SERVICE_NOTIFY_H

/* The listening socket of LISTEN_FDS; -1: there is none. */
int service_notify_socket(void);

/* Sends "READY=1" and the like to NOTIFY_SOCKET. */
void service_notify(const char *state);

#endif
