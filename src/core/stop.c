#include "core/stop.h"

#include <signal.h>
#include <stddef.h>

static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
enum { N_SIGNALS = sizeof signals / sizeof signals[0] };

static volatile sig_atomic_t requested;
static bool working;

static void on_signal(int signal_number)
{
    (void)signal_number;
    requested = 1;
}

void stop_install(void)
{
    for (int i = 0; i < N_SIGNALS; i++) {
        /* SA_RESETHAND: a second signal gets the default action */
        int flags = signals[i] == SIGUSR1 ? 0 : (int)SA_RESETHAND;
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags}, before;
        sigemptyset(&action.sa_mask);
        sigaction(signals[i], NULL, &before);
        if (signals[i] != SIGHUP || before.sa_handler != SIG_IGN) {
            sigaction(signals[i], &action, NULL);
        }
    }
    signal(SIGPIPE, SIG_IGN); /* the reader of standard output may exit; training continues */
}

struct status stop_before_work(void)
{
    return requested ? status_error(STATUS_PREEMPTED,
                                    "stopped by a signal before the first step; start the same command again")
                     : status_ok();
}

void stop_begin_work(void)
{
    working = true;
    for (int i = 0; i < N_SIGNALS; i++) {
        struct sigaction action;
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler == on_signal) {
            action.sa_flags |= SA_RESTART;
            sigaction(signals[i], &action, NULL);
        }
    }
}

bool stop_requested(void)
{
    return requested != 0;
}

struct status stop_explain(struct status s)
{
    return failed(s) && !working && requested ? stop_before_work() : s;
}
