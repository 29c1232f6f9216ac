#include "service/service_notify.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int service_notify_socket(void)
{
    enum { FIRST_SOCKET = 3 }; /* SD_LISTEN_FDS_START */
    const char *process = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
    bool is_ours = process != NULL && n != NULL && strtol(process, NULL, 10) == (long)getpid();
    return is_ours && strtol(n, NULL, 10) >= 1 ? FIRST_SOCKET : -1;
}

void service_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = path == NULL ? 0 : strlen(path);
    if (n == 0 || n >= sizeof to.sun_path) {
        return;
    }
    memcpy(to.sun_path, path, n);
    to.sun_path[0] = path[0] == '@' ? '\0' : path[0]; /* a name without a file */
    int s = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (s >= 0) {
        socklen_t n_address = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
        (void)sendto(s, state, strlen(state), 0, (const struct sockaddr *)&to, n_address);
        close(s);
    }
}
