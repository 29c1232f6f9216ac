#include "train/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t requested;

static void on_signal(int signal_number)
{
    (void)signal_number;
    requested = 1;
}

void stop_install(void)
{
    /* SA_RESETHAND: the second signal meets the default action */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* who reads standard output may leave; training goes on */
}

bool stop_requested(void)
{
    return requested != 0;
}
