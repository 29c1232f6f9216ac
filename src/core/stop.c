#include "core/stop.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
enum { N_SIGNALS = sizeof signals / sizeof signals[0] };

static atomic_bool requested; /* lock free, for the handler */
static bool working, by_request;

static void on_signal(int signal_number)
{
    (void)signal_number;
    stop_request();
}

void stop_request(void)
{
    atomic_store(&requested, true);
}

void stop_begin_requests(void)
{
    by_request = true;
    working = false;
    atomic_store(&requested, false);
}

void stop_install(void)
{
    if (by_request) {
        return;
    }
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

const char *stop_cause(void)
{
    return by_request ? "a call" : "a signal";
}

struct status stop_before_work(void)
{
    return stop_requested()
               ? status_error(STATUS_PREEMPTED,
                              "stopped by %s before the first step; start the same command again",
                              stop_cause())
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
    return atomic_load(&requested);
}

struct status stop_explain(struct status s)
{
    return failed(s) && !working && stop_requested() ? stop_before_work() : s;
}
